"""``linkstore query`` and ``context``: shows the hits of a search, or the best context that fits a budget."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from linkstore.cli.commands import EmbeddingOption, JsonOption, StoreOption, TextArgument
from linkstore.cli.exits import UsageError
from linkstore.cli.links import list_page_ids
from linkstore.cli.output import (
    MAX_SHOWN_SECTIONS,
    get_stderr,
    hit_to_dict,
    inform,
    show,
    show_explanation,
    show_hits,
    show_pages,
    write_json,
)
from linkstore.cli.stores import open_core_store, open_store, parse_json_option, parse_weights
from linkstore.core.display import escape_unprintable
from linkstore.core.text import is_unicode

if TYPE_CHECKING:
    from linkstore.core.hits import Hits
    from linkstore.strategies.base import Strategy

StrategyName = Literal["pagerank", "eager", "mmr", "all-paths", "similarity"]
DirectionName = Literal["forward", "backward", "both"]
OrderName = Literal["precedence", "relevance", "document", "edges"]
SelectionName = Literal["rank", "knapsack"]

MAX_RETURNED: Final = 10_000
"""Maximum number of documents to return, or to start from."""
MAX_QUERY_DEPTH: Final = 32
"""Links in a row, at most: no store is so wide that more would reach anything new."""


def query(
    text: TextArgument,
    store: StoreOption,
    embedding: EmbeddingOption = None,
    k: Annotated[int, typer.Option("-k", min=1, max=MAX_RETURNED)] = 10,
    start_k: Annotated[int | None, typer.Option(min=0, max=MAX_RETURNED)] = None,
    depth: Annotated[int | None, typer.Option(min=0, max=MAX_QUERY_DEPTH)] = None,
    strategy: StrategyName | None = None,
    kinds: list[str] | None = None,
    direction: DirectionName | None = None,
    filter: str | None = None,
    link_filter: str | None = None,
    min_similarity: Annotated[float | None, typer.Option(min=-1, max=1)] = None,
    near: list[str] | None = None,
    evidence: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    explain: bool = False,
    chunks: bool = False,
    json: JsonOption = False,
) -> None:
    """Search a store.

    Finds the documents most similar to the question, follows their links, and ranks all documents reached.
    Prints each page once with up to 3 of its sections; --chunks and --json print every hit.

    Args:
        k: Number of documents to return.
        start_k: Number of documents to start from; default: eager 4, pagerank 16, mmr 100.
        depth: Number of hops; default: eager 1, mmr 2, all-paths 3.
        strategy: How to search; default pagerank, with --depth eager.
        kinds (KINDS): Kinds of links to follow, such as hyperlink,section=0.5; default all.
        direction: Direction in which to follow links; default: pagerank both, else forward.
        filter (JSON): Filter on metadata, for the whole search.
        link_filter (JSON): Filter on the data of links that are followed.
        min_similarity: Minimum similarity to start from; default that of the store, -1 for none.
        near (PAGE): Follow links from this page too, by its URL or the end of it; repeatable.
        evidence (FILE): Also write the hits to FILE as JSON, with hashes, which doctor --evidence checks.
        explain: Also print what was left out, and why.
        chunks: Print each hit separately instead of by page.
    """
    check_question(text)
    chosen = make_strategy(
        strategy or ("pagerank" if depth is None else "eager"),
        k=k,
        start_k=start_k,
        depth=depth,
        kinds=parse_weights(kinds or ()),
        direction=direction,
        min_similarity=min_similarity,
    )
    condition = parse_json_option(filter, "--filter")
    links = parse_json_option(link_filter, "--link-filter")
    if not (chunks or json):
        chosen = replace(chosen, per_page=MAX_SHOWN_SECTIONS)
    if near and strategy == "similarity":
        raise UsageError("--near does not apply to similarity, which follows no links")
    with open_core_store(store, embedding=embedding) as opened_store:
        roots = [id for name in near or () for id in list_page_ids(opened_store, name)]
        hits = opened_store.search(
            text, strategy=chosen, filter=condition, link_filter=links, initial_roots=roots
        )
        if not hits and condition:
            from linkstore.core.calls import run
            from linkstore.store.misspellings import describe_unmet_values

            if advice := run(describe_unmet_values(opened_store.backend, condition)):
                hits = replace(hits, reason=f"{hits.reason}; {advice}")
    if evidence is not None:
        import orjson

        evidence.write_bytes(orjson.dumps(hits.to_evidence(), option=orjson.OPT_INDENT_2))
    show_results(hits, text, chunks=chunks, json=json)
    if explain:
        show_explanation(hits, to_stderr=json)


def make_strategy(name: StrategyName, **given: Any) -> Strategy:
    """Return a strategy with the settings that were given, None for the strategy's default.

    Raises:
        StrategyError: If a setting is out of range.
        UsageError: If the strategy has no such setting.
    """
    from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity

    kinds: dict[StrategyName, type[Strategy]] = {
        "eager": Eager, "mmr": Mmr, "all-paths": AllPaths, "pagerank": PageRank, "similarity": Similarity
    }  # fmt: skip
    settings = {option: value for option, value in given.items() if value is not None}
    if name == "mmr" and "start_k" in settings:
        settings["fetch_k"] = settings.pop("start_k")
    if name == "similarity":  # it follows no links
        settings = {
            option: value for option, value in settings.items() if option not in {"kinds", "direction"}
        }
    taken = {field.name for field in fields(kinds[name])}
    for option in settings:
        if option not in taken:
            *owners, last = [
                kind for kind in kinds if kind != "similarity" and (option, kind) != ("depth", "pagerank")
            ]
            raise UsageError(
                f"--{option.replace('_', '-')} does not apply to {name}; it is an option of"
                f" {', '.join(owners)} and {last}"
            )
    return kinds[name](**settings)


def show_results(hits: Hits, text: str, *, chunks: bool = False, json: bool = False) -> None:
    """Print hits by page or one by one, and why there are none."""
    if json:
        write_json([hit_to_dict(hit, text) for hit in hits])
    elif hits and chunks:
        show_hits(hits, text)
    elif hits:
        show_pages(hits, text)
    if not hits:
        inform(f"no hit: {hits.reason}")
    elif hits.doubt or not json:
        brought = len(hits.brought_by_links)
        by_links = f"; {brought:,} of {len(hits):,} were found only by links" if brought else ""
        inform(f"{hits.match}{by_links}")


def check_question(text: str) -> None:
    """Raise unless a question can be asked.

    Raises:
        UsageError: If it is empty or cannot be encoded.
    """
    if not text.strip():
        raise UsageError("the query is empty; give at least one word")
    if not is_unicode(text):
        raise UsageError("the query is not valid UTF-8")


def context(
    text: TextArgument,
    store: StoreOption,
    budget: Annotated[int, typer.Option("--budget", "-b", min=1)] = 2000,
    order: OrderName = "precedence",
    selection: SelectionName = "rank",
    candidates: Annotated[int | None, typer.Option(min=1, max=MAX_RETURNED)] = None,
    filter: str | None = None,
    headers: bool = False,
    explain: bool = False,
    json: JsonOption = False,
) -> None:
    """Compile the best context for a question, within a budget.

    The budget is in tokens, counted by the tokenizer of Llama 2 without a network. Prints the texts of
    documents in the order they are to be read.

    Args:
        budget: Maximum number of tokens of the context.
        order: Order of the documents: by links, best first, page by page, or best first and last.
        selection: By rank, or those of the highest value together.
        candidates: Number of hits of the search to choose from; default 200, or what the budget holds.
        filter (JSON): Filter on metadata, for the whole search.
        headers: Name the source above each text.
        explain: Print the bill on stderr: what was taken, left out, and why.
    """
    check_question(text)
    condition = parse_json_option(filter, "--filter")
    from linkstore.context.candidates import source_header
    from linkstore.context.compiler import ContextCompiler

    with open_store(store) as opened_store:
        compiled = ContextCompiler(
            opened_store,
            budget=budget,
            order=order,
            selection=selection,
            candidates=candidates,
            filter=condition,
            header=source_header if headers else None,
        ).compile(text)
    if json:
        write_json(compiled)
    elif compiled.text:
        for line in compiled.text.split("\n"):
            show(line)
    if not compiled.items:
        inform(f"the context is empty: {compiled.reason}")
    if explain:
        for line in compiled.explain().split("\n"):
            get_stderr().print(escape_unprintable(line))
