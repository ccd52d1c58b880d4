"""Listing the namespaces of a LangGraph store."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langgraph.store.base import ListNamespacesOp, MatchCondition

from linkstore.arguments import require_at_least
from linkstore.errors import FilterError
from linkstore.memory.graphstore.places import Namespace

WILDCARD = "*"
"""Stands for any one label."""


def prefix_of(op: ListNamespacesOp) -> Namespace:
    """Labels that all namespaces asked for begin with."""
    for condition in op.match_conditions or ():
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            return path[: path.index(WILDCARD)] if WILDCARD in path else path
    return ()


def listed(op: ListNamespacesOp, namespaces: Collection[Namespace]) -> list[Namespace]:
    """Those of the namespaces that are asked for, sorted.

    Raises:
        FilterError: If a condition is of another type than prefix or suffix.
        StrategyError: If ``max_depth`` is below 1.
    """
    if op.max_depth is not None:
        require_at_least(1, max_depth=op.max_depth)
    conditions = op.match_conditions or ()
    found = (one for one in namespaces if all(_matches(condition, one) for condition in conditions))
    shown = sorted({one if op.max_depth is None else one[: op.max_depth] for one in found})
    return shown[op.offset : op.offset + op.limit]


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise FilterError(f"match_type must be 'prefix' or 'suffix', not {condition.match_type!r}")
    if len(path) > len(namespace):
        return False
    labels: Sequence[str] = namespace[: len(path)]
    if condition.match_type == "suffix":
        labels = namespace[len(namespace) - len(path) :]
    return all(wanted in (WILDCARD, label) for wanted, label in zip(path, labels, strict=True))
