# extras: plot
# %% [markdown]
# # A wiki
#
# Index a MediaWiki dump, with its titles, sections, redirects and categories, and find answers along its links. No key,
# no server.
# %% [markdown]
# ## A dump
#
# Every MediaWiki can be exported as XML. Wikipedia's dumps are files such as `enwiki-latest-pages-articles.xml.bz2`;
# linkstore reads them as a stream, without unpacking them first. This notebook uses a small dump.
# %%
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

articles = {
    "Space Needle": """The '''Space Needle''' is an observation tower in [[Seattle]]. It was built for the
[[Century 21 Exposition|1962 World's Fair]] and stands in [[Seattle Center]], beside [[Lower Queen Anne]].

== Architecture ==
[[Edward E. Carlson]] drew the first sketch. [[Victor Steinbrueck]] gave it the hourglass profile.

[[Category:Towers in Washington (state)]]
[[Category:World's fair architecture in Seattle]]""",
    "Uptown, Seattle": """'''Uptown''' is a neighbourhood below [[Queen Anne, Seattle#Geography|the hill of Queen Anne]]. Its
streets have small theatres, record shops and bars.

[[Category:Neighborhoods in Seattle]]""",
    "Queen Anne, Seattle": """'''Queen Anne''' is a neighbourhood north-west of downtown [[Seattle]].

== Geography ==
The hill is the highest named hill of the city. [[Kerry Park]] on its southern slope has the famous view.

[[Category:Neighborhoods in Seattle]]""",
    "Victor Steinbrueck": """'''Victor Steinbrueck''' was an architect. He is best known for defending
[[Pike Place Market#Preservation|the market]] and [[Pioneer Square]] against urban renewal.""",
    "Pike Place Market": """'''Pike Place Market''' is a public market above the waterfront of [[Seattle]].

== Preservation ==
In 1971 voters made it a protected district of seven acres, after a campaign of eight years.

[[Category:Farmers' markets in the United States]]""",
    "Century 21 Exposition": """The '''Century 21 Exposition''' was a world's fair, held in [[Seattle]] in 1962. It left the
[[Space Needle]] and [[Seattle Center]].

[[Category:World's fairs in the United States]]
[[Category:World's fair architecture in Seattle]]""",
    "Seattle Center": """'''Seattle Center''' is a park on the grounds of the [[Century 21 Exposition|fair]], south of
[[Queen Anne, Seattle|Queen Anne]].""",
    "Kerry Park": """'''Kerry Park''' is a small park with a view over downtown and the [[Space Needle]].""",
    "Seattle": """'''Seattle''' is a city between Puget Sound and Lake Washington. Its landmarks are the [[Space
Needle]] and [[Pike Place Market]].""",
}
redirects = {"Lower Queen Anne": "Uptown, Seattle", "Seattle World's Fair": "Century 21 Exposition"}

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en"><siteinfo>
<sitename>Seattle wiki</sitename><base>https://wiki.example.org/wiki/Seattle</base><case>first-letter</case>
<namespaces><namespace key="0"/><namespace key="14">Category</namespace></namespaces></siteinfo>"""
PAGE = """<page><title>{title}</title><ns>0</ns><id>{number}</id>{redirect}<revision><id>{number}</id>
<model>wikitext</model><format>text/x-wiki</format><text>{text}</text></revision></page>"""


def dump(path):
    """Write the articles as MediaWiki exports them."""
    pages = [*((title, text, "") for title, text in articles.items())]
    pages += [
        (old, f"#REDIRECT [[{new}]]", f'<redirect title="{escape(new)}"/>') for old, new in redirects.items()
    ]
    rows = (
        PAGE.format(title=escape(title), number=number, text=escape(text), redirect=redirect)
        for number, (title, text, redirect) in enumerate(pages, 1)
    )
    path.write_text(HEAD + "".join(rows) + "</mediawiki>")


folder = Path(tempfile.mkdtemp())
dump(folder / "seattle.xml")
print((folder / "seattle.xml").stat().st_size, "bytes")
# %% [markdown]
# ## Index it
# %%
from linkstore import LinkStore
from linkstore.ingest import WikiDumpSource, index

store = LinkStore.open(folder / "store")
summary = index(store, WikiDumpSource(folder / "seattle.xml"), name="seattle")
print(summary.pages)
print(f"{summary.chunks} chunks;", dict(summary.links))
# %% [markdown]
# Links that authors wrote have the kind `hyperlink`, whatever their syntax. Articles of one category lead to each other by
# links of the kind `category`. The target of a link need not exist: there is no article on Carlson yet.
# %%
for near in store.links.neighbours(store.search("an observation tower")[0].document.id).outgoing:
    if near.link.kind != "section":
        print(f"{near.link.kind:10} {near.link.tag:55} → {', '.join(near.ids) or 'nothing here'}")
# %% [markdown]
# ## Redirects
#
# The tower's article links to “Lower Queen Anne”, which is a redirect. The link leads to the target of the redirect: the
# old name is a further incoming link of that article.
# %%
from linkstore.strategies import Eager

question = "Where can I go out near the tower of the World's Fair?"
hits = store.search(question, strategy=Eager(start_k=1, depth=1, kinds=["hyperlink"]))
for hit in hits:
    print(f"{hit.score:.2f}  {hit.document.metadata['title']:24} {hit.path}")
# %% [markdown]
# ## The next dump
#
# New dumps come every month. Pages that have not changed only cost a hash. Pages that no longer exist are removed with
# their links.
# %%
articles["Pike Place Market"] += "\n\n== Fish ==\nFishmongers throw salmon over the counter."
del articles["Kerry Park"]
dump(folder / "seattle.xml")
summary = index(store, WikiDumpSource(folder / "seattle.xml"), name="seattle")
print(summary.pages)
print(summary.dangling)
# %% [markdown]
# ## From an article to an answer
#
# The path has two links: from the tower to one of its architects, and from him to the section on how the market was
# saved.
# %%
from linkstore.explorer import show

question = "What did the architect who gave the tower its profile fight for?"
hits = store.search(question, strategy=Eager(start_k=1, depth=2, kinds=["hyperlink"], k=12))
answer = next(hit for hit in hits if "Preservation" in hit.document.metadata["headings"])
print(answer.path)
store.close()
show(hits, question)
# %% [markdown]
# Two links in a row, from `Space_Needle` to `Victor_Steinbrueck` to `Pike_Place_Market#Preservation`, lead to the answer.
