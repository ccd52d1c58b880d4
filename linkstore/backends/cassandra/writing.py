"""Writes a change: adds derived rows, then writes documents, then removes derived rows that are not needed.

Everything that a change writes has one unique timestamp. Three rules keep the store consistent when several
clients write at once, and when a client stops at any point
(``docs/decisions/0008-cassandra-overlapping-writers.md``):

- a change adds all rows derived from a state before the document has that state, even if the rows exist;
- adding a state to a row keeps its other states;
- a change removes states only after its documents were written, and with its own timestamp; so it does not
  affect states added by later changes, and earlier states are not current any more.

So all rows derived from the current state of a document always exist. Readers ignore other rows, which are
removed by the change that replaces the document, or by ``repair``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from linkstore.backends.base import Change, Written
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.clock import Clock
from linkstore.backends.cassandra.corpus import Corpus
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State, Step
from linkstore.backends.cassandra.preparing import DocumentStatements, Prepared
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import is_whole, written_links
from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.requests import Statement, sent
from linkstore.errors import StoreUnavailableError
from linkstore.plans import Operation

One = TypeVar("One")
A_PART: Final = 1_000
"""Number of documents that share one timestamp."""
FORGOTTEN_AT_ONCE: Final = 50
"""Number of documents whose accesses one statement deletes."""
AT_ONCE: Final = 200
"""Number of documents that are read and then written together; small, so that little time passes between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What identifies the state of a stored document.

    Args:
        digest: Hash of the document without its links; None if it lacks a column, so that it is written.
        links: Its links as JSON, as in its metadata.
        written: Latest write time of its columns.
        lifetime: Seconds until it expires; None: never.
    """

    digest: bytes | None
    links: str
    written: int
    lifetime: int | None


class ChangeWriter:
    """Carries out one change.

    Args:
        tables: The tables of the store.
        fetcher: Reads stored documents.
        clock: Gives timestamps.
        derived: Makes the statements about members and words.
        settings: Lifetime of documents, and time limits.
        corpus: Is told how many documents were written.
    """

    def __init__(
        self,
        tables: Tables,
        fetcher: Fetcher,
        clock: Clock,
        derived: DerivedRows,
        settings: CassandraSettings,
        corpus: Corpus,
    ) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._clock = clock
        self._derived = derived
        self._documents = DocumentStatements(tables, fetcher, settings.ttl)
        self._lifetime = settings.ttl
        self._skew = round(settings.max_clock_skew * 1e6) if settings.reads_see_writes else 0
        self._in_time = max(settings.settle / 2, settings.deadline)
        self._corpus = corpus
        self._at = 0
        self._since = 0.0

    def apply(self, change: Change, prepared: Sequence[Prepared]) -> Operation[Written]:
        """Write the change, some documents at a time, then its page entries."""
        put_ids = {item.record.id for item in prepared}
        removals = [id for id in dict.fromkeys(change.remove) if id not in put_ids]
        counts = Counter[str]()
        for part in _parts(prepared):
            counts += yield from self._put_part(part)
        for ids in _parts(removals):
            counts += yield from self._remove_part(ids)
        self._at = self._clock.now()
        yield from sent("write page entries", self._pages(change))
        return Written(**counts)

    def _put_part(self, prepared: Sequence[Prepared]) -> Operation[Counter[str]]:
        digests = yield from self._digests([item.record.id for item in prepared])
        changed = [item for item in prepared if self._differs(item, digests)]
        self._begin(digests.values())
        yield from self._store(changed)
        added = [item for item in changed if item.record.id not in digests]
        if hidden := (yield from self._hidden(added)):
            self._at = self._clock.past(self._at + 2 * self._skew)
            yield from self._store(hidden)
        updated = sum(item.record.id in digests for item in changed)
        return Counter(added=len(changed) - updated, updated=updated, unchanged=len(prepared) - len(changed))

    def _store(self, items: Sequence[Prepared]) -> Operation[None]:
        new = {item.record.id: self._derived.state(item.record, item.attributes, item.code) for item in items}
        yield from sent("write members and words", self._derived.add(new.values(), self._at))
        yield from self._finish((yield from self._put(items, new)))

    def _hidden(self, added: Sequence[Prepared]) -> Operation[list[Prepared]]:
        """Which of the added documents cannot be read.

        A client whose clock is ahead removed them before, and its deletion has a later timestamp. (Or they
        are being removed at this moment; then either result is correct.)
        """
        if not added or not self._skew:
            return []
        there = yield from self._fetcher.present([item.record.id for item in added])
        return [item for item in added if item.record.id not in there]

    def _remove_part(self, ids: Sequence[str]) -> Operation[Counter[str]]:
        digests = yield from self._digests(ids)
        self._begin(digests.values())
        yield from self._finish((yield from self._remove(digests)))
        return Counter(removed=len(digests))

    def _begin(self, known: Iterable[Known]) -> None:
        """Take a timestamp that is later than those of the replaced documents."""
        self._at = self._clock.now(after=max((one.written for one in known), default=0))
        self._since = time.monotonic()

    def _finish(self, steps: Sequence[Step]) -> Operation[None]:
        yield from sent("finish members and words", self._derived.finish(steps, self._at))
        self._note(steps)

    def _digests(self, ids: Sequence[str]) -> Operation[dict[str, Known]]:
        """What identifies the states of existing documents, and of those that lack a column."""
        rows = yield from self._fetcher.by_id(cql.read_digests(self._tables), ids, "read documents")
        return {
            id: Known(
                digest=digest if is_whole(times) else None,
                links=written_links(links).decode(),
                written=max(time for time in times if time is not None),
                lifetime=lifetime,
            )
            for id, digest, links, lifetime, *times in rows
            if any(times[:-1])
        }

    def _differs(self, item: Prepared, digests: Mapping[str, Known]) -> bool:
        """Whether a document must be written; always if it has or had a lifetime, which changes then."""
        known = digests.get(item.record.id)
        return (
            known is None
            or (known.digest, known.links) != (item.digest, item.links)
            or known.lifetime is not None
            or self._lifetime is not None
        )

    def _put(self, changed: Sequence[Prepared], new: Mapping[str, State]) -> Operation[list[Step]]:
        """Write documents, directly after reading the states that they replace."""
        steps: list[Step] = []
        for start in range(0, len(changed), AT_ONCE):
            part = changed[start : start + AT_ONCE]
            self._check_time()
            before = yield from self._derived.stored([item.record.id for item in part], new)
            overtaken = {id for id, state in before.items() if state.written > self._at}
            written = [item for item in part if item.record.id not in overtaken]
            yield from sent("write documents", self._documents.write(written, self._at))
            steps += [Step(now=None, before=new[id]) for id in overtaken]
            ids = (item.record.id for item in written)
            steps += [Step(now=new[id], before=before.get(id)) for id in ids]
        return steps

    def _remove(self, known: Mapping[str, Known]) -> Operation[list[Step]]:
        """Delete documents, directly after reading their states."""
        steps: list[Step] = []
        ids = list(known)
        for start in range(0, len(ids), AT_ONCE):
            part = ids[start : start + AT_ONCE]
            before = yield from self._derived.stored(part, {})
            gone = [state for state in before.values() if state.written < self._at]
            named = [state.id for state in gone]
            named += [id for id in part if id not in before and known[id].digest is None]
            yield from sent("delete documents", self._documents.delete(named, self._at))
            yield from sent("delete accesses", self._forgetting(named))
            steps += [Step(now=None, before=state) for state in gone]
        return steps

    def _check_time(self) -> None:
        """Fail if writing took too long: ``repair`` of another client might have removed the added rows."""
        spent = time.monotonic() - self._since
        if spent > self._in_time:
            raise StoreUnavailableError(
                f"could not write documents: writing their members and words took {spent:.0f} s, and at most"
                f" {self._in_time:.0f} s are allowed (half of settle in CassandraSettings). Check the load of"
                " the server, then write them again."
            )

    def _forgetting(self, ids: Sequence[str]) -> Iterator[Statement]:
        text = cql.delete_accesses(self._tables)
        for start in range(0, len(ids), FORGOTTEN_AT_ONCE):
            part = list(ids[start : start + FORGOTTEN_AT_ONCE])
            yield Statement(cql=text, values=(self._at, part), level="write")

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

    def _note(self, steps: Sequence[Step]) -> None:
        """Tell the corpus how the numbers of documents and words changed."""
        now = [step.now for step in steps if step.now]
        before = [step.before for step in steps if step.before and step.before.written]
        written, replaced = ([(state.attributes, state.length) for state in part] for part in (now, before))
        self._corpus.add(written, replaced)


def _parts(whole: Sequence[One]) -> Iterator[Sequence[One]]:
    return (whole[start : start + A_PART] for start in range(0, len(whole), A_PART))
