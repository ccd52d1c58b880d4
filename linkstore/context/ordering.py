"""The order in which documents are read.

A document is read after those that it builds on; which end of a link comes first depends on its kind.
Documents whose links run in a circle are taken as one; among those that may come next, the one that continues
the text before goes first, then the one ranked best.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
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
        nodes: Best first.
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
    """Keep the order of nodes, except for those that continue another, which come right after it."""
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
