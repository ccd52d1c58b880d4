# %% [markdown]
# # A documentation site
#
# From a folder of built HTML to answers with the section they stand in, the path that led there, and a list of what
# the site itself gets wrong. No key, no server.
# %% [markdown]
# ## A site
#
# Any folder of built HTML or Markdown will do: put the path of yours here. So that this runs everywhere, it takes the
# site that ships with linkstore, copied so that it can be changed below.
# %%
import shutil
import tempfile
from pathlib import Path

from linkstore.demo import site

folder = Path(tempfile.mkdtemp()) / "site"
with site() as shipped:
    shutil.copytree(shipped, folder)
print(*sorted(path.name for path in folder.iterdir()), sep="\n")
# %% [markdown]
# ## Index it
#
# Pages are reduced to their main content and split at headings; each chunk keeps its headings, its URL with the
# anchor, and its links. What stands in navigation and footers is on every page, and left out.
# %%
from linkstore import LinkStore
from linkstore.ingest import index_folder

store = LinkStore.open(folder.parent / "store")
summary = index_folder(store, folder, source="seattle")
print(summary.pages)
print(f"{summary.chunks} chunks;", dict(summary.links))
# %% [markdown]
# ## Ask it
# %%
from linkstore.strategies import Eager

question = "What does the train pass through?"
links = Eager(start_k=1, depth=1, kinds={"hyperlink": 1.0}, k=3)
hits = store.search(question, strategy=links)
for hit in hits:
    metadata = hit.document.metadata
    print(f"{hit.score:.2f}  {' > '.join(metadata['headings'])}  ({metadata['url']})")
    print("     ", hit.document.page_content.splitlines()[-1][:100], "…")
# %% [markdown]
# ## Where links meet
#
# A link to `mopop.html#building` leads to the chunk that holds this section, not to the page's beginning.
# `neighbours` shows both directions:
# %%
around = store.neighbours("mopop.html#building")
for near in around.incoming:
    if near.link.kind == "hyperlink":
        print(f"who links to {near.link.tag}:", *near.ids)
for near in store.neighbours("monorail.html#route").outgoing:
    if near.link.kind == "hyperlink":
        print(f"monorail.html#route says {near.link.label!r} and leads to", *near.ids)
# %% [markdown]
# ## Change a page
#
# A second run reads what changed and nothing else. Here a page gets a new section, and a link that leads nowhere:
# %%
page = folder / "monorail.html"
html = page.read_text()
added = '<h2 id="strike">The strike</h2><p>In 1997 the drivers went on <a href="strike.html">strike</a>.</p>'
page.write_text(html.replace("</main>", added + "</main>"))

summary = index_folder(store, folder, source="seattle")
print(summary.pages)
print("dangling:", summary.dangling)
# %% [markdown]
# ## What the site gets wrong
#
# Links that lead nowhere, and pages that many others link to:
# %%
survey = store.survey()
print("dangling:", *(tag for kind, tag, _ in survey.dangling if kind == "hyperlink"))
print("\nmost linked:")
for page in summary.linked:
    print(f"{page.links:3} {'█' * page.links} {page.url}")
# %% [markdown]
# ## What was found, and how
#
# The second half of this question is answered on a page that names neither tower nor fair:
# %%
from linkstore.drawing import draw

question = "Who drew the tower that became the symbol of the fair, and what else did he save?"
hits = store.search(question, strategy=Eager(start_k=2, depth=2, kinds={"hyperlink": 1.0}))
drawing = draw(hits, question, to="pike-place-market.html#saved")
store.close()
drawing
