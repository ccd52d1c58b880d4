"""``linkstore migrate``: from one store to another, with vectors and links, without loading an embedding."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.output import get_stdout, note, write_json
from linkstore.cli.stores import JsonOption, is_place_url
from linkstore.core.display import escape_unprintable
from linkstore.errors import EmbeddingError

if TYPE_CHECKING:
    from linkstore.engines.bookkeeping import Backend
    from linkstore.store.migration import MigrationReport, Progress, Source

_CASSANDRA_SCHEME: Final = "cassandra://"


def check_places(source: str, target: str) -> None:
    """Refuse an invalid place, and equal places.

    Raises:
        UsageError: If one is invalid, or both are equal. The message names it.
    """
    for place in (source, target):
        if not place.strip():
            raise UsageError(
                "SOURCE and TARGET must each be a folder or cassandra://host:port/keyspace/table"
            )
        is_place_url(place, of_store=place == target)
    if _make_absolute(source) == _make_absolute(target):
        raise UsageError(f"SOURCE and TARGET are the same: {source}")


def _make_absolute(place: str) -> str:
    """Return the place in one spelling."""
    return place if _has_scheme(place) else os.path.realpath(place)


def _has_scheme(place: str) -> bool:
    return place.startswith(_CASSANDRA_SCHEME)


def get_checkpoint_path(source: str, target: str) -> Path:
    """Return the path of the journal: next to the folder of source or target, else in the working folder."""
    import xxhash

    pair = f"{_make_absolute(source)}\n{_make_absolute(target)}"
    folders = [Path(_make_absolute(place)).parent for place in (target, source) if not _has_scheme(place)]
    name = f"linkstore-migration-{xxhash.xxh3_64_hexdigest(pair.encode(errors='surrogateescape'))}.jsonl"
    return (folders[0] if folders else Path.cwd()) / name


@contextmanager
def open_migration_source(place: str, embedding: str | None) -> Iterator[Source]:
    """Open the source of the migration, and close it at the end."""
    if _has_scheme(place):
        from linkstore.store.community import open_source

        with open_source(place, embedding) as found:
            _check_embedding_name(found, embedding)
            yield found
        return
    from linkstore.store.core import make_folder_backend
    from linkstore.store.migration import BackendSource

    backend = make_folder_backend(place, create=False)
    try:
        found = BackendSource(backend)
        _check_embedding_name(found, embedding)
        yield found
    finally:
        backend.close()


def _check_embedding_name(source: Source, named: str | None) -> None:
    """Refuse a name that is not the one that the source records."""
    from linkstore.store.migration import find_recorded_name

    recorded = source.manifest().embedding
    if named is not None and recorded not in {None, find_recorded_name(named)}:
        raise EmbeddingError(
            f"--embedding-name {named}: the source records that its vectors are from {recorded!r}"
        )


@contextmanager
def open_migration_target(place: str) -> Iterator[Backend]:
    """Open the target of the migration, created if it does not exist, and close it at the end."""
    backend: Backend
    if _has_scheme(place):
        from linkstore.store.cassandra import make_url_backend
        from linkstore.store.community import check_free_for_store

        check_free_for_store(place)
        backend = make_url_backend(place)
    else:
        from linkstore.store.core import make_folder_backend

        backend = make_folder_backend(place)
    try:
        yield backend
    finally:
        backend.close()


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
    from linkstore.store.migration import migrate as copy

    checkpoint = get_checkpoint_path(source, target)
    with (
        open_migration_source(source, embedding_name) as origin,
        open_migration_target(target) as goal,
        _show_document_progress() as progress,
        _advise_if_left(checkpoint),
    ):
        report = copy(origin, goal, progress=progress, checkpoint=checkpoint)
    if json:
        write_json(asdict(report))
    else:
        show_migration(report)


def show_migration(report: MigrationReport) -> None:
    """Print what a migration did."""
    console = get_stdout()
    written = report.written
    console.print(
        f"documents {written.added:,} added, {written.updated:,} updated, {written.unchanged:,} unchanged"
    )
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.links.items())
    console.print(f"links     {escape_unprintable(kinds) or 'none'}")
    console.print(f"pages     {report.pages:,}")
    for name, reason in report.refused.items():
        console.print(escape_unprintable(f"refused   {name}: {reason}"), style="yellow")


@contextmanager
def _show_document_progress() -> Iterator[Progress | None]:
    """Show a counter on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import show_document_counter

    with show_document_counter() as count:
        yield count


@contextmanager
def _advise_if_left(checkpoint: Path) -> Iterator[None]:
    """Tell how to continue if the run ends before it is done."""
    try:
        yield
    finally:
        if checkpoint.exists():
            note(f"not done; the same command goes on from {checkpoint}")
