"""Documents and link groups that a plan meets: read by key, each once, and checked against its scope."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, pairwise
from typing import Final, TypeVar

import numpy as np

from linkstore.core.arrays import Bools, Floats, Ints, is_member
from linkstore.core.calls import split_batches
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.links import LINKS_KEY
from linkstore.core.plans import EngineOperation, Side
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.codec import (
    LONGEST_KEY,
    SIZE,
    DocumentVersion,
    hash_text,
    pack_vector,
    parse_fields,
    read_versions,
    select_searchable,
)
from linkstore.engines.cassandra.limits import PAGE_ROWS
from linkstore.engines.cassandra.placement import PartitionKey, Placement
from linkstore.engines.cassandra.statements import Requests, Row, Statement, ask, send
from linkstore.errors import FilterError

MAX_KEYS_PER_STATEMENT: Final = 100
"""Maximum number of partitions in one statement."""
MIN_KEYS_PER_STATEMENT: Final = 16
"""More partitions are split among statements evenly, if all their rows might not fit into one page."""
DOCUMENTS_PER_PAGE: Final = 1_000
"""The most documents that are read at once where all are read."""
FIRST_PAGE: Final = 8
"""Number of documents that are read first where all are read, since their size is not known."""
PAGE_GROWTH: Final = 4
PAGE_BYTES: Final = 1 << 21
"""About as many bytes are read at once where all documents are read."""
TEXT_BYTES_PER_STATEMENT: Final = 1 << 20
TEXT_BYTES_PER_READ: Final = 1 << 24
"""About as many bytes of long texts are read concurrently."""
EXPIRING_RANGES: Final = 64
"""Number of ranges of tokens in which all documents of a store are read if documents expire there.

A single read of all would pass over more expired rows than a server allows.
"""
FIRST_TOKEN: Final = -(1 << 63)
TOKENS: Final = 1 << 64
_RANGES_AHEAD: Final = 8
"""The most ranges of tokens that are read concurrently."""
_TEXT_TRIES: Final = 5
"""How often a document is read that changes before its text is read."""
MAX_REMEMBERED_FILTERS: Final = 1_000
"""For how many combinations of equalities :class:`SearchHistory` has each of its facts."""
FEW_NEAR_LIFETIME: Final = 60.0
"""For how many seconds it is remembered that few of the nearest documents satisfy equalities."""
Equalities = frozenset[str]
"""The entries by which the server looks up the equalities of a filter."""
K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")
_MAX_CHECKED_BY_ID: Final = 1_000
"""Beyond this many documents to check, the server's index is asked for those that may be in the scope."""
_MAX_LISTED: Final = 20_000
"""The index is asked for at most this many."""
_LISTING_GROWTH: Final = 2
"""The index is asked again for at least this many times what it had more of."""
_CHECKS_PER_READ: Final = 5_000
ScopeCheck = Callable[[Sequence[str]], EngineOperation[set[str]]]
"""Finds out which of some documents, named by id, are in a scope."""


