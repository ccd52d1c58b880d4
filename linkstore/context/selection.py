"""Which candidates go into a context: by rank as long as they fit, or by a knapsack where that gains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import Final

from linkstore.context.knapsack import EXACT_CLASSES, Option, Packing, pack
from linkstore.context.order import condensed

ENUMERATED: Final = 8
"""Maximum number of documents that require each other of which all combinations are tried."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The conditions for preferring a knapsack to filling by rank.

    Args:
        least_gain: Minimum gain in value for which the knapsack is preferred.
        rank_bonus: Bonus in the knapsack, as a share, of documents that filling by rank takes.
        exact_classes: Maximum number of candidates for an exact solution.
    """

    least_gain: float = 0.0
    rank_bonus: float = 0.0
    exact_classes: int = EXACT_CLASSES


def selected(candidates: Sequence[Candidate], capacity: int, rules: Rules) -> Selection:
    """Select candidates whose costs fit into the capacity, each with all that it requires.

    Args:
        candidates: Best ranked first; all that any of them requires is among them.
        capacity: In tokens.
        rules: When a knapsack is preferred to filling by rank.
    """
    by_id = {one.id: one for one in candidates}
    filled = _filled(candidates, by_id, capacity)
    worth = _worth(filled, by_id)
    raised = {
        name: replace(one, value=one.value * (1 + rules.rank_bonus)) if name in filled else one
        for name, one in by_id.items()
    }
    choices = [_options(component, raised) for component in _components(list(raised.values()))]
    packing = pack([options for options, _, _ in choices], capacity, rules.exact_classes)
    taken = _members(packing, [members for _, members, _ in choices])
    value = _worth(taken, by_id)
    if value <= worth or value < worth + rules.least_gain:
        return Selection(ids=filled, value=worth, by="rank")
    exact = packing.exact and all(whole for _, _, whole in choices)
    return Selection(ids=taken, value=value, by="exact" if exact else "greedy", gap=packing.gap)


def _worth(names: Iterable[str], by_id: Mapping[str, Candidate]) -> float:
    return sum(by_id[name].value for name in sorted(names))


def _filled(candidates: Sequence[Candidate], by_id: Mapping[str, Candidate], capacity: int) -> frozenset[str]:
    """Take candidates by rank, skipping what does not fit and what is worth nothing."""
    taken: set[str] = set()
    for one in candidates:
        fresh = {one.id, *one.requires} - taken
        cost = sum(by_id[name].cost for name in fresh)
        if one.value > 0 and cost <= capacity:
            taken |= fresh
            capacity -= cost
    return frozenset(taken)


def _members(packing: Packing, members: Sequence[Sequence[frozenset[str]]]) -> frozenset[str]:
    chosen = (own[at] for own, at in zip(members, packing.chosen, strict=True) if at is not None)
    return frozenset(chain.from_iterable(chosen))


def _components(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return the groups of candidates that requirements join, best ranked first."""
    leader: dict[str, str] = {one.id: one.id for one in candidates}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for one in candidates:
        for other in one.requires:
            leader[find(other)] = find(one.id)
    found: dict[str, list[Candidate]] = {}
    for one in candidates:
        found.setdefault(find(one.id), []).append(one)
    return list(found.values())


def _options(
    component: Sequence[Candidate], by_id: Mapping[str, Candidate]
) -> tuple[list[Option], list[frozenset[str]], bool]:
    """Return a component's whole combinations, none of them dominated, and whether all were tried."""
    if len(component) == 1:
        only = component[0]
        return [Option(only.cost, only.value)], [frozenset((only.id,))], True
    needs = {one.id: sorted(one.requires) for one in component}
    number = condensed([one.id for one in component], needs)
    wholes = {number[one.id]: frozenset((one.id, *one.requires)) for one in component}
    every = len(wholes) <= ENUMERATED
    combined = _unions(list(wholes.values())) if every else _some_unions(list(wholes.values()), by_id)
    weighed = [(_weighed(names, by_id), names) for names in sorted(combined, key=sorted)]
    kept: list[tuple[Option, frozenset[str]]] = []
    for option, names in sorted(weighed, key=lambda pair: (pair[0].weight, -pair[0].value)):
        if option.value > (kept[-1][0].value if kept else 0.0):
            kept.append((option, names))
    return [option for option, _ in kept], [names for _, names in kept], every


def _weighed(names: Iterable[str], by_id: Mapping[str, Candidate]) -> Option:
    ordered = sorted(names)
    return Option(sum(by_id[name].cost for name in ordered), sum(by_id[name].value for name in ordered))


def _unions(wholes: Sequence[frozenset[str]]) -> Collection[frozenset[str]]:
    return {
        frozenset().union(*some) for size in range(1, len(wholes) + 1) for some in combinations(wholes, size)
    }


def _some_unions(
    wholes: Sequence[frozenset[str]], by_id: Mapping[str, Candidate]
) -> Collection[frozenset[str]]:
    """Return each whole alone, and unions that add one at a time, the highest value for weight first."""

    def ratio(names: frozenset[str]) -> tuple[float, list[str]]:
        option = _weighed(names, by_id)
        return -option.value / (option.weight or 1), sorted(names)

    joined: frozenset[str] = frozenset()
    found = set(wholes)
    for names in sorted(wholes, key=ratio):
        joined |= names
        found.add(joined)
    return found
