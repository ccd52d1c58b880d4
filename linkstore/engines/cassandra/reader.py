"""Answers the fetches of one plan. Refs are assigned to documents and link groups in the order met.

Candidates for the nearest documents come from the server's index; scores are computed here in float32.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arguments import MAX_SETTING
from linkstore.core.arrays import Bools, Floats, Ints, cosine_similarities
from linkstore.core.calls import drive
from linkstore.core.filters import Condition
from linkstore.core.plans import EngineOperation, Side
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.codec import DocumentVersion, read_versions, select_searchable
from linkstore.engines.cassandra.lexical import LexicalCandidates, WordSearch
from linkstore.engines.cassandra.listing import read_list
from linkstore.engines.cassandra.members import GroupReader, MemberPool, ReadMember, decode_states
from linkstore.engines.cassandra.reading import (
    FEW_NEAR_LIFETIME,
    MAX_REMEMBERED_FILTERS,
    Equalities,
    PlanDocuments,
    ReadScope,
    make_search,
    remember,
)
from linkstore.engines.cassandra.statements import Requests, send
from linkstore.engines.contract import Reader, as_operation
from linkstore.errors import FilterError, StoreBusyError

MAX_CANDIDATES: Final = 1000
"""Maximum LIMIT of a nearest-neighbour query."""
LARGE_LIFETIME: Final = 600.0
"""How many seconds it is remembered that a store has more documents than are compared by the list of all."""
EXTRA_CANDIDATES: Final = 20
"""This many more are requested than wanted; otherwise the index visits too few to find the best reliably.

