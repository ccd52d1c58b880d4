"""Evaluations and profiles as tables for a person. Imports rich and numpy: load it late."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from linkstore.cli.output import get_stdout
from linkstore.core.display import escape_unprintable, format_count
from linkstore.evaluate.link_groups import GoldProfile, Profile, list_size_labels
from linkstore.evaluate.metrics import Comparison, Estimate, Evaluation

_GAIN_MEASURE: Final = "recall@5"
_GOLD_TITLES: Final = {
    "page": "gold: pages, any chunk counts",
    "section": "gold: sections, any chunk counts",
    "id": "gold: documents by id",
}
_BEST_STYLE: Final = "bold green"
_TABLE_WIDTH: Final = 110
"""The width of a table that is not printed to a terminal."""


def show_evaluation(evaluation: Evaluation, comparison: Comparison | None) -> None:
    """Print a table with one line for each strategy, and mark the best of each column."""
    console = get_stdout()
    measures = tuple(evaluation.outcomes[0].measures)
    table = Table(
        title=f"{format_count(evaluation.questions, 'question')}, "
        f"{_GOLD_TITLES[evaluation.gold]}; recall and MRR in %",
        title_justify="left",
    )
    table.add_column("strategy")
    headings = (name.replace("recall@", "R@").replace("mrr", "MRR") for name in measures)
    for name in (*headings, "gain in R@5 over dense", "rescued", "ms", "no embedding"):
        table.add_column(name, justify="right", no_wrap=True)
    best = {name: max(one.measures[name].value for one in evaluation.outcomes) for name in measures}
    for outcome in evaluation.outcomes:
        values = [
            Text(format_share(one.value), style=_BEST_STYLE if one.value == best[name] else "")
            for name, one in outcome.measures.items()
        ]
        rescued = "-" if outcome.rescue_rate is None else format_share(outcome.rescue_rate.value)
        times = (f"{outcome.ms_per_query:.1f}", f"{outcome.ms_without_embedding:.1f}")
        gain = format_difference(outcome.gains[_GAIN_MEASURE])
        table.add_row(escape_unprintable(outcome.name), *values, gain, rescued, *times)
    widen_console(console).print(table)
    console.print(
        "Gains with 95 % intervals of a paired bootstrap over questions. Rescued: of the gold documents that"
        " dense search misses among 20, the share among the first 10. ms: median time a query, with and"
        " without embedding it.",
        style="dim",
    )
    if comparison is not None:
        console.print(f"\n{comparison}", style="bold")


def format_share(value: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * value:.1f}"


def format_difference(one: Estimate) -> str:
    """Format a difference in percentage points, with its interval."""
    return f"{100 * one.value:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


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
    sizes = dict(zip(list_size_labels(), profile.sizes, strict=True))
    console.print("\nLink groups by documents on their larger side; the last are hubs", style="bold")
    for label, count in sizes.items():
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
    table = Table("kind")
    for name in ("links", "dangling", "groups", "hubs", "edges", "edges a document"):
        table.add_column(name, justify="right")
    for kind, one in profile.links.items():
        counts = (one.links, one.dangling, one.groups, one.hubs, one.edges)
        rate = one.edges / profile.documents if profile.documents else 0.0
        table.add_row(escape_unprintable(kind), *(f"{count:,}" for count in counts), f"{rate:.2f}")
    console.print(table)


def _show_gold_profile(console: Console, gold: GoldProfile) -> None:
    console.print(f"\n{format_count(gold.questions, 'question')}", style="bold")
    table = Table("kind")
    for name in ("edges at gold", "join two gold", "precision, %", "gold linked to gold, %"):
        table.add_column(name, justify="right")
    for kind, one in gold.kinds.items():
        shares = (
            "-" if share is None else format_share(share) for share in (one.precision, one.linked_share)
        )
        table.add_row(escape_unprintable(kind), f"{one.edges:,}", f"{one.joining:,}", *shares)
    if gold.kinds:
        console.print(table)
    console.print(
        f"dense search: {format_share(gold.recall_at_5)} % recall@5; of {gold.missed:,} "
        "gold documents missed,"
        f" {gold.within_reach:,} are one link from its first 10"
    )
