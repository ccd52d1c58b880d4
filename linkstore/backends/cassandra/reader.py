"""Answers the fetches of one plan. Refs are assigned to documents and link groups in the order met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from linkstore.backends.cassandra.groups import GroupReader, GroupRows
from linkstore.backends.cassandra.matches import Matches
from linkstore.backends.cassandra.nearest import NearestSearch
from linkstore.backends.cassandra.pool import Pool
from linkstore.backends.cassandra.reading import Documents as Known
from linkstore.backends.cassandra.reading import Fetcher, LinkGroups
from linkstore.backends.cassandra.scopes import Scope
from linkstore.backends.cassandra.words import Words
from linkstore.backends.reader import LexicalReader, immediate
from linkstore.filters import Condition
from linkstore.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Lexical,
    Matching,
    Members,
    Memberships,
    Nearest,
    Operation,
    Reached,
    Resolve,
    Side,
    Stored,
    Tags,
    Vectors,
    Worded,
)
from linkstore.vectors import Bools, Floats, Ints, similarities

_NO_FLOATS: Final = np.empty(0, np.float32)
_MOST_OF: Final = 2
"""Documents are read in full to check them if this share of them at least is needed: one of so many."""


class CassandraReader(LexicalReader):
    """Reads each document at most once, with all its columns.

    Args:
        fetcher: Reads documents by id.
        members: Reads link groups.
        search: Finds documents by similarity.
        words: Finds documents by words, if the store indexes them.
        scope: Which documents exist for the plan.
        empty: Whether the store never had a document. Then it has no tables to read.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        members: GroupReader,
        search: NearestSearch,
        words: Words,
        scope: Scope,
        *,
        empty: bool,
    ) -> None:
        self._scope = scope
        self._empty = empty
        self._fetcher = fetcher
        self._members = members
        self._search = search
        self._words = words
        self._known = Known()
        self._groups = LinkGroups()

    def nearest(self, fetch: Nearest) -> Operation[Candidates]:
        """Ask the server's index, and compute the scores here."""
        within = replace(fetch, filter=self._scope.condition & fetch.filter)
        rows = [] if self._empty else (yield from self._search.rows(within))
        found = [self._known.keep(row) for row in rows if self._scope.holds(row)]
        # Leave out documents that an earlier answer treated as not existing.
        refs = np.array([ref for ref in found if self._known.rows[ref] is not None], dtype=np.int64)
        return Candidates(refs=refs, similarity=self._compute_similarities(refs, fetch.vector))

    def find(self, fetch: Find) -> Operation[Candidates]:
        """Read documents by id."""
        asked = [self._known.ref(id) for id in dict.fromkeys(fetch.ids)]
        yield from self._read(asked)
        there = np.array([ref for ref in asked if self._known.rows[ref] is not None], dtype=np.int64)
        passing = self._find_passing(fetch.filter, there)
        kept = there[passing]
        scores = np.zeros(len(kept), np.float32)
        if fetch.vector is not None:
            scores = self._compute_similarities(kept, fetch.vector)
        return Candidates(refs=kept, similarity=scores, filtered=int((~passing).sum()))

    @immediate
    def groups(self, fetch: Groups) -> Memberships:
        """Take link groups from the links of documents that were read."""
        kinds: dict[str, int] = {}
        rows = [
            (position, self._groups.ref(tag), kinds.setdefault(tag[0], len(kinds)), weight)
            for position, ref in enumerate(fetch.refs.tolist())
            for tag, weight in self._known.weights(ref, fetch.side, fetch.links).items()
            if fetch.kinds is None or tag[0] in fetch.kinds
        ]
        document, group, kind, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
        return Memberships(
            document=np.array(document, dtype=np.int64),
            group=np.array(group, dtype=np.int64),
            kind=np.array(kind, dtype=np.int64),
            weight=np.array(weights, dtype=np.float32),
            kinds=tuple(kinds),
            filtered=self._count_filtered(fetch, len(rows)),
        )

    def _count_filtered(self, fetch: Groups, left: int) -> int:
        """Return how many entries the condition on links excluded."""
        if fetch.links.always:
            return 0
        entries = (self._known.weights(ref, fetch.side) for ref in fetch.refs.tolist())
        return sum(fetch.kinds is None or kind in fetch.kinds for one in entries for kind, _ in one) - left

    def resolve(self, fetch: Resolve) -> Operation[Ints]:
        """Check whether link groups have a member on either side."""
        tags = [] if self._empty else list(dict.fromkeys(fetch.tags))
        there: set[tuple[str, str]] = set()
        sides: tuple[Side, Side] = ("in", "out")
        for side in sides:
            found = yield from self._members.read(tags, side, 1)
            there.update(tag for tag, group in zip(tags, found, strict=True) if group.size)
        return np.array([self._groups.ref(tag) if tag in there else -1 for tag in fetch.tags], dtype=np.int64)

    def members(self, fetch: Members) -> Operation[Reached]:
        """Read the partitions of link groups, and the documents whose exact vectors are needed."""
        tags = [self._groups.tags[group] for group in fetch.groups.tolist()]
        groups = yield from self._read_groups(tags, fetch)
        pool = Pool(self._known, tags, groups, fetch)
        if not (fetch.filter.always and fetch.links.always):
            yield from self._read(pool.refs.tolist())
            pool.filter(self._find_passing)
        while undecided := pool.undecided():
            yield from self._read(undecided)
        return pool.reached()

    def _read_groups(self, tags: Sequence[tuple[str, str]], fetch: Members) -> Operation[list[GroupRows]]:
        limit = fetch.cap + 1
        if self._scope.everything:
            return (yield from self._members.read(tags, fetch.side, limit))
        needed = len(tags) * fetch.take if fetch.best is None else 0
        return (yield from self._members.read_within(tags, fetch.side, limit, partial(self._held, needed)))

    def _held(self, needed: int, ids: Sequence[str]) -> Operation[set[str]]:
        """Return the ids in the scope. If most of the documents are needed anyway, they are read in full."""
        if len(ids) > _MOST_OF * needed:
            return (yield from self._scope.of(ids))
        refs = [self._known.ref(id) for id in ids]
        self._scope.charge(len(self._known.unread(refs)))
        yield from self._read(refs)
        return {id for id, ref in zip(ids, refs, strict=True) if self._known.rows[ref] is not None}

    def lexical(self, fetch: Lexical) -> Operation[Worded]:
        """Read the partitions of words, and documents until the best ones are known."""
        found = yield from self._words.look_up(() if self._empty else fetch.terms, self._scope)
        matches = Matches(self._known, found, fetch, self._words.scan_limit)
        while undecided := matches.undecided():
            yield from self._read(undecided)
        return matches.worded()

    @immediate
    def matching(self, fetch: Matching) -> Bools:
        """Evaluate the filter on the metadata of documents that were read."""
        return self._find_passing(fetch.filter, fetch.refs)

    @immediate
    def vectors(self, fetch: Vectors) -> Floats:
        """Return vectors of documents that were read."""
        return self._known.vectors(fetch.refs.tolist())

    @immediate
    def ids(self, fetch: Ids) -> list[str]:
        """Return ids of documents met so far."""
        return self._known.ids_of(fetch.refs)

    @immediate
    def tags(self, fetch: Tags) -> list[tuple[str, str]]:
        """Return tags of link groups met so far."""
        return [self._groups.tags[group] for group in fetch.groups.tolist()]

    @immediate
    def documents(self, fetch: Documents) -> list[Stored]:
        """Return texts and metadata of documents that were read."""
        rows = [self._known.row(ref) for ref in fetch.refs.tolist()]
        return [Stored(id=row.id, text=row.text, metadata=row.metadata()) for row in rows]

    def _read(self, refs: Sequence[int]) -> Operation[None]:
        """Read the documents that were not read yet."""
        unread = list(dict.fromkeys(self._known.unread(refs)))
        ids = [] if self._empty else [self._known.ids[ref] for ref in unread]
        rows = yield from self._fetcher.documents(ids)
        for row in rows:
            if self._scope.holds(row):
                self._known.keep(row)
        self._known.mark_read(unread)

    def _compute_similarities(self, refs: Ints, vector: Floats) -> Floats:
        return similarities(self._known.vectors(refs.tolist()), vector) if len(refs) else _NO_FLOATS

    def _find_passing(self, condition: Condition, refs: Ints) -> Bools:
        if condition.always:
            return np.ones(len(refs), np.bool_)
        rows = [self._known.rows[ref] for ref in refs.tolist()]
        return np.array(
            [row is not None and condition.matches(row.metadata()) for row in rows], dtype=np.bool_
        )
