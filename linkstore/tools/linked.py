"""The tools ``follow`` and ``links``: what a document links to, and what links to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from linkstore.display import amount, printable
from linkstore.hits import Chain, Triple
from linkstore.ids import is_storable
from linkstore.neighbours import SHOWN, Neighbour, Neighbours, neighbours
from linkstore.plans import Operation
from linkstore.searchoptions import SearchOptions
from linkstore.store.names import check_known
from linkstore.strategies import Eager
from linkstore.strategies.base import Walk
from linkstore.tools.answers import Answer, Result, nothing, shown
from linkstore.tools.limits import ToolLimits
from linkstore.tools.reading import documents_of, unknown_document
from linkstore.tools.view import View

ENDS: Final = 5
"""How many documents at the other end of a link ``links`` names."""


@dataclass(frozen=True, slots=True)
class _End:
    """A document at the other end of a link."""

    id: str
    triple: Triple


def follow(
    view: View,
    id: str,
    kinds: Sequence[str] | None,
    direction: Walk,
    limits: ToolLimits,
) -> Operation[Answer]:
    """Show the documents that the links of a document lead to.

    Args:
        view: Of the store.
        id: The document.
        kinds: Kinds of link to follow; None or none: all.
        direction: ``"forward"``, ``"backward"`` or ``"both"``.
        limits: Of the tools.

    Raises:
        UnknownNameError: If no document in the store has links of one of the kinds.
        StrategyError: If the direction or a kind is invalid.
        DocumentError: If there is no such document.
    """
    asked = Eager(kinds=kinds or None, direction=direction)
    yield from check_known(view.backend, asked, SearchOptions(filter=view.filter))
    near = yield from _near(view, id)
    sides = _sides(near, direction)
    chosen = [(one, away) for one, away in sides if asked.followed is None or one.link.kind in asked.followed]
    ends = list(_ends(id, chosen))
    large = [one for one, _ in chosen if one.more]
    if not ends:
        return nothing(_why(id, chosen, large), _remedies(near))
    documents = yield from documents_of(view, [end.id for end in ends[: limits.results]])
    results = [
        Result(
            document=documents[end.id],
            query=end.triple.label or "",
            width=limits.snippet,
            chains=(Chain(id, (end.triple,)),),
        )
        for end in ends[: limits.results]
        if end.id in documents
    ]
    heading = f"{len(results)} of {amount(len(ends), 'document')} that links of [{printable(id)}] lead to:"
    return shown(heading, results, list(_notes(len(ends) - len(results), large)), found=len(ends))


def links(view: View, id: str, limits: ToolLimits) -> Operation[Answer]:
    """List the links of a document, in both directions.

    Raises:
        DocumentError: If there is no such document.
    """
    near = yield from _near(view, id)
    sides = _sides(near, "both")
    taken = sides[: limits.links]
    counts = f"{amount(len(near.outgoing), 'link')} from it, {amount(len(near.incoming), 'link')} to it"
    lines = [f"[{printable(id)}]: {counts}.", *(_line(one, away=away) for one, away in taken)]
    if len(sides) > len(taken):
        lines.append(
            f"{amount(len(sides) - len(taken), 'more link')}; name kinds in follow to see where they lead."
        )
    data = {
        "id": id,
        "links": [_row(one, away=away) for one, away in taken],
        "outgoing": len(near.outgoing),
        "incoming": len(near.incoming),
    }
    return Answer(text="\n".join(lines), data=data)


def _near(view: View, id: str) -> Operation[Neighbours]:
    near: Neighbours | None = None
    if is_storable(id):
        near = yield from view.answer(neighbours(id))
    if near is None:
        raise unknown_document(id)
    return near


def _sides(near: Neighbours, direction: Walk) -> list[tuple[Neighbour, bool]]:
    """Return the links of these directions, and whether each leads away."""
    outgoing = [(one, True) for one in near.outgoing] if direction != "backward" else []
    incoming = [(one, False) for one in near.incoming] if direction != "forward" else []
    return [*outgoing, *incoming]


def _ends(id: str, sides: Iterable[tuple[Neighbour, bool]]) -> Iterator[_End]:
    """Yield the other documents, each once: of each link the most similar first, then the next of each."""
    known = {id}
    rows = [[(other, one, away) for other in one.ids] for one, away in sides]
    for entry in (entry for column in zip_longest(*rows) for entry in column if entry is not None):
        other, one, away = entry
        if other not in known:
            known.add(other)
            subject, object_ = (id, other) if away else (other, id)
            link = one.link
            yield _End(other, Triple(subject=subject, kind=link.kind, object=object_, label=link.label))


def _why(id: str, chosen: Sequence[tuple[Neighbour, bool]], large: Sequence[Neighbour]) -> str:
    if large:
        return "; ".join(map(_too_many, large))
    if chosen:
        return f"document {id!r} has {amount(len(chosen), 'link')} of this sort, to no document in the store"
    return f"document {id!r} has no links of this sort"


def _remedies(near: Neighbours) -> list[str]:
    """Advise on the links that the document does have."""
    found = []
    for name, own in (("forward", near.outgoing), ("backward", near.incoming)):
        kinds = sorted({one.link.kind for one in own if one.ids})
        if kinds:
            found.append(f"direction={name!r} leads to documents by links of the kinds {', '.join(kinds)}")
    return found or ["it has no links to other documents; search for something else"]


def _notes(rest: int, large: Iterable[Neighbour]) -> Iterator[str]:
    if rest > 0:
        yield f"{rest:,} more documents are not shown; name kinds to see fewer."
    yield from (f"Not followed: {_too_many(one)}." for one in large)


def _too_many(one: Neighbour) -> str:
    return printable(
        f"the link {one.link.kind} {one.link.tag} leads to more than {SHOWN:,} documents; search among them"
        " by a question instead"
    )


def _line(one: Neighbour, *, away: bool) -> str:
    """Format a link as text."""
    label = f' "{one.link.label}"' if one.link.label else ""
    if one.more:
        others = f"more than {SHOWN:,} documents"
    else:
        rest = len(one.ids) - ENDS
        others = ", ".join(f"[{id}]" for id in one.ids[:ENDS]) or f"no document in the store ({one.link.tag})"
        others += f" and {rest:,} more" if rest > 0 else ""
    arrow = "→" if away else "←"
    return printable(f"- {arrow} {one.link.kind}{label}: {others}")


def _row(one: Neighbour, *, away: bool) -> dict[str, Any]:
    """Return a link as data."""
    return {
        "direction": "outgoing" if away else "incoming",
        "kind": one.link.kind,
        "tag": one.link.tag,
        "label": one.link.label,
        "ids": list(one.ids[:ENDS]),
        "count": None if one.more else len(one.ids),
    }
