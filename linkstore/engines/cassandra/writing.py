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
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

import numpy as np
import orjson

from linkstore.core.documents import replace_kinds
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import Operation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.derived import (
    DerivedRows,
    DocumentChange,
    DocumentState,
    RowKey,
    Rows,
    derive_members,
)
from linkstore.engines.cassandra.lexical import CorpusStatistics
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Requests, Statement, Tables, run_each, run_writes
from linkstore.engines.cassandra.tables import forget_accesses, read_entry_times
from linkstore.engines.contract import Change, PageEntry, Record, Written
from linkstore.errors import ClockSkewError, DocumentError, StoreBusyError, StoreUnavailableError

DOCUMENT_BATCH_SIZES: Final = (3, 2, 1)
"""Numbers of documents in a statement. There are few of them, because each needs a prepared statement."""
DOCUMENTS_PER_DELETION: Final = 10
"""Number of documents that one statement deletes."""
_MAX_KEY_BYTES: Final = 200_000
"""Upper limit of the bytes of an id and a vector."""
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
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


class Clock:
    """Timestamps in microseconds since 1970: the time of day, or directly after what a write replaces.

    So timestamps do not run ahead of the fastest clock of a client: each change of a document adds at most a
    millisecond to what it replaces, and takes longer than that. Two clients should not write the same
    document in the same microsecond. If they do, each column comes from one write or the other, and
    ``verify`` finds rows that do not fit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDocument:
    """A record ready to be written."""

    record: Record
    attributes: str
    links: str
    digest: bytes
    code: bytes


def prepare_records(records: Sequence[Record]) -> list[PreparedDocument]:
    """Serialise records before anything is written. The last record of each id counts.

    Raises:
        DocumentError: If metadata is not JSON. The message names the document.
    """
    last = list({record.id: record for record in records}.values())
    if not last:
        return []
    packed = codec.encode_vectors(np.stack([record.vector for record in last]))
    return [_prepare_record(record, code) for record, code in zip(last, packed, strict=True)]


def check_document_sizes(prepared: Iterable[PreparedDocument], limit: int) -> None:
    """Check that each document fits into one write.

    Raises:
        DocumentError: If a document is larger than the limit. The message names the document.
    """
    for item in prepared:
        record = item.record
        if 8 * (len(record.text) + len(item.attributes) + len(item.links)) + _MAX_KEY_BYTES < limit:
            continue  # even if each character were one of four bytes, and all were stored twice
        parts = [record.id, record.text, item.attributes, item.links, item.links]
        parts += chain.from_iterable(codec.select_searchable(record.metadata).items())
        size = record.vector.nbytes + sum(len(part.encode()) for part in parts)
        if size > limit:
            raise DocumentError(
                f"document {record.id[:60]!r} takes {size:,} bytes in Cassandra, and {limit:,} are allowed"
                " (max_document_bytes): split it; or raise the limits of the server, commitlog_segment_size"
                " and native_transport_max_frame_size, and then this one"
            )


def _prepare_record(record: Record, code: bytes) -> PreparedDocument:
    attributes, links = codec.serialise_attributes(record)
    digest = codec.compute_digest(record, attributes)
    return PreparedDocument(record=record, attributes=attributes, links=links, digest=digest, code=code)


Added = TypeVar("Added", PreparedDocument, PageEntry)


def make_document_writes(
    tables: Tables,
    fetcher: RowFetcher,
    items: Sequence[PreparedDocument],
    at: int,
    born: Mapping[str, int | None],
    lifetime: int | None = None,
) -> Iterator[Statement]:
    """Write documents with one timestamp.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of documents.
        items: The documents.
        at: The timestamp.
        born: When those of them that exist were added.
        lifetime: Seconds until documents expire. None: never.
    """
    expiry = () if lifetime is None else (_INT.pack(lifetime),)
    for share in fetcher.by_replica([(item.record.id.encode(),) for item in items]):
        part_of = [items[position] for position in share.positions]
        rows = [(*_pack_document(one, born.get(one.record.id, at)), *expiry) for one in part_of]
        for part in codec.split_batches(rows, DOCUMENT_BATCH_SIZES):
            text = cql.write_documents(tables, len(part), lifetime=bool(expiry))
            yield codec.pack_batch(text, at, part, routing=part[0][0])


def make_document_deletions(
    tables: Tables, fetcher: RowFetcher, ids: Sequence[str], at: int
) -> Iterator[Statement]:
    """Delete documents that were written before ``at``."""
    for share in fetcher.by_replica([(id.encode(),) for id in ids]):
        for part in codec.split_list([ids[position] for position in share.positions], DOCUMENTS_PER_DELETION):
            text = cql.delete_documents(tables)
            yield Statement(cql=text, values=(at, part), level="write", routing=part[0].encode())


def _pack_document(item: PreparedDocument, born: int | None) -> tuple[bytes | None, ...]:
    record = item.record
    return (
        record.id.encode(),
        record.text.encode(),
        item.attributes.encode(),
        codec.pack_map(codec.select_searchable(record.metadata)),
        codec.pack_cell(codec.make_link_cell(item.links, record.links)),
        item.digest,
        codec.pack_vector(record.vector),
        None if born is None else _LONG.pack(born),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
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


@dataclass(slots=True)
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

    tables: Tables
    fetcher: RowFetcher
    clock: Clock
    derived: DerivedRows
    settings: CassandraSettings
    corpus: CorpusStatistics
    _at: int = 0
    _since: float = 0.0

    def apply(self, change: Change, prepared: Sequence[PreparedDocument]) -> Operation[Written]:
        """Write the change, some documents at a time, then its page entries."""
        put_ids = {item.record.id for item in prepared}
        removals = [id for id in dict.fromkeys(change.remove) if id not in put_ids]
        counts = Counter[str]()
        for part in codec.split_list(prepared, DOCUMENTS_PER_TIMESTAMP):
            counts += yield from self._put_part(part)
        for ids in codec.split_list(removals, DOCUMENTS_PER_TIMESTAMP):
            counts += yield from self._remove_part(ids)
        yield from self._write_pages(change)
        return Written(**counts)

    def _put_part(self, prepared: Sequence[PreparedDocument]) -> Operation[Counter[str]]:
        digests = yield from self._read_digests([item.record.id for item in prepared])
        changed = [item for item in prepared if self._differs(item, digests)]
        self._begin(*(known.written for known in digests.values()))
        yield from self._store(changed)
        added = [item for item in changed if item.record.id not in digests]
        yield from self._until_there(added, self._find_missing, self._store, "documents")
        updated = len(changed) - len(added)
        return Counter(added=len(added), updated=updated, unchanged=len(prepared) - len(changed))

    def _store(self, items: Sequence[PreparedDocument]) -> Operation[None]:
        new = {item.record.id: self.derived.state(item.record, item.attributes, item.code) for item in items}
        yield from run_writes(
            "write members and words", self.derived.add(new.values(), self._at, self.settings.ttl)
        )
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
        wait, waited = FIRST_WAIT_SECONDS, 0.0
        longest = 2 * self.settings.max_clock_skew + 1
        while added and self.settings.reads_see_writes and (added := (yield from missing(added))):
            if waited > longest:
                raise ClockSkewError(
                    f"{len(added)} {what} were written and are not there, also not after {waited:.1f} s"
                    f" ({', '.join(map(_format_item, added[:3]))}): they were removed by "
                    "a client whose clock is"
                    f" more than {waited:.1f} s ahead of that of this machine, or other clients remove them"
                    " again and again. Set the clocks, for instance by NTP, and write them again"
                )
            yield Requests(statements=(), what=f"wait to write {what} again", wait=wait)
            waited, wait = waited + wait, 2 * wait
            self._begin(self._at)
            yield from write(added)

    def _find_missing(self, added: Sequence[PreparedDocument]) -> Operation[list[PreparedDocument]]:
        there = yield from self.fetcher.present([item.record.id for item in added])
        return [item for item in added if item.record.id not in there]

    def _remove_part(self, ids: Sequence[str]) -> Operation[Counter[str]]:
        digests = yield from self._read_digests(ids)
        self._begin(*(known.written for known in digests.values()))
        yield from self._finish((yield from self._remove(digests)))
        return Counter(removed=len(digests))

    def _begin(self, *replaced: int) -> None:
        """Take a timestamp that is later than those of what is replaced."""
        self._at = self.clock.now(after=max(replaced, default=0))
        self._since = time.monotonic()

    def _finish(self, steps: Sequence[DocumentChange]) -> Operation[None]:
        yield from run_writes(
            "finish members and words", self.derived.finish(steps, self._at, self.settings.ttl)
        )
        self._update_corpus(steps)

    def _read_digests(self, ids: Sequence[str]) -> Operation[dict[str, KnownState]]:
        """Read what identifies the states of existing documents, and of those that lack a column."""
        rows = yield from self.fetcher.by_id(cql.read_digests(self.tables), ids, "read documents")
        return {
            id: KnownState(
                digest=digest if codec.is_whole(times) else None,
                links=codec.extract_links_json(codec.merge_replaced_links(links, relinked)).decode(),
                written=max(
                    codec.find_last_replaced(relinked), *(time for time in times if time is not None)
                ),
                lifetime=lifetime,
            )
            for id, digest, *times, links, relinked, lifetime in rows
            if any(times[:-1])
        }

    def _differs(self, item: PreparedDocument, digests: Mapping[str, KnownState]) -> bool:
        """Say whether a document must be written.

        A document that has or had a lifetime must always be written, because its lifetime changes then.
        """
        known = digests.get(item.record.id)
        return (
            known is None
            or (known.digest, known.links) != (item.digest, item.links)
            or known.lifetime is not None
            or self.settings.ttl is not None
        )

    def _put(
        self, changed: Sequence[PreparedDocument], new: Mapping[str, DocumentState]
    ) -> Operation[list[DocumentChange]]:
        """Write documents, directly after reading the states that they replace."""
        steps: list[DocumentChange] = []
        for part in codec.split_list(changed, DOCUMENTS_PER_WRITE):
            self._check_time()
            before = yield from self.derived.stored([item.record.id for item in part], new)
            overtaken = {id for id, state in before.items() if state.written > self._at}
            written = [item for item in part if item.record.id not in overtaken]
            born = {id: state.born for id, state in before.items()}
            yield from run_writes(
                "write documents",
                make_document_writes(self.tables, self.fetcher, written, self._at, born, self.settings.ttl),
            )
            steps += [DocumentChange(now=None, before=new[id]) for id in overtaken]
            ids = (item.record.id for item in written)
            steps += [DocumentChange(now=new[id], before=before.get(id)) for id in ids]
        return steps

    def _remove(self, known: Mapping[str, KnownState]) -> Operation[list[DocumentChange]]:
        """Delete documents, directly after reading their states."""
        steps: list[DocumentChange] = []
        for part in codec.split_list(list(known), DOCUMENTS_PER_WRITE):
            before = yield from self.derived.stored(part, {})
            gone = [state for state in before.values() if state.written < self._at]
            named = [state.id for state in gone]
            named += [id for id in part if id not in before and known[id].digest is None]
            deletions = make_document_deletions(self.tables, self.fetcher, named, self._at)
            yield from run_writes("delete documents", deletions)
            yield from forget_accesses(self.tables, ((state.id, state.born) for state in gone), self._at)
            steps += [DocumentChange(now=None, before=state) for state in gone]
        return steps

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

    def _write_pages(self, change: Change) -> Operation[None]:
        put = {(page.source, page.url): page for page in change.put_pages}
        removed = [name for name in dict.fromkeys(change.remove_pages) if name not in put]
        known = yield from read_entry_times(self.tables, (*put, *removed))
        self._begin(*known.values())
        gone = ((self._at, *name) for name in removed)
        yield from run_each("remove page entries", cql.delete_page(self.tables), gone)
        yield from self._put_pages(list(put.values()))
        added = [page for name, page in put.items() if name not in known]
        yield from self._until_there(added, self._find_missing_pages, self._put_pages, "page entries")

    def _put_pages(self, pages: Sequence[PageEntry]) -> Operation[None]:
        text = cql.write_page(self.tables, lifetime=self.settings.ttl is not None)
        stamp = (self._at,) if self.settings.ttl is None else (self._at, self.settings.ttl)
        rows = ((page.source, page.url, page.digest, list(page.ids), *stamp) for page in pages)
        yield from run_each("write page entries", text, rows)

    def _find_missing_pages(self, added: Sequence[PageEntry]) -> Operation[list[PageEntry]]:
        there = yield from read_entry_times(self.tables, ((page.source, page.url) for page in added))
        return [page for page in added if (page.source, page.url) not in there]

    def _update_corpus(self, steps: Sequence[DocumentChange]) -> None:
        """Tell the corpus how the numbers of documents and words changed."""
        now = [step.now for step in steps if step.now]
        before = [step.before for step in steps if step.before and step.before.written]
        written, replaced = ([(state.attributes, state.words[0]) for state in part] for part in (now, before))
        self.corpus.add(written, replaced)


def _format_item(one: PreparedDocument | PageEntry) -> str:
    return repr(one.url if isinstance(one, PageEntry) else one.record.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relink:
    """A document whose links change.

    Args:
        before: The stored state.
        at: The timestamp of the replaced links, and of the members derived from them.
        cells: The replaced links.
        gone: Its members by links of these kinds.
        members: Those that replace them.
    """

    before: DocumentState
    at: int
    cells: codec.ReplacedLinks
    gone: Rows
    members: Rows


class Relinker:
    """Carries out one replacement of links.

    Args:
        tables: The tables of the store.
        fetcher: Reads documents.
        buckets: Number of partitions of one side of a link group.
    """

    def __init__(self, tables: Tables, fetcher: RowFetcher, buckets: int) -> None:
        self._tables = tables
        self._members = tables.member_rows
        self._derived = DerivedRows(tables, fetcher, buckets, lexical=False)
        self._buckets = buckets

    def replace(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Operation[Written]:
        """Replace the links of these kinds.

        Raises:
            StoreBusyError: If other writers changed the same documents again and again meanwhile.
        """
        left = list(links)
        found, changed = set[str](), set[str]()
        for _ in range(MAX_RELINK_TRIES):
            known = yield from self._derived.stored(left)
            found = found.difference(left) | known.keys()  # without those deleted since the last try
            planned = (_plan_relink(one, kinds, links[id], self._buckets) for id, one in known.items())
            steps = [step for step in planned if step is not None]
            left = yield from self._try(steps)
            changed |= {step.before.id for step in steps} - set(left)
            if not left:
                return Written(updated=len(changed), unchanged=len(found - changed))
        raise StoreBusyError(
            f"the links of {len(left)} documents ({', '.join(map(repr, left[:3]))}) could not be replaced:"
            f" other writers changed them during each of {MAX_RELINK_TRIES} tries; try "
            "again when they are done"
        )

    def _try(self, steps: Sequence[_Relink]) -> Operation[list[str]]:
        """Write the links, and return the ids of documents that another write changed meanwhile."""
        if not steps:
            return []
        yield from run_writes("write members", chain.from_iterable(map(self._add, steps)))
        yield from run_writes("write links", map(self._make_cell, steps))
        now = yield from self._derived.stored([step.before.id for step in steps])
        lost = [step for step in steps if not _has_won(step, now.get(step.before.id))]
        removed = [step for step in lost if step.before.id not in now]
        last = (*(self._finish(step) for step in steps if step not in lost), *map(self._withdraw, removed))
        yield from run_writes("finish members", chain.from_iterable(last))
        return [step.before.id for step in lost]

    def _add(self, step: _Relink) -> Iterator[Statement]:
        return self._write(step, step.members.items(), replace=False)

    def _finish(self, step: _Relink) -> Iterator[Statement]:
        """Remove the previous states of members, and members that are not needed any more."""
        now, before = step.members, step.gone
        differing = ((key, state) for key, state in now.items() if before.get(key, state) != state)
        yield from self._write(step, differing, replace=True)
        gone = (key for key in before if key not in now)
        yield from self._derived.delete(self._members, gone, step.at - 1)

    def _withdraw(self, step: _Relink) -> Iterator[Statement]:
        """Remove the members that were added, if the document is gone.

        If the document still exists, the next try needs these members.
        """
        return self._derived.delete(self._members, step.members, step.at)

    def _write(
        self, step: _Relink, rows: Iterable[tuple[RowKey, bytes]], *, replace: bool
    ) -> Iterator[Statement]:
        return self._derived.write(
            self._members, rows, step.at, replace=replace, lifetime=step.before.lifetime
        )

    def _make_cell(self, step: _Relink) -> Statement:
        lifetime = step.before.lifetime
        stamp = (step.at,) if lifetime is None else (step.at, lifetime)
        text = cql.write_links(self._tables, lifetime=lifetime is not None)
        return Statement(cql=text, values=(*stamp, dict(step.cells), step.before.id), level="write")


def _plan_relink(
    before: DocumentState, kinds: Collection[str], links: Sequence[Link], buckets: int
) -> _Relink | None:
    """Return the change of a document, or None if it has these links already."""
    metadata = {LINKS_KEY: orjson.loads(before.links)} if before.links else {}
    if replace_kinds(metadata, kinds, links) is None:
        return None
    gone = {key: state for key, state in before.members.items() if key[0] in kinds}
    at = before.written + _TIMESTAMP_OFFSET
    replaced = {kind for kind, *_ in gone} | {link.kind for link in links}
    weights = codec.derive_memberships(codec.make_link_set(links))
    return _Relink(
        before=before,
        at=at,
        cells=codec.make_replacement(at, replaced, [link.to_dict() for link in links]),
        gone=gone,
        members=derive_members(before.id, weights, before.code, buckets),
    )


def _has_won(step: _Relink, now: DocumentState | None) -> bool:
    """Say whether the stored links of these kinds are those that were written."""
    return now is not None and now.relinked.items() >= step.cells.items()
