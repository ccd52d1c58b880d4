"""A wiki page as it was read: its blocks, categories and references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from linkstore.extraction import Hyperlink
from linkstore.ingest.html.blocks import Block
from linkstore.ingest.wiki.findings import Cited
from linkstore.ingest.wiki.layout import lay_out
from linkstore.ingest.wiki.marks import BREAK, shown, tidy
from linkstore.ingest.wiki.scanner import Scanner
from linkstore.ingest.wiki.titles import Target

Resolve = Callable[[str], Target | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """The content of a page.

    Args:
        blocks: Its text; among the links of a block, :class:`Cited` stands for a reference.
        categories: The names of its categories, in order.
        references: The wikitext of its references, by key.
    """

    blocks: tuple[Block, ...] = ()
    categories: tuple[str, ...] = ()
    references: Mapping[str, str] = field(default_factory=dict)


def read_article(text: str, *, title: str, resolve: Resolve) -> Article:
    """Read the wikitext of a page. Any text is valid wikitext.

    Args:
        text: The wikitext.
        title: The page's title.
        resolve: What the target of a link names.
    """
    scanned = Scanner(resolve, title).scan(text)
    return Article(
        blocks=tuple(lay_out(scanned)),
        categories=tuple(scanned.categories),
        references=scanned.references,
    )


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference as readers see it.

    Args:
        text: Its text.
        links: Its links that leave the wiki.
    """

    text: str
    links: tuple[Hyperlink, ...]


def read_reference(text: str, *, title: str, resolve: Resolve) -> Reference:
    """Read the wikitext of a reference."""
    scanned = Scanner(resolve, title).scan(text)
    outside = (link for link in scanned.links if not isinstance(link, Cited) and "//" in link.href)
    return Reference(shown(tidy(scanned.text.replace("\n", " ").replace(BREAK, " "))), tuple(outside))
