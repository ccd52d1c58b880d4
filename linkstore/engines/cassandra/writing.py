"""Writes changes: adds derived rows, writes documents, then removes derived rows that are not needed.

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

A relink replaces links of some kinds in stored documents. Each kind is a cell of the column of replaced
links, so clients that replace links of different kinds never write the same cell. A relink changes one
version of a document. Its timestamps follow directly after that version, so they are earlier than those of
any later update or deletion, which forget replaced links. So a relink neither reverts an acknowledged update
nor restores a deleted document. Afterwards the document is read again. If another write won, the links are
replaced again in the version that it wrote. Members are added first, as in every write, and old members are
removed afterwards. All of them are of the replaced kinds. If two relinks replace one kind in one version at
once, they have the same timestamp, and one cell wins. The other relink starts again. The removal has the
timestamp before, which does not affect what the other relink added.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from linkstore.core.calls import split_batches
from linkstore.core.documents import replace_kinds
from linkstore.core.links import Link
from linkstore.core.plans import EngineOperation
from linkstore.core.processes import Lock
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.codec import (
    DocumentVersion,
    dump_links,
    find_last_write,
    has_content,
    make_replacement,
    read_versions,
)
from linkstore.engines.cassandra.derived import NO_ROWS, DerivedRows, RowChange, RowSet, get_words
from linkstore.engines.cassandra.lexical import CorpusStatistics
from linkstore.engines.cassandra.listing import split_large
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Requests, Statement, run_each, run_writes, send
from linkstore.engines.cassandra.tables import find_shard, forget_accesses, read_entry_times
from linkstore.engines.contract import PageEntry, WriteBatch, WriteCounts
from linkstore.errors import ClockSkewError, StoreBusyError, StoreUnavailableError

DOCUMENT_BATCH_SIZES: Final = (3, 2, 1)
"""Numbers of documents in a statement. There are few of them, because each needs a prepared statement."""
DOCUMENTS_PER_DELETION: Final = 10
"""Number of documents that one statement deletes."""
DOCUMENTS_PER_TIMESTAMP: Final = 1_000
"""Number of documents that share one timestamp."""
FIRST_WAIT_SECONDS: Final = 0.001
"""Seconds before what was added and is hidden is written again; doubled each time."""
DOCUMENTS_PER_WRITE: Final = 200
"""Number of documents that are read and then written together; small, so that little time passes between."""
MAX_RELINK_TRIES: Final = 20
"""How often the links of a document are replaced while other writers change it."""
_TIMESTAMP_OFFSET: Final = 2
"""Distance of a relink's timestamp from that of the version it changes; the one between is for removals."""
_RELINK_MARGIN: Final = 100
"""Microseconds left after a timestamp that was read, for links that are replaced in that version."""
_TIMESTAMP_SPREAD: Final = 1_000
"""Clients that must write later than the same timestamp spread over so many microseconds."""


