# extras: plot
# %% [markdown]
# # Quickstart: what links find
#
# Four documents about Seattle, one link, one question that similarity alone does not answer. No key, no server.
# %% [markdown]
# ## Documents and a link
#
# A link has a kind, a tag and a direction. The page about the Space Needle has an outgoing link with the tag `/uptown`,
# and the page about Uptown an incoming link with the same tag. So the first page leads to the second.
# %%
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links

needle = Document(id="needle", page_content="The Space Needle is a tower, the landmark of Seattle.")
fair = Document(id="fair", page_content="The World's Fair of 1962 left Seattle the Space Needle.")
train = Document(id="monorail", page_content="The monorail runs from downtown to the Space Needle.")
uptown = Document(id="uptown", page_content="Uptown has theatres, restaurants and late bars.")

add_links(needle, Link.outgoing(kind="hyperlink", tag="/uptown", label="the neighbourhood around it"))
add_links(uptown, Link.incoming(kind="hyperlink", tag="/uptown"))

store = LinkStore.open(":memory:")  # a path instead keeps it
store.add_documents([needle, fair, train, uptown])
# %% [markdown]
# ## The same question, by similarity and by default
# %%
from linkstore.strategies import Similarity

question = "Where do people eat near the Space Needle?"
print("similarity:", *(hit.document.id for hit in store.search(question, strategy=Similarity(k=3))))
print("default:   ", *(hit.document.id for hit in store.search(question, k=3)))
# %% [markdown]
# The page about Uptown has the answer, but does not mention the tower. The tower's page links to it.
# ## In LangChain
#
# The store is a LangChain `VectorStore`. The documents that its retriever returns have score, depth and path in their
# metadata.
# %%
retriever = store.as_retriever(search_kwargs={"k": 3})
for document in retriever.invoke(question):
    found = document.metadata["linkstore"]
    print(f"{found['score']:5.2f}  depth {found['depth']}  {document.page_content}")
# %% [markdown]
# ## A site
#
# linkstore comes with a small site of 15 pages. Its hyperlinks become links between sections.
# %%
from linkstore.cli.demo import QUESTION, site
from linkstore.ingest import FolderSource, index

city = LinkStore.open(":memory:")
with site() as folder:
    summary = index(city, FolderSource(folder))
print(f"{summary.pages.added} pages, {summary.chunks} chunks, links: {dict(summary.links)}")
# %% [markdown]
# The same question of this site. `show` shows what the default search found: the hits by page, and their graph, with the
# words of the links that were followed.
# %%
from linkstore.explorer import show

hits = city.search(QUESTION, k=4)
for page in hits.by_page():
    print(page.page, "←", page.hits[0].path[-1].label or "similar")
show(hits, QUESTION)
# %% [markdown]
# `uptown.html` is third of the site's 15 pages, by the link “the neighbourhood around it”.
