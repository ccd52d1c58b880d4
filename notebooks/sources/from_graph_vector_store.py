# installs: langchain-community<0.5 (langchain_community), langchain-graph-retriever (langchain_graph_retriever)
# extras: beautifulsoup4, plot
# %% [markdown]
# # From GraphVectorStore and graph-retriever to linkstore
#
# What changes in code that uses langchain-community's deprecated `GraphVectorStore`, or `langchain-graph-retriever`:
# the same documents, side by side. No key, no server.
# %% [markdown]
# ## The Space Needle example
#
# Two articles, of which one links to the other, and four posts that only name the tower. Links are extracted from the
# HTML as with langchain-community: `HtmlInput`, `extract_one`, `add_links` and `content_id` keep their names.
# %%
from bs4 import BeautifulSoup
from langchain_core.documents import Document

from linkstore import LinkStore, add_links
from linkstore_extractors.html import HtmlInput, HtmlLinkExtractor

articles = {
    "https://encyclopedia.example/Space_Needle": """<p>The <b>Space Needle</b> is an observation tower in Seattle,
Washington. It was built for the Century 21 Exposition of 1962, stands 184 metres tall, and has a restaurant and a
viewing deck near its top. It is the best-known landmark of the city, in the neighborhood of
<a href="/Lower_Queen_Anne">Lower Queen Anne</a>.</p>""",
    "https://encyclopedia.example/Lower_Queen_Anne": """<p><b>Lower Queen Anne</b>, also called Uptown, is a
neighborhood at the foot of Queen Anne Hill. Apartment blocks, bars, small theatres and record shops line its streets.
It has an arena, an opera house, a ballet and a science museum.</p>""",
}
posts = {
    "post-1": "omg you HAVE to see the Space Needle at night, the view is unreal!!",
    "post-2": "Space Needle selfie, day 3 of our trip. What a tower!",
    "post-3": "waited two hours in line for the Space Needle elevator, never again",
    "post-4": "anyone know a good coffee place? asking for a friend",
}

documents = [Document(page_content=text, metadata={"content_id": name}) for name, text in posts.items()]
extractor = HtmlLinkExtractor()
for url, html in articles.items():
    soup = BeautifulSoup(html, "html.parser")
    text = " ".join(soup.get_text().split())
    document = Document(page_content=text, metadata={"content_id": url.rpartition("/")[2]})
    add_links(document, extractor.extract_one(HtmlInput(soup, url)))
    documents.append(document)

city = LinkStore.from_documents(documents)  # in memory, with the built-in embedding
# %% [markdown]
# The posts name the tower more often than the articles do. So the three most similar documents do not include the
# article on the neighborhood. With `depth=1` the retriever also follows the link of the tower's article.
# %%
for depth in (0, 1):
    retriever = city.as_retriever(search_type="traversal", search_kwargs={"k": 3, "depth": depth})
    found = [document.id for document in retriever.invoke("What is close to the Space Needle?")]
    print(f"depth {depth}:", *found)
    assert ("Lower_Queen_Anne" in found) == (depth == 1)
# %% [markdown]
# ## GraphVectorStore: the links stay as they are
#
# Documents that were given links with langchain-community's `Link` are read as they are.
# %%
import warnings

warnings.simplefilter("ignore")  # langchain-community says that it is deprecated
from langchain_community.graph_vectorstores import links as former

needle = Document(id="needle", page_content="The Space Needle is a tower, the landmark of Seattle.")
fair = Document(id="fair", page_content="The World's Fair of 1962 left Seattle the Space Needle.")
train = Document(id="monorail", page_content="The monorail runs from downtown to the Space Needle.")
uptown = Document(id="uptown", page_content="Uptown has theatres, restaurants and late bars.")
former.add_links(needle, former.Link.outgoing(kind="hyperlink", tag="/uptown"))
former.add_links(uptown, former.Link.incoming(kind="hyperlink", tag="/uptown"))

store = LinkStore.open(":memory:")
store.add_documents([needle, fair, train, uptown])
# %% [markdown]
# `traversal_search` and `mmr_traversal_search` keep their names and arguments. The documents that they return now have
# the path, and they can be called in a notebook, where `CassandraGraphVectorStore` fails because it calls `asyncio.run`.
# %%
question = "Where do people eat near the Space Needle?"
for document in store.traversal_search(question, k=3, depth=1):
    print(document.metadata["linkstore"]["depth"], document.id)
