"""``linkstore match``: where typed links lead, paths between two things, and what depends on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from linkstore.cli.commands import JsonOption, StoreOption
from linkstore.cli.exits import UsageError
from linkstore.cli.links import find_documents
from linkstore.cli.output import inform, print_result, show
from linkstore.cli.stores import open_core_store, parse_json_option
from linkstore.core.display import format_count, get_title
from linkstore.errors import LinkStoreError

if TYPE_CHECKING:
    from linkstore.core.graph_answer import GraphAnswer, ShortestPaths
    from linkstore.store.core import CoreStore
    from linkstore.strategies.neighbours import Impact

DEFAULT_LISTED: Final = 20
DEFAULT_PATHS: Final = 3


def match(
    store: StoreOption,
    start: Annotated[str | None, typer.Argument()] = None,
    steps: Annotated[list[str] | None, typer.Argument()] = None,
    query: str | None = None,
    to: str | None = None,
    impact: bool = False,
    result_type: Annotated[str | None, typer.Option("--type")] = None,
    where: str | None = None,
    as_of: str | None = None,
    count: bool = False,
    k: Annotated[int | None, typer.Option("-k", min=1, max=100_000)] = None,
    filter: str | None = None,
    json: JsonOption = False,
) -> None:
    """Follow typed links from a document, and print what they lead to, with the links.

    A step is a kind of link: FLIES, '<OWNED_BY' against the direction of the links, 'OWNS|LEASES' for either,
    or 'PART_OF{1,3}' for one to three in a row.

    Args:
        start (START): The id or a name of a document.
        steps (STEP...): Kinds of links to follow, in order.
        query (QUERY): A whole query instead of START and STEPs: in Cypher, such as
            "MATCH (s:Ship)-[:FLIES]->({name: 'Malvania'}) RETURN s", or as JSON.
        to (NAME): Print the shortest paths from START to this document instead.
        impact: Print what depends on START instead: what links to it, which links would lead nowhere
            without it, and which documents nothing else leads to.
        result_type (TYPE): The type of the results.
        where (JSON): Filter on the metadata of the results.
        as_of (DATE): The day on which all on the way must be valid.
        count: Print the number of results only.
        k: Maximum number of results, default 20; with --to, of paths, default 3.
        filter (JSON): Filter on metadata, for all documents on the way.
    """
    if (start is None) == (query is None):
        raise UsageError("give a START, with STEPs, --to or --impact; or --query")
    if (to is not None) + impact + (query is not None) + bool(steps) > 1:
        raise UsageError("give one of STEPs, --to, --impact and --query")
    condition = parse_json_option(filter, "--filter")
    with open_core_store(store) as opened_store:
        if impact:
            print_result(_find_impact(opened_store, start or ""), _show_impact, json=json)
        elif to is not None:
            first, last = (_find_named(opened_store, name) for name in (start or "", to))
            paths = opened_store.links.paths(first, last, k or DEFAULT_PATHS, filter=condition)
            print_result(paths, _show_paths, json=json)
        else:
            asked = _parse_query(query) or {
                "branches": [{"start": _find_named(opened_store, start or ""), "path": steps or []}],
                "result_type": result_type,
                "where": parse_json_option(where, "--where"),
                "as_of": as_of,
                "returns": "count" if count else "documents",
                "limit": k or DEFAULT_LISTED,
            }
            answer = opened_store.match(asked, filter=condition)
            if asked.get("returns") == "count" and not json:
                show(str(answer.total))
            print_result(answer, _show_answer, json=json)


def _find_named(store: CoreStore, name: str) -> str:
    """Return the id of the page whose file or URL is called so, if the store knows nothing by that name."""
    if store.find(name).document is None:
        with suppress(LinkStoreError):
            return find_documents(store, name, by_ending=True)[0].id or name
    return name


def _parse_query(query: str | None) -> dict[str, Any] | None:
    """Return a query in Cypher or JSON as plain JSON."""
    if query is None or not query.lstrip().upper().startswith("MATCH"):
        return parse_json_option(query, "--query")
    from linkstore.core.cypher import parse_cypher

    return parse_cypher(query).to_dict()


def _show_answer(answer: GraphAnswer) -> None:
    for line, style in _list_lines(answer):
        show(line, style)
    inform(f"no results: {answer.reason}" if answer.reason else format_count(answer.total, "result"))
    for name, id in answer.starts.items():
        if name != id:
            inform(f"{name!r} is {id}")
    for limit in answer.limits:
        inform(f"not complete: {limit}")


def _list_lines(answer: GraphAnswer) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of an answer, each with its style: documents with chains, values or groups."""
    for hit in answer:
        title = get_title(hit.document)
        count = "" if hit.count is None else f": {hit.count:,}"
        yield f"{hit.document.id}{f'  {title}' if title else ''}{count}", "bold cyan"
        yield from ((f"  {chain}", None) for chain in hit.chains if len(chain))
    yield from ((str(value), None) for value in answer.values)
    yield from ((f"{value}: {number:,}", None) for value, number in answer.groups)


def _show_paths(paths: ShortestPaths) -> None:
    for chain, length in zip(paths.chains, paths.lengths, strict=True):
        show(f"{length:.3g}  {chain}")
    if not paths.chains:
        inform(f"no path from {paths.start} to {paths.end}")
    for limit in paths.limits:
        inform(f"not complete: {limit}")


def _find_impact(store: CoreStore, name: str) -> Impact:
    """Return what depends on a document or page."""
    from linkstore.core.calls import call_plan, run
    from linkstore.strategies.neighbours import find_impact

    by_name = store.find(name).document
    documents = [by_name] if by_name else find_documents(store, name, by_ending=True)
    ids = [document.id or "" for document in documents]
    return run(call_plan(store.backend, find_impact(ids)))


def _show_impact(impact: Impact) -> None:
    for title, listed in (
        ("documents that link to it", impact.linking),
        ("documents with a link that would lead nowhere", impact.dangling),
        ("documents that nothing else links to", impact.orphaned),
    ):
        show(f"{title}: {len(listed):,}", "bold cyan")
        for id in listed:
            show(f"  {id}")