class Clock:
    """Timestamps in microseconds since 1970: the time of day, or directly after what a write replaces.

    So timestamps do not run ahead of the fastest clock of a client: each change of a document adds at most a
    millisecond to what it replaces, and takes longer than that. Two clients should not write the same
    document in the same microsecond. If they do, each column comes from one write or the other, and
    ``verify`` finds rows that do not fit.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def now(self, after: int = 0) -> int:
        """Return the timestamp of one write, later than all that this clock took from the time of day.

        Args:
            after: The latest timestamp of what the write replaces. The result is later, even if the clock of
                its writer was ahead. How much later is random. Otherwise all clients that read the same
                timestamp would write in the same microsecond.
        """
        with self._lock:
            self._last = max(self._last + 1, self.time_of_day())
            now = self._last
        return (
            now
            if now > after + _RELINK_MARGIN
            else after + _RELINK_MARGIN + secrets.randbelow(_TIMESTAMP_SPREAD)
        )

    def time_of_day(self) -> int:
        """Return the time on the clock of this machine, in microseconds since 1970."""
        return time.time_ns() // 1000


Added = TypeVar("Added", DocumentVersion, PageEntry)


def make_document_writes(
    fetcher: RowFetcher,
    versions: Sequence[DocumentVersion],
    at: int,
    before: Mapping[str, DocumentVersion],
    lifetime: int = 0,
) -> Iterator[Statement]:
    """Write documents with one timestamp, each in a single write with its text.

    Args:
        fetcher: Finds the nodes of documents.
        versions: The documents.
        at: The timestamp.
        before: The stored versions of those that exist.
        lifetime: Seconds until documents expire. 0: never.
    """
    expiry = codec.SIZE.pack(lifetime)
    for share, _ in fetcher.placement.by_replica({(version.id.encode(),): version for version in versions}):
        rows: list[tuple[bytes, ...]] = []
        for version in share:
            stored = before.get(version.id)
            columns, text = version.pack(stored.born if stored else at)
            row, id = (*columns, expiry), columns[0]
            if text is not None:
                values = *row, id, text, expiry
                yield codec.pack_batch(cql.WRITE_WITH_TEXT, at, [values], routing=id)
            elif stored and stored.size:
                yield codec.pack_batch(cql.WRITE_WITHOUT_TEXT, at, [(*row, id)], routing=id)
            else:
                rows.append(row)
        for part in codec.split_rows(rows, DOCUMENT_BATCH_SIZES):
            text_of_batch = cql.write_documents(len(part))
            yield codec.pack_batch(text_of_batch, at, part, routing=part[0][0])


@dataclass(slots=True)
class CassandraWriter:
    """Carries out one change.

    Args:
        fetcher: Reads stored documents.
        clock: Gives timestamps.
        derived: Makes the statements about members and words.
        settings: Lifetime of documents, and time limits.
        corpus: Is told how many documents were written.
        sources: The sources of pages that this client has recorded, which it adds to.
    """

    fetcher: RowFetcher
    clock: Clock
    derived: DerivedRows
    settings: CassandraSettings
    corpus: CorpusStatistics
    sources: set[str]
    _at: int = 0
    _since: float = 0.0

    @property
    def _lifetime(self) -> int:
        """Seconds until what is written expires, 0: never."""
        return self.settings.ttl or 0

    def apply(self, change: WriteBatch, versions: Sequence[DocumentVersion]) -> EngineOperation[WriteCounts]:
        """Write the change, some documents at a time, then its page entries.

        Args:
            change: The change.
            versions: The documents that it puts, each once.
        """
        put = {version.id for version in versions}
        counts = Counter[str]()
        for part in split_batches(versions, DOCUMENTS_PER_TIMESTAMP):
            counts += yield from self._put_part(part)
        removed = (id for id in dict.fromkeys(change.remove) if id not in put)
        for ids in split_batches(removed, DOCUMENTS_PER_TIMESTAMP):
            counts += yield from self._remove_part(ids)
        yield from self._write_pages(change)
        return WriteCounts(**counts)

    def _put_part(self, versions: Sequence[DocumentVersion]) -> EngineOperation[Counter[str]]:
        stored, times = yield from self._read([version.id for version in versions])
        changed = [version for version in versions if self._differs(version, stored.get(version.id))]
        self._begin(*times.values())
        yield from self._store(changed)
        added = [version for version in changed if version.id not in times]
        yield from self._until_there(added, self._find_missing, self._store, "documents")
        updated = len(changed) - len(added)
        return Counter(added=len(added), updated=updated, unchanged=len(versions) - len(changed))

    def _store(self, versions: Sequence[DocumentVersion]) -> EngineOperation[None]:
        rows = self.derived.derive(versions)
        adding = self.derived.add(self._make_change(rows[version.id]) for version in versions)
        yield from run_writes("write members and words", adding)
        new = {version.id: version for version in versions}
        yield from self._finish((yield from self._replace(list(new), new, rows)))
        yield from split_large(self.derived, rows, self._at)

    def _until_there(
        self,
        added: Sequence[Added],
        missing: Callable[[Sequence[Added]], EngineOperation[Sequence[Added]]],
        write: Callable[[Sequence[Added]], EngineOperation[None]],
        what: str,
    ) -> EngineOperation[None]:
        """Look up the added items, and write the missing ones again, until all of them are stored.

        Another client removed what is missing, before and with a clock that is ahead, or at this moment.

        Raises:
            ClockSkewError: If something is still missing after the longest time that clocks may differ.
        """
        wait, waited = FIRST_WAIT_SECONDS, 0.0
        longest = 2 * self.settings.max_clock_skew + 1
        looked_up = self.settings.reads_see_writes(self.fetcher.placement.datacenters)
        while added and looked_up and (added := (yield from missing(added))):
            names = [item.url if isinstance(item, PageEntry) else item.id for item in added[:3]]
            if waited > longest:
                raise ClockSkewError(
                    f"{len(added)} {what} were written and are not there, also not after {waited:.1f} s"
                    f" ({', '.join(map(repr, names))}): they were removed by a client whose clock is"
                    f" more than {waited:.1f} s ahead of that of this machine, or other clients remove them"
                    " again and again. Set the clocks, for instance by NTP, and write them again"
                )
            yield from send(Requests(statements=(), what=f"wait to write {what} again", wait=wait))
            waited, wait = waited + wait, 2 * wait
            self._begin(self._at)
            yield from write(added)

    def _find_missing(self, added: Sequence[DocumentVersion]) -> EngineOperation[list[DocumentVersion]]:
        there = yield from self.fetcher.present([version.id for version in added])
        return [version for version in added if version.id not in there]

    def _begin(self, *replaced: int) -> None:
        """Take a timestamp that is later than the replaced ones."""
        self._at = self.clock.now(after=max(replaced, default=0))
        self._since = time.monotonic()

    def _make_change(self, now: RowSet = NO_ROWS, before: RowSet = NO_ROWS) -> RowChange:
        return RowChange(now=now, before=before, at=self._at, gone_at=self._at, lifetime=self._lifetime)

    def _finish(self, changes: Sequence[RowChange]) -> EngineOperation[None]:
        yield from run_writes("finish members and words", self.derived.finish(changes))

    def _read(self, ids: Sequence[str]) -> EngineOperation[tuple[dict[str, DocumentVersion], dict[str, int]]]:
        """Read the stored versions of documents, and write times, also of rows that are not a document."""
        rows = yield from self.fetcher.by_id(cql.READ_VERSIONS, ids, "read documents")
        versions = {version.id: version for version in read_versions(rows)}
        return versions, {row[0]: find_last_write(row) for row in rows if has_content(row)}

    def _differs(self, version: DocumentVersion, known: DocumentVersion | None) -> bool:
        """Say whether a document must be written.

        A document that has or had a lifetime must always be written, because its lifetime changes then.
        """
        return (
            known is None
            or (known.digest, known.written_links) != (version.digest, version.written_links)
            or bool(known.lifetime or self._lifetime)
        )

    def _replace(
        self, ids: Sequence[str], versions: Mapping[str, DocumentVersion], rows: Mapping[str, RowSet]
    ) -> EngineOperation[list[RowChange]]:
        """Replace documents, directly after reading them, and return what it makes of their rows.

        Args:
            ids: The documents.
            versions: What replaces them. The others are deleted.
            rows: The rows of these versions, which were added before.
        """
        changes: list[RowChange] = []
        for part in split_batches(ids, DOCUMENTS_PER_WRITE):
            before, _ = yield from self._read(part)
            rows_before = yield from self._derive_stored(before, rows)
            overtaken = {id for id, version in before.items() if version.written > self._at}
            replaced = [version for id, version in before.items() if id not in overtaken]
            mine = [id for id in part if id not in overtaken]
            written = [versions[id] for id in mine if id in versions]
            if written:
                self._check_time()
            writes = make_document_writes(self.fetcher, written, self._at, before, self._lifetime)
            yield from run_writes("write documents", writes)
            removed = split_batches((id for id in mine if id not in versions), DOCUMENTS_PER_DELETION)
            deletions = ((self._at, together, together) for together in removed)
            yield from run_each("delete documents", cql.DELETE_DOCUMENTS, deletions)
            accesses = [(version.id, version.born) for version in replaced if version.id not in versions]
            yield from forget_accesses(accesses, self._at)
            for id in part:
                now, then = rows.get(id, NO_ROWS), rows_before.get(id, NO_ROWS)
                kept = id not in overtaken  # else what was added for it goes
                changes.append(self._make_change(now, then) if kept else self._make_change(before=now))
            words = _count_words(written, rows) - _count_words(replaced, rows_before)
            self.corpus.add(len(written) - len(replaced), words)
        return changes

    def _derive_stored(
        self, before: dict[str, DocumentVersion], rows: Mapping[str, RowSet]
    ) -> EngineOperation[dict[str, RowSet]]:
        """Derive the rows of stored versions, and replace each version that is read again for its text.

        Args:
            before: The versions by id.
            rows: The rows of the versions that replace them.
        """
        needed = [version for version in before.values() if self.derived.needs_text(version, rows)]
        for version in needed:
            del before[version.id]
        derived = self.derived.derive(list(before.values()), rows)
        for part in self.fetcher.split_texts(needed):
            whole = yield from self.fetcher.complete(part)
            derived |= self.derived.derive(whole, rows)
            before.update((version.id, replace(version, text="")) for version in whole)
        return derived

    def _remove_part(self, ids: Sequence[str]) -> EngineOperation[Counter[str]]:
        _, times = yield from self._read(ids)
        self._begin(*times.values())
        yield from self._finish((yield from self._replace(list(times), {}, {})))
        return Counter(removed=len(times))

    def _check_time(self) -> None:
        """Fail if writing took too long: ``repair`` of another client might have removed the added rows."""
        spent = time.monotonic() - self._since
        allowed = max(self.settings.settle / 2, self.settings.deadline)
        if spent > allowed:
            raise StoreUnavailableError(
                f"could not write documents: writing their members and words took {spent:.0f} s, and at most"
                f" {allowed:.0f} s are allowed (half of settle in CassandraSettings). Check the load of"
                " the server, then write them again."
            )

    def _write_pages(self, change: WriteBatch) -> EngineOperation[None]:
        put = {(page.source, page.url): page for page in change.put_pages}
        removed = [name for name in dict.fromkeys(change.remove_pages) if name not in put]
        times = yield from read_entry_times((*put, *removed))
        self._begin(*times.values())
        gone = ((self._at, source, find_shard(url), url) for source, url in removed)
        yield from run_each("remove page entries", cql.DELETE_PAGE, gone)
        yield from self._put_pages(list(put.values()))
        added = [page for name, page in put.items() if name not in times]
        yield from self._until_there(added, self._find_missing_pages, self._put_pages, "page entries")

    def _put_pages(self, pages: Sequence[PageEntry]) -> EngineOperation[None]:
        new = {page.source for page in pages} - self.sources
        yield from run_each("record sources", cql.WRITE_SOURCE, ((source, self._at) for source in new))
        self.sources |= new
        stamp = self._at, self._lifetime
        rows = (
            (page.source, find_shard(page.url), page.url, page.digest, list(page.ids), *stamp)
            for page in pages
        )
        yield from run_each("write page entries", cql.WRITE_PAGE, rows)

    def _find_missing_pages(self, added: Sequence[PageEntry]) -> EngineOperation[list[PageEntry]]:
        there = yield from read_entry_times((page.source, page.url) for page in added)
        return [page for page in added if (page.source, page.url) not in there]


def _count_words(versions: Sequence[DocumentVersion], rows: Mapping[str, RowSet]) -> int:
    """Return the number of words of documents with these rows, 0 if words are not indexed."""
    return sum(get_words(postings)[0] for version in versions for postings in rows[version.id][1:])


@dataclass(slots=True)
class Relinker:
    """Carries out one replacement of links.

    Args:
        fetcher: Reads documents.
        derived: Makes the statements about members.
    """

    fetcher: RowFetcher
    derived: DerivedRows

    def replace(
        self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
    ) -> EngineOperation[WriteCounts]:
        """Replace the links of these kinds.

        Raises:
            StoreBusyError: If other writers changed the same documents again and again meanwhile.
        """
        left = list(links)
        existing, changed = set[str](), set[str]()
        for _ in range(MAX_RELINK_TRIES):
            stored = yield from self.fetcher.versions(left)
            existing = existing.difference(left) | stored.keys()  # without those deleted since the last try
            planned = (_plan_relink(version, kinds, links[id]) for id, version in stored.items())
            after = [version for version in planned if version is not None]
            left = yield from self._try(stored, after)
            changed |= {version.id for version in after} - set(left)
            if not left:
                return WriteCounts(updated=len(changed), unchanged=len(existing - changed))
        raise StoreBusyError(
            f"the links of {len(left)} documents ({', '.join(map(repr, left[:3]))}) could not be replaced:"
            f" other writers changed them during each of {MAX_RELINK_TRIES} tries; try again later"
        )

    def _try(
        self, before: Mapping[str, DocumentVersion], after: Sequence[DocumentVersion]
    ) -> EngineOperation[list[str]]:
        """Write the links, and return the ids of documents that another write changed meanwhile."""
        if not after:
            return []
        then, now = self.derived.derive([before[version.id] for version in after]), self.derived.derive(after)
        changes = {
            version.id: RowChange(
                now=now[version.id],
                before=(
                    {key: state for key, state in then[version.id][0].items() if key[0] in version.relinked},
                ),
                at=version.written,
                gone_at=version.written - 1,
                lifetime=version.lifetime,
            )
            for version in after
        }
        yield from run_writes("write members", self.derived.add(changes.values()))
        yield from run_writes("write links", map(self._make_cell, after))
        stored = yield from self.fetcher.versions(list(changes))
        lost = [version.id for version in after if not _has_won(version, stored.get(version.id))]
        for id in lost:
            change = changes.pop(id)
            if id not in stored:  # else the next try needs the members that were added
                changes[id] = replace(change, now=({},), before=change.now, gone_at=change.at)
        yield from run_writes("finish members", self.derived.finish(changes.values()))
        yield from split_large(self.derived, now, max(version.written for version in after))
        return lost

    def _make_cell(self, version: DocumentVersion) -> Statement:
        values = version.written, version.lifetime, dict(version.relinked), version.id
        return Statement(cql=cql.WRITE_LINKS, values=values, level="write")


def _plan_relink(
    before: DocumentVersion, kinds: Collection[str], links: Sequence[Link]
) -> DocumentVersion | None:
    """Return the version after a change of links, with only the new links; None if it has these already."""
    if replace_kinds(before.metadata(), kinds, links) is None:
        return None
    at = before.written + _TIMESTAMP_OFFSET
    replaced = {link.kind for link in links} | {kind for kind, *_ in before.links if kind in kinds}
    cells = make_replacement(at, replaced, [link.to_dict() for link in links])
    return replace(before, written_links="", parsed_links=dump_links(links), relinked=cells, written=at)


def _has_won(written: DocumentVersion, stored: DocumentVersion | None) -> bool:
    """Say whether the stored links of these kinds are the written ones."""
    return stored is not None and stored.relinked.items() >= written.relinked.items()