class PlanDocuments:
    """The documents met by a plan: the refs of their ids, and the rows of those read, None if gone.

    What was read of a document first is kept, so all answers about it are of one state.
    """

    def __init__(self) -> None:
        self._refs: dict[str, int] = {}
        self.ids: list[str] = []
        self.rows: dict[int, DocumentVersion | None] = {}
        self._weights: dict[tuple[int, Side, str], dict[tuple[str, str], float]] = {}

    def refs(self, ids: Sequence[str]) -> Ints:
        """Return the refs of ids, which may have duplicates."""
        new = [id for id in dict.fromkeys(ids) if id not in self._refs]
        self._refs.update(zip(new, count(len(self.ids)), strict=False))
        self.ids += new
        return np.fromiter(map(self._refs.__getitem__, ids), np.int64, len(ids))

    def keep(self, row: DocumentVersion) -> int:
        """Store a row unless the document was read before, and return the document's ref."""
        ref = self._refs[row.id] if row.id in self._refs else int(self.refs([row.id])[0])
        self.rows.setdefault(ref, row)
        return ref

    def were_read(self, refs: Ints) -> Bools:
        """Say which of the documents were read, (n,)."""
        return is_member(refs, np.fromiter(self.rows, np.int64, len(self.rows)))

    def unread(self, refs: Iterable[int]) -> list[int]:
        """Return the documents that were not read yet, each once."""
        return [ref for ref in dict.fromkeys(refs) if ref not in self.rows]

    def mark_read(self, refs: Iterable[int]) -> None:
        """Mark documents as read. Those without a row do not exist."""
        for ref in refs:
            self.rows.setdefault(ref, None)

    def row(self, ref: int) -> DocumentVersion:
        """Return the row of a document that an answer contained."""
        row = self.rows.get(ref)
        assert row is not None, "a ref that no answer contained"
        return row

    def weights(self, ref: int, side: Side, links: Condition = EVERYTHING) -> dict[tuple[str, str], float]:
        """Return the link groups that a document belongs to on one side, with weights.

        The result is empty if the document does not exist.

        Args:
            ref: The document.
            side: The side of the link groups.
            links: Condition on the data of links. Other links do not count.
        """
        row = self.rows.get(ref)
        if row is None:
            return {}
        key = ref, side, links.key
        if key not in self._weights:
            self._weights[key] = row.filter_groups(side, links)
        return self._weights[key]

    def vectors(self, refs: Sequence[int]) -> Floats:
        """Return (n, d) vectors."""
        if not len(refs):
            return np.empty((0, 0), np.float32)
        return np.stack([self.row(ref).vector for ref in refs])

    def ids_of(self, refs: Ints) -> list[str]:
        """Return the ids of documents."""
        return [self.ids[ref] for ref in refs.tolist()]


