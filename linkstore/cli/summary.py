"""The summary of an indexing run: as text, as JSON, and as an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from linkstore.cli.exits import INCOMPLETE, NOTHING, UsageError
from linkstore.cli.output import complain, note, printable, quiet, stdout, write_json
from linkstore.display import amount
from linkstore.text import in_unicode

if TYPE_CHECKING:
    from rich.console import Console

    from linkstore.ingest import Encodings, Summary
    from linkstore.ingest.summary import LeftOut

SHOWN: Final = 10
"""Number of skipped pages that are listed; ``--report`` lists all."""
_NAMED: Final = 3


@contextmanager
def reported(report: Path | None, *, json: bool) -> Iterator[list[Summary]]:
    """Take the summary of a run, show it, and end with the exit code that the run deserves.

    Args:
        report: The file for everything that was skipped, one JSON object a line.
        json: Whether to print JSON.

    Raises:
        typer.Exit: If the source was not seen as a whole, or there was nothing to index.
    """
    from linkstore.ingest import IndexingError, NothingIndexedError

    _check(report)
    summaries: list[Summary] = []
    try:
        yield summaries
    except IndexingError as error:
        nothing = isinstance(error, NothingIndexedError)
        _told(error.summary, report, json=json, briefly=nothing)
        complain(f"linkstore: {error}")
        raise typer.Exit(NOTHING if nothing else INCOMPLETE) from error
    for summary in summaries:
        _told(summary, report, json=json)
        if summary.unseen:
            note(_unseen(summary))
            raise typer.Exit(INCOMPLETE)


def _unseen(summary: Summary) -> str:
    parts = amount(len(summary.unseen), "part")
    named = ", ".join(summary.unseen[:3]) + (", …" if len(summary.unseen) > 3 else "")
    return f"{parts} of the source could not be seen ({named}); what is stored of that was kept"


def _told(summary: Summary, report: Path | None, *, json: bool, briefly: bool = False) -> None:
    if report is not None:
        _write(report, summary)
    if json:
        write_json(asdict(summary))
    elif not briefly and not quiet.get():
        show_summary(summary)


def _check(report: Path | None) -> None:
    """Make sure that the report can be written, before an hour of work."""
    if report is not None:
        try:
            report.write_bytes(b"")
        except OSError as error:
            raise UsageError(f"--report: {error}") from error


def _write(report: Path, summary: Summary) -> None:
    import orjson

    unseen = frozenset(summary.unseen)
    with report.open("wb") as file:
        for name, reason in summary.skipped.items():
            line = {"name": in_unicode(name), "reason": in_unicode(reason), "unseen": name in unseen}
            file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def show_summary(summary: Summary) -> None:
    """Print what a run did."""
    console = stdout()
    pages, dangling = summary.pages, summary.dangling
    done = "to write" if summary.dry_run else "written"
    if summary.dry_run:
        console.print("dry run   nothing was written")
    console.print(
        f"pages     {pages.added:,} added, {pages.updated:,} updated,"
        f" {pages.unchanged:,} unchanged, {pages.removed:,} removed"
    )
    console.print(f"chunks    {summary.chunks:,} {done}")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.links.items())
    console.print(f"links     {printable(kinds) or 'none'} {done}")
    if not summary.dry_run:
        console.print(f"dangling  {dangling.internal:,} internal, {dangling.external:,} external")
    if summary.left_out.letters:
        console.print(f"left out  {_left_out(summary.left_out)}")
    if summary.unread:
        from linkstore.ingest.sources import unread_text

        console.print(printable(f"left out  {unread_text(summary.unread)}"))
    _show_encodings(console, summary.encodings)
    for number, page in enumerate(summary.linked):
        title = "linked  " if number == 0 else " " * 8
        console.print(printable(f"{title}{page.links:>6,}  {page.url}"))
    _show_skipped(console, summary.skipped)


def _left_out(found: LeftOut) -> str:
    (kind, count), *others = found.kinds.items()
    parts = [f"{amount(count, 'letter')} of {kind}", *(f"{count:,} of {kind}" for kind, count in others)]
    return f"{', '.join(parts)} on {amount(found.pages, 'page')}"


def _show_encodings(console: Console, found: Encodings) -> None:
    if found.replaced:
        lost, on = amount(found.replaced, "character"), amount(found.pages, "page")
        most = ", ".join(list(found.most)[:_NAMED]) + (", …" if found.pages > _NAMED else "")
        console.print(printable(f"encoding  {lost} replaced by U+FFFD on {on} ({most})"), style="yellow")
    if found.guessed:
        on = amount(found.guessed, "page")
        console.print(
            f"encoding  {on} without a declaration read as windows-1252; --encoding names another",
            style="yellow",
        )


def _show_skipped(console: Console, skipped: Mapping[str, str]) -> None:
    for name, reason in list(skipped.items())[:SHOWN]:
        console.print(printable(f"skipped   {name}: {reason}"), style="yellow")
    if len(skipped) > SHOWN:
        console.print(f"          (+{len(skipped) - SHOWN:,} more; --report FILE writes all)", style="yellow")
