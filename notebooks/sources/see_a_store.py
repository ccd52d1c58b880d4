# extras: plot
# %% [markdown]
# # See a store, and how an answer was found
#
# Why is this document in the answer, and why is that one not? Each hit has the path of links that led to it, and a search says
# what it left out. This notebook draws a store and an answer, and follows one document through two searches. No key, no
# server; where no script runs, as on GitHub, a still picture stands in the place of the page.
# %% [markdown]
# ## All pages of a store
#
# A small site about Seattle, which is installed with linkstore. Circles are pages, lines are links, and colours are
# communities: pages that link each other more than the rest.
# %%
from linkstore.explorer import show
from linkstore import LinkStore
from linkstore.cli.demo import QUESTION, site
from linkstore.ingest import FolderSource, index

store = LinkStore.open(":memory:")
with site() as folder:
    index(store, FolderSource(folder), name="seattle")
show(store)
# %% [markdown]
# ## An answer and its way
#
# The page that answers this question does not mention the Space Needle. A search follows the links of what it finds by
# similarity and by words, so the page is there:
# %%
from linkstore.strategies import Similarity

print(QUESTION)
linked = store.search(QUESTION)
for hit in linked:
    print(f"{hit.score:.2f}  {hit.path}")
# %% [markdown]
# The same as a picture: where the search started, and the links that it followed, with their texts.
# %%
show(linked, QUESTION)
# %% [markdown]
# ## Why is a document not there?
#
# By similarity alone, it is not among the first ten. How far down is it, and what is before it?
# %%
answer = "uptown.html"
behind = store.search(QUESTION, strategy=Similarity(k=100))
places = {hit.document.id: place for place, hit in enumerate(behind, 1)}
found = {hit.document.id: place for place, hit in enumerate(linked, 1)}
print(f"{answer} has rank {places[answer]} by similarity, and {found[answer]} with links")
for hit in behind[:4]:
    print(f"{hit.score:.2f}  {hit.document.id}")
# %% [markdown]
# A filter, a hub or a beam may also keep a document away. `explain` ends with what was left out and why; what a filter hides is
# not even counted:
# %%
narrow = store.search(QUESTION, k=3, filter={"page": {"$ne": answer}})
print(narrow.explain())
# %% [markdown]
# ## Take it along
#
# One HTML file without anything from elsewhere, Mermaid for Markdown, GraphML for Gephi and NetworkX:
# %%
from linkstore.explorer import render
from pathlib import Path
from tempfile import mkdtemp

file = Path(mkdtemp()) / "answer.html"
file.write_text(render(linked, QUESTION), encoding="utf-8")
print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")
print(linked.to_mermaid())
# %% [markdown]
# `linkstore serve --store kb` shows a store in the browser, with all of this and the text of each document, and says for any
# document why an answer does not have it. Here is the search that left the answer out:
# %%
show(narrow, QUESTION)
# %% [markdown]
# Without the page that answers, `mopop.html` is third: a filter hides a page as if it were not in the store.
