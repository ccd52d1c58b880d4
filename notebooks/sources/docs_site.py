# extras: plot
# %% [markdown]
# # A documentation site
#
# Index a folder of built HTML. Get answers with their section and the path that led there, and a list of the site's
# broken links. No key, no server.
# %% [markdown]
# ## A site
#
# Any folder of built HTML or Markdown will do: you can put the path of yours here. This notebook uses a copy of the site
# that ships with linkstore, and changes it below.
# %%
import shutil
import tempfile
from pathlib import Path

from linkstore.cli.demo import site

folder = Path(tempfile.mkdtemp()) / "site"
with site() as shipped:
    shutil.copytree(shipped, folder)
print(*sorted(path.name for path in folder.iterdir()), sep="\n")
# %% [markdown]
# ## Index it
#
# Pages are reduced to their main content and split at headings. Each chunk keeps its headings, its URL with the
# anchor, and its links. Navigation and footers are left out, because they are the same on every page.
# %%
from linkstore import LinkStore
from linkstore.ingest import FolderSource, index

store = LinkStore.open(folder.parent / "store")
summary = index(store, FolderSource(folder), name="seattle")
print(summary.pages)
print(f"{summary.chunks} chunks;", dict(summary.links))
# %% [markdown]
# ## Ask it
# %%
question = "What does the train pass through?"
for hit in store.search(question, k=3):
    metadata = hit.document.metadata
    print(f"{hit.score:.2f}  {' > '.join(metadata['headings'])}  ({metadata['url']})")
    print("     ", hit.document.page_content.splitlines()[-1][:100], "…")
# %% [markdown]
# ## Links lead to sections
#
# A link to `mopop.html#building` leads to the chunk with this section, and not to the beginning of the page.
# `neighbours` shows both directions:
# %%
around = store.links.neighbours("mopop.html#building")
for near in around.incoming:
    if near.link.kind == "hyperlink":
        print(f"who links to {near.link.tag}:", *near.ids)
for near in store.links.neighbours("monorail.html#route").outgoing:
    if near.link.kind == "hyperlink":
        print(f"monorail.html#route says {near.link.label!r} and leads to", *near.ids)
# %% [markdown]
# ## Change a page
#
# A second run indexes only what changed. Here a page gets a new section, and a link to a page that does not exist:
# %%
page = folder / "monorail.html"
html = page.read_text()
added = '<h2 id="strike">The strike</h2><p>In 1997 the drivers went on <a href="strike.html">strike</a>.</p>'
page.write_text(html.replace("</main>", added + "</main>"))

summary = index(store, FolderSource(folder), name="seattle")
print(summary.pages)
print("dangling:", summary.dangling)
# %% [markdown]
# ## Broken links and popular pages
#
# Links without a target, and pages that many others link to:
# %%
survey = store.survey()
print("dangling:", *(tag for kind, tag, _ in survey.dangling if kind == "hyperlink"))
print("\nmost linked:")
for page in summary.linked:
    print(f"{page.links:3} {'█' * page.links} {page.url}")
# %% [markdown]
# ## What was found, and how
#
# The page that answers this question does not name the tower:
# %%
from linkstore.cli.demo import QUESTION
from linkstore.explorer import show

hits = store.search(QUESTION, k=4)
print(next(hit.path for hit in hits if hit.depth))
store.close()
show(hits, QUESTION)
# %% [markdown]
# The link of `space-needle.html#location` led to `uptown.html`, and `/strike.html` is the one link that leads nowhere.
