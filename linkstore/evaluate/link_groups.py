"""Counts the link groups of a store of any size, for a profile of its links.

The store is read in passes. A pass holds the link groups of one part, chosen by a hash of kind and tag, as
columns of some 30 bytes a link: about 0.5 GiB at most while it is counted. A store with more links is read
several times.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
import xxhash

from linkstore.core.arrays import Bools, Ints
from linkstore.core.links import Link
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Record
from linkstore.evaluate.metrics import Comparison
from linkstore.strategies.base import DEFAULT_HUB_CAP
from linkstore.strategies.results import SECTION_KINDS

LINKS_AT_ONCE: Final = 5_000_000
"""How many links a pass holds, about."""
HUB_CAP: Final = DEFAULT_HUB_CAP
"""A side of a link group with more documents is a hub: searches do not arrive there."""
SIZE_BOUNDS: Final = (1, 2, 5, 10, 20, 50, 100, HUB_CAP)
"""The largest link group of each class of sizes; larger ones are the last class."""
_MAX_LARGEST: Final = 5
_BATCH: Final = 500
_OUT: Final = 1
_IN: Final = 2
_INT64_MASK: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipBlock:
    """The memberships of some link groups, by group, then document; each document once in a group.

    Args:
        documents: How many documents the store has; they are numbered in the order read.
        kinds: The kinds that occur.
        group: (m,) a number for each link group: see :func:`hash_group`.
        kind: (m,) positions in ``kinds``.
        document: (m,) documents.
        leaves: (m,) whether the document is on the out side.
        arrives: (m,) whether it lies on the in side.
    """

    documents: int
    kinds: tuple[str, ...]
    group: Ints
    kind: Ints
    document: Ints
    leaves: Bools
    arrives: Bools


def read_membership_blocks(backend: Backend, links: int) -> Iterator[MembershipBlock]:
    """Return all memberships of a store with about this number of links, reading it once for each part."""
    count = max(1, -(-links // LINKS_AT_ONCE))
    return (_read_block(backend, number, count) for number in range(count))


def read_records(backend: Backend) -> Iterator[Record]:
    """Yield all records of a store, in the engine's order, read in batches."""
    after: str | None = None
    while batch := backend.run(backend.scan(after, _BATCH)):
        yield from batch
        after = batch[-1].id


def hash_group(link: Link) -> int:
    """Return a number for a link's group. Of n groups, two share one with a probability of n² / 2⁶⁴."""
    return xxhash.xxh3_64_intdigest(f"{link.kind}\0{link.tag}".encode()) & _INT64_MASK


def _read_block(backend: Backend, number: int, count: int) -> MembershipBlock:
    kinds: dict[str, int] = {}
    blocks: list[Ints] = [np.zeros((0, 4), dtype=np.int64)]
    rows: list[tuple[int, int, int, int]] = []
    documents = 0
    for record in read_records(backend):
        for link in record.links:
            key = hash_group(link)
            if key % count == number:
                side = (_OUT if link.leads_out else 0) | (_IN if link.leads_in else 0)
                rows.append((key, documents, kinds.setdefault(link.kind, len(kinds)), side))
        documents += 1
        if documents % _BATCH == 0 and rows:
            blocks.append(np.array(rows, dtype=np.int64))
            rows = []
    if rows:
        blocks.append(np.array(rows, dtype=np.int64))
    return _sort_rows(np.concatenate(blocks), documents, tuple(kinds))


