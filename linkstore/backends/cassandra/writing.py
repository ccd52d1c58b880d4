"""Writes a change: adds derived rows, then writes documents, then removes derived rows that are not needed.

All documents of a part have one timestamp, and their derived rows too. Three rules keep the store consistent
when several clients write at once, and when a client stops at any point
(``docs/decisions/0008-cassandra-overlapping-writers.md``):

- a change adds all rows derived from a state before the document has that state, even if the rows exist;
- adding a state to a row keeps its other states;
- a change removes states only after its documents were written, and with its own timestamp; so it does not
  affect states added by later changes, and earlier states are not current any more.

So all rows derived from the current state of a document always exist. Readers ignore other rows, which are
removed by the change that replaces the document, or by ``repair``.

A timestamp is the time of day, or directly after what the change replaces. A deletion by a client whose clock
is ahead cannot be read, and hides what is added below its timestamp. So what was added is looked up; while it
is missing, the change waits and writes it again. It waits no longer than clocks may differ, then it fails.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from linkstore.backends.base import Change, PageEntry, Written
from linkstore.backends.cassandra import cql, entries
from linkstore.backends.cassandra.accesses import forget
from linkstore.backends.cassandra.clock import Clock
from linkstore.backends.cassandra.corpus import Corpus
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.derived import DerivedRows, State, Step
from linkstore.backends.cassandra.preparing import DocumentStatements, Prepared
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import current_links, is_whole, last_replaced, written_links
from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.requests import Requests, Statement, sent
from linkstore.errors import ClockSkewError, StoreUnavailableError
from linkstore.plans import Operation

One = TypeVar("One")
Added = TypeVar("Added", Prepared, PageEntry)
A_PART: Final = 1_000
"""Number of documents that share one timestamp."""
FIRST_WAIT: Final = 0.001
"""Seconds before what was added and is hidden is written again; doubled each time."""
AT_ONCE: Final = 200
"""Number of documents that are read and then written together; small, so that little time passes between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What identifies the state of a stored document.

    Args:
        digest: Hash of the document without its links, None if it lacks a column, so that it is written.
        links: Its links as JSON, as in its metadata.
        written: Latest write time of its columns.
        lifetime: Seconds until it expires. None: never.
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
        self._looks = settings.reads_see_writes
        self._waits = 2 * settings.max_clock_skew + 1
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
        yield from self._write_pages(change)
        return Written(**counts)

    def _put_part(self, prepared: Sequence[Prepared]) -> Operation[Counter[str]]:
        digests = yield from self._read_digests([item.record.id for item in prepared])
        changed = [item for item in prepared if self._differs(item, digests)]
        self._begin(*(known.written for known in digests.values()))
        yield from self._store(changed)
        added = [item for item in changed if item.record.id not in digests]
        yield from self._until_there(added, self._find_missing, self._store, "documents")
        updated = len(changed) - len(added)
        return Counter(added=len(added), updated=updated, unchanged=len(prepared) - len(changed))

    def _store(self, items: Sequence[Prepared]) -> Operation[None]:
        new = {item.record.id: self._derived.state(item.record, item.attributes, item.code) for item in items}
        yield from sent("write members and words", self._derived.add(new.values(), self._at))
        yield from self._finish((yield from self._put(items, new)))

    def _until_there(
        self,
        added: Sequence[Added],
        missing: Callable[[Sequence[Added]], Operation[Sequence[Added]]],
        write: Callable[[Sequence[Added]], Operation[None]],
        what: str,
    ) -> Operation[None]:
        """Look up what was added, and write again what is missing, until all of it is stored.

        Another client removed what is missing, before and with a clock that is ahead, or at this moment.

        Raises:
            ClockSkewError: If something is still missing after the longest time that clocks may differ.
        """
        wait, waited = FIRST_WAIT, 0.0
        while added and self._looks and (added := (yield from missing(added))):
            if waited > self._waits:
                raise ClockSkewError(
                    f"{len(added)} {what} were written and are not there, also not after {waited:.1f} s"
                    f" ({', '.join(map(_shown, added[:3]))}): they were removed by a client whose clock is"
                    f" more than {waited:.1f} s ahead of that of this machine, or other clients remove them"
                    " again and again. Set the clocks, for instance by NTP, and write them again"
                )
            yield Requests(statements=(), what=f"wait to write {what} again", wait=wait)
            waited, wait = waited + wait, 2 * wait
            self._begin(self._at)
            yield from write(added)

    def _find_missing(self, added: Sequence[Prepared]) -> Operation[list[Prepared]]:
        there = yield from self._fetcher.present([item.record.id for item in added])
        return [item for item in added if item.record.id not in there]

    def _remove_part(self, ids: Sequence[str]) -> Operation[Counter[str]]:
        digests = yield from self._read_digests(ids)
        self._begin(*(known.written for known in digests.values()))
        yield from self._finish((yield from self._remove(digests)))
        return Counter(removed=len(digests))

    def _begin(self, *replaced: int) -> None:
        """Take a timestamp that is later than those of what is replaced."""
        self._at = self._clock.now(after=max(replaced, default=0))
        self._since = time.monotonic()

    def _finish(self, steps: Sequence[Step]) -> Operation[None]:
        yield from sent("finish members and words", self._derived.finish(steps, self._at))
        self._update_corpus(steps)

    def _read_digests(self, ids: Sequence[str]) -> Operation[dict[str, Known]]:
        """Read what identifies the states of existing documents, and of those that lack a column."""
        rows = yield from self._fetcher.by_id(cql.read_digests(self._tables), ids, "read documents")
        return {
            id: Known(
                digest=digest if is_whole(times) else None,
                links=written_links(current_links(links, relinked)).decode(),
                written=max(last_replaced(relinked), *(time for time in times if time is not None)),
                lifetime=lifetime,
            )
            for id, digest, *times, links, relinked, lifetime in rows
            if any(times[:-1])
        }

    def _differs(self, item: Prepared, digests: Mapping[str, Known]) -> bool:
        """Say whether a document must be written.

        A document that has or had a lifetime must always be written, because its lifetime changes then.
        """
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
            born = {id: state.born for id, state in before.items()}
            yield from sent("write documents", self._documents.write(written, self._at, born))
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
            forgotten = ((state.id, state.born) for state in gone)
            yield from sent("delete accesses", forget(self._tables, forgotten, self._at))
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

    def _write_pages(self, change: Change) -> Operation[None]:
        put = {(page.source, page.url): page for page in change.put_pages}
        removed = [name for name in dict.fromkeys(change.remove_pages) if name not in put]
        known = yield from entries.written(self._tables, (*put, *removed))
        self._begin(*known.values())
        yield from sent("remove page entries", self._make_removals(removed))
        yield from self._put_pages(list(put.values()))
        added = [page for name, page in put.items() if name not in known]
        yield from self._until_there(added, self._find_missing_pages, self._put_pages, "page entries")

    def _make_removals(self, names: Iterable[entries.Name]) -> Iterator[Statement]:
        text = cql.delete_page(self._tables)
        return (Statement(cql=text, values=(self._at, *name), level="write") for name in names)

    def _put_pages(self, pages: Sequence[PageEntry]) -> Operation[None]:
        text = cql.write_page(self._tables, lifetime=self._lifetime is not None)
        rows = (
            (page.source, page.url, page.digest, list(page.ids), *self._make_timestamp_values())
            for page in pages
        )
        statements = (Statement(cql=text, values=row, level="write") for row in rows)
        yield from sent("write page entries", statements)

    def _find_missing_pages(self, added: Sequence[PageEntry]) -> Operation[list[PageEntry]]:
        there = yield from entries.written(self._tables, ((page.source, page.url) for page in added))
        return [page for page in added if (page.source, page.url) not in there]

    def _make_timestamp_values(self) -> tuple[int, ...]:
        return (self._at,) if self._lifetime is None else (self._at, self._lifetime)

    def _update_corpus(self, steps: Sequence[Step]) -> None:
        """Tell the corpus how the numbers of documents and words changed."""
        now = [step.now for step in steps if step.now]
        before = [step.before for step in steps if step.before and step.before.written]
        written, replaced = ([(state.attributes, state.length) for state in part] for part in (now, before))
        self._corpus.add(written, replaced)


def _shown(one: Prepared | PageEntry) -> str:
    return repr(one.url if isinstance(one, PageEntry) else one.record.id)


def _parts(whole: Sequence[One]) -> Iterator[Sequence[One]]:
    return (whole[start : start + A_PART] for start in range(0, len(whole), A_PART))
