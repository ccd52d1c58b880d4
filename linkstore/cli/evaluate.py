"""``linkstore eval``: how well strategies answer questions, what links are worth, and defaults to propose."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from linkstore.cli.commands import JsonOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, inform, print_result, show_progress, write_json
from linkstore.cli.stores import find_store, open_store, refuse_options, split_names
from linkstore.core.arguments import omit_none
from linkstore.core.display import escape_unprintable, format_count

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from rich.console import Console

    from linkstore.evaluate.calibration import LexicalWeight
    from linkstore.evaluate.link_groups import GoldProfile, Profile
    from linkstore.evaluate.metrics import Evaluation
    from linkstore.store.linkstore import LinkStore

GoldName = Literal["page", "section", "id"]
EXISTING: Final = typer.Option(exists=True, dir_okay=False)
_GAIN_MEASURE: Final = "recall@5"
_GOLD_TITLES: Final = {
    "page": "gold: pages, any chunk counts",
    "section": "gold: sections, any chunk counts",
    "id": "gold: documents by id",
}
_BEST_STYLE: Final = "bold green"
_TABLE_WIDTH: Final = 110
"""The width of a table that is not printed to a terminal."""


def evaluate(
    questions: Annotated[Path | None, EXISTING] = None,
    corpus: Annotated[Path | None, EXISTING] = None,
    store: Annotated[str | None, typer.Option("--store", "-s")] = None,
    embedding: str | None = None,
    strategies: list[str] | None = None,
    links: list[str] | None = None,
    gold: GoldName | None = None,
    profile: bool = False,
    calibrate: bool = False,
    noise: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    keep: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    save: bool = False,
    clear: bool = False,
    json: JsonOption = False,
) -> None:
    """Measure how well strategies find answers to questions.

    Prints recall among the first 2, 5, 10 and 20 hits and mean reciprocal rank, with 95 % intervals; the gain
    over dense search; the share of the answers missed by 20 hits of dense search that are among the first 10;
    and the time per query.

    With --profile, prints links by kind, link groups by size, hubs, dangling links, and how many documents
    links reach; with questions, also how often links join the answers, and how much they can improve results.

    With --calibrate, proposes a minimum similarity, below which a search starts from no document, with the
    shares of noise (pairs of a question and a document that does not answer it), of gold answers, and of
    questions with an answer, that reach it; or nothing. It is proposed from questions only. The weight of
    words is proposed for embeddings of which it is not known, from sentences taken out of their documents.

    Args:
        questions (FILE): JSON Lines of {"question", "gold": [pages, sections or ids]}.
        corpus (FILE): JSON Lines of {"id", "title", "text", "links"?}.
        store (PLACE): An existing store, instead of --corpus; default that of
            LINKSTORE_STORE, or of the working directory.
        embedding (NAME): wordllama, minilm, bge-small, multilingual or openai:MODEL; default wordllama,
            or that of the store.
        strategies (NAMES): Strategies to compare, such as similarity,words,pagerank; default all.
        links (NAMES): Kinds of links to keep, and extractors to run; default all kinds, else mention,entity.
        gold: What gold answers are; default: recognized. Any chunk of a page or section counts.
        profile: Show whether the links of a store can improve results instead.
        calibrate: Propose a minimum similarity for the start of searches, and how much words count, instead.
        noise (SHARE): With --calibrate: share of noise that may reach the minimum; default 0.05.
        keep (SHARE): With --calibrate: share of questions of which an answer must reach it; default 0.99.
        save: With --calibrate: record the proposal as the store's default.
        clear: With --calibrate: remove the store's default instead.
    """
    if corpus is None:
        store = store or os.environ.get("LINKSTORE_STORE") or find_store()
    if not calibrate:
        refuse_options("goes with --calibrate only", noise=noise, keep=keep, save=save, clear=clear)
    if profile or calibrate:
        mode = "calibrate" if calibrate else "profile"
        others: dict[str, object] = {"corpus": corpus, "strategies": strategies, "links": links}
        refuse_options(f"does not go with --{mode}", **others, profile=profile and calibrate)
        if store is None:
            raise UsageError(f"--{mode} looks at a store; give --store")
        if clear:
            refuse_options("does not go with --clear, which removes defaults", save=save, questions=questions)
        with open_store(store, embedding=embedding) as opened_store:
            if clear:
                _remove_defaults(opened_store)
            elif calibrate:
                shares = omit_none(noise=noise, keep=keep)
                _calibrate(opened_store, questions, gold, shares, save=save, json=json)
            else:
                from linkstore.evaluate import profiling, running

                asked = () if questions is None else running.read_questions(questions)
                profiled = profiling.profile(opened_store, asked, gold=gold)
                print_result(profiled, show_profile, json=json)
        return
    _compare(questions, corpus, store, embedding, split_names(strategies or ()), links, gold, json=json)


def _compare(
    questions: Path | None,
    corpus: Path | None,
    store: str | None,
    embedding: str | None,
    strategies: Sequence[str],
    links: Sequence[str] | None,
    gold: GoldName | None,
    *,
    json: bool,
) -> None:
    """Compare strategies on questions."""
    if questions is None:
        raise UsageError("give --questions; without them, --profile and --calibrate look at a store")
    if (corpus is None) == (store is None):
        raise UsageError("give either --corpus or --store")
    if store is not None and links:
        raise UsageError("--links needs --corpus; a store keeps its links")
    from linkstore.embeddings.names import DEFAULT_EMBEDDING, get_embedding
    from linkstore.evaluate import running
    from linkstore.evaluate.metrics import STRATEGIES
    from linkstore.evaluate.profiling import with_links

    names = strategies or tuple(STRATEGIES)
    unknown = [name for name in names if name not in STRATEGIES]
    if unknown:
        raise UsageError(f"--strategies: unknown {', '.join(unknown)}; known: {', '.join(STRATEGIES)}")
    asked = running.read_questions(questions)
    with ExitStack() as stack:
        measured: LinkStore | list[Document]
        chosen = None
        if corpus is not None:
            measured = with_links(running.read_corpus(corpus), None if links is None else split_names(links))
            chosen = get_embedding(embedding or DEFAULT_EMBEDDING)
        else:
            measured = stack.enter_context(open_store(str(store), embedding=embedding))
        progress = stack.enter_context(show_progress("questions"))
        evaluation = running.evaluate(measured, asked, names, gold=gold, embedding=chosen, progress=progress)
    print_result(evaluation, show_evaluation, json=json)


def _calibrate(
    store: LinkStore,
    questions: Path | None,
    gold: GoldName | None,
    shares: Mapping[str, Any],
    *,
    save: bool,
    json: bool,
) -> None:
    """Propose a minimum similarity and the weight of words, and record them if wanted."""
    from linkstore.evaluate.calibration import calibrate_min_similarity
    from linkstore.evaluate.running import read_questions

    calibration = None
    if questions is not None:
        calibration = calibrate_min_similarity(store, read_questions(questions), gold=gold, **shares)
    proposal = None if calibration is None else calibration.min_similarity
    weight = _estimate_weight(store)
    if save and proposal is not None:
        store.configure(min_similarity=proposal)
    if save and weight is not None:
        store.configure(lexical_weight=weight.weight)
    settings = store.search_settings
    recorded, used = settings.min_similarity, settings.lexical_weight
    if json:
        words = {"lexical_weight": used, "estimate": None if weight is None else weight.to_dict()}
        floor = {"min_similarity": None} if calibration is None else calibration.to_dict()
        write_json(floor | {"recorded": recorded} | words)
        return
    get_stdout().print(
        "no min_similarity to propose without --questions: documents alone do not say how similar a question"
        " and its answer are"
        if calibration is None
        else str(calibration)
    )
    if weight is not None:
        get_stdout().print(str(weight))
    state = "records none" if recorded is None else f"records {recorded:g}"
    if proposal is None and weight is None:
        inform(f"nothing to save; the store {state}")
    else:
        inform(
            "recorded: searches of this store use it unless they set their own"
            if save
            else f"the store {state}; --save records this one"
        )


def _estimate_weight(store: LinkStore) -> LexicalWeight | None:
    """Estimate the weight of words if it is not known for the embedding, and the store has enough texts."""
    from linkstore.embeddings.names import LEXICAL_WEIGHT, name_embedding
    from linkstore.errors import EvaluationError
    from linkstore.evaluate.calibration import estimate_lexical_weight

    if name_embedding(store.embeddings) in LEXICAL_WEIGHT:
        return None
    try:
        return estimate_lexical_weight(store)
    except EvaluationError as error:
        inform(f"the weight of words stays {store.search_settings.lexical_weight:g}: {error}")
        return None


def _remove_defaults(store: LinkStore) -> None:
    """Remove the minimum similarity and the weight of words that a store records."""
    before = store.search_settings.min_similarity
    store.configure(min_similarity=None)
    store.configure(lexical_weight=None)
    outcome = "no minimum similarity was recorded" if before is None else f"removed the minimum of {before:g}"
    inform(f"{outcome}; words have the weight {store.search_settings.lexical_weight:g}")


def show_evaluation(evaluation: Evaluation) -> None:
    """Print a table with one line for each strategy, and mark the best of each column."""
    from rich.table import Table
    from rich.text import Text

    console = get_stdout()
    measures = tuple(evaluation.outcomes[0].measures)
    table = Table(
        title=f"{format_count(evaluation.questions, 'question')}, "
        f"{_GOLD_TITLES[evaluation.gold]}; recall and MRR in %",
        title_justify="left",
    )
    table.add_column("strategy", no_wrap=True)
    headings = (name.replace("recall@", "R@").replace("mrr", "MRR") for name in measures)
    for name in (*headings, "gain in R@5 over dense", "rescued", "ms", "no embedding"):
        table.add_column(name, justify="right", no_wrap=True)
    best = {name: max(outcome.measures[name].value for outcome in evaluation.outcomes) for name in measures}
    for outcome in evaluation.outcomes:
        values = [
            Text(format_share(measure.value), style=_BEST_STYLE if measure.value == best[name] else "")
            for name, measure in outcome.measures.items()
        ]
        rescued = "-" if outcome.rescue_rate is None else format_share(outcome.rescue_rate.value)
        times = (f"{outcome.ms_per_query:.1f}", f"{outcome.ms_without_embedding:.1f}")
        estimate = outcome.gains[_GAIN_MEASURE]
        gain = f"{100 * estimate.value:+.1f} [{100 * estimate.low:+.1f}, {100 * estimate.high:+.1f}]"
        table.add_row(escape_unprintable(outcome.name), *values, gain, rescued, *times)
    widen_console(console).print(table)
    console.print(
        "Gains with 95 % intervals of a paired bootstrap over questions. Rescued: of the gold documents that"
        " dense search misses among 20, the share among the first 10. ms: median time a query, with and"
        " without embedding it.",
        style="dim",
    )
    if evaluation.comparison is not None:
        console.print(f"\n{evaluation.comparison}", style="bold")


def format_share(value: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * value:.1f}"


def widen_console(console: Console) -> Console:
    """Make the console wide enough for a table even if it is not a terminal, and return it."""
    if not console.is_terminal:
        console.width = max(console.width, _TABLE_WIDTH)
    return console


def show_profile(profile: Profile) -> None:
    """Print what a store's links look like, and the verdict."""
    console = widen_console(get_stdout())
    console.print(
        f"{format_count(profile.documents, 'document')}: {profile.reached:,} "
        f"({format_share(profile.reached_share)} %)"
        f" that a link leads to, {profile.isolated:,} isolated\n"
    )
    _show_kinds(console, profile)
    console.print("\nLink groups by documents on their larger side; the last are hubs", style="bold")
    for label, count in profile.sizes.items():
        console.print(f"  {label:>8} {count:>10,}")
    if profile.largest:
        console.print("\nLargest link groups", style="bold")
    for group in profile.largest:
        hub = "  hub" if group.hub else ""
        console.print(
            f"  {group.out:>8,} out {group.in_:>8,} in  "
            f"{escape_unprintable(f'{group.kind} {group.tag}')}{hub}"
        )
    if profile.gold is not None:
        _show_gold_profile(console, profile.gold)
    console.print(f"\n{profile.verdict}", style="bold")


