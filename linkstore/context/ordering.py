"""The order in which documents are read.

A document is read after those that it builds on; which end of a link comes first depends on its kind. The one
ranked best goes first, right after what it builds on; what continues a text comes right after it. Links that
run in a circle order nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeGuard, TypeVar, get_args

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
    "caused": "source",
    "results_in": "source",
    "resulted_in": "source",
    "leads_to": "source",
    "led_to": "source",
    "precedes": "source",
    "next": "source",
    "next_turn": "source",
}
"""The end that is read first, by kind of link: a term is defined where its links lead to, a cause or an
earlier turn lies where they leave. Of other kinds, but for :data:`.TOPIC_KINDS`, the target is read first."""

T = TypeVar("T", bound=Hashable)


def find_first(kind: str, precedence: Mapping[str, First]) -> First | None:
    """Return the end of a link of this kind that is read first, also where the kind is written ``CAUSES``."""
    return precedence.get(kind) or precedence.get(kind.lower().replace(" ", "_").replace("-", "_"))


def order_topologically(
    nodes: Sequence[T], before: Mapping[T, Collection[T]], follows: Mapping[T, T] | None = None
) -> list[T]:
    """Order nodes topologically, except for nodes on one cycle.

    Args:
        nodes: Best first.
        before: For each node those that must come before it; others than ``nodes`` are ignored.
        follows: For each node the one that it continues; only a preference.
    """
    rank = {node: at for at, node in enumerate(nodes)}
    needs = {node: sorted(rank.keys() & before.get(node, ()), key=rank.__getitem__) for node in nodes}
    cycles = find_cycles(needs)
    cycle = {node: at for at, own in enumerate(cycles) for node in own}
    starts = {node: start for node, start in (follows or {}).items() if node in cycle and start in cycle}
    continued = {starts[node]: node for node in reversed(nodes) if node in starts}
    ordered: dict[T, None] = {}

    def may_come(node: T | None) -> TypeGuard[T]:
        return (
            node is not None
            and node not in ordered
            and all(other in ordered or cycle[other] == cycle[node] for other in needs[node])
        )

    for node in (member for own in cycles for member in sorted(own, key=rank.__getitem__)):
        first, seen = node, {node}
        while may_come(start := starts.get(first)) and start not in seen:
            first = start
            seen.add(start)
        for begin in (first, node):
            following: T | None = begin
            while may_come(following):
                ordered[following] = None
                following = continued.get(following)
    return list(ordered)


def find_cycles(needs: Mapping[T, Sequence[T]]) -> list[list[T]]:
    """Return the nodes by strongly connected component, after the components that they need.

    By two walks, as S. R. Kosaraju did: A. V. Aho, J. E. Hopcroft and J. D. Ullman, "Data Structures and
    Algorithms", 1983, section 6.7.
    """
    needed_by: dict[T, list[T]] = {node: [] for node in needs}
    for node, others in needs.items():
        for other in others:
            needed_by[other].append(node)
    seen: set[T] = set()
    finished = [node for root in needs for node in _walk(root, needs, seen)]
    seen = set()
    components = [list(_walk(root, needed_by, seen)) for root in reversed(finished)]
    return [component for component in reversed(components) if component]


def _walk(root: T, edges: Mapping[T, Sequence[T]], seen: set[T]) -> Iterator[T]:
    """Yield the unseen nodes reachable from a node, each after its successors."""
    path = [] if root in seen else [(root, iter(edges[root]))]
    seen.add(root)
    while path:
        node, others = path[-1]
        fresh = next((other for other in others if other not in seen), None)
        if fresh is None:
            path.pop()
            yield node
        else:
            seen.add(fresh)
            path.append((fresh, iter(edges[fresh])))


def put_best_at_edges(nodes: Sequence[T]) -> list[T]:
    """Put the best first, the second best last, the third second, and so on: the worst in the middle.

    N. Liu et al., "Lost in the Middle: How Language Models Use Long Contexts", TACL 2024.

    Args:
        nodes: Best first.
    """
    return [*nodes[::2], *reversed(nodes[1::2])]
