"""Lists broken links by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from linkstore.cli.output import note, printable, stdout, write_json
from linkstore.cli.render import indexed_page

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

_KIND: Final = "hyperlink"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenLink:
    """A link to a page or part of a page that is not in the store.

    Args:
        page: The page that it stands on.
        id: The id of its document.
        tag: The tag that it leads to.
        label: Its text, if any.
    """

    page: str
    id: str
    tag: str
    label: str | None


def show_broken(store: CoreStore, *, json: bool) -> None:
    """Print the links that lead nowhere, by page, and only count those to other sites."""
    from linkstore.ingest.summary import count_dangling
    from linkstore.urls import is_internal

    survey = store.survey()
    missing = frozenset(tag for kind, tag, _ in survey.dangling if kind == _KIND and is_internal(tag))
    external = count_dangling(survey).external
    found = _broken(store, missing) if missing else iter(())
    if json:
        write_json([asdict(one) for one in found])
    else:
        _show(found)
    if not missing:
        note("all links within the indexed sites lead to a page")
    if external:
        note(f"links to other sites: {external:,}, not looked at")


def _show(found: Iterator[BrokenLink]) -> None:
    from linkstore.letters import readable_url

    console = stdout()
    for page, links in groupby(found, key=lambda one: one.page):
        console.print(printable(page), style="bold cyan")
        for one in links:
            label = f" “{one.label}”" if one.label else ""
            console.print(printable(f"  {readable_url(one.tag)}{label}"))


def _broken(store: CoreStore, missing: frozenset[str]) -> Iterator[BrokenLink]:
    """Yield broken links in the order of the documents, in which those of a page are adjacent."""
    from linkstore.links import get_links

    for document in store.scan():
        for link in get_links(document):
            if link.kind == _KIND and link.leads_out and link.tag in missing:
                yield BrokenLink(
                    page=indexed_page(document), id=document.id or "", tag=link.tag, label=link.label
                )