Measured on 100,000 documents: recall of the best 4 is 0.93 if 4 are asked for, of the best 100 0.997 to 1 if
100 are; with 20 more it is 1 for both.
"""
_UNFILTERED_FACTOR: Final = 2
"""For a filter, this many times as many documents are requested without it first."""
_COMPARED_GROWTH: Final = 4
"""If too few of the documents that may be nearest pass a filter, this many times as many are read next."""
_FULL_READ_FACTOR: Final = 2
"""Documents are read in full to check them if this share of them at least is needed: one of so many."""
_NO_FLOATS: Final = np.empty(0, np.float32)


def _compute_scores(rows: list[DocumentVersion], fetch: plans.Nearest) -> Floats:
    """Return (n,) similarities."""
    if not rows:
        return np.empty(0, np.float32)
    return cosine_similarities(np.stack([row.vector for row in rows]), fetch.vector)


def _select_best(rows: list[DocumentVersion], scores: Floats, k: int) -> list[DocumentVersion]:
    """Return the ``k`` best rows by score, then id."""
    order = drive(plans.rank_best(scores, k), lambda at: [rows[position].id for position in at.tolist()])
    return [rows[at] for at in order.tolist()]


def _select_nearest(rows: list[DocumentVersion], fetch: plans.Nearest) -> list[DocumentVersion]:
    """Return the ``k`` rows nearest to the vector that pass the filter."""
    passing = [row for row in rows if fetch.filter.always or fetch.filter.matches(row.metadata())]
    return _select_best(passing, _compute_scores(passing, fetch), fetch.k)


class CassandraReader(Reader):
    """Reads documents with all their columns, and keeps of each what it read first.

    Args:
        scope: Which documents exist for the plan, and what reads them.
        members: Reads link groups.
        words: Finds documents by words, if the store indexes them.
        replicated: Whether a partition has several replicas. The index answers from a single replica. Then
            the documents it returns are read again at the consistency level of reads.
        empty: Whether the store never had a document. Then it has no tables to read.
    """

    def __init__(
        self, scope: ReadScope, members: GroupReader, words: WordSearch, *, replicated: bool, empty: bool
    ) -> None:
        self._scope = scope
        self._members = members
        self._words = words
        self._replicated = replicated
        self._empty = empty
        self._known = PlanDocuments()
        self._groups: dict[tuple[str, str], int] = {}
        """The link groups met, with their refs, in the order of these."""

    def nearest(self, fetch: plans.Nearest) -> EngineOperation[plans.Candidates]:
        """Ask the server's index, and compute the scores here."""
        within = replace(fetch, filter=self._scope.condition & fetch.filter)
        rows = [] if self._empty else (yield from self._find_nearest(within))
        kept = [self._known.keep(row) for row in rows if self._scope.holds(row)]
        # An earlier answer may have shown a document in another state, or as not existing.
        versions = [row for ref in kept if (row := self._known.rows[ref])]
        refs = self._known.refs([row.id for row in _select_nearest(versions, within)])
        return plans.Candidates(refs=refs, similarity=self._compute_similarities(refs, fetch.vector))

    def _find_nearest(self, fetch: plans.Nearest) -> EngineOperation[list[DocumentVersion]]:
        """Return the ``k`` nearest documents that pass the filter.

        Raises:
            FilterError: If more documents would have to be looked at than the limit allows.
        """
        if not fetch.k:
            return []
        if (best := (yield from self._compare_listed(fetch))) is not None:
            return best
        equal = frozenset(select_searchable(dict(fetch.filter.equalities)))
        if equal and (best := (yield from self._search_unfiltered(fetch, equal))) is not None:
            return best
        count = fetch.k + EXTRA_CANDIDATES
        while count <= 4 * MAX_CANDIDATES:
            best = yield from self._search(fetch, equal, min(count, MAX_CANDIDATES))
            if best is not None:
                return best
            count *= 4
        return (yield from self._scan(fetch))

    def _compare_listed(self, fetch: plans.Nearest) -> EngineOperation[list[DocumentVersion] | None]:
        """Return the ``k`` nearest of all documents, or None if there are more than a few.

        The list tells the similarity of each document to within a bound. Documents are read, those that may
        be the nearest first, until all others are certainly less similar.
        """
        if time.monotonic() < self._scope.history.large_until:
            return None
        listed = yield from read_list(self._scope.fetcher)
        if listed is None:
            self._scope.history.large_until = time.monotonic() + LARGE_LIFETIME
            return None
        ids = [id for id, _ in listed]
        _, similarity, loss = decode_states([states for _, states in listed], fetch.vector)
        highest, lowest = similarity + loss, np.sort(similarity - loss)
        order = np.argsort(-highest)
        best: list[DocumentVersion] = []
        at, end = 0, len(ids)
        if len(ids) > fetch.k:
            end = int(np.count_nonzero(highest >= lowest[-fetch.k]))
        while at < len(ids):
            read = yield from self._scope.fetcher.documents([ids[n] for n in order[at:end].tolist()])
            best = _select_nearest([*best, *read], fetch)
            at, end = end, _COMPARED_GROWTH * end
            if len(best) == fetch.k and at < len(ids):
                worst = _compute_scores(best[-1:], fetch)[0]
                if worst > highest[order[at]]:
                    break
        return best

    def _search_unfiltered(
        self, fetch: plans.Nearest, equal: Equalities
    ) -> EngineOperation[list[DocumentVersion] | None]:
        """Return the ``k`` nearest if twice as many of the nearest of all include them, otherwise None.

        If many documents satisfy the equalities of the filter, the index takes several times as long to find
        the nearest of these as to find the nearest of all.
        """
        count = _UNFILTERED_FACTOR * fetch.k + EXTRA_CANDIDATES
        few_near = self._scope.history.few_near
        if count > MAX_CANDIDATES or time.monotonic() < few_near.get(equal, 0.0):
            return None
        best = yield from self._search(fetch, frozenset(), count)
        if best is None:
            remember(few_near, equal, time.monotonic() + FEW_NEAR_LIFETIME, MAX_REMEMBERED_FILTERS)
        return best

    def _search(
        self, fetch: plans.Nearest, equal: Equalities, count: int
    ) -> EngineOperation[list[DocumentVersion] | None]:
        """Return the ``k`` nearest of ``count`` candidates with these equalities.

        None if other documents may be among the nearest. There are no others if the index proposes fewer than
        it may.
        """
        proposed, versions = yield from self._ask_index(fetch, equal, count)
        scores = _compute_scores(versions, fetch)
        passes = np.array([fetch.filter.always or fetch.filter.matches(row.metadata()) for row in versions])
        passing = np.flatnonzero(passes)
        enough = len(passing) >= fetch.k
        if enough and proposed < MAX_CANDIDATES:  # documents that were not proposed may be tied with the last
            enough = bool(np.sort(scores[passing])[-fetch.k] > scores.min())
        if enough or (proposed < count and (equal or count == MAX_CANDIDATES)):
            return _select_best([versions[at] for at in passing.tolist()], scores[passing], fetch.k)
        return None

    def _ask_index(
        self, fetch: plans.Nearest, equal: Equalities, limit: int
    ) -> EngineOperation[tuple[int, list[DocumentVersion]]]:
        """Ask the server's index for documents with these equalities.

        Returns the number of candidates, and the candidates that exist.
        """
        search = make_search(equal, fetch.vector, limit, whole=not self._replicated)
        (rows,) = yield from send(Requests(statements=(search,), what="search for similar documents"))
        if self._replicated:
            return len(rows), (yield from self._scope.fetcher.documents([id for (id,) in rows]))
        return len(rows), read_versions(rows)

    def _scan(self, fetch: plans.Nearest) -> EngineOperation[list[DocumentVersion]]:
        """Compare all documents, page by page."""
        kept: list[DocumentVersion] = []
        seen, scan = 0, self._scope.fetcher.scan(cql.READ_ALL_VERSIONS)
        while rows := (yield from scan.read()):
            if seen >= self._scope.limit:
                raise FilterError(
                    f"the filter leaves fewer than {fetch.k} of the {MAX_CANDIDATES:,} nearest documents, and"
                    f" to look at all takes more than scan_limit ({self._scope.limit:,}): add an equality,"
                    " which the server looks up, or raise scan_limit"
                )
            page = read_versions(rows)
            seen += len(page)
            kept = _select_nearest([*kept, *page], fetch)
        return kept

    def find(self, fetch: plans.Find) -> EngineOperation[plans.Candidates]:
        """Read documents by id."""
        asked = self._known.refs(list(dict.fromkeys(fetch.ids))).tolist()
        yield from self._read(asked)
        there = np.array([ref for ref in asked if self._known.rows.get(ref)], dtype=np.int64)
        passing = self._find_passing(fetch.filter, there)
        kept = there[passing]
        scores = np.zeros(len(kept), np.float32)
        if fetch.vector is not None:
            scores = self._compute_similarities(kept, fetch.vector)
        return plans.Candidates(refs=kept, similarity=scores, filtered=int((~passing).sum()))

    @as_operation
    def groups(self, fetch: plans.Groups) -> plans.Memberships:
        """Take link groups from the links of documents that were read."""
        kinds: dict[str, int] = {}
        rows = [
            (position, self._group(tag), kinds.setdefault(tag[0], len(kinds)), weight)
            for position, ref in enumerate(fetch.refs.tolist())
            for tag, weight in self._known.weights(ref, fetch.side, fetch.links).items()
            if fetch.kinds is None or tag[0] in fetch.kinds
        ]
        document, group, kind, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
        return plans.Memberships(
            document=np.array(document, dtype=np.int64),
            group=np.array(group, dtype=np.int64),
            kind=np.array(kind, dtype=np.int64),
            weight=np.array(weights, dtype=np.float32),
            kinds=tuple(kinds),
            filtered=self._count_filtered(fetch, len(rows)),
        )

    def _group(self, tag: tuple[str, str]) -> int:
        """Return the ref of a link group."""
        return self._groups.setdefault(tag, len(self._groups))

    def _count_filtered(self, fetch: plans.Groups, left: int) -> int:
        """Return how many entries the condition on links excluded."""
        if fetch.links.always:
            return 0
        entries = (self._known.weights(ref, fetch.side) for ref in fetch.refs.tolist())
        return (
            sum(fetch.kinds is None or kind in fetch.kinds for entry in entries for kind, _ in entry) - left
        )

    def resolve(self, fetch: plans.Resolve) -> EngineOperation[Ints]:
        """Check whether link groups have a member on either side."""
        tags = [] if self._empty else list(dict.fromkeys(fetch.tags))
        there: set[tuple[str, str]] = set()
        sides: tuple[Side, Side] = ("in", "out")
        for side in sides:
            member_lists = yield from self._members.read(tags, side, 1)
            there.update(tag for tag, members in zip(tags, member_lists, strict=True) if members)
        return np.array([self._group(tag) if tag in there else -1 for tag in fetch.tags], dtype=np.int64)

    def members(self, fetch: plans.Members) -> EngineOperation[plans.ReachedMembers]:
        """Read the partitions of link groups, and the documents whose exact vectors are needed."""
        met = list(self._groups)
        tags = [met[group] for group in fetch.groups.tolist()]
        groups = yield from self._read_groups(tags, fetch)
        pool = MemberPool(self._known, tags, groups, fetch)
        if not (fetch.filter.always and fetch.links.always):
            yield from self._read(pool.refs.tolist())
            pool.filter(self._find_passing)
        while unread := pool.list_unread():
            yield from self._read(unread)
        return pool.select_reached()

    def _read_groups(
        self, tags: Sequence[tuple[str, str]], fetch: plans.Members
    ) -> EngineOperation[list[list[ReadMember]]]:
        limit = min(fetch.cap + 1, MAX_SETTING - 1)  # a mark is read besides
        if self._scope.everything:
            return (yield from self._members.read(tags, fetch.side, limit))
        needed = len(tags) * fetch.take
        return (yield from self._members.read_within(tags, fetch.side, limit, partial(self._held, needed)))

    def _held(self, needed: int, ids: Sequence[str]) -> EngineOperation[set[str]]:
        """Return the ids in the scope. If most of the documents are needed anyway, they are read in full."""
        if len(ids) > _FULL_READ_FACTOR * needed:
            return (yield from self._scope.of(ids))
        refs = self._known.refs(ids).tolist()
        self._scope.charge(len(self._known.unread(refs)))
        yield from self._read(refs)
        return {id for id, ref in zip(ids, refs, strict=True) if self._known.rows.get(ref)}

    def lexical(self, fetch: plans.Lexical) -> EngineOperation[plans.LexicalMatches]:
        """Read the partitions of words, and documents until the best ones are known."""
        lookup = yield from self._words.look_up(() if self._empty else fetch.terms, self._scope)
        candidates = LexicalCandidates(self._known, lookup, fetch, self._scope.limit)
        while True:
            yield from self._read_texts(candidates.find_changed())
            if not (undecided := candidates.list_undecided()):
                return candidates.matches()
            yield from self._read(undecided)

    @as_operation
    def matching(self, fetch: plans.Matching) -> Bools:
        """Evaluate the filter on the metadata of documents that were read."""
        return self._find_passing(fetch.filter, fetch.refs)

    @as_operation
    def vectors(self, fetch: plans.Vectors) -> Floats:
        """Return vectors of documents that were read."""
        return self._known.vectors(fetch.refs.tolist())

    @as_operation
    def ids(self, fetch: plans.Ids) -> list[str]:
        """Return ids of documents met so far."""
        return self._known.ids_of(fetch.refs)

    @as_operation
    def tags(self, fetch: plans.Tags) -> list[tuple[str, str]]:
        """Return tags of link groups met so far."""
        met = list(self._groups)
        return [met[group] for group in fetch.groups.tolist()]

    def documents(self, fetch: plans.Documents) -> EngineOperation[list[plans.StoredDocument]]:
        """Return texts and metadata of documents that were read, and read long texts."""
        yield from self._read_texts(fetch.refs.tolist())
        rows = [self._known.row(ref) for ref in fetch.refs.tolist()]
        return [plans.StoredDocument(id=row.id, text=row.text, metadata=row.metadata()) for row in rows]

    def _read(self, refs: Sequence[int]) -> EngineOperation[None]:
        """Read the documents that were not read yet."""
        unread = self._known.unread(refs)
        ids = [] if self._empty else [self._known.ids[ref] for ref in unread]
        rows = yield from self._scope.fetcher.documents(ids)
        for row in rows:
            if self._scope.holds(row):
                self._known.keep(row)
        self._known.mark_read(unread)

    def _read_texts(self, refs: Sequence[int]) -> EngineOperation[None]:
        """Read the texts of documents that were read without them.

        Raises:
            StoreBusyError: If a document changed since, so its text as it was is not stored any more.
        """
        unread = {ref: row for ref in refs if (row := self._known.row(ref)).unread}
        if not unread:
            return
        texts = yield from self._scope.fetcher.texts(unread.values())
        for ref, row in unread.items():
            if row.id not in texts:
                raise StoreBusyError(
                    f"document {row.id[:60]!r} was changed or removed between two reads of a search: search"
                    " again. If that does not help, its text is missing from the table …_texts: add it again"
                )
            self._known.rows[ref] = replace(row, text=texts[row.id])

    def _compute_similarities(self, refs: Ints, vector: Floats) -> Floats:
        return cosine_similarities(self._known.vectors(refs.tolist()), vector) if len(refs) else _NO_FLOATS

    def _find_passing(self, condition: Condition, refs: Ints) -> Bools:
        if condition.always:
            return np.ones(len(refs), np.bool_)
        rows = map(self._known.rows.get, refs.tolist())
        passing = [row is not None and condition.matches(row.metadata()) for row in rows]
        return np.array(passing, dtype=np.bool_)
