# installs: langchain-community<0.5 (langchain_community), langchain-graph-retriever (langchain_graph_retriever)
# %% [markdown]
# # From GraphVectorStore and graph-retriever to linkstore
#
# What changes in code that uses langchain-community's deprecated `GraphVectorStore`, or `langchain-graph-retriever`:
# the same documents, side by side. No key, no server.
# %% [markdown]
# ## GraphVectorStore: the links stay as they are
#
# Documents that were given links with langchain-community's `Link` are read as they are.
# %%
import warnings

from langchain_core.documents import Document

from linkstore import LinkStore

warnings.simplefilter("ignore")  # langchain-community says that it is deprecated
from langchain_community.graph_vectorstores import links as former

needle = Document(id="needle", page_content="The Space Needle is a tower, the landmark of Seattle.")
fair = Document(id="fair", page_content="The World's Fair of 1962 left Seattle the Space Needle.")
train = Document(id="monorail", page_content="The monorail runs from downtown to the Space Needle.")
uptown = Document(id="uptown", page_content="Uptown has theatres, record shops and late bars.")
former.add_links(needle, former.Link.outgoing(kind="hyperlink", tag="/uptown"))
former.add_links(uptown, former.Link.incoming(kind="hyperlink", tag="/uptown"))

store = LinkStore.open(":memory:")
store.add_documents([needle, fair, train, uptown])
# %% [markdown]
# `traversal_search` and `mmr_traversal_search` keep names and arguments. What they return carries the path now, and
# they can be called in a notebook: `CassandraGraphVectorStore` calls `asyncio.run`, which fails in one.
# %%
question = "Where can I go out near the Space Needle?"
for document in store.traversal_search(question, k=3, depth=1):
    print(document.metadata["linkstore"]["depth"], document.id)
print()
for document in store.mmr_traversal_search(question, k=2, depth=2, lambda_mult=0.5):
    print(document.metadata["linkstore"]["depth"], document.id)
# %% [markdown]
# A retriever is made as before:
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
# There an edge is a pair of metadata fields, declared where one asks: a document's `mentions` leads to documents whose
# `$id` is among them.
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
# Here the documents carry their links. A pair of fields becomes a kind: each value of the first field an outgoing
# link, each of the second an incoming one.
# %%
from linkstore import Link, add_links


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
# | `filter` | `filter`, and `seed_filter`, `hop_filter`, `result_filter` |
# | metadata `_depth`, `_similarity_score` | metadata `linkstore`: `depth`, `similarity`, `score`, `path` |
# %% [markdown]
# ## The same documents, and the way to each
# %%
from linkstore.drawing import draw
from linkstore.strategies import Eager

hits = ours.search(question, strategy=Eager(start_k=3, depth=1))
assert {hit.document.id for hit in hits} == {document.id for document in before.invoke(question)}
draw(hits, question)
