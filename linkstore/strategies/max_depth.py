"""The ceiling of a store: how many links any search may follow from where it starts."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np

from linkstore.core.arguments import require_at_least
from linkstore.core.arrays import Ints, find_positions
from linkstore.core.calls import observe_plan
from linkstore.core.display import format_count
from linkstore.core.plans import Fetch, Find, Groups, Lexical, Members, Nearest, Plan, Resolve
from linkstore.errors import StrategyError
from linkstore.strategies.base import Strategy

T = TypeVar("T")
QUERY_DEPTH: Final = -1
"""The depth of a link group that the query itself names: its members are starts, at depth 0."""
_NO_DEPTHS: Final[Ints] = np.empty(0, dtype=np.int64)


def check_ceiling(max_depth: int | None) -> int | None:
    """Check the ceiling, and return it.

    Raises:
        StrategyError: If it is not None or an integer of at least 0.
    """
    if max_depth is not None:
        require_at_least(0, max_depth=max_depth)
    return max_depth


def check_depth(strategy: Strategy, max_depth: int | None) -> None:
    """Check the settings of a strategy against the ceiling of a store.

    Raises:
        StrategyError: If the strategy may follow more links. The message names the ceiling.
    """
    if max_depth is not None and strategy.hops > max_depth:
        raise _make_depth_error(str(strategy), strategy.hops, max_depth)


def limit_depth(plan: Plan[T], max_depth: int | None, strategy: str) -> Plan[T]:
    """Limit a plan to the ceiling: it ends with an error where it would follow one link more.

    The settings of linkstore's own strategies are checked before. This limits strategies of others, too.
    """
    if max_depth is None:
        return plan
    depths = _DepthTracker(max_depth, strategy)
    return observe_plan(plan, depths.check, depths.learn)


class _DepthTracker:
    """The distances of documents and link groups from the start of a search, in links.

    Args:
        most: The ceiling.
        strategy: For the message.
    """

    def __init__(self, most: int, strategy: str) -> None:
        self._most = most
        self._strategy = strategy
        self._documents = _NO_DEPTHS, _NO_DEPTHS
        self._groups = _NO_DEPTHS, _NO_DEPTHS

    def check(self, fetch: Fetch) -> None:
        """Raise if the fetch follows one link more than the ceiling allows."""
        if isinstance(fetch, Members) and len(fetch.groups):
            depth = int(_look_up_depths(self._groups, fetch.groups).max()) + 1
            if depth > self._most:
                raise _make_depth_error(self._strategy, depth, self._most)

    def learn(self, fetch: Fetch, answer: Any) -> None:
        """Record the depths of what an answer contains."""
        match fetch:
            case Nearest() | Find() | Lexical():
                self._documents = _add_depths(
                    self._documents, answer.refs, np.zeros(len(answer.refs), np.int64)
                )
            case Resolve():
                named = answer[answer >= 0]
                self._groups = _add_depths(self._groups, named, np.full(len(named), QUERY_DEPTH))
            case Groups():
                depth = _look_up_depths(self._documents, fetch.refs)[answer.document]
                self._groups = _add_depths(self._groups, answer.group, depth)
            case Members():
                depth = _look_up_depths(self._groups, fetch.groups)[answer.group] + 1
                self._documents = _add_depths(self._documents, answer.refs, depth)
            case _:
                pass


def _look_up_depths(known: tuple[Ints, Ints], refs: Ints) -> Ints:
    """Return the (n,) depth of each ref."""
    at = find_positions(refs, known[0])
    depths = np.full(len(refs), QUERY_DEPTH, dtype=np.int64)
    depths[at >= 0] = known[1][at[at >= 0]]
    return depths


def _add_depths(known: tuple[Ints, Ints], refs: Ints, depth: Ints) -> tuple[Ints, Ints]:
    """Add refs with a depth, and return all refs, ascending, each with its least depth."""
    refs, depth = np.concatenate((known[0], refs)), np.concatenate((known[1], depth))
    order = np.lexsort((depth, refs))
    refs, depth = refs[order], depth[order]
    first = np.ones(len(refs), dtype=np.bool_)
    first[1:] = refs[1:] != refs[:-1]
    return refs[first], depth[first]


def _make_depth_error(strategy: str, hops: int, max_depth: int) -> StrategyError:
    return StrategyError(
        f"{strategy} follows up to {format_count(hops, 'link')} in a row, but this store "
        f"has max_depth={max_depth};"
        f" ask for a depth of at most {max_depth}"
    )