def _sort_rows(rows: Ints, documents: int, kinds: tuple[str, ...]) -> MembershipBlock:
    """Return rows of (group, document, kind, side) as a part, with one row for each document and group."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    starts = np.flatnonzero(fresh)
    side = np.bitwise_or.reduceat(rows[:, 3], starts) if len(starts) else rows[:, 3]
    return MembershipBlock(
        documents=documents,
        kinds=kinds,
        group=rows[starts, 0],
        kind=rows[starts, 2],
        document=rows[starts, 1],
        leaves=(side & _OUT) > 0,
        arrives=(side & _IN) > 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KindProfile:
    """The links of one kind.

    Args:
        links: How many links; a bidirectional link counts once.
        groups: Link groups.
        hubs: Link groups with more than 200 documents on a side.
        edges: Pairs of documents where the one leads to the other through a link group; none lead to
            the hub side of one.
        dangling: Links that lead to no document of the store.
    """

    links: int
    groups: int
    hubs: int
    edges: int
    dangling: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkGroup:
    """A link group and how many documents it has.

    Args:
        kind: Its kind.
        tag: Its tag.
        out: Documents that point at the tag.
        in_: Documents that the tag points at.
    """

    kind: str
    tag: str
    out: int
    in_: int

    @property
    def hub(self) -> bool:
        """Whether a side has more documents than a search arrives at."""
        return max(self.out, self.in_) > HUB_CAP


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldEdges:
    """How often the links of one kind lead from one answer of a question to another.

    Counted over questions with at least two gold documents; edges count in both directions, each pair
    of documents once.

    Args:
        edges: Pairs of a gold document and another document that links of this kind join.
        joining: Of these, pairs of two gold documents of one question.
        gold: Gold documents, of all questions.
        linked: Of these, how many are joined to another gold document of their question.
    """

    edges: int
    joining: int
    gold: int
    linked: int

    @property
    def precision(self) -> float | None:
        """Share of the edges at gold documents that join two of one question, or None if there is none."""
        return self.joining / self.edges if self.edges else None

    @property
    def linked_share(self) -> float | None:
        """Share of gold documents joined to another one, or None if no question has two."""
        return self.linked / self.gold if self.gold else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldProfile:
    """How much links could add to dense search, on questions with known answers.

    Args:
        questions: How many questions.
        recall_at_5: Recall of dense search among the first 5, averaged over questions.
        missed: Gold documents that dense search does not have among its first 5, in all questions.
        within_reach: Of these, how many one link joins to one of its first 10.
        kinds: By kind of link; and under ``"all"`` all kinds together.
    """

    questions: int
    recall_at_5: float
    missed: int
    within_reach: int
    kinds: Mapping[str, GoldEdges]

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain JSON."""
        return {
            "questions": self.questions,
            "dense_recall@5": self.recall_at_5,
            "missed": self.missed,
            "within_reach": self.within_reach,
            "kinds": {
                kind: {
                    "edges": one.edges,
                    "joining": one.joining,
                    "precision": one.precision,
                    "gold": one.gold,
                    "linked": one.linked,
                    "linked_share": one.linked_share,
                }
                for kind, one in self.kinds.items()
            },
        }

    @property
    def headroom(self) -> float:
        """The share of gold answers that are not among the first 5 of dense search."""
        return 1 - self.recall_at_5

    @property
    def reach(self) -> float:
        """Share of what dense search misses that one link would find."""
        return self.within_reach / self.missed if self.missed else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The links of a store, and what they may be good for.

    Args:
        documents: How many documents.
        links: By kind.
        sizes: How many link groups have up to 1, 2, 5, … documents on their larger side; in the order of
            :data:`SIZE_BOUNDS`, then those with more.
        largest: The largest link groups, largest first.
        isolated: Documents that no link other than ``section`` joins to another.
        reached: Documents that some other document leads to by one link other than ``section``.
        gold: What questions with known answers say about the links; None without questions.
        gold_kind: What those answers name: ``"page"``, ``"section"`` or ``"id"``; None without questions.
        comparison: The default compared with the best search without links; None without questions.
        verdict: Whether links help, in words.
    """

    documents: int
    links: Mapping[str, KindProfile]
    sizes: tuple[int, ...]
    largest: tuple[LinkGroup, ...]
    isolated: int
    reached: int
    gold: GoldProfile | None
    gold_kind: str | None
    comparison: Comparison | None
    verdict: str

    @property
    def reached_share(self) -> float:
        """Share of documents that some other document leads to by one link."""
        return self.reached / self.documents if self.documents else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain JSON."""
        return {
            "documents": self.documents,
            "links": {kind: asdict(one) for kind, one in self.links.items()},
            "group_sizes": dict(zip(list_size_labels(), self.sizes, strict=True)),
            "largest_groups": [
                {"kind": one.kind, "tag": one.tag, "out": one.out, "in": one.in_, "hub": one.hub}
                for one in self.largest
            ],
            "isolated": self.isolated,
            "reached_in_one_hop": self.reached,
            "reached_share": self.reached_share,
            "gold": None if self.gold is None else self.gold.to_dict(),
            "gold_kind": self.gold_kind,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "verdict": self.verdict,
        }


def list_size_labels() -> tuple[str, ...]:
    """Return the classes of sizes in words, such as ``3-5``."""
    lows = (1, *(bound + 1 for bound in SIZE_BOUNDS))
    ranges = zip(lows[:-1], SIZE_BOUNDS, strict=True)
    return (*(str(low) if low == high else f"{low}-{high}" for low, high in ranges), f">{SIZE_BOUNDS[-1]}")


