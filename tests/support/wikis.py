"""Small hand-written dumps for the tests of wikis."""

from __future__ import annotations

import bz2
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from linkstore.ingest.wiki.layout import REFERENCE, Article
from linkstore.ingest.wiki.source import read_article
from linkstore.ingest.wiki.titles import Namespace, SiteInfo, TitleResolver

NAMESPACES = {
    0: "",
    1: "Talk",
    2: "User",
    4: "Wikipedia",
    6: "File",
    10: "Template",
    14: "Category",
    100: "Portal",
}
BASE = "https://en.wikipedia.org/wiki/Main_Page"
HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo>
    <sitename>Wikipedia</sitename><dbname>enwiki</dbname><base>{base}</base><case>first-letter</case>
    <namespaces>{namespaces}</namespaces>
  </siteinfo>
"""


@dataclass(frozen=True)
class Written:
    """A page as it is put into a dump."""

    title: str
    text: str = ""
    namespace: int = 0
    redirect: str | None = None
    model: str = "wikitext"

    def xml(self) -> str:
        leads = f"<redirect title={quoteattr(self.redirect)} />" if self.redirect is not None else ""
        return (
            f"  <page>\n    <title>{escape(self.title)}</title>\n    <ns>{self.namespace}</ns>\n"
            f"    <id>1</id>{leads}<revision><id>2</id><contributor><username>text</username></contributor>"
            f"<comment>about [[it]]</comment><model>{self.model}</model><format>text/x-wiki</format>"
            f'<text xml:space="preserve">{escape(self.text)}</text><sha1>x</sha1></revision>\n  </page>\n'
        )


def dump_text(pages: Iterable[Written], base: str = BASE) -> str:
    """A whole dump."""
    names = "".join(
        f'<namespace key="{number}" case="first-letter">{name}</namespace>'
        for number, name in NAMESPACES.items()
    )
    return HEAD.format(base=base, namespaces=names) + "".join(page.xml() for page in pages) + "</mediawiki>\n"


def write_dump(path: Path, *pages: Written, base: str = BASE) -> Path:
    """Write a dump; compressed if the name says so."""
    content = dump_text(pages, base).encode()
    path.write_bytes(bz2.compress(content) if path.suffix == ".bz2" else content)
    return path


def wiki(base: str = BASE, language: str = "en", **fields) -> SiteInfo:
    """What a dump of English Wikipedia says of it."""
    namespaces = {number: Namespace(number=number, name=name) for number, name in NAMESPACES.items()}
    return SiteInfo(**{"base": base, "language": language, "namespaces": namespaces, **fields})


def titles(site: SiteInfo | None = None, **interwiki: str) -> TitleResolver:
    site = site or wiki()
    return TitleResolver(site, interwiki, site.folder)


ENGLISH = titles()


def article(text: str, title: str = "Here") -> Article:
    """A page of English Wikipedia."""
    return read_article(text, title=title, resolve=ENGLISH.resolve)


def lines(text: str) -> list[str]:
    """The texts of a page's blocks, headings with their ``=``."""
    return ["=" * block.level + block.text for block in article(text).blocks]


def links(text: str) -> list[tuple[str, str]]:
    """Address and label of each link of a page, in order; references left out."""
    return [
        (link.href, link.label)
        for block in article(text).blocks
        for link in block.links
        if not link.href.startswith(REFERENCE)
    ]
