"""Writes: members and postings first, then the document, then the members and postings that changed or went.

So a client that is stopped between any two statements leaves a store that answers right: a member whose
document does not have the link is not believed, one that is marked as unfinished has its document read, and
no document has a link without a member. A posting of a state that its document is not in is not believed
either, and all postings of the state that it is in are there. ``repair`` completes what was left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from linkstore.backends.base import Change, Record, Written
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.members import MemberRows, MemberStatements, Placed
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import (
    attributes_of,
    digest_of,
    link_cell,
    links_of,
    memberships,
    searchable,
    stored_links,
    written_links,
)
from linkstore.backends.cassandra.transport.requests import UNSET, Requests, Statement
from linkstore.backends.cassandra.wordwriting import WordChange, WordWriter
from linkstore.plans import Operation
from linkstore.vectors import Floats


class Clock:
    """Microseconds since 1970: of two writes of a process the later counts. Each has two of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self) -> int:
        """The timestamp of one write; the next whole number is its own too."""
        with self._lock:
            self._last = max(self._last + 2, time.time_ns() // 1000)
            return self._last

    def after(self, stored: int) -> int:
        """As :meth:`now`, and later than what is stored, whoever's clock was ahead when it was written.

        Later by 4: a relink of what is stored has the 3 before.
        """
        with self._lock:
            self._last = max(self._last, stored + 2)
        return self.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A record ready to be written."""

    record: Record
    attributes: str
    written: str
    digest: bytes
    placed: Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was stored under an id.

    Args:
        digest: Of the document without its links.
        written: Its links, as their author wrote them.
        placed: Where it lies.
        at: The timestamp of what was written last of it.
        lifetime: Seconds until it expires; None: never.
    """

    digest: bytes
    written: str
    at: int
    lifetime: int | None
    placed: Placed


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
    attributes, written = attributes_of(record)
    members = memberships(stored_links(record.links))
    return Prepared(
        record=record,
        attributes=attributes,
        written=written,
        digest=digest_of(record, attributes),
        placed=Placed(id=record.id, members=members, vector=record.vector, code=code),
    )


_Step = tuple[Prepared, Placed | None]
"""A record to write, and what was stored under its id."""


def read_before(tables: Tables, fetcher: Fetcher, ids: Sequence[str]) -> Operation[dict[str, Before]]:
    """What is stored under these ids, by id."""
    rows = yield from fetcher.by_id(cql.read_states(tables), ids, "read documents")
    return {row[0]: _before(*row) for row in rows if row[1] is not None}


def _before(
    name: str, digest: bytes, links: bytes | None, vector: Floats, at: int, linked_at: int, left: int | None
) -> Before:
    return Before(
        digest=digest,
        written=written_links(links).decode(),
        placed=Placed(id=name, members=memberships(links_of(links)), vector=vector),
        at=max(at, linked_at),
        lifetime=left,
    )


class ChangeWriter:
    """Carries out one change.

    Args:
        tables: Of the store.
        fetcher: Reads what was stored.
        clock: Gives timestamps.
        buckets: Into how many partitions a side of a link group is split, and a word.
        lifetime: Seconds until what is written expires; None: never.
        words: Writes postings; None in a store without lexical search.
    """

    def __init__(
        self,
        tables: Tables,
        fetcher: Fetcher,
        clock: Clock,
        buckets: int,
        lifetime: int | None,
        words: WordWriter | None = None,
    ) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._clock = clock
        self._at = 0
        self._lifetime = lifetime
        self._members = MemberRows(buckets, renew=lifetime is not None)
        self._statements = MemberStatements(tables, fetcher, lifetime)
        self._words = words

    def apply(self, change: Change, prepared: Sequence[Prepared]) -> Operation[Written]:
        """Write the change, step by step."""
        put_ids = {item.record.id for item in prepared}
        removals = [name for name in dict.fromkeys(change.remove) if name not in put_ids]
        before = yield from read_before(self._tables, self._fetcher, [*put_ids, *removals])
        self._at = self._clock.after(max((one.at for one in before.values()), default=0))
        changed = [item for item in prepared if self._differs(item, before.get(item.record.id))]
        removed = [name for name in removals if name in before]
        steps = [(item, _placed(before.get(item.record.id))) for item in changed]
        updated = [item.record.id for item in changed if item.record.id in before]
        words = yield from self._word_change(changed, [*updated, *removed])
        first = chain(self._members_before(steps), words.before(self._at))
        last = chain(self._members_after(steps, [before[name] for name in removed]), words.after(self._at))
        yield from self._run("write members and words", first)
        yield from self._run("write documents", (self._document(*step) for step in steps))
        yield from self._run("delete documents", map(self._deletion, removed))
        yield from self._run("finish members and words", last)
        yield from self._run("write page entries", self._pages(change))
        words.note()
        return Written(
            added=len(changed) - len(updated),
            updated=len(updated),
            unchanged=len(prepared) - len(changed),
            removed=len(removed),
        )

    def _word_change(self, changed: Sequence[Prepared], known: Sequence[str]) -> Operation[WordChange]:
        if self._words is None:
            return WordChange()
        return (yield from self._words.change([item.record for item in changed], known))

    def _differs(self, item: Prepared, before: Before | None) -> bool:
        """Whether it must be written: with a lifetime always, for that begins anew; or to end one."""
        return (
            before is None
            or before.digest != item.digest
            or before.written != item.written
            or before.lifetime is not None
            or self._lifetime is not None
        )

    def _members_before(self, steps: Sequence[_Step]) -> Iterator[Statement]:
        rows = (self._members.first(item.placed, old) for item, old in steps)
        return self._statements.write(chain.from_iterable(rows), self._at)

    def _members_after(self, steps: Sequence[_Step], removed: Sequence[Before]) -> Iterator[Statement]:
        """One later than the rows that are marked; deletions, though, no later than what was written."""
        changed = (self._members.last(item.placed, old) for item, old in steps)
        yield from self._statements.write(chain.from_iterable(changed), self._at + 1)
        left = [self._members.gone(old, item.placed.members) for item, old in steps if old]
        left += [self._members.gone(old.placed, {}) for old in removed]
        yield from self._statements.delete(chain.from_iterable(left), self._at)

    def _document(self, item: Prepared, before: Placed | None) -> Statement:
        record = item.record
        fields = searchable(record.metadata)
        values = (
            record.id,
            record.text,
            item.attributes,
            fields if fields or before else UNSET,
            link_cell(item.written, record.links),
            item.digest,
            record.vector,
            *self._stamp(),
        )
        text = cql.write_document(self._tables, lifetime=self._lifetime is not None)
        return Statement(cql=text, values=values, level="write")

    def _deletion(self, name: str) -> Statement:
        return Statement(cql=cql.delete_document(self._tables), values=(self._at, name), level="write")

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


def _placed(before: Before | None) -> Placed | None:
    return before.placed if before else None