@dataclass(slots=True)
class GroupCounts:
    """The counts of the parts of a store.

    Args:
        sizes: Link groups by class of size: see :class:`~linkstore.evaluate.Profile`.
        groups: Link groups by kind.
        hubs: Link groups with a side that is a hub, by kind.
        edges: Pairs of documents of which the one leads to the other, by kind.
        joined: (n,) whether a link other than ``section`` joins each document to another one.
        reached: (n,) whether another document leads to each by such a link.
        largest: (documents on the larger side, number of the group, out, in) of the largest groups.
    """

    sizes: Ints = field(default_factory=lambda: np.zeros(len(SIZE_BOUNDS) + 1, dtype=np.int64))
    groups: Counter[str] = field(default_factory=Counter)
    hubs: Counter[str] = field(default_factory=Counter)
    edges: Counter[str] = field(default_factory=Counter)
    joined: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    reached: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    largest: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, part: MembershipBlock) -> None:
        """Count a part."""
        self.joined, self.reached = (
            _extend_marks(part.documents, one) for one in (self.joined, self.reached)
        )
        if not len(part.group):
            return
        starts = np.flatnonzero(np.concatenate(([True], part.group[1:] != part.group[:-1])))
        both = part.leaves & part.arrives
        out, in_, alike = (
            np.add.reduceat(one.astype(np.int64), starts) for one in (part.leaves, part.arrives, both)
        )
        self._tally(part, starts, np.maximum(out, in_), np.where(in_ <= HUB_CAP, out * in_ - alike, 0))
        self._keep_largest(part.group[starts], out, in_)
        members = np.diff(np.append(starts, len(part.group)))
        self._mark(part, np.repeat(out, members), np.repeat(in_, members))

    def _tally(self, part: MembershipBlock, starts: Ints, larger: Ints, edges: Ints) -> None:
        self.sizes += np.bincount(np.searchsorted(SIZE_BOUNDS, larger), minlength=len(self.sizes))
        kinds = part.kind[starts]
        for code, kind in enumerate(part.kinds):
            own = kinds == code
            self.groups[kind] += int(own.sum())
            self.hubs[kind] += int((larger[own] > HUB_CAP).sum())
            self.edges[kind] += int(edges[own].sum())

    def _keep_largest(self, group: Ints, out: Ints, in_: Ints) -> None:
        top = np.lexsort((group, np.maximum(out, in_)))[-_MAX_LARGEST:]
        found = zip(*(one[top].tolist() for one in (np.maximum(out, in_), group, out, in_)), strict=True)
        self.largest = heapq.nlargest(_MAX_LARGEST, [*self.largest, *found])

    def _mark(self, part: MembershipBlock, out: Ints, in_: Ints) -> None:
        """Mark who has a partner across a link group, whose sizes are ``out`` and ``in_``, (m,).

        Links between the sections of one page say nothing about how pages are linked, and do not count.
        """
        leads = part.leaves & (in_ > part.arrives)
        led_to = part.arrives & (out > part.leaves)
        kinds = [code for code, kind in enumerate(part.kinds) if kind not in SECTION_KINDS]
        between = np.isin(part.kind, kinds)
        self.reached[part.document[between & led_to & (in_ <= HUB_CAP)]] = True
        self.joined[part.document[between & (leads | led_to) & (np.minimum(in_, out) <= HUB_CAP)]] = True


def count_groups(backend: Backend, links: int) -> GroupCounts:
    """Count the link groups, edges and documents of a store with about this number of links."""
    counts = GroupCounts()
    for part in read_membership_blocks(backend, links):
        counts.add(part)
    return counts


def find_largest_groups(backend: Backend, counts: GroupCounts) -> tuple[LinkGroup, ...]:
    """Return the largest link groups by name, largest first, reading the store until all tags were seen."""
    wanted = {group for _, group, _, _ in counts.largest}
    names: dict[int, tuple[str, str]] = {}
    for record in read_records(backend) if wanted else ():
        names |= {key: (one.kind, one.tag) for one in record.links if (key := hash_group(one)) in wanted}
        if len(names) == len(wanted):
            break
    return tuple(
        LinkGroup(kind=names[group][0], tag=names[group][1], out=out, in_=in_)
        for _, group, out, in_ in counts.largest
        if group in names
    )


def _extend_marks(length: int, marks: Bools) -> Bools:
    """Return marks for this many documents, since a concurrent writer may add more."""
    longer = np.zeros(max(length, len(marks)), dtype=np.bool_)
    longer[: len(marks)] = marks
    return longer
