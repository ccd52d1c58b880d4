"""Members of link groups: reads them, of a hub only enough to recognise it, and ranks them.

The members to take are chosen by the similarities that the codes of their vectors give. Their documents are
read, which tells whether they still have the link, and how similar they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Final

import numpy as np

from linkstore.core.arrays import Bools, Floats, Ints, cosine_similarities, is_member, sort_unique
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.plans import EngineOperation, Members, ReachedMembers, Side, select_by_group
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.derived import GROUP_BUCKETS, WEIGHT_FORMAT
from linkstore.engines.cassandra.reading import PlanDocuments, RowFetcher, ScopeCheck, remember
from linkstore.engines.cassandra.statements import Requests, Statement, ask, send

ReadMember = tuple[str, str, bytes | None]
"""A member: tag, document id, states in the format of the native protocol; of a hub the tag alone."""
GroupKey = tuple[str, str]
_READING: Final = "read link groups"
_LARGEST_MEMBER_PAGE: Final = 2_000
"""The most members of a partition that are read at once."""
_MEMBER_PAGE_GROWTH: Final = 4
MAX_REMEMBERED_HUBS: Final = 10_000
"""How many hubs are remembered."""
_FIRST_BUCKET: Final = codec.SIZE.pack(0)
_FURTHER_BUCKETS: Final = [*range(1, GROUP_BUCKETS + 1)]
_BUCKET_SHARE: Final = 16
"""Of each further bucket, this part of what is read of the first one is read at once within a scope."""
UNKNOWN_LOSS: Final = 2.0
"""The error bound of a similarity of which nothing is known."""


class GroupReader:
    """Reads link groups by kind and tag.

    A reader remembers which groups were hubs. For these it reads only the tags of the rows, a tenth of the
    bytes. This affects only what is read: a group that is not a hub any more is read again in full.

    Args:
        fetcher: Finds the nodes of partitions.
    """

    def __init__(self, fetcher: RowFetcher) -> None:
        self._fetcher = fetcher
        self._hubs: dict[tuple[str, str, Side], int] = {}

    def read(
        self, groups: Sequence[GroupKey], side: Side, limit: int
    ) -> EngineOperation[list[list[ReadMember]]]:
        """Read the members on one side of each link group, all of them or at least ``limit``.

        Args:
            groups: The link groups.
            side: Which members.
            limit: How many members are enough to tell that a group is a hub.
        """
        hubs = {group for group in groups if self._hubs.get((*group, side), 0) >= limit}
        by_group = yield from self._read_first(groups, side, limit, hubs)
        for group, members in by_group.items():
            if group not in hubs and _take_mark(members) and len(members) < limit:
                values = group[0], [group[1]], side, _FURTHER_BUCKETS, limit, limit
                more = yield from ask(_READING, cql.READ_FURTHER_MEMBERS, *values, limit=limit)
                by_group[group] = [*_join_members([*members, *more]).values()]
        for group, members in by_group.items():
            if len(members) < limit:
                self._hubs.pop((*group, side), None)
            elif group not in hubs:  # those are remembered, perhaps for a higher limit
                remember(self._hubs, (*group, side), len(members), MAX_REMEMBERED_HUBS)
        if smaller := [group for group in by_group if group in hubs and len(by_group[group]) < limit]:
            again = yield from self.read(smaller, side, limit)
            by_group.update(zip(smaller, again, strict=True))
        return [by_group[group] for group in groups]

    def _read_first(
        self, groups: Iterable[GroupKey], side: Side, limit: int, hubs: Collection[GroupKey] = ()
    ) -> EngineOperation[dict[GroupKey, list[ReadMember]]]:
        """Read the first bucket of each link group up to ``limit`` members, with its mark if it has one."""
        by_group: dict[GroupKey, list[ReadMember]] = {group: [] for group in groups}
        full = [group for group in by_group if group not in hubs]
        asked = [
            *self._make_statements(cql.READ_MEMBERS, full, side, limit + 1),
            *self._make_statements(cql.READ_MEMBER_TAGS, hubs, side, limit),
        ]
        statements = tuple(statement for _, statement in asked)
        answers = yield from send(Requests(statements=statements, what=_READING))
        for (kind, _), rows in zip(asked, answers, strict=True):
            for tag, of in groupby(rows, itemgetter(0)):
                by_group[kind, tag] += of
        return by_group

    def read_within(
        self, groups: Sequence[GroupKey], side: Side, limit: int, held: ScopeCheck
    ) -> EngineOperation[list[list[ReadMember]]]:
        """Read only the members in a scope, as :meth:`read`, skipping other members page by page.

        Args:
            groups: The link groups.
            side: Which members.
            limit: How many members per group.
            held: Tells which documents are in the scope.
        """
        first = yield from self._read_first(groups, side, limit)
        by_group: dict[GroupKey, dict[str, ReadMember]] = {group: {} for group in first}
        pages = {(group, 0): rows for group, rows in first.items() if rows}
        most = limit + 1
        while pages:
            last = {at: rows[-1][1] for at, rows in pages.items() if len(rows) >= _share(most, at[1])}
            marked = [group for (group, bucket), rows in pages.items() if not bucket and _take_mark(rows)]
            last.update(((group, bucket), "") for group in marked for bucket in _FURTHER_BUCKETS)
            within = yield from held([row[1] for rows in pages.values() for row in rows])
            for (group, _), rows in pages.items():
                inside = (row for row in rows if row[1] in within)
                by_group[group] = _join_members([*by_group[group].values(), *inside])
            last = {at: id for at, id in last.items() if len(by_group[at[0]]) < limit}
            most = min(_MEMBER_PAGE_GROWTH * most, _LARGEST_MEMBER_PAGE)
            statements = tuple(
                Statement(cql=cql.READ_MORE_MEMBERS, values=(*group, side, at, id, _share(most, at)))
                for (group, at), id in last.items()
            )
            answers = yield from send(Requests(statements=statements, what=_READING))
            pages = {at: rows for at, rows in zip(last, answers, strict=True) if rows}
        return [[*by_group[group].values()] for group in groups]

    def _make_statements(
        self, text: str, groups: Collection[GroupKey], side: Side, limit: int
    ) -> Iterator[tuple[str, Statement]]:
        """Yield a link kind and a statement that reads groups of this kind."""
        for kind in dict.fromkeys(kind for kind, _ in groups):
            tags = [tag for of, tag in groups if of == kind]
            keys = {(kind.encode(), tag.encode(), side.encode(), _FIRST_BUCKET): tag for tag in tags}
            for part, routing in self._fetcher.parts(keys, limit):
                values = (kind, part, side, [0], limit)
                yield kind, Statement(cql=text, values=values, routing=routing, limit=len(part) * limit)


def _share(most: int, bucket: int) -> int:
    """Return how many members of a bucket are read where so many of the first one are."""
    return most // _BUCKET_SHARE + 1 if bucket else most


def _take_mark(rows: list[ReadMember]) -> bool:
    """Remove the mark of a link group that was split, and say whether there was one."""
    is_split = bool(rows) and not rows[0][1]
    del rows[:is_split]
    return is_split


def _join_members(rows: Iterable[ReadMember]) -> dict[str, ReadMember]:
    """Return members by id. One that is in two buckets has the states of both, so its document is read."""
    by_id: dict[str, ReadMember] = {}
    for tag, id, states in rows:
        _, _, others = by_id.get(id, (tag, id, b""))
        by_id[id] = tag, id, (others or b"") + (states or b"")
    return by_id


class MemberPool:
    """Members of link groups that may be taken: one entry for each pair of a group and a document.

    Args:
        known: The documents met by the plan.
        tags: The (kind, tag) of each group.
        groups: The members of each group. A group with more than ``fetch.cap`` is a hub and is left out.
        fetch: The fetch to answer.
    """

    def __init__(
        self,
        known: PlanDocuments,
        tags: Sequence[tuple[str, str]],
        groups: Sequence[Sequence[ReadMember]],
        fetch: Members,
    ) -> None:
        self._known = known
        self._tags = tags
        self._fetch = fetch
        self.filtered = self.filtered_links = 0
        self._sizes = np.array([min(len(members), fetch.cap + 1) for members in groups], dtype=np.int64)
        open_groups = np.flatnonzero(self._sizes <= fetch.cap)
        self._owner = np.repeat(open_groups, self._sizes[open_groups])
        entries = list(chain.from_iterable(groups[at] for at in open_groups.tolist()))
        ids = [id for _, id, _ in entries]
        self.refs = known.refs(ids)
        states = [states or b"" for _, _, states in entries]
        self._weight, self._estimate, self._loss = decode_states(states, fetch.vector)
        self._similarity = self._estimate.copy()
        self._settled = np.zeros(len(self.refs), np.bool_)
        self._keep(~is_member(self.refs, fetch.exclude))

    def filter(self, passing: Callable[[Condition, Ints], Bools]) -> None:
        """Remove documents and links that do not pass. All documents of the pool must have been read."""
        self._update()
        self._estimate = self._similarity
        passes = passing(self._fetch.filter, self.refs)
        self.filtered = len(sort_unique(self.refs[~passes]))
        self._keep(passes)
        if not self._fetch.links.always:
            has_link = self._weigh_links(np.arange(len(self.refs)), self._fetch.links)
            self.filtered_links = int(np.count_nonzero(~has_link))
            self._keep(has_link)

    def _weigh_links(self, entries: Ints, links: Condition = EVERYTHING) -> Bools:
        """Set the weights of entries by the links of their documents, and say which have a link."""
        pairs = zip(self.refs[entries].tolist(), self._owner[entries].tolist(), strict=True)
        side = self._fetch.side
        weights = [self._known.weights(ref, side, links).get(self._tags[group]) for ref, group in pairs]
        self._weight[entries] = [weight or 0 for weight in weights]
        return np.array([weight is not None for weight in weights], np.bool_)

    def list_unread(self) -> list[int]:
        """Return the documents to read next, none if the result is complete."""
        self._update()
        wanted = self._loss >= UNKNOWN_LOSS
        wanted[self._choose(self._owner, self.refs, self._estimate)] = True
        unread: list[int] = sort_unique(self.refs[wanted & ~self._settled]).tolist()
        return unread

    def select_reached(self) -> ReachedMembers:
        """Return the members chosen of each group by similarity, then id, once all of them were read."""
        chosen = self._choose(self._owner, self.refs, self._estimate)
        order = chosen[self._choose(self._owner[chosen], self.refs[chosen], self._similarity[chosen])]
        return ReachedMembers(
            group=self._owner[order],
            refs=self.refs[order],
            similarity=self._similarity[order],
            weight=self._weight[order],
            sizes=self._sizes,
            filtered=self.filtered,
            filtered_links=self.filtered_links,
        )

    def _choose(self, owner: Ints, refs: Ints, values: Floats) -> Ints:
        """Return the positions of the ``take`` largest values of each group, in order, then by id."""
        return select_by_group(owner, values, self._fetch.take, lambda at: self._known.ids_of(refs[at]))

    def _update(self) -> None:
        """Use the documents read since the last call.

        Entries whose document does not have the link any more are removed.
        """
        newly_read = np.flatnonzero(~self._settled & self._known.were_read(self.refs))
        if not len(newly_read):
            return
        kept = np.ones(len(self.refs), np.bool_)
        kept[newly_read] = self._weigh_links(newly_read)
        there = newly_read[kept[newly_read]]
        if len(there) and self._fetch.vector is not None:
            vectors = self._known.vectors(self.refs[there].tolist())
            self._similarity[there] = cosine_similarities(vectors, self._fetch.vector)
            loss = self._loss[there]
            other = (loss >= UNKNOWN_LOSS) | (np.abs(self._similarity[there] - self._estimate[there]) > loss)
            if other.any():  # a member's state is not the document's: estimate as for an equal vector
                codes = np.array([list(code) for code in codec.encode_vectors(vectors[other])], np.uint8)
                self._estimate[there[other]] = codec.estimate_similarities(codes, self._fetch.vector)[0]
        self._settled[there] = True
        np.subtract.at(self._sizes, self._owner[~kept], 1)
        self._keep(kept)

    def _keep(self, kept: Bools) -> None:
        self._owner, self.refs, self._weight = self._owner[kept], self.refs[kept], self._weight[kept]
        self._similarity, self._estimate = self._similarity[kept], self._estimate[kept]
        self._loss, self._settled = self._loss[kept], self._settled[kept]


def decode_states(states: Sequence[bytes], vector: Floats | None) -> tuple[Floats, Floats, Floats]:
    """Return weights, similarities and error bounds of members, (n,) each.

    A member has several states if a write is in progress or was interrupted. Such a member, and one whose
    state is damaged, gets an error bound that covers every similarity, so its document is read. Without a
    vector every similarity is 0, and every member that is taken is read, which gives its weight.
    """
    if not states or vector is None:
        similarities, losses = np.zeros((2, len(states)), np.float32)
        return np.ones(len(states), np.float32), similarities, losses
    start = codec.SINGLE_STATE_OFFSET + WEIGHT_FORMAT.size
    width = start + codec.compute_code_width(len(vector))
    is_clear = np.array(list(map(len, states))) == width
    packed = states if is_clear.all() else [state.ljust(width, b"\0")[:width] for state in states]
    raw = np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(len(states), width)
    weight = raw[:, codec.SINGLE_STATE_OFFSET : start].copy().view("<f4")[:, 0]
    with np.errstate(all="ignore"):
        similarity, loss = codec.estimate_similarities(raw[:, start:], vector)
        unclear = ~(is_clear & (np.abs(similarity) <= 1 + loss) & (loss < UNKNOWN_LOSS))
    weight[unclear], similarity[unclear], loss[unclear] = 1, 0, UNKNOWN_LOSS
    return weight, similarity, loss
