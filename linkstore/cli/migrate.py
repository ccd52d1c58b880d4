"""``linkstore migrate``: from one store to another, with vectors and links, without loading an embedding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from linkstore.cli.commands import JsonOption
from linkstore.cli.exits import UsageError
from linkstore.cli.output import format_kinds, note, show, write_json
from linkstore.cli.stores import is_place_url, open_backend
from linkstore.errors import EmbeddingError, LinkStoreError

if TYPE_CHECKING:
    from linkstore.store.migration import MigrationReport, Source


def migrate(
    source: str,
    target: str,
    embedding_name: str | None = None,
    json: JsonOption = False,
) -> None:
    """Copy a store with its vectors and links.

    Nothing is embedded again. To continue an interrupted migration, run the same command again. Documents
    that cannot be copied are listed with the reason, and skipped.

    Args:
        source (SOURCE): A folder, or cassandra://host:port/keyspace/table: a linkstore, or a table of
            langchain-community's CassandraGraphVectorStore or Cassandra.
        target (TARGET): A folder or URL; the store is created if it does not exist.
        embedding_name (NAME): Embedding of the vectors in a table of langchain-community, such as
            openai:text-embedding-3-small; a linkstore has its own.
    """
    checkpoint = _check_places(source, target)
    from linkstore.cli.progress import show_progress
    from linkstore.store import migration

    with _open_source(source, embedding_name) as origin:
        if is_place_url(target):
            from linkstore.store.community import check_free_for_store

            check_free_for_store(target)
        with open_backend(target, create=True) as goal, show_progress("documents") as progress:
            try:
                report = migration.migrate(origin, goal, progress=progress, checkpoint=checkpoint)
            except BaseException:
                with suppress(LinkStoreError):
                    if migration.is_begun(goal, checkpoint):
                        note("not done; the same command goes on from where it stopped")
                raise
    if json:
        write_json(asdict(report))
    else:
        show_migration(report)


def _check_places(source: str, target: str) -> str:
    """Refuse an invalid place, and equal places, and return the name of the source in the target's notes.

    Raises:
        UsageError: If one is invalid, or both are equal. The message names it.
    """
    spelled = [
        place if is_place_url(place, of_store=place == target) else os.path.realpath(place)
        for place in (source, target)
    ]
    if spelled[0] == spelled[1]:
        raise UsageError(f"SOURCE and TARGET are the same: {source}")
    return f"from {spelled[0].encode(errors='backslashreplace').decode()}"


@contextmanager
def _open_source(place: str, embedding: str | None) -> Iterator[Source]:
    """Open the source of the migration, and close it at the end. Refuse a name that it does not record."""
    from linkstore.store.migration import BackendSource, find_recorded_name

    with ExitStack() as stack:
        found: Source
        if is_place_url(place, of_store=False):
            from linkstore.store.community import open_source

            found = stack.enter_context(open_source(place, embedding))
        else:
            found = BackendSource(stack.enter_context(open_backend(place, create=False)))
        recorded = found.manifest().embedding
        if embedding is not None and recorded not in {None, find_recorded_name(embedding)}:
            raise EmbeddingError(
                f"--embedding-name {embedding}: the source records that its vectors are from {recorded!r}"
            )
        yield found


def show_migration(report: MigrationReport) -> None:
    """Print what a migration did."""
    written = report.written
    show(f"documents {written.added:,} added, {written.updated:,} updated, {written.unchanged:,} unchanged")
    show(f"links     {format_kinds(report.links)}")
    show(f"pages     {report.pages:,}")
    for name, reason in report.refused.items():
        show(f"refused   {name}: {reason}", "yellow")
