"""Writes: members first, then the document, then the members that went; all of one timestamp.

So a client that is stopped between any two statements leaves a store that answers right: a member whose
document does not have the link is not believed, and no document has a link without a member. The same write,
repeated, completes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.backends.base import Change, Record, Written
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.requests import UNSET, Requests, Statement
from linkstore.backends.cassandra.rows import (
    Membership,
    attributes_of,
    digest_of,
    memberships,
    searchable,
    stored_links,
)
from linkstore.plans import Operation
from linkstore.vectors import Floats

BATCH_ROWS: Final = 10
"""A batch of more partitions makes the server warn."""
BATCH_BYTES: Final = 4_500
"""A batch of more than 5 KiB makes the server warn."""
_ROW_BYTES: Final = 60
_KEY_COLUMNS: Final = 4


class Clock:
    """Microseconds since 1970, never twice the same: of two writes of a process the later counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self) -> int:
        """The timestamp of one write."""
        with self._lock:
            self._last = max(self._last + 1, time.time_ns() // 1000)
            return self._last


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A record ready to be written."""

    record: Record
    attributes: str
    digest: bytes
    code: bytes
    members: dict[Membership, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was stored under an id."""

    digest: bytes
    members: dict[Membership, float]
    vector: Floats


def prepare(records: Sequence[Record]) -> list[Prepared]:
    """Serialise records, the last of each id, before anything is written.

    Raises:
        DocumentError: If metadata is not JSON; the message names the document.
    """
    last = list({record.id: record for record in records}.values())
    if not last:
        return []
    packed = codes.encode(np.stack([record.vector for record in last]))
    return [_prepared(record, code) for record, code in zip(last, packed, strict=True)]


def _prepared(record: Record, code: bytes) -> Prepared:
    attributes = attributes_of(record)
    links = stored_links(record.links)
    return Prepared(
        record=record,
        attributes=attributes,
        digest=digest_of(record, attributes),
        code=code,
        members=memberships(links),
    )


class ChangeWriter:
    """Carries out one change.

    Args:
        tables: Of the store.
        fetcher: Reads what was stored.
        clock: Gives timestamps.
        buckets: Into how many partitions a side of a link group is split.
        lifetime: Seconds until what is written expires; None: never.
    """

    def __init__(
        self, tables: Tables, fetcher: Fetcher, clock: Clock, buckets: int, lifetime: int | None
    ) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._at = clock.now()
        self._buckets = buckets
        self._lifetime = lifetime

    def apply(self, change: Change, prepared: Sequence[Prepared]) -> Operation[Written]:
        """Write the change, step by step."""
        put_ids = {item.record.id for item in prepared}
        removals = [name for name in dict.fromkeys(change.remove) if name not in put_ids]
        before = yield from self._before([*put_ids, *removals])
        changed = [item for item in prepared if self._differs(item, before.get(item.record.id))]
        removed = [name for name in removals if name in before]
        yield from self._run("write members", self._new_members(changed, before))
        yield from self._run(
            "write documents", (self._document(item, known=item.record.id in before) for item in changed)
        )
        yield from self._run("delete documents", map(self._deletion, removed))
        yield from self._run("delete members", self._old_members(changed, removed, before))
        yield from self._run("write page entries", self._pages(change))
        updated = sum(item.record.id in before for item in changed)
        return Written(
            added=len(changed) - updated,
            updated=updated,
            unchanged=len(prepared) - len(changed),
            removed=len(removed),
        )

    def _before(self, ids: Sequence[str]) -> Operation[dict[str, Before]]:
        rows = yield from self._fetcher.by_id(cql.read_states(self._tables), ids, "read documents")
        return {
            name: Before(digest=digest, members=memberships(links or ()), vector=vector)
            for name, digest, links, vector in rows
        }

    def _differs(self, item: Prepared, before: Before | None) -> bool:
        """Whether it must be written; with a lifetime always, for that begins anew."""
        return before is None or before.digest != item.digest or self._lifetime is not None

    def _new_members(self, changed: Sequence[Prepared], before: dict[str, Before]) -> Iterator[Statement]:
        """A few members a statement, each statement to a node that has them."""
        rows = sorted(self._member_rows(changed, before), key=lambda row: row[:_KEY_COLUMNS])
        keys = [row[:_KEY_COLUMNS] for row in rows]
        for share in self._fetcher.by_replica(self._tables.members_name, keys):
            for part in _batches([rows[at] for at in share.positions]):
                text = cql.write_members(self._tables, len(part), lifetime=self._lifetime is not None)
                values = tuple(value for row in part for value in row)
                yield Statement(cql=text, values=values, level="write", routing=share.routing)

    def _member_rows(
        self, changed: Sequence[Prepared], before: dict[str, Before]
    ) -> Iterator[tuple[Any, ...]]:
        for item in changed:
            known = self._known(item, before.get(item.record.id))
            at = bucket(item.record.id, self._buckets)
            for (kind, tag, side), weight in item.members.items():
                if known.get((kind, tag, side)) != weight:
                    yield (kind, tag, side, at, item.record.id, weight, item.code, *self._stamp())

    def _known(self, item: Prepared, before: Before | None) -> dict[Membership, float]:
        """Members that are right as they are; none if the vector changed, of which they have a copy."""
        if before is None or self._lifetime is not None:
            return {}
        return before.members if np.array_equal(before.vector, item.record.vector) else {}

    def _document(self, item: Prepared, *, known: bool) -> Statement:
        record = item.record
        fields = searchable(record.metadata)
        values = (
            record.id,
            record.text,
            item.attributes,
            fields if fields or known else UNSET,
            stored_links(record.links),
            item.digest,
            record.vector,
            *self._stamp(),
        )
        text = cql.write_document(self._tables, lifetime=self._lifetime is not None)
        return Statement(cql=text, values=values, level="write")

    def _deletion(self, name: str) -> Statement:
        return Statement(cql=cql.delete_document(self._tables), values=(self._at, name), level="write")

    def _old_members(
        self, changed: Sequence[Prepared], removed: Sequence[str], before: dict[str, Before]
    ) -> Iterator[Statement]:
        now = {item.record.id: item.members for item in changed}
        text = cql.delete_member(self._tables)
        for name in (*now, *removed):
            old = before[name].members if name in before else {}
            for kind, tag, side in old:
                if (kind, tag, side) not in now.get(name, {}):
                    values = (self._at, kind, tag, side, bucket(name, self._buckets), name)
                    yield Statement(cql=text, values=values, level="write")

    def _pages(self, change: Change) -> Iterator[Statement]:
        put = {(page.source, page.url): page for page in change.put_pages}
        for source, url in change.remove_pages:
            if (source, url) not in put:
                values: tuple[Any, ...] = (self._at, source, url)
                yield Statement(cql=cql.delete_page(self._tables), values=values, level="write")
        for (source, url), page in put.items():
            values = (source, url, page.digest, list(page.ids), *self._stamp())
            text = cql.write_page(self._tables, lifetime=self._lifetime is not None)
            yield Statement(cql=text, values=values, level="write")

    def _stamp(self) -> tuple[int, ...]:
        return (self._at,) if self._lifetime is None else (self._at, self._lifetime)

    def _run(self, what: str, statements: Iterator[Statement]) -> Operation[None]:
        all_of_them = tuple(statements)
        if all_of_them:
            yield Requests(statements=all_of_them, what=what)


def _batches(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Rows in batches that the server takes without a warning: so many, or so many bytes."""
    start = size = 0
    for at, row in enumerate(rows):
        weight = sum(len(value) if isinstance(value, str | bytes) else 8 for value in row) + _ROW_BYTES
        if at > start and (at - start == BATCH_ROWS or size + weight > BATCH_BYTES):
            yield rows[start:at]
            start, size = at, 0
        size += weight
    if start < len(rows):
        yield rows[start:]


def bucket(name: str, buckets: int) -> int:
    """The partition of a side of a link group in which a document lies."""
    return xxhash.xxh3_64_intdigest(name.encode()) % buckets if buckets > 1 else 0
