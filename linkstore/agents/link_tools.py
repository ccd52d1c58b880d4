"""The tools ``follow``, ``path`` and ``schema``: links, and the names of a store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Final

from pydantic import BeforeValidator

from linkstore.agents.document_tools import find_document, find_documents
from linkstore.agents.tool_answers import (
    ToolAnswer,
    ToolResult,
    ToolScope,
    correct_name,
    make_empty_answer,
    make_results_answer,
)
from linkstore.core.calls import Operation, call_engine
from linkstore.core.display import escape_unprintable, format_count
from linkstore.core.hits import Chain, Triple
from linkstore.core.links import LINKS_KEY
from linkstore.errors import StrategyError
from linkstore.store.graph import answer_paths
from linkstore.store.misspellings import check_known_names
from linkstore.store.schema_graph import read_schema
from linkstore.strategies.base import HopDirection, SearchOptions
from linkstore.strategies.eager import Eager
from linkstore.strategies.neighbours import MAX_SHOWN_MEMBERS, Neighbour, Neighbours, find_neighbours

Kinds = Annotated[
    list[str] | None,
    BeforeValidator(lambda given: _SEPARATORS.split(given) if isinstance(given, str) else given),
]
"""Kinds of link, which a model may name without a list."""
_SEPARATORS: Final = re.compile(r"\s*[,|]\s*")
Direction = Annotated[HopDirection, BeforeValidator(lambda given: _DIRECTIONS.get(given, given))]
_DIRECTIONS: Final[Mapping[str, HopDirection]] = {
    **dict.fromkeys(("in", "incoming", "back", "backwards", "inward", "reverse"), "backward"),
    **dict.fromkeys(("out", "outgoing", "forwards", "outward"), "forward"),
    **dict.fromkeys(("any", "all", "either", "bidirectional"), "both"),
}
"""What models call a direction."""
MOST_NAMED: Final = 200
"""How many names of a sort are listed."""
MOST_PATHS: Final = 3


def follow(
    scope: ToolScope,
    id: str,
    kinds: Kinds = None,
    direction: Direction = "forward",
) -> Operation[ToolAnswer]:
    """Go where the links of one document lead.

    Use it rather than $search if you know the document. Returns at most $results documents at the other ends,
    each with id, URL and a part of its text. Changes nothing.

    Args:
        scope: Of the tools.
        id: The document: its id, URL or name.
        kinds: Only links of these kinds. Default all.
        direction: "forward" along the links, "backward" to what links to it, or "both".

    Raises:
        UnknownNameError: If no document in the store has links of one of the kinds.
        StrategyError: If the direction or a kind is invalid, or no links may be followed.
        DocumentError: If there is no such document.
    """
    if not scope.ceiling:
        raise StrategyError("the ceiling is 0: no links may be followed here; use search and read")
    near = yield from _read_neighbours(scope, id)
    own = {neighbour.link.kind for neighbour in (*near.outgoing, *near.incoming)}
    asked = Eager(kinds=[correct_name(kind, own) for kind in kinds or ()] or None, direction=direction)
    yield from check_known_names(scope.backend, asked, SearchOptions(filter=scope.filter))
    id = near.id
    sides = _list_sides(near, direction)
    chosen = [
        (neighbour, away)
        for neighbour, away in sides
        if asked.followed is None or neighbour.link.kind in asked.followed
    ]
    ends = _find_ends(id, chosen)
    large = [neighbour for neighbour, _ in chosen if neighbour.more]
    if not ends:
        return make_empty_answer(_explain_empty(id, chosen, large), _advise_links(near))
    shown = list(ends.items())[: scope.limits.results]
    documents = yield from find_documents(scope, [end for end, _ in shown])
    results = [
        ToolResult(
            document=documents[end],
            query=triple.label or "",
            width=scope.limits.snippet,
            chains=(Chain(id, (triple,)),),
        )
        for end, triple in shown
        if end in documents
    ]
    heading = (
        f"{len(results)} of {format_count(len(ends), 'document')} that links of "
        f"[{escape_unprintable(near.id)}] lead to:"
    )
    rest = len(ends) - len(results)
    notes = [f"{rest:,} more documents are not shown; name kinds to see fewer."] if rest > 0 else []
    notes += [f"Not followed: {_describe_hub(neighbour)}." for neighbour in large]
    return make_results_answer(heading, results, notes, found=len(ends))


def path(scope: ToolScope, start: str, end: str) -> Operation[ToolAnswer]:
    """Find how two documents are connected: the shortest chains of links between them, in any direction.

    Use it rather than $follow if you know both ends. Returns at most 3 chains. Changes nothing.

    Args:
        scope: Of the tools.
        start: The first document: its id, URL or name.
        end: The other one.

    Raises:
        QueryError: If there is no such document, several may be meant, or both are the same.
    """
    paths = yield from answer_paths(scope.backend, start, end, MOST_PATHS, scope.filter, scope.ceiling)
    lines = [f"{at}. {escape_unprintable(str(chain))}" for at, chain in enumerate(paths.chains, 1)]
    lines += [f"Not complete: {escape_unprintable(limit)}." for limit in paths.limits]
    if not paths.chains:
        ends = f"[{escape_unprintable(paths.start)}] and [{escape_unprintable(paths.end)}]"
        lines.insert(0, f"No chain of links connects {ends}.")
    return ToolAnswer(text="\n".join(lines), data=paths.to_dict())


def _read_neighbours(scope: ToolScope, name: str) -> Operation[Neighbours]:
    document = yield from find_document(scope, name)
    near = yield from scope.answer(find_neighbours(str(document.id)))
    return near or Neighbours(id=str(document.id), outgoing=(), incoming=())  # deleted in between


def _list_sides(near: Neighbours, direction: HopDirection) -> list[tuple[Neighbour, bool]]:
    """Return the links of these directions, and whether each leads away."""
    outgoing = [(neighbour, True) for neighbour in near.outgoing] if direction != "backward" else []
    incoming = [(neighbour, False) for neighbour in near.incoming] if direction != "forward" else []
    return [*outgoing, *incoming]


def _find_ends(id: str, sides: Iterable[tuple[Neighbour, bool]]) -> dict[str, Triple]:
    """Return the other documents with their links: the most similar of each link, then the next of each."""
    ends: dict[str, Triple] = {}
    rows = [[(other, neighbour.link, away) for other in neighbour.ids] for neighbour, away in sides]
    for other, link, away in (entry for column in zip_longest(*rows) for entry in column if entry):
        if other != id and other not in ends:
            subject, object_ = (id, other) if away else (other, id)
            ends[other] = Triple(subject=subject, kind=link.kind, object=object_, label=link.label)
    return ends


def _explain_empty(id: str, chosen: Sequence[tuple[Neighbour, bool]], large: Sequence[Neighbour]) -> str:
    if large:
        return "; ".join(map(_describe_hub, large))
    if chosen:
        return (
            f"document {id!r} has {format_count(len(chosen), 'link')} of this sort, to "
            "no document in the store"
        )
    return f"document {id!r} has no links of this sort"


def _advise_links(near: Neighbours) -> list[str]:
    """Advise on the links that the document does have."""
    advice = []
    for name, own in (("forward", near.outgoing), ("backward", near.incoming)):
        kinds = sorted({neighbour.link.kind for neighbour in own if neighbour.ids})
        if kinds:
            advice.append(f"direction={name!r} leads to documents by links of the kinds {', '.join(kinds)}")
    return advice or ["it has no links to other documents; search for something else"]


def _describe_hub(one: Neighbour) -> str:
    return escape_unprintable(
        f"the link {one.link.kind} {one.link.tag} leads to more than "
        f"{MAX_SHOWN_MEMBERS:,} documents; search among them"
        " by a question instead"
    )


def schema(scope: ToolScope) -> Operation[ToolAnswer]:
    """List the types of document, the kinds of link between them and the metadata fields of the store.

    Use it rather than $search to learn which names there are. Returns at most $most_named names of each sort.
    Changes nothing.
    """
    # Without a recorded schema, the time may grow with the size of the store.
    recorded = yield from read_schema(scope.backend)
    if recorded:
        kinds, fields = sorted(recorded.schema.kinds), [recorded.schema.type_field]
        lines = [recorded.schema.describe()]
    else:
        vocabulary = yield from call_engine(scope.backend, scope.backend.vocabulary())
        kinds, fields = sorted(vocabulary.kinds), sorted(vocabulary.fields - {LINKS_KEY})
        lines = [f"Kinds of link: {_list_names(kinds)}", f"Metadata fields: {_list_names(fields)}"]
    data = {
        "schema": recorded.schema.to_dict() if recorded else None,
        "kinds": kinds[:MOST_NAMED],
        "fields": fields[:MOST_NAMED],
        "max_hops": scope.ceiling,
    }
    return ToolAnswer(
        text="\n".join([*lines, f"match follows at most {format_count(scope.ceiling, 'link')} in a row."]),
        data=data,
    )


def _list_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_NAMED:,} more" if len(listed) > MOST_NAMED else ""
    return escape_unprintable(", ".join(listed[:MOST_NAMED]) or "none") + more
