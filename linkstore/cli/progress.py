"""A progress bar with rate and remaining time. Imports rich: load it late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from linkstore.ingest import Progress as Advance


class RateColumn(ProgressColumn):
    """How many pages a second."""

    def render(self, task: Task) -> Text:
        """The rate of the last half minute; empty until it is known."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} pages/s")


@contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Advance]:
    """A bar that is shown while the context lasts; it gives the function that moves it.

    Args:
        console: Where it is shown; default stderr.
    """
    columns = (BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as bar:
        task = bar.add_task("pages", total=None)

        def advance(done: int, total: int, page: str) -> None:
            bar.update(task, completed=done, total=total, description=page)

        yield advance
