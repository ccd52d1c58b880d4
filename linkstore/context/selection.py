"""Which candidates go into a context, and in which order they are read.

They are taken by rank as long as they fit, or by a knapsack where that gains: the 0/1 knapsack with choices,
of each class of options at most one. Up to a stated number of classes it is exact, by dynamic programming
over all capacities (S. Martello and P. Toth, "Knapsack Problems", 1990, chapter 2); beyond, greedy by value
for weight, with an upper bound from the linear relaxation (G. Dantzig, "Discrete-variable extremum problems",
Operations Research 5, 1957).

A document is read after those that it builds on; which end of a link comes first depends on its kind.
Documents whose links run in a circle are taken as one; among those that may come next, the one that continues
the text before goes first, then the one worth most.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import accumulate, combinations
from typing import Final, Literal, NamedTuple, TypeVar, get_args

import numpy as np

from linkstore.context.value import Value

EXACT_CLASSES: Final = 200
"""Maximum number of classes for an exact packing."""
_MOST_CELLS: Final = 40_000_000
"""Maximum number of classes times tokens for an exact packing, which needs four bytes for each."""
MOST_ENUMERATED: Final = 8
"""Maximum number of documents that require each other of which all combinations are tried."""
First = Literal["source", "target"]
"""Which end of a link is read first: the document it leaves, or the one it leads to."""
Order = Literal["precedence", "relevance", "document", "edges"]
ORDERS: Final[tuple[str, ...]] = get_args(Order)
PRECEDENCE: Final[Mapping[str, First]] = {
    "hyperlink": "target",
    "mention": "target",
    "citation": "target",
    "requires": "target",
    "causes": "source",
    "next": "source",
    "next_turn": "source",
}
"""The end that is read first, by kind of link: a term is defined where its links lead to, a cause or an
earlier turn lies where they leave. Links of other kinds decide nothing."""

T = TypeVar("T", bound=Hashable)


class Option(NamedTuple):
    """One way to take something of a class: its weight in tokens, at least 0, and its value."""

    weight: int
    value: float

    @property
    def ratio(self) -> float:
        """The value for weight."""
        return self.value / self.weight if self.weight else math.inf


_Choices = Sequence[Sequence[tuple[int, Option]]]
"""The options of each class that fit and are worth something, with their positions in the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The result of a packing.

    Args:
        chosen: For each class, the position of the option taken; None if none is.
        value: The sum of values.
        bound: No packing has a higher value; equal to ``value`` if ``exact``.
        exact: Whether the packing is known to be the best.
    """

    chosen: tuple[int | None, ...]
    value: float
    bound: float
    exact: bool

    @property
    def gap(self) -> float:
        """How far the value may lie below the best, as a share of the upper bound, 0 if exact."""
        return 0.0 if self.exact or self.bound <= 0 else max(0.0, 1 - self.value / self.bound)


def pack(classes: Sequence[Sequence[Option]], capacity: int, exact_classes: int = EXACT_CLASSES) -> Packing:
    """Choose at most one option of each class so that weights fit and the sum of values is highest.

    Of packings with equal values the result is the same on every run.

    Args:
        classes: The options of each class.
        capacity: The sum of weights may not exceed this.
        exact_classes: With more classes than this that have an option that fits, the packing is greedy, and
            so it is where the table of classes and tokens would be too large.
    """
    choices = [
        [(at, one) for at, one in enumerate(options) if one.value > 0 and one.weight <= capacity]
        for options in classes
    ]
    count = sum(map(bool, choices))
    room = max(0, min(capacity, sum(max((one.weight for _, one in own), default=0) for own in choices)))
    exact = count <= exact_classes and count * room <= _MOST_CELLS
    chosen = _pack_exactly(choices, room) if exact else _pack_greedily(choices, room)
    value = float(sum(own[at].value for own, at in zip(classes, chosen, strict=True) if at is not None))
    bound = value if exact else max(value, _find_bound(choices, room))
    return Packing(chosen=tuple(chosen), value=value, bound=bound, exact=exact)


def _pack_exactly(choices: _Choices, room: int) -> list[int | None]:
    """Return the position of the option taken of each class, by the best value of each number of tokens."""
    best = np.zeros(room + 1)
    taken = np.full((len(choices), room + 1), -1, dtype=np.int32)
    for own, row in zip(choices, taken, strict=True):
        before = best.copy()
        for number, (_, one) in enumerate(own):
            value = before[: room + 1 - one.weight] + one.value
            np.copyto(row[one.weight :], number, where=value > best[one.weight :])
            np.maximum(best[one.weight :], value, out=best[one.weight :])
    chosen: list[int | None] = []
    for own, row in zip(reversed(choices), taken[::-1], strict=True):
        at, option = own[row[room]] if row[room] >= 0 else (None, Option(0, 0.0))
        room -= option.weight
        chosen.append(at)
    return chosen[::-1]


def _pack_greedily(choices: _Choices, room: int) -> list[int | None]:
    """Return the better packing: options by value for weight as long as they fit, or the best one alone."""
    options = [(owner, at, one) for owner, own in enumerate(choices) for at, one in own]
    held: dict[int, tuple[int, Option]] = {}
    for owner, at, one in sorted(options, key=lambda entry: -entry[2].ratio):
        _, before = held.get(owner, (-1, Option(0, 0.0)))
        if one.value > before.value and one.weight - before.weight <= room:
            held[owner] = at, one
            room -= one.weight - before.weight
    owner, at, best = max(options, key=lambda entry: entry[2].value)
    if best.value > sum(one.value for _, one in held.values()):
        held = {owner: (at, best)}
    return [held[owner][0] if owner in held else None for owner in range(len(choices))]


def _find_bound(choices: _Choices, room: int) -> float:
    """Return a value that no packing exceeds: that of taking a part of the last class that does not fit."""
    densest = [(max(one.ratio for _, one in own), max(one.value for _, one in own)) for own in choices if own]
    densest.sort(key=lambda pair: -pair[0])
    weights = np.cumsum([0.0, *(value / ratio for ratio, value in densest)])
    values = np.cumsum([0.0, *(value for _, value in densest)])
    return float(np.interp(room, weights, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A document that may be taken.

    Args:
        id: Its id.
        cost: In tokens, with header and separator.
        value: See :class:`~linkstore.context.value.Value`.
        requires: The ids of all documents that must be taken with it.
    """

    id: str
    cost: int
    value: float
    requires: frozenset[str] = frozenset()

    @property
    def whole(self) -> frozenset[str]:
        """The ids of the document and of all that it requires."""
        return self.requires | {self.id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The result of a selection.

    Args:
        ids: The documents taken.
        value: The sum of their values.
        by: ``"rank"``, ``"exact"`` or ``"greedy"``.
        gap: How far a greedy selection may lie below the best, as a share of the best; 0 for others.
    """

    ids: frozenset[str]
    value: float
    by: str
    gap: float = 0.0


def select_candidates(
    candidates: Sequence[Candidate], capacity: int, value: Value, exact_classes: int
) -> Selection:
    """Select candidates whose costs fit into the capacity, each with all that it requires.

    Args:
        candidates: Best ranked first; all that any of them requires is among them.
        capacity: In tokens.
        value: Tells when a knapsack is preferred to filling by rank.
        exact_classes: Maximum number of candidates for an exact knapsack.
    """
    by_id = {one.id: one for one in candidates}
    filled = _fill_by_rank(candidates, by_id, capacity)
    worth = _weigh(filled, by_id).value
    raised = {
        name: replace(one, value=one.value * (1 + value.rank_bonus)) if name in filled else one
        for name, one in by_id.items()
    }
    choices = [_list_unions(component, raised) for component in _find_components(candidates)]
    classes = [[_weigh(names, raised) for names in unions] for unions, _ in choices]
    packing = pack(classes, capacity, exact_classes)
    chosen = zip(choices, packing.chosen, strict=True)
    taken = frozenset[str]().union(*(unions[at] for (unions, _), at in chosen if at is not None))
    gained = _weigh(taken, by_id).value
    if gained <= worth or gained < worth + value.least_gain:
        return Selection(ids=filled, value=worth, by="rank")
    exact = packing.exact and all(every for _, every in choices)
    return Selection(ids=taken, value=gained, by="exact" if exact else "greedy", gap=packing.gap)


def _fill_by_rank(
    candidates: Sequence[Candidate], by_id: Mapping[str, Candidate], capacity: int
) -> frozenset[str]:
    """Take candidates by rank, skipping what does not fit and what is worth nothing."""
    taken: set[str] = set()
    for one in candidates:
        fresh = one.whole - taken
        cost = sum(by_id[name].cost for name in fresh)
        if one.value > 0 and cost <= capacity:
            taken |= fresh
            capacity -= cost
    return frozenset(taken)


def _find_components(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the groups of candidates that requirements join, best ranked first."""
    group = {one.id: [one] for one in candidates}
    for one in candidates:
        for other in one.requires:
            if group[other] is not group[one.id]:
                joined = group[one.id]
                joined += group[other]
                group |= {member.id: joined for member in group[other]}
    return list({id(own): own for own in group.values()}.values())


def _list_unions(
    component: Sequence[Candidate], by_id: Mapping[str, Candidate]
) -> tuple[list[frozenset[str]], bool]:
    """Return what may be taken of a component, none dominated by another, and whether all was tried.

    Beyond a stated number of documents that is each with what it requires, and these joined one at a time,
    the highest value for weight first.
    """
    wholes = sorted(
        {one.whole for one in component}, key=lambda names: (-_weigh(names, by_id).ratio, sorted(names))
    )
    every = len(wholes) <= MOST_ENUMERATED
    some: Iterable[frozenset[str]] = {*wholes, *accumulate(wholes, lambda joined, names: joined | names)}
    if every:
        sizes = range(1, len(wholes) + 1)
        some = {frozenset[str]().union(*own) for size in sizes for own in combinations(wholes, size)}
    kept: list[frozenset[str]] = []
    most = 0.0
    for option, names in sorted(
        ((_weigh(names, by_id), names) for names in sorted(some, key=sorted)),
        key=lambda pair: (pair[0].weight, -pair[0].value),
    ):
        if option.value > most:
            kept.append(names)
            most = option.value
    return kept, every


def _weigh(names: Iterable[str], by_id: Mapping[str, Candidate]) -> Option:
    """Return the cost and the value of documents together."""
    ordered = sorted(names)
    return Option(sum(by_id[name].cost for name in ordered), sum(by_id[name].value for name in ordered))


def order_topologically(
    nodes: Sequence[T], before: Mapping[T, frozenset[T]], follows: Mapping[T, T] | None = None
) -> list[T]:
    """Order nodes so that what is before comes before, but for nodes on one cycle.

    Args:
        nodes: The more a node is worth, the earlier it stands here.
        before: For each node those that must come before it; others than ``nodes`` are ignored.
        follows: For each node the one that it continues; only a preference.
    """
    among = set(nodes)
    needs = {node: [other for other in before.get(node, ()) if other in among] for node in nodes}
    leader = find_leaders(nodes, needs)
    groups: dict[T, list[T]] = {}
    for node in nodes:
        groups.setdefault(leader[node], []).append(node)
    members = list(groups.values())
    place = {node: at for at, own in enumerate(members) for node in own}
    sorter = TopologicalSorter(
        {at: {place[one] for node in own for one in needs[node]} - {at} for at, own in enumerate(members)}
    )
    sorter.prepare()
    known = {node: start for node, start in (follows or {}).items() if node in among and start in among}
    continues = {place[node]: place[start] for node, start in known.items()}
    continued = {start: at for at, start in continues.items()}
    ready: set[int] = set()
    heap: list[int] = []
    ordered: list[T] = []
    at = -1
    while sorter.is_active():
        for fresh in sorter.get_ready():
            ready.add(fresh)
            heapq.heappush(heap, fresh)
        at = continued.get(at, -1)  # what continues the last, else the first, or what that continues
        if at not in ready:
            while heap[0] not in ready:
                heapq.heappop(heap)
            at, seen = heap[0], {heap[0]}
            while (start := continues.get(at)) in ready and start not in seen:
                at = start
                seen.add(at)
        ready.discard(at)
        ordered += _chain_nodes(members[at], known)
        sorter.done(at)
    return ordered


def _chain_nodes(nodes: Sequence[T], follows: Mapping[T, T]) -> list[T]:
    """Order nodes by worth, except those that continue another, which come right after it."""
    after: dict[T, list[T]] = {node: [] for node in nodes}
    starts: list[T] = []
    for node in nodes:
        (after.get(follows[node], starts) if node in follows else starts).append(node)
    ordered: dict[T, None] = {}
    for start in (*starts, *nodes):
        stack = [start]
        while stack:
            node = stack.pop()
            if node not in ordered:
                ordered[node] = None
                stack += reversed(after[node])
    return list(ordered)


def find_leaders(nodes: Iterable[T], needs: Mapping[T, Iterable[T]]) -> dict[T, T]:
    """Return for each node one that stands for its strongly connected component.

    S. R. Kosaraju's two searches: the second, along reversed needs, begins where the first ended last.
    """
    ended: dict[T, None] = {}
    seen: set[T] = set()
    users: dict[T, list[T]] = {}
    for root in nodes:
        stack = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                ended[node] = None
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                for other in needs.get(node, ()):
                    users.setdefault(other, []).append(node)
                    stack.append((other, False))
    leader: dict[T, T] = {}
    for root in reversed(ended):
        rest = [root]
        while rest:
            node = rest.pop()
            if node not in leader:
                leader[node] = root
                rest += users.get(node, ())
    return leader


def put_best_at_edges(nodes: Sequence[T]) -> list[T]:
    """Put the best first, the second best last, the third second, and so on: the worst in the middle.

    N. Liu et al., "Lost in the Middle: How Language Models Use Long Contexts", TACL 2024.

    Args:
        nodes: Best first.
    """
    return [*nodes[::2], *reversed(nodes[1::2])]