def split_tokens(ranges: int) -> list[int]:
    """Return the bounds of equal ranges of all tokens, of which each range includes its last token."""
    return [min(FIRST_TOKEN + TOKENS * n // ranges, -FIRST_TOKEN - 1) for n in range(ranges + 1)]


def split_by_weight(
    items: Iterable[T], weigh: Callable[[T], float], heaviest: int, most: int
) -> Iterator[list[T]]:
    """Split items, in their order, into parts of limited weight and number.

    Args:
        items: The items.
        weigh: Returns the weight of an item.
        heaviest: The highest weight of a part with several items.
        most: The most items of a part.
    """
    part: list[T] = []
    weight = 0.0
    for item in items:
        weight += weigh(item)
        if part and (weight > heaviest or len(part) == most):
            yield part
            part, weight = [], weigh(item)
        part.append(item)
    if part:
        yield part


class DocumentScan:
    """Reads all rows of documents in token order, page by page.

    The pages follow the mean size of the rows. Ranges of tokens with few rows are read several at once.

    Args:
        text: A statement that reads a range of tokens, with the token last.
        ranges: Number of ranges.
        after: The token after which it begins.
    """

    def __init__(self, text: str, ranges: int, after: int) -> None:
        self._text = text
        self._bounds = split_tokens(ranges)
        self._after = after
        self._size, self._ahead = FIRST_PAGE, _RANGES_AHEAD

    def read(self, most: int = DOCUMENTS_PER_PAGE) -> EngineOperation[list[Row]]:
        """Return the next rows, up to ``most``, and none after the last."""
        page: list[Row] = []
        while not page and self._after < self._bounds[-1]:
            size = min(self._size, most)
            later = [bound for bound in self._bounds if bound > self._after][: self._ahead]
            statements = tuple(
                Statement(cql=self._text, values=(*ends, size), limit=size)
                for ends in pairwise([self._after, *later])
            )
            answers = yield from send(Requests(statements=statements, what="read documents"))
            self._ahead = min(2 * self._ahead, _RANGES_AHEAD)
            for rows, end in zip(answers, later, strict=True):
                page += rows
                self._after = end
                if len(rows) == size:
                    self._after, self._ahead = rows[-1][-1], 1
                    break
        if len(page) > most:
            del page[most:]
            self._after = page[-1][-1]
        if page:
            read = sum(len(value) for row in page for value in row if isinstance(value, str | bytes))
            self._size = max(1, min(PAGE_GROWTH * self._size, PAGE_BYTES * len(page) // max(1, read)))
            self._size = min(self._size, DOCUMENTS_PER_PAGE)
        return page


def make_search(equal: Collection[str], vector: Floats, limit: int, *, whole: bool) -> Statement:
    """Return the statement that asks the server's index for documents, nearest first."""
    values = [*map(str.encode, equal), pack_vector(vector), SIZE.pack(limit)]
    text = cql.select_nearest(len(equal), whole=whole)
    return Statement(cql=text, values=values, packed=True, level="one", limit=limit)


class RowFetcher:
    """Reads rows by key, with few statements for many keys, each sent to a node that owns them.

    Args:
        placement: Finds the nodes of partitions.
        ranges: Number of ranges of tokens in which all documents are read.
    """

    def __init__(self, placement: Placement, ranges: int = 1) -> None:
        self.placement = placement
        self._ranges = ranges

    def documents(self, ids: Sequence[str]) -> EngineOperation[list[DocumentVersion]]:
        """Read the existing documents with these ids, in any order, without long texts."""
        rows = yield from self.by_id(cql.READ_DOCUMENTS, ids, "read documents")
        return read_versions(rows)

    def versions(self, ids: Sequence[str]) -> EngineOperation[dict[str, DocumentVersion]]:
        """Read what must be known of documents to write them, without long texts.

        Those that do not exist are left out.
        """
        rows = yield from self.by_id(cql.READ_VERSIONS, ids, "read documents")
        return {version.id: version for version in read_versions(rows)}

    def scan(self, text: str, after: str | None = None) -> DocumentScan:
        """Return what reads the documents after this id (None: all).

        Args:
            text: A statement that reads a range of tokens.
            after: The id.
        """
        token = FIRST_TOKEN if after is None else self.placement.compute_token(after.encode())
        return DocumentScan(text, self._ranges, token)

    def whole(self, after: str | None, limit: int) -> EngineOperation[list[DocumentVersion]]:
        """Read the next documents in token order with their texts.

        These are at most ``limit``, and fewer where texts are long, but none only after the last.
        """
        scan = self.scan(cql.READ_ALL_VERSIONS, after)
        versions: list[DocumentVersion] = []
        left = TEXT_BYTES_PER_READ
        while len(versions) < limit and (rows := (yield from scan.read(limit - len(versions)))):
            for part in self.split_texts(read_versions(rows)):
                versions += yield from self.complete(part)
                left -= sum(version.unread for version in part)
                if versions and left <= 0:
                    return versions
        return versions

    @staticmethod
    def split_texts(versions: Iterable[DocumentVersion]) -> Iterator[list[DocumentVersion]]:
        """Split versions into parts whose long texts may be in memory together."""
        return split_by_weight(versions, _get_unread, TEXT_BYTES_PER_READ, DOCUMENTS_PER_PAGE)

    def texts(self, versions: Iterable[DocumentVersion]) -> EngineOperation[dict[str, str]]:
        """Read the texts of versions that were read without them, by id.

        Texts of documents that changed since are left out.
        """
        unread = {(version.id.encode(),): version for version in versions if version.unread}
        statements: list[tuple[int, Statement]] = []
        for share, routing in self.placement.by_replica(unread):
            for part in split_by_weight(share, _get_unread, TEXT_BYTES_PER_STATEMENT, MAX_KEYS_PER_STATEMENT):
                ids = [version.id for version in part]
                read = Statement(cql=cql.READ_TEXTS, values=(ids,), routing=routing, limit=len(ids))
                statements.append((sum(map(_get_unread, part)), read))
        texts_by_id: dict[str, str | None] = {}
        for some in split_by_weight(statements, lambda entry: entry[0], TEXT_BYTES_PER_READ, len(statements)):
            requests = Requests(statements=tuple(statement for _, statement in some), what="read texts")
            texts_by_id.update(chain.from_iterable((yield requests)))
        return {
            version.id: text
            for version in unread.values()
            if (text := texts_by_id.get(version.id)) is not None and hash_text(text) == version.text_hash
        }

    def complete(self, versions: Iterable[DocumentVersion]) -> EngineOperation[list[DocumentVersion]]:
        """Read the texts of versions that were read without them.

        A document that changed since is read again, and left out if it is gone or its text is.
        """
        by_id = {version.id: version for version in versions}
        for _ in range(_TEXT_TRIES):
            unread = [version for version in by_id.values() if version.unread]
            if not unread:
                break
            texts = yield from self.texts(unread)
            by_id.update((id, replace(by_id[id], text=text)) for id, text in texts.items())
            changed = [version.id for version in unread if version.id not in texts]
            there = (yield from self.versions(changed)) if changed else {}
            by_id.update(there)
            for id in changed:
                if id not in there:
                    del by_id[id]
        return [version for version in by_id.values() if not version.unread]

    def present(self, ids: Sequence[str]) -> EngineOperation[dict[str, int]]:
        """Read which documents exist, and when each of them was added, by id."""
        rows = yield from self.by_id(cql.READ_PRESENCE, ids, "read documents")
        return {id: born or 0 for id, digest, born in rows if digest is not None}

    def by_id(self, statement: str, ids: Sequence[str], what: str) -> EngineOperation[list[Row]]:
        """Read the rows that a statement with a list of ids returns."""
        keys = {(key,): id for id in ids if 0 < len(key := id.encode()) <= LONGEST_KEY}
        statements = tuple(
            Statement(cql=statement, values=(part,), routing=routing, limit=len(part))
            for part, routing in self.parts(keys)
        )
        answers = yield from send(Requests(statements=statements, what=what))
        return [row for rows in answers for row in rows]

    def parts(self, items: Mapping[PartitionKey, V], rows: int = 1) -> Iterator[tuple[list[V], bytes | None]]:
        """Yield, for each statement, the items whose partitions it reads and its routing key.

        Args:
            items: The items by partition key.
            rows: The most rows that are read for an item.
        """
        most = min(MAX_KEYS_PER_STATEMENT, max(MIN_KEYS_PER_STATEMENT, PAGE_ROWS // rows))
        for share, routing in self.placement.by_replica(items):
            count = -(-len(share) // most)
            for part in split_batches(share, -(-len(share) // count)):
                yield part, routing


def _get_unread(version: DocumentVersion) -> int:
    return version.unread


class SearchHistory:
    """What a client has learned about filters, by their equalities, and about the size of the store.

    It affects only how documents are found.

    Threads may use it without a lock. At worst, something is forgotten.

    Attributes:
        more_than: A number that the documents satisfying equalities exceed: that of their last listing, which
            was not complete.
        few_near: Until when it is remembered that too few of the nearest documents satisfied equalities.
        large_until: Until when it is remembered that the store has more than a few documents.
    """

    def __init__(self) -> None:
        self.more_than: dict[Equalities, int] = {}
        self.few_near: dict[Equalities, float] = {}
        self.large_until = 0.0


def remember(values: dict[K, V], key: K, value: V, most: int) -> None:
    """Store a value by key. If there are too many, all others are forgotten."""
    if len(values) >= most:
        values.clear()
    values[key] = value


class ReadScope:
    """The documents that exist for a plan, each checked once.

    There are two ways to check many documents: read the metadata of each, or, if the filter has an equality
    that few documents satisfy, ask the server's index for these. A document costs about the same in both
    ways, so the index is asked for at most as many as there are to check. If it has more, this is remembered.

    Metadata are stored without links: if the condition has a field of that name, documents are read in full.

    Args:
        condition: The condition that documents must pass.
        fetcher: Reads documents by id.
        limit: Maximum number of documents to check.
        history: What is known about the equalities of filters.
    """

    def __init__(self, condition: Condition, fetcher: RowFetcher, limit: int, history: SearchHistory) -> None:
        self.condition = condition
        self.history = history
        self.limit = limit
        self._charged = 0
        self.fetcher = fetcher
        self._verdicts: dict[str, bool] = {}
        self._complete = False
        # A value that looks like the field costs only time.
        self._needs_links = f'"{LINKS_KEY}":' in condition.key
        equal = set[str]() if self._needs_links else select_searchable(dict(condition.equalities))
        self._equalities: Equalities = frozenset(equal)

    @property
    def everything(self) -> bool:
        """Whether all documents are in the scope."""
        return self.condition.always

    def holds(self, row: DocumentVersion) -> bool:
        """Say whether a document that was read is in the scope, now and when it was checked before."""
        if self.condition.always:
            return True
        verdict = self._verdicts.get(row.id, True) and self.condition.matches(row.metadata())
        self._verdicts[row.id] = verdict
        return verdict

    def of(self, ids: Iterable[str], *, sample: bool = False) -> EngineOperation[set[str]]:
        """Return the ids of documents in the scope.

        Args:
            ids: The documents to check.
            sample: Whether the caller bounds the number of documents. They do not count to the limit then.

        Raises:
            FilterError: If more documents would have to be checked than the limit allows.
        """
        asked = dict.fromkeys(ids)
        unknown = self._find_unknown(asked)
        if unknown and self._equalities:
            yield from self._list(len(unknown))
            unknown = self._find_unknown(asked)
        if not sample:
            self.charge(len(unknown))
        for part in split_batches(unknown, _CHECKS_PER_READ):
            self._verdicts.update(dict.fromkeys(part, False))
            if self._needs_links:
                whole = yield from self.fetcher.documents(part)
                self._verdicts.update(
                    (version.id, self.condition.matches(version.metadata())) for version in whole
                )
            else:
                rows = yield from self.fetcher.by_id(cql.READ_ATTRIBUTES, part, "read what filters ask for")
                self._verdicts.update((id, self._passes(attributes)) for id, attributes in rows)
        return {id for id in asked if self._verdicts.get(id, False)}

    def charge(self, documents: int) -> None:
        """Count documents that are checked.

        Raises:
            FilterError: If there are now more than the limit allows.
        """
        self._charged += documents
        if self._charged > self.limit:
            raise FilterError(
                f"more than scan_limit ({self.limit:,}) documents must be looked at to tell what the filter"
                " leaves: add an equality that few documents have, which the server looks up, or raise"
                " scan_limit"
            )

    def _find_unknown(self, ids: Iterable[str]) -> list[str]:
        return [] if self._complete else [id for id in ids if id not in self._verdicts]

    def _list(self, unknown: int) -> EngineOperation[None]:
        """List the documents of the scope by the server's index, if that is cheaper than checks by id."""
        at_most = min(len(self._verdicts) + unknown, _MAX_LISTED)
        more_than = self.history.more_than.get(self._equalities, 0)
        if self._charged + unknown > self.limit:
            at_most = _MAX_LISTED
        elif at_most <= max(_MAX_CHECKED_BY_ID, _LISTING_GROWTH * more_than):
            return
        text = cql.read_equal(len(self._equalities))
        rows = yield from ask("look up the documents of a filter", text, *self._equalities, at_most + 1)
        for id, attributes in rows:
            self._verdicts.setdefault(id, self._passes(attributes))
        self._complete = len(rows) <= at_most
        if not self._complete:
            remember(self.history.more_than, self._equalities, at_most, MAX_REMEMBERED_FILTERS)
            if at_most == _MAX_LISTED:
                self._equalities = frozenset()

    def _passes(self, attributes: str | None) -> bool:
        fields = parse_fields(attributes)
        return fields is not None and self.condition.matches(fields)
