"""The source of a migration: any backend, or anything else that can be read from a cursor onward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from linkstore.backends.base import Backend, Manifest, PageEntry, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The next documents of a source.

    Args:
        cursor: Where to go on after them; None if there were none left.
        records: Those that can be stored.
        refused: Those that cannot, by id, with the reason.
    """

    cursor: str | None
    records: Sequence[Record] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


class Source(Protocol):
    """Documents that are read from a cursor on, in an order that stays the same from run to run."""

    def manifest(self) -> Manifest:
        """The embedding that its vectors are from."""
        ...

    def batch(self, after: str | None, limit: int) -> Batch:
        """Up to ``limit`` documents after a cursor (None: the first)."""
        ...

    def pages(self) -> Sequence[PageEntry]:
        """The records of indexed pages."""
        ...


class BackendSource:
    """A linkstore as a source; its cursors are ids.

    Args:
        backend: It stays open.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def manifest(self) -> Manifest:
        """As the store records it."""
        return self._backend.run(self._backend.manifest())

    def batch(self, after: str | None, limit: int) -> Batch:
        """In the backend's order."""
        records = self._backend.run(self._backend.scan(after, limit))
        return Batch(cursor=records[-1].id if records else None, records=records)

    def pages(self) -> Sequence[PageEntry]:
        """Of all its sources."""
        return self._backend.run(self._backend.pages(None))
