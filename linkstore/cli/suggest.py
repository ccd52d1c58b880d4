"""``linkstore suggest``: links between pages that may be missing."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.output import get_stdout, note, write_json
from linkstore.cli.stores import JsonOption, StoreOption, open_core_store
from linkstore.core.display import escape_unprintable, format_count, make_readable

if TYPE_CHECKING:
    from linkstore.store.suggestions import LinkSuggestion

KOption = Annotated[
    int, typer.Option("-k", min=1, max=100_000, help="Maximum number of links to suggest.", show_default=True)
]
ApplyOption = Annotated[
    bool,
    typer.Option(
        "--apply", help="Write them as links of the kind 'suggested', which a search follows only by name."
    ),
]


def suggest(
    store: StoreOption, k: KOption = 20, apply: ApplyOption = False, json: JsonOption = False
) -> None:
    """Suggest links that may be missing, best first.

    Pages that name another page without a link to it come first, then pages that are near each other in
    meaning and by their links.
    """
    with open_core_store(store) as opened_store:
        found = opened_store.suggest_links(k)
        changed = opened_store.add_suggested_links(found) if apply else 0
    if json:
        write_json([asdict(one) for one in found])
    else:
        for number, one in enumerate(found, start=1):
            _show(number, one)
    if not found:
        note("no link seems to be missing: no page names another without a link, and none are near")
    if apply:
        note(f"wrote {format_count(len(found), 'link')} in {format_count(changed, 'document')}")


def _show(number: int, one: LinkSuggestion) -> None:
    console = get_stdout()
    source, target = make_readable(one.source_page), make_readable(one.target_page)
    heading = escape_unprintable(f"{number:3}. {source} → {target}  score {one.score:.3f}")
    console.print(heading, style="bold cyan")
    why = f"names it “{one.phrase}”" if one.reason == "named" else f"similarity {one.similarity:.2f}"
    console.print(escape_unprintable(f"     {why}: {one.passage}"))
