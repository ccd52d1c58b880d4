"""``linkstore links``: shows the links of a document in both directions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from linkstore.cli.broken import show_broken
from linkstore.cli.exits import UsageError
from linkstore.cli.lookup import documents_meant
from linkstore.cli.options import JsonOption, StoreOption
from linkstore.cli.output import printable, stdout, write_json
from linkstore.cli.stores import core_opened
from linkstore.display import data_text
from linkstore.snippet import title_of, url_of

if TYPE_CHECKING:
    from linkstore.neighbours import Neighbour

SHOWN: Final = 5
"""How many documents at the other end of a link are named to a person; ``--json`` names all."""


def links(
    store: StoreOption,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="URL_OR_ID",
            help="The id of a document, the URL of a page, or a unique end of such a URL.",
        ),
    ] = None,
    broken: Annotated[
        bool, typer.Option("--broken", help="List hyperlinks without a target instead, by page.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the links of a document or page, in both directions."""
    if broken == (name is not None):
        raise UsageError("give the id of a document or the URL of a page, or --broken")
    with core_opened(store) as opened_store:
        if name is None:
            show_broken(opened_store, json=json)
            return
        found = []
        for document in documents_meant(opened_store, name):
            near = opened_store.neighbours(document.id or "")
            found.append(
                {
                    "id": document.id,
                    "url": url_of(document),
                    "title": title_of(document),
                    "outgoing": _rows(near.outgoing, "to"),
                    "incoming": _rows(near.incoming, "from"),
                }
            )
    if json:
        write_json(found)
    else:
        for entry in found:
            _show(entry)


def _rows(neighbours: Iterable[Neighbour], side: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": near.link.kind,
            "tag": near.link.tag,
            "label": near.link.label,
            "weight": near.link.weight,
            **({} if near.link.data is None else {"data": near.link.data}),
            side: list(near.ids),
            "more": near.more,
        }
        for near in neighbours
    ]


def _show(entry: dict[str, Any]) -> None:
    from linkstore.letters import readable_url

    console = stdout()
    console.print(printable(entry["id"]), style="bold cyan")
    for side, arrow, others in (("outgoing", "→", "to"), ("incoming", "←", "from")):
        for row in entry[side]:
            label = f" “{row['label']}”" if row["label"] else ""
            ids = _listed(row[others], more=row["more"])
            data = f" {data_text(row['data'])}" if "data" in row else ""
            console.print(printable(f"  {row['kind']} {readable_url(row['tag'])}{label}{data} {arrow} {ids}"))


def _listed(ids: Sequence[str], *, more: bool) -> str:
    """Format a few ids, and how many others there are."""
    if more:
        return "too many to list"
    rest = len(ids) - SHOWN
    return (", ".join(ids[:SHOWN]) or "nothing here") + (f" and {rest:,} more" if rest > 0 else "")
