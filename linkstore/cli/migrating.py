"""Opens the sources and targets of ``migrate``, folders and URLs, without loading an embedding."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from linkstore.cli.exits import UsageError
from linkstore.cli.stores import is_url
from linkstore.errors import EmbeddingError

if TYPE_CHECKING:
    from linkstore.backends.base import Backend
    from linkstore.migration import Source

_SCHEME: Final = "cassandra://"


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
        is_url(place, of_store=place == target)
    if _absolute(source) == _absolute(target):
        raise UsageError(f"SOURCE and TARGET are the same: {source}")


def _absolute(place: str) -> str:
    """Return the place in one spelling."""
    return place if _is_url(place) else os.path.realpath(place)


def _is_url(place: str) -> bool:
    return place.startswith(_SCHEME)


def checkpoint_of(source: str, target: str) -> Path:
    """Return the path of the journal: next to the folder of source or target, else in the working folder."""
    import xxhash

    pair = f"{_absolute(source)}\n{_absolute(target)}"
    folders = [Path(_absolute(place)).parent for place in (target, source) if not _is_url(place)]
    name = f"linkstore-migration-{xxhash.xxh3_64_hexdigest(pair.encode(errors='surrogateescape'))}.jsonl"
    return (folders[0] if folders else Path.cwd()) / name


@contextmanager
def source_at_place(place: str, embedding: str | None) -> Iterator[Source]:
    """Open the source of the migration, and close it at the end."""
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
    """Refuse a name that is not the one that the source records."""
    from linkstore.migration.naming import recorded_name

    recorded = source.manifest().embedding
    if named is not None and recorded not in {None, recorded_name(named)}:
        raise EmbeddingError(
            f"--embedding-name {named}: the source records that its vectors are from {recorded!r}"
        )


@contextmanager
def target_at_place(place: str) -> Iterator[Backend]:
    """Open the target of the migration, created if it does not exist, and close it at the end."""
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
