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
# ## The same question, without and with links
# %%
from linkstore.strategies import Eager

question = "Where do people eat near the Space Needle?"
for depth in (0, 1):
    hits = store.search(question, strategy=Eager(start_k=3, depth=depth))
    print(f"depth {depth}:", *(hit.document.id for hit in hits))
# %% [markdown]
# The page about Uptown has the answer, but does not mention the tower. The tower's page links to it. Each hit shows how
# it was reached:
# %%
print(hits[-1].path)
# %% [markdown]
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
# The same question of this site, by the default search. `show` shows what it found: the hits by page, and their graph.
# Each column is one more link followed, and the words on the lines are those of the links. Point at a document to see its
# links.
# %%
from linkstore.explorer import show

hits = city.search(QUESTION)
show(hits, QUESTION)
