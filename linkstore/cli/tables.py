"""Evaluations as tables for a person. Imports rich and numpy: load it late."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from linkstore.cli.output import printable, stdout
from linkstore.display import amount
from linkstore.evaluation import Comparison, Estimate, Evaluation, Outcome

_GAIN: Final = "recall@5"
_GOLD: Final = {
    "page": "gold: pages, any chunk counts",
    "section": "gold: sections, any chunk counts",
    "id": "gold: documents by id",
}
_BEST: Final = "bold green"
_WIDTH: Final = 110
"""The width of a table that is not printed to a terminal."""


def show_evaluation(evaluation: Evaluation, comparison: Comparison | None) -> None:
    """Print a table with one line for each strategy, and mark the best of each column."""
    console = stdout()
    measures = tuple(evaluation.outcomes[0].measures)
    table = Table(
        title=f"{amount(evaluation.questions, 'question')}, {_GOLD[evaluation.gold]}; recall and MRR in %",
        title_justify="left",
    )
    table.add_column("strategy")
    for name in (*map(_heading, measures), "gain in R@5 over dense", "rescued", "ms", "no embedding"):
        table.add_column(name, justify="right", no_wrap=True)
    best = {name: max(one.measures[name].value for one in evaluation.outcomes) for name in measures}
    for outcome in evaluation.outcomes:
        values = [
            Text(percent(one.value), style=_BEST if one.value == best[name] else "")
            for name, one in outcome.measures.items()
        ]
        table.add_row(printable(outcome.name), *values, *_beside_dense(outcome))
    wide(console).print(table)
    console.print(
        "Gains with 95 % intervals of a paired bootstrap over questions. Rescued: of the gold documents that"
        " dense search misses among 20, the share among the first 10. ms: median time a query, with and"
        " without embedding it.",
        style="dim",
    )
    if comparison is not None:
        console.print(f"\n{comparison}", style="bold")


def percent(value: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * value:.1f}"


def with_interval(one: Estimate) -> str:
    """Format a difference in percentage points, with its interval."""
    return f"{100 * one.value:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


def _beside_dense(outcome: Outcome) -> tuple[str, ...]:
    rescued = "-" if outcome.rescue_rate is None else percent(outcome.rescue_rate.value)
    times = (f"{outcome.ms_per_query:.1f}", f"{outcome.ms_without_embedding:.1f}")
    return (with_interval(outcome.gains[_GAIN]), rescued, *times)


def _heading(measure: str) -> str:
    return measure.replace("recall@", "R@").replace("mrr", "MRR")


def wide(console: Console) -> Console:
    """Make the console wide enough for a table even if it is not a terminal, and return it."""
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH)
    return console
