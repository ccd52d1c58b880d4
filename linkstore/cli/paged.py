"""Hits by page, as text: each page once, with its best sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from linkstore.cli.output import printable, stdout
from linkstore.cli.render import indented, path_lines, worded
from linkstore.snippet import body_of, headings_of, title_of, url_of

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from rich.console import Console

    from linkstore.hits import Hit, Hits, PageHits

BEST_SECTIONS: Final = 3
"""How many sections of a page are shown."""
_SECTION_INDENT: Final = 5


def show_pages(hits: Hits, query: str) -> None:
    """Print pages: title and score, URL, then the best sections with snippet and path."""
    console = stdout()
    for rank, page in enumerate(hits.by_page(), 1):
        if rank > 1:
            console.print()
        _show_page(console, rank, page, query)


def _show_page(console: Console, rank: int, page: PageHits, query: str) -> None:
    from rich.text import Text

    best = page.hits[0].document
    title = title_of(best) or headings_of(best) or best.id or ""
    console.print(
        Text.assemble(
            (f"{rank}. ", "dim"), (printable(title), "bold cyan"), (f"  score {page.score:.3f}", "dim")
        )
    )
    url = url_of(best)
    indented(console, Text(printable(url.partition("#")[0] or url if url else page.page), style="green"))
    for place, hit in enumerate(page.hits[:BEST_SECTIONS]):
        _show_section(console, place, hit, query)


def _show_section(console: Console, place: int, hit: Hit, query: str) -> None:
    """Print heading, fragment and score of a section, its snippet, and the path of links to it.

    The score of the first section is that of its page, so it is not repeated.
    """
    from rich.text import Text

    _, _, fragment = (url_of(hit.document) or "").partition("#")
    name = "  ".join(part for part in (section_of(hit.document), fragment and f"#{fragment}") if part)
    rank = f"  score {hit.score:.3f}" if place else ""
    depth = f"  depth {hit.depth}" if hit.depth else ""
    shown = printable(name or "beginning")
    indented(console, Text.assemble(("- ", "dim"), (shown, "cyan"), (f"{rank}{depth}", "dim")))
    indented(console, worded(body_of(hit.document), query), _SECTION_INDENT)
    for step in path_lines(hit.path):
        indented(console, Text(printable(step), style="yellow"), _SECTION_INDENT)


def section_of(document: Document) -> str:
    """Return a document's headings below the title of its page, empty for the beginning of the page."""
    headings = document.metadata.get("headings")
    if not isinstance(headings, list):
        return ""
    names = [str(heading) for heading in headings]
    return " > ".join(names[1:] if names[:1] == [title_of(document)] else names)
