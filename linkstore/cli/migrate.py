"""``linkstore migrate``: from one store to another, with vectors and links."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linkstore.cli.exits import UsageError
from linkstore.cli.options import JsonOption
from linkstore.cli.output import note, printable, stdout, write_json
from linkstore.errors import BackendError, EmbeddingError

if TYPE_CHECKING:
    from linkstore.backends.base import Backend
    from linkstore.migration import MigrationReport, Progress, Source

_SCHEME = "cassandra://"


def migrate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder, or cassandra://host:port/keyspace/table: a linkstore, or a table of"
            " langchain-community's CassandraGraphVectorStore or Cassandra.",
        ),
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A folder or URL; the store is made if it is not there.")
    ],
    embedding_name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What the vectors of langchain-community's table are from, such as"
            " openai:text-embedding-3-small [a linkstore's own].",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Copy a store with its vectors and links.

    Nothing is embedded again. Interrupted, the same command goes on where it was. Documents that cannot be
    taken are named with the reason, and skipped.
    """
    _check_places(source, target)
    from linkstore.migration import migrate as copy

    checkpoint = _checkpoint(source, target)
    with (
        _source(source, embedding_name) as origin,
        _target(target) as goal,
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


def _check_places(source: str, target: str) -> None:
    """Refuse what is no place, and a place that is both.

    Raises:
        UsageError: Saying which.
    """
    for place in (source, target):
        scheme, separator, _ = place.partition("://")
        if not place.strip():
            raise UsageError(
                "SOURCE and TARGET must each be a folder or cassandra://host:port/keyspace/table"
            )
        if separator and f"{scheme}://" != _SCHEME:
            raise UsageError(
                f"no backend is known for {scheme}://; give a folder, or cassandra://host:port/keyspace/table"
            )
        if separator:
            _check_url(place)
    if _absolute(source) == _absolute(target):
        raise UsageError(f"SOURCE and TARGET are the same: {source}")


def _check_url(url: str) -> None:
    from linkstore.backends.cassandra.session import parse_address

    try:
        parse_address(url)
    except BackendError as error:
        raise UsageError(str(error)) from error


def _absolute(place: str) -> str:
    """The place in one spelling."""
    return place if _is_url(place) else os.path.realpath(place)


def _is_url(place: str) -> bool:
    return place.startswith(_SCHEME)


def _checkpoint(source: str, target: str) -> Path:
    """Where it is noted how far the run is: beside the folder of either, else in the working folder."""
    import xxhash

    pair = f"{_absolute(source)}\n{_absolute(target)}"
    folders = [Path(_absolute(place)).parent for place in (target, source) if not _is_url(place)]
    name = f"linkstore-migration-{xxhash.xxh3_64_hexdigest(pair.encode())}.jsonl"
    return (folders[0] if folders else Path.cwd()) / name


@contextmanager
def _source(place: str, embedding: str | None) -> Iterator[Source]:
    """What is migrated, closed in the end."""
    if _is_url(place):
        from linkstore.migration.community import source_at

        with source_at(place, embedding) as found:
            _check_embedding(found, embedding)
            yield found
        return
    from linkstore.migration.source import BackendSource
    from linkstore.store.folder import backend_in

    backend = backend_in(place, create=False)
    try:
        found = BackendSource(backend)
        _check_embedding(found, embedding)
        yield found
    finally:
        backend.close()


def _check_embedding(source: Source, named: str | None) -> None:
    """Refuse a name that is not the one the source records."""
    from linkstore.migration.naming import recorded_name

    recorded = source.manifest().embedding
    if named is not None and recorded not in {None, recorded_name(named)}:
        raise EmbeddingError(
            f"--embedding-name {named}: the source records that its vectors are from {recorded!r}"
        )


@contextmanager
def _target(place: str) -> Iterator[Backend]:
    """Where everything goes, made if it is not there, closed in the end."""
    backend: Backend
    if _is_url(place):
        from linkstore.migration.community import check_free
        from linkstore.store.cassandra import backend_at

        check_free(place)
        backend = backend_at(place)
    else:
        from linkstore.store.folder import backend_in

        backend = backend_in(place)
    try:
        yield backend
    finally:
        backend.close()


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A counter on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from linkstore.cli.progress import document_counter

    with document_counter() as count:
        yield count


@contextmanager
def _advice_if_left(checkpoint: Path) -> Iterator[None]:
    """Say how to go on if the run ends before it is done."""
    try:
        yield
    finally:
        if checkpoint.exists():
            note(f"not done; the same command goes on from {checkpoint}")
