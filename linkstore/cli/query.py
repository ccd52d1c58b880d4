"""``linkstore query``: searches a store, and shows the hits and how each was reached."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption, StoreOption, TextArgument, json_object, weighted
from linkstore.cli.output import note, write_json
from linkstore.cli.paged import BEST_SECTIONS, show_pages
from linkstore.cli.render import hit_to_dict, show_explanation, show_hits
from linkstore.cli.stores import core_opened
from linkstore.cli.strategies import Direction, Search, StrategyName
from linkstore.text import is_unicode

if TYPE_CHECKING:
    from linkstore.hits import Hits

MOST: Final = 10_000
"""Maximum number of documents to return, or to start from."""
DEEPEST: Final = 32
"""Links in a row, at most: no store is so wide that more would reach anything new."""

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KINDS", help="Kinds of links to follow, such as hyperlink,section=0.5; default all."
    ),
]

KOption = Annotated[int, typer.Option("-k", min=1, max=MOST, help="Number of documents to return.")]
StartKOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=MOST, help="Number of documents to start from; default: eager 4, pagerank 16, mmr 100."
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(min=0, max=DEEPEST, help="Number of hops; default: eager 1, mmr 2, all-paths 3."),
]
StrategyOption = Annotated[
    StrategyName | None, typer.Option(help="How to search; default pagerank, with --depth eager.")
]
DirectionOption = Annotated[
    Direction | None,
    typer.Option(help="Direction in which to follow links; default: pagerank both, else forward."),
]
FilterOption = Annotated[
    str | None, typer.Option(metavar="JSON", help="Filter on metadata, for the whole search.")
]
LinkFilterOption = Annotated[
    str | None,
    typer.Option("--link-filter", metavar="JSON", help="Filter on the data of links that are followed."),
]
MinSimilarityOption = Annotated[
    float | None,
    typer.Option(
        min=-1, max=1, help="Minimum similarity to start from; default that of the store, -1 for none."
    ),
]
ExplainOption = Annotated[bool, typer.Option("--explain", help="Also print what was left out, and why.")]
ChunksOption = Annotated[bool, typer.Option("--chunks", help="Print each hit separately instead of by page.")]


def query(
    text: TextArgument,
    store: StoreOption,
    k: KOption = 10,
    start_k: StartKOption = None,
    depth: DepthOption = None,
    strategy: StrategyOption = None,
    kinds: Kinds = None,
    direction: DirectionOption = None,
    filter: FilterOption = None,
    link_filter: LinkFilterOption = None,
    min_similarity: MinSimilarityOption = None,
    explain: ExplainOption = False,
    chunks: ChunksOption = False,
    json: JsonOption = False,
) -> None:
    """Search a store.

    Finds the documents most similar to the question, follows their links, and ranks all documents reached.
    Prints each page once with up to 3 of its sections; --chunks and --json print every hit.
    """
    require_words(text)
    search = Search(
        name=strategy or ("pagerank" if depth is None else "eager"),
        k=k,
        start_k=start_k,
        depth=depth,
        kinds=weighted(kinds or ()),
        direction=direction,
        min_similarity=min_similarity,
    )
    condition = json_object(filter, "--filter")
    links = json_object(link_filter, "--link-filter")
    chosen = search.strategy()
    if not (chunks or json):
        chosen = replace(chosen, per_page=BEST_SECTIONS)
    with core_opened(store) as opened_store:
        hits = opened_store.search(text, strategy=chosen, filter=condition, link_filter=links)
    _show(hits, text, chunks=chunks, json=json)
    if explain:
        show_explanation(hits, to_stderr=json)


def _show(hits: Hits, text: str, *, chunks: bool, json: bool) -> None:
    if json:
        write_json([hit_to_dict(hit, text) for hit in hits])
    elif hits and chunks:
        show_hits(hits, text)
    elif hits:
        show_pages(hits, text)
    if not hits:
        note(f"no hit: {hits.reason}")


def require_words(text: str) -> None:
    """Raise unless a question can be asked.

    Raises:
        UsageError: If it is empty or cannot be encoded.
    """
    if not text.strip():
        raise UsageError("the query is empty; give at least one word")
    if not is_unicode(text):
        raise UsageError("the query is not valid UTF-8")
