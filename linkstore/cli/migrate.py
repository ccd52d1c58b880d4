"""``linkstore migrate``: from one store to another, with vectors and links."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.migrating import check_places, checkpoint_of, source_at_place, target_at_place
from linkstore.cli.options import JsonOption
from linkstore.cli.output import note, printable, stdout, write_json

if TYPE_CHECKING:
    from linkstore.migration import MigrationReport, Progress

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="A folder, or cassandra://host:port/keyspace/table: a linkstore, or a table of"
        " langchain-community's CassandraGraphVectorStore or Cassandra.",
    ),
]
TargetArgument = Annotated[
    str,
    typer.Argument(metavar="TARGET", help="A folder or URL; the store is created if it does not exist."),
]
EmbeddingNameOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Embedding of the vectors in a table of langchain-community, such as"
        " openai:text-embedding-3-small; a linkstore has its own.",
    ),
]


def migrate(
    source: SourceArgument,
    target: TargetArgument,
    embedding_name: EmbeddingNameOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a store with its vectors and links.

    Nothing is embedded again. To continue an interrupted migration, run the same command again. Documents
    that cannot be copied are listed with the reason, and skipped.
    """
    check_places(source, target)
    from linkstore.migration import migrate as copy

    checkpoint = checkpoint_of(source, target)
    with (
        source_at_place(source, embedding_name) as origin,
        target_at_place(target) as goal,
        _progress() as progress,
        _advice_if_left(checkpoint),
    ):
        report = copy(origin, goal, progress=progress, checkpoint=checkpoint)
    if json:
        write_json(asdict(report))
    else:
        show_migration(report)


def show_migration(report: MigrationReport) -> None:
    """Print what a migration did."""
    console = stdout()
    written = report.written
    console.print(
        f"documents {written.added:,} added, {written.updated:,} updated, {written.unchanged:,} unchanged"
    )
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.links.items())
    console.print(f"links     {printable(kinds) or 'none'}")
    console.print(f"pages     {report.pages:,}")
    for name, reason in report.refused.items():
        console.print(printable(f"refused   {name}: {reason}"), style="yellow")


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """Show a counter on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import document_counter

    with document_counter() as count:
        yield count


@contextmanager
def _advice_if_left(checkpoint: Path) -> Iterator[None]:
    """Tell how to continue if the run ends before it is done."""
    try:
        yield
    finally:
        if checkpoint.exists():
            note(f"not done; the same command goes on from {checkpoint}")
