"""A progress bar, and a counter where the end is not known. Imports rich: load it late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

if TYPE_CHECKING:
    from linkstore.ingest import Progress as Advance
    from linkstore.migration import Progress as Count


class RateColumn(ProgressColumn):
    """A column that shows how many units are done per second.

    Args:
        unit: The name of the unit.
    """

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """Return the rate of the last half minute, empty until it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self._unit}/s")


@contextmanager
def progress_bar(console: Console | None = None, unit: str = "pages") -> Iterator[Advance]:
    """Show a bar while the context lasts, and yield the function that moves it.

    Args:
        console: Where it is shown; default stderr.
        unit: What is counted.
    """
    columns = (BarColumn(), MofNCompleteColumn(), RateColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)

        def advance(done: int, total: int, page: str) -> None:
            bar.update(task, completed=done, total=total or None, description=page)

        yield advance


@contextmanager
def document_counter(console: Console | None = None) -> Iterator[Count]:
    """Show a count of documents while the context lasts, and yield the function that moves it.

    Args:
        console: Where it is shown; default stderr.
    """
    counts = TextColumn("{task.completed:,.0f} documents{task.description}")
    columns = (SpinnerColumn(), counts, RateColumn("documents"), TimeElapsedColumn())
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)

        def count(done: int, refused: int) -> None:
            shown.update(task, completed=done, description=f", {refused:,} refused" if refused else "")

        yield count