print()
for document in store.mmr_traversal_search(question, k=2, depth=2, lambda_mult=0.5):
    print(document.metadata["linkstore"]["depth"], document.id)
# %% [markdown]
# Create a retriever as before:
# %%
retriever = store.as_retriever(search_type="mmr_traversal", search_kwargs={"k": 4, "depth": 1})
[document.id for document in retriever.invoke(question)]
# %% [markdown]
# A table of `CassandraGraphVectorStore` is copied with its vectors, without embedding anything again:
#
# ```
# linkstore migrate cassandra://host:9042/keyspace/table FOLDER --embedding-name openai:text-embedding-3-small
# ```
# %% [markdown]
# ## graph-retriever: edges become links
#
# In graph-retriever, an edge is a pair of metadata fields, which the retriever declares: a document's `mentions` lead to
# the documents with these values as their `$id`.
# %%
from graph_retriever.strategies import Eager as TheirEager
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_graph_retriever import GraphRetriever

from linkstore.embeddings import get_embedding

plain = [
    Document(id="needle", page_content=needle.page_content, metadata={"mentions": ["uptown"]}),
    Document(id="fair", page_content=fair.page_content, metadata={"mentions": ["needle"]}),
    Document(id="monorail", page_content=train.page_content, metadata={"mentions": ["needle"]}),
    Document(id="uptown", page_content=uptown.page_content, metadata={}),
]
theirs = InMemoryVectorStore(get_embedding("wordllama"))
theirs.add_documents(plain)
before = GraphRetriever(
    store=theirs, edges=[("mentions", "$id")], strategy=TheirEager(k=10, start_k=3, max_depth=1)
)
[document.id for document in before.invoke(question)]
# %% [markdown]
# In linkstore, the documents contain their links. A pair of fields becomes a kind: each value of the first field becomes
# an outgoing link, and each value of the second field an incoming link.
# %%
from linkstore import Link


def edges_to_links(document: Document, edges: list[tuple[str, str]]) -> Document:
    """A copy of a document with graph-retriever's edges as links."""
    copy = document.model_copy(deep=True)
    for source, target in edges:
        for value in values(document, source):
            add_links(copy, Link.outgoing(kind=source, tag=value))
        for value in values(document, target):
            add_links(copy, Link.incoming(kind=source, tag=value))
    return copy


def values(document: Document, field: str) -> list[str]:
    """The values of a field, of which `$id` is the document's id."""
    found = document.id if field == "$id" else document.metadata.get(field, [])
    return [str(value) for value in (found if isinstance(found, list | set | tuple) else [found])]


ours = LinkStore.open(":memory:")
ours.add_documents([edges_to_links(document, [("mentions", "$id")]) for document in plain])
after = ours.as_retriever(search_type="traversal", search_kwargs={"k": 3, "depth": 1})
[document.id for document in after.invoke(question)]
# %% [markdown]
# The settings by name:
#
# | graph-retriever | linkstore |
# |---|---|
# | `Eager(k=…, start_k=…)` | `Eager(k=…, start_k=…)` |
# | `max_depth` | `depth` |
# | `adjacent_k`, for all edges of a hop | `adjacent_k`, for each link group |
# | `edges=[("mentions", "$id")]` | `kinds=["mentions"]`, with weights `kinds={"mentions": 0.5}` |
# | `filter` | `filter`, and `seed_filter`, `hop_filter`, `link_filter`, `result_filter` |
# | metadata `_depth`, `_similarity_score` | metadata `linkstore`: `depth`, `similarity`, `score`, `path` |
# %% [markdown]
# ## The same documents, and the path to each
# %%
from linkstore.explorer import show
from linkstore.strategies import Eager

hits = ours.search(question, strategy=Eager(start_k=3, depth=1))
assert {hit.document.id for hit in hits} == {document.id for document in before.invoke(question)}
show(hits, question)
# %% [markdown]
# The same documents as with graph-retriever, `needle`, `fair`, `monorail` and `uptown`, each with the path that led to it.
