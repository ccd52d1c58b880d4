"""Progress of a long command while it runs, and its summary."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TimeRemainingColumn,
)
from rich.text import Text

from linkstore.cli.exits import NOTHING_TO_INDEX, SOURCE_INCOMPLETE, UsageError
from linkstore.cli.output import complain, format_kinds, note, quiet, show, write_json
from linkstore.core.display import format_count
from linkstore.core.text import escape_surrogates

if TYPE_CHECKING:
    from linkstore.core.calls import Progress as Advance
    from linkstore.ingest.source import LeftOut, Summary

MAX_SHOWN_SKIPPED: Final = 10
"""Number of skipped pages that are listed; ``--report`` lists all."""
_MAX_NAMED: Final = 3


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
def show_progress(unit: str = "pages", console: Console | None = None) -> Iterator[Advance | None]:
    """Show a bar on stderr while the context lasts, and yield the function that moves it.

    Yield None where nobody would see it: stderr is no terminal, or ``--quiet`` is given.

    Args:
        unit: What is counted.
        console: Where it is shown; default stderr.
    """
    if console is None and (quiet.get() or not sys.stderr.isatty()):
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), RateColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None)

        def advance(done: int, total: int, page: str) -> None:
            bar.update(task, completed=done, total=total or None, description=page)

        yield advance


@contextmanager
def report_run(report: Path | None, *, json: bool) -> Iterator[list[Summary]]:
    """Take the summary of a run, show it, and end with the exit code that the run deserves.

    Args:
        report: The file for everything that was skipped, one JSON object a line.
        json: Whether to print JSON.

    Raises:
        typer.Exit: If the source was not seen as a whole, or there was nothing to index.
    """
    from linkstore.ingest.source import IndexingError, NothingIndexedError

    if report is not None:  # it must be possible to write it, before an hour of work
        try:
            report.write_bytes(b"")
        except OSError as error:
            raise UsageError(f"--report: {error}") from error
    summaries: list[Summary] = []
    try:
        yield summaries
    except IndexingError as error:
        nothing = isinstance(error, NothingIndexedError)
        _report_summary(error.summary, report, json=json, briefly=nothing)
        complain(f"linkstore: {error}")
        raise typer.Exit(NOTHING_TO_INDEX if nothing else SOURCE_INCOMPLETE) from error
    for summary in summaries:
        _report_summary(summary, report, json=json)
        if summary.unseen:
            parts = format_count(len(summary.unseen), "part")
            named = _list_first(summary.unseen, len(summary.unseen))
            note(f"{parts} of the source could not be seen ({named}); what is stored of that was kept")
            raise typer.Exit(SOURCE_INCOMPLETE)


def _report_summary(summary: Summary, report: Path | None, *, json: bool, briefly: bool = False) -> None:
    if report is not None:
        _write_report(report, summary)
    if json:
        write_json(asdict(summary))
    elif not briefly and not quiet.get():
        show_summary(summary)


def _write_report(report: Path, summary: Summary) -> None:
    import orjson

    unseen = frozenset(summary.unseen)
    with report.open("wb") as file:
        for name, reason in summary.skipped.items():
            line = {
                "name": escape_surrogates(name),
                "reason": escape_surrogates(reason),
                "unseen": name in unseen,
            }
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def show_summary(summary: Summary) -> None:
    """Print what a run did."""
    pages, dangling, encodings = summary.pages, summary.dangling, summary.encodings
    done = "to write" if summary.dry_run else "written"
    if summary.dry_run:
        show("dry run   nothing was written")
    show(
        f"pages     {pages.added:,} added, {pages.updated:,} updated,"
        f" {pages.unchanged:,} unchanged, {pages.removed:,} removed"
    )
    show(f"chunks    {summary.chunks:,} {done}")
    show(f"links     {format_kinds(summary.links)} {done}")
    if dangling is not None:
        show(f"dangling  {dangling.internal:,} internal, {dangling.external:,} external")
    if summary.left_out.letters:
        show(f"left out  {_format_left_out(summary.left_out)}")
    if summary.unread:
        from linkstore.ingest.files import describe_unread

        show(f"left out  {describe_unread(summary.unread)}")
    if encodings.replaced:
        lost, on = format_count(encodings.replaced, "character"), format_count(encodings.pages, "page")
        most = _list_first(list(encodings.most), encodings.pages)
        show(f"encoding  {lost} replaced by U+FFFD on {on} ({most})", "yellow")
    if encodings.guessed:
        on = format_count(encodings.guessed, "page")
        show(f"encoding  {on} without a declaration read as windows-1252; --encoding names another", "yellow")
    for number, page in enumerate(summary.linked):
        title = "linked  " if number == 0 else " " * 8
        show(f"{title}{page.links:>6,}  {page.url}")
    for name, reason in list(summary.skipped.items())[:MAX_SHOWN_SKIPPED]:
        show(f"skipped   {name}: {reason}", "yellow")
    if len(summary.skipped) > MAX_SHOWN_SKIPPED:
        more = len(summary.skipped) - MAX_SHOWN_SKIPPED
        show(f"          (+{more:,} more; --report FILE writes all)", "yellow")


def _list_first(names: Sequence[str], count: int) -> str:
    """List a few of ``count`` names."""
    return ", ".join(names[:_MAX_NAMED]) + (", …" if count > _MAX_NAMED else "")


def _format_left_out(found: LeftOut) -> str:
    (kind, count), *others = found.kinds.items()
    parts = [
        f"{format_count(count, 'letter')} of {kind}",
        *(f"{count:,} of {kind}" for kind, count in others),
    ]
    return f"{', '.join(parts)} on {format_count(found.pages, 'page')}"