def _show_kinds(console: Console, profile: Profile) -> None:
    from rich.table import Table

    table = Table("kind")
    for name in ("links", "dangling", "groups", "hubs", "edges", "edges a document"):
        table.add_column(name, justify="right")
    for kind, link in profile.links.items():
        counts = (link.links, link.dangling, link.groups, link.hubs, link.edges)
        rate = link.edges / profile.documents if profile.documents else 0.0
        table.add_row(escape_unprintable(kind), *(f"{count:,}" for count in counts), f"{rate:.2f}")
    console.print(table)


def _show_gold_profile(console: Console, gold: GoldProfile) -> None:
    from rich.table import Table

    console.print(f"\n{format_count(gold.questions, 'question')}", style="bold")
    table = Table("kind")
    for name in ("edges at gold", "join two gold", "precision, %", "gold linked to gold, %"):
        table.add_column(name, justify="right")
    for kind, edges in gold.kinds.items():
        shares = (
            "-" if share is None else format_share(share) for share in (edges.precision, edges.linked_share)
        )
        table.add_row(escape_unprintable(kind), f"{edges.edges:,}", f"{edges.joining:,}", *shares)
    if gold.kinds:
        console.print(table)
    console.print(
        f"dense search: {format_share(gold.recall_at_5)} % recall@5; of {gold.missed:,} "
        "gold documents missed,"
        f" {gold.within_reach:,} are one link from its first 10"
    )
