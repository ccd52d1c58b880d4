"""The order in which a context is read: a document comes after those that it builds on.

Which end of a link comes first depends on its kind. Documents whose links run in a circle are taken as one;
among those that may come next, the one that continues the text before goes first, then the one worth most.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import count
from typing import Final, Literal, TypeVar, get_args

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
    whole = number_components(nodes, needs)
    members: dict[int, list[T]] = {}
    for node in nodes:
        members.setdefault(whole[node], []).append(node)
    sorter: TopologicalSorter[int] = TopologicalSorter(
        {
            number: {whole[one] for node in own for one in needs[node]} - {number}
            for number, own in members.items()
        }
    )
    sorter.prepare()
    place = {number: at for at, number in enumerate(members)}
    known = {node: start for node, start in (follows or {}).items() if node in whole and start in whole}
    ready = _ReadyGroups(place, {whole[node]: whole[start] for node, start in known.items()})
    ordered: list[T] = []
    while sorter.is_active():
        ready.add(sorter.get_ready())
        number = ready.next()
        ordered += _chain_nodes(members[number], known)
        sorter.done(number)
    return ordered


class _ReadyGroups:
    """The groups that may come next.

    Args:
        place: The smaller, the earlier a group comes.
        continues: For each group the one that it continues, if any.
    """

    def __init__(self, place: Mapping[int, int], continues: Mapping[int, int]) -> None:
        self._place = place
        self._continues = continues
        self._continued = {before: number for number, before in continues.items()}
        self._open: set[int] = set()
        self._heap: list[tuple[int, int]] = []
        self._last: int | None = None

    def add(self, numbers: Iterable[int]) -> None:
        """Add groups that nothing has to come before any more."""
        for number in numbers:
            self._open.add(number)
            heapq.heappush(self._heap, (self._place[number], number))

    def next(self) -> int:
        """Take the group that continues the last one, else the first one, or what that continues."""
        number = self._continued.get(-1 if self._last is None else self._last)
        if number not in self._open:
            while self._heap[0][1] not in self._open:
                heapq.heappop(self._heap)
            number = self._heap[0][1]
            seen = {number}
            while (before := self._continues.get(number)) in self._open and before not in seen:
                number = before
                seen.add(number)
        self._open.discard(number)
        self._last = number
        return number


def _chain_nodes(nodes: Sequence[T], follows: Mapping[T, T]) -> list[T]:
    """Order nodes by worth, except those that continue another, which come right after it."""
    among = set(nodes)
    after: dict[T, list[T]] = {}
    for node in nodes:
        if follows.get(node) in among:
            after.setdefault(follows[node], []).append(node)
    ordered: list[T] = []
    seen: set[T] = set()
    starts = [node for node in nodes if follows.get(node) not in among]
    for start in (*starts, *nodes):
        stack = [start]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                ordered.append(node)
                stack += reversed(after.get(node, []))
    return ordered


def number_components(nodes: Sequence[T], needs: Mapping[T, Sequence[T]]) -> dict[T, int]:
    """Assign each node the number of its strongly connected component.

    R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1, 1972; without recursion.
    """
    index: dict[T, int] = {}
    low: dict[T, int] = {}
    component: dict[T, int] = {}
    path: list[T] = []
    numbers = count()
    for root in nodes:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        path.append(root)
        work = [(root, iter(needs.get(root, ())))]
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    work.append((other, iter(needs.get(other, ()))))
                    break
                if other not in component:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    _close_component(node, path, component, next(numbers))
    return component


def _close_component(root: T, path: list[T], component: dict[T, int], number: int) -> None:
    while True:
        node = path.pop()
        component[node] = number
        if node == root:
            return


def put_best_at_edges(nodes: Sequence[T]) -> list[T]:
    """Put the best first, the second best last, the third second, and so on: the worst in the middle.

    N. Liu et al., "Lost in the Middle: How Language Models Use Long Contexts", TACL 2024.

    Args:
        nodes: Best first.
    """
    return [*nodes[::2], *reversed(nodes[1::2])]
