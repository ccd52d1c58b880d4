"""The links of a store in numbers: by kind, by the size of link groups, and by what they join."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from heapq import nsmallest
from typing import Any, Final

import numpy as np

from linkstore.core.arrays import Ints
from linkstore.engines.contract import StoredLinks, Survey
from linkstore.evaluate.metrics import Comparison
from linkstore.strategies.base import DEFAULT_HUB_CAP
from linkstore.strategies.results import SECTION_KINDS

HUB_CAP: Final = DEFAULT_HUB_CAP
"""A side of a link group with more documents is a hub: searches do not arrive there."""
SIZE_BOUNDS: Final = (1, 2, 5, 10, 20, 50, 100, HUB_CAP)
"""The largest link group of each class of sizes; larger ones are the last class."""
_MAX_LARGEST: Final = 5


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
        shares = {
            kind: {"precision": edges.precision, "linked_share": edges.linked_share}
            for kind, edges in self.kinds.items()
        }
        return {
            "questions": self.questions,
            "dense_recall@5": self.recall_at_5,
            "missed": self.missed,
            "within_reach": self.within_reach,
            "kinds": {kind: asdict(edges) | shares[kind] for kind, edges in self.kinds.items()},
        }

    @property
    def headroom(self) -> float:
        """The share of gold answers that are not among the first 5 of dense search."""
        return 1 - self.recall_at_5

    @property
    def reach(self) -> float:
        """Share of dense search's misses that one link would find."""
        return self.within_reach / self.missed if self.missed else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The links of a store, and what they may be good for.

    Args:
        documents: How many documents.
        links: By kind.
        sizes: How many link groups have so many documents on their larger side, smallest first: ``"1"``,
            ``"2"``, ``"3-5"``, …, and the last with more, which are hubs.
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
    sizes: Mapping[str, int]
    largest: tuple[LinkGroup, ...]
    isolated: int
    reached: int
    gold: GoldProfile | None = None
    gold_kind: str | None = None
    comparison: Comparison | None = None
    verdict: str = ""

    @property
    def reached_share(self) -> float:
        """Share of documents that some other document leads to by one link."""
        return self.reached / self.documents if self.documents else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain JSON."""
        return {
            "documents": self.documents,
            "links": {kind: asdict(link) for kind, link in self.links.items()},
            "group_sizes": dict(self.sizes),
            "largest_groups": [
                {"kind": group.kind, "tag": group.tag, "out": group.out, "in": group.in_, "hub": group.hub}
                for group in self.largest
            ],
            "isolated": self.isolated,
            "reached_in_one_hop": self.reached,
            "reached_share": self.reached_share,
            "gold": None if self.gold is None else self.gold.to_dict(),
            "gold_kind": self.gold_kind,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "verdict": self.verdict,
        }


def _list_size_labels() -> tuple[str, ...]:
    """Return the classes of sizes in words, such as ``3-5``."""
    lows = (1, *(bound + 1 for bound in SIZE_BOUNDS))
    ranges = zip(lows[:-1], SIZE_BOUNDS, strict=True)
    return (*(str(low) if low == high else f"{low}-{high}" for low, high in ranges), f">{SIZE_BOUNDS[-1]}")


def measure_links(stored: StoredLinks, survey: Survey) -> Profile:
    """Describe the links of a store, without a verdict.

    Args:
        stored: All links.
        survey: Counts of the same store.
    """
    documents, groups = len(stored.ids), len(stored.groups)
    member, row = np.unique(stored.group * max(documents, 1) + stored.document, return_inverse=True)
    group, document = np.divmod(member, max(documents, 1))
    leaves, arrives = np.zeros((2, len(member)), dtype=np.bool_)
    leaves[row[stored.leads_out]] = True
    arrives[row[stored.leads_in]] = True
    out, in_, both = (
        np.bincount(group[side], minlength=groups) for side in (leaves, arrives, leaves & arrives)
    )
    larger = np.maximum(out, in_)
    edges = np.where(in_ <= HUB_CAP, out * in_ - both, 0)
    counts = defaultdict[str, Ints](lambda: np.zeros(3, dtype=np.int64))
    for at in np.flatnonzero(larger).tolist():
        counts[stored.groups[at][0]] += (1, larger[at] > HUB_CAP, edges[at])
    dangling = Counter[str]()
    for kind, _, many in survey.dangling:
        dangling[kind] += many
    # Links between the sections of one page say nothing about how pages are linked.
    between = np.array([kind not in SECTION_KINDS for kind, _ in stored.groups], dtype=np.bool_)[group]
    led_to = between & arrives & (out[group] > leaves)
    leads = between & leaves & (in_[group] > arrives)
    reached = np.unique(document[led_to & (in_[group] <= HUB_CAP)])
    joined = np.unique(document[(leads | led_to) & (np.minimum(in_, out)[group] <= HUB_CAP)])
    sizes = np.bincount(np.searchsorted(SIZE_BOUNDS, larger[larger > 0]), minlength=len(SIZE_BOUNDS) + 1)
    largest = nsmallest(_MAX_LARGEST, range(groups), key=lambda at: (-larger[at], stored.groups[at]))
    return Profile(
        documents=documents,
        links={
            kind: KindProfile(
                links=links, groups=totals[0], hubs=totals[1], edges=totals[2], dangling=dangling[kind]
            )
            for kind, links in sorted(survey.links.items())
            for totals in (counts[kind].tolist(),)
        },
        sizes=dict(zip(_list_size_labels(), sizes.tolist(), strict=True)),
        largest=tuple(
            LinkGroup(kind=kind, tag=tag, out=int(out[at]), in_=int(in_[at]))
            for at in largest
            if larger[at]
            for kind, tag in (stored.groups[at],)
        ),
        isolated=documents - len(joined),
        reached=len(reached),
    )
