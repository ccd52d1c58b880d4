"""Which candidates go into a context: by rank as long as they fit, or by a knapsack.

The 0/1 knapsack with choices: of each class of options at most one, the highest value that fits.

Exact: states (weight, value) that no other state dominates, class by class, without those that cannot beat
the best solution found greedily: G. Nemhauser and Z. Ullmann, "Discrete dynamic programming and capital
allocation", Management Science 15, 1969; bounds as in S. Martello and P. Toth, "Knapsack Problems", 1990,
chapter 2. Beyond a stated number of classes: greedy by value for weight, with an upper bound from the linear
relaxation (G. Dantzig, "Discrete-variable extremum problems", Operations Research 5, 1957).

Which candidates go into a context: by rank as long as they fit, or by a knapsack where that gains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.context.order import number_components

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
EXACT_CLASSES: Final = 200
"""Maximum number of classes for an exact packing."""
_SLACK: Final = 1e-12
"""Relative error that sums of values may have."""


@dataclass(frozen=True, slots=True)
class Option:
    """One way to take something of a class.

    Args:
        weight: In tokens, at least 0.
        value: Only options with a value above 0 are taken.
    """

    weight: int
    value: float


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


@dataclass(frozen=True, slots=True)
class _Relaxation:
    """The linear relaxation: what each class gains option by option, in the order of value for weight.

    A class takes part with the upper hull of its options, so that its steps have falling ratios.
    """

    owner: Ints
    option: Ints
    weight: Ints
    value: Doubles

    def bound(self, among: npt.NDArray[np.bool_] | slice, capacities: Ints) -> Doubles:
        """Return the maximum value that the classes ``among`` add, for each capacity."""
        weight = np.concatenate(([0], np.cumsum(self.weight[among])))
        value = np.concatenate(([0.0], np.cumsum(self.value[among])))
        # A step without weight makes two equal abscissae; the last of them counts.
        last = np.concatenate((weight[1:] != weight[:-1], [True]))
        return np.interp(capacities, weight[last], value[last])


def pack(classes: Sequence[Sequence[Option]], capacity: int, exact_classes: int = EXACT_CLASSES) -> Packing:
    """Choose at most one option of each class so that weights fit and the sum of values is highest.

    Of packings with equal values the result is the same on every run.

    Args:
        classes: The options of each class.
        capacity: The sum of weights may not exceed this.
        exact_classes: With more classes than this that have an option that fits, the packing is greedy.
    """
    steps = _relax(classes, capacity)
    if not len(steps.owner):
        return Packing(chosen=(None,) * len(classes), value=0.0, bound=0.0, exact=True)
    greedy = _pack_greedily(classes, steps, capacity)
    upper = float(steps.bound(slice(None), np.array([capacity]))[0])
    if len(np.unique(steps.owner)) > exact_classes:
        value = _sum_values(classes, greedy)
        return Packing(chosen=tuple(greedy), value=value, bound=max(upper, value), exact=False)
    chosen = _pack_exactly(classes, steps, capacity, _sum_values(classes, greedy)) or greedy
    value = _sum_values(classes, chosen)
    return Packing(chosen=tuple(chosen), value=value, bound=value, exact=True)


def _relax(classes: Sequence[Sequence[Option]], capacity: int) -> _Relaxation:
    rows = [
        (owner, *step)
        for owner, options in enumerate(classes)
        for step in _find_hull([(at, one) for at, one in enumerate(options) if one.weight <= capacity])
    ]
    owner, option, weight = (np.array([row[column] for row in rows], dtype=np.int64) for column in (0, 1, 2))
    value = np.array([row[3] for row in rows], dtype=np.float64)
    with np.errstate(divide="ignore"):
        ratio = np.where(weight > 0, value / np.maximum(weight, 1), np.inf)
    order = np.lexsort((owner, -ratio))
    return _Relaxation(owner[order], option[order], weight[order], value[order])


def _find_hull(options: Sequence[tuple[int, Option]]) -> list[tuple[int, int, float]]:
    """Return the steps (option, added weight, added value) on the upper hull of a class, from taking none."""
    hull: list[tuple[int, int, float]] = [(-1, 0, 0.0)]
    for at, one in sorted(options, key=lambda pair: (pair[1].weight, -pair[1].value, pair[0])):
        if one.value <= hull[-1][2]:
            continue
        while len(hull) > 1 and _is_below(hull[-2], hull[-1], one):
            hull.pop()
        if hull[-1][1] == one.weight and len(hull) > 1:
            hull.pop()
        hull.append((at, one.weight, one.value))
    return [(at, weight - before[1], value - before[2]) for before, (at, weight, value) in pairwise(hull)]


def _is_below(first: tuple[int, int, float], middle: tuple[int, int, float], last: Option) -> bool:
    """Say whether the middle point lies on or below the line from the first to the last."""
    return (middle[2] - first[2]) * (last.weight - first[1]) <= (last.value - first[2]) * (
        middle[1] - first[1]
    )


def _pack_greedily(
    classes: Sequence[Sequence[Option]], steps: _Relaxation, capacity: int
) -> list[int | None]:
    """Return the better packing: steps by value for weight as long as they fit, or the best option alone."""
    chosen: list[int | None] = [None] * len(classes)
    free = capacity
    for owner, option in zip(steps.owner.tolist(), steps.option.tolist(), strict=True):
        held = chosen[owner]
        added = classes[owner][option].weight - (0 if held is None else classes[owner][held].weight)
        gained = classes[owner][option].value - (0.0 if held is None else classes[owner][held].value)
        if added <= free and gained > 0:
            chosen[owner] = option
            free -= added
    fitting = [
        (option.value, -owner, -at)
        for owner, options in enumerate(classes)
        for at, option in enumerate(options)
        if option.weight <= capacity
    ]
    value, owner, at = max(fitting)
    if value > _sum_values(classes, chosen):
        chosen = [None] * len(classes)
        chosen[-owner] = -at
    return chosen


def _sum_values(classes: Sequence[Sequence[Option]], chosen: Sequence[int | None]) -> float:
    return float(
        sum(options[at].value for options, at in zip(classes, chosen, strict=True) if at is not None)
    )


def _pack_exactly(
    classes: Sequence[Sequence[Option]], steps: _Relaxation, capacity: int, least: float
) -> list[int | None] | None:
    """Return the best packing, or None if none is better than one with the value ``least``."""
    weight, value = np.zeros(1, dtype=np.int64), np.zeros(1)
    trace: list[tuple[int, Ints, Ints]] = []
    remaining = np.ones(len(steps.owner), dtype=np.bool_)
    _, first = np.unique(steps.owner, return_index=True)
    for owner in steps.owner[np.sort(first)].tolist():
        remaining &= steps.owner != owner
        options = [(at, one) for at, one in enumerate(classes[owner]) if one.value > 0]
        parents = np.tile(np.arange(len(weight)), len(options) + 1)
        taken = np.repeat([-1, *(at for at, _ in options)], len(weight))
        weights = np.concatenate([weight, *(weight + one.weight for _, one in options)])
        values = np.concatenate([value, *(value + one.value for _, one in options)])
        fits = np.flatnonzero(weights <= capacity)
        hopeful = values[fits] + steps.bound(remaining, capacity - weights[fits]) >= least * (1 - _SLACK)
        kept = _drop_dominated(weights, values, fits[hopeful])
        weight, value = weights[kept], values[kept]
        trace.append((owner, parents[kept], taken[kept]))
    if not len(value) or value[-1] <= least:
        return None
    return _trace_options(trace, int(np.argmax(value)), len(classes))


def _drop_dominated(weights: Ints, values: Doubles, rows: Ints) -> Ints:
    """Return the rows, by weight, that no other row of at most their weight equals in value."""
    rows = rows[np.lexsort((-values[rows], weights[rows]))]
    best = np.maximum.accumulate(values[rows]) if len(rows) else values[rows]
    better = np.ones(len(rows), dtype=np.bool_)
    better[1:] = values[rows][1:] > best[:-1]
    return rows[better]


def _trace_options(trace: Sequence[tuple[int, Ints, Ints]], state: int, classes: int) -> list[int | None]:
    """Return the options on the way to a state."""
    chosen: list[int | None] = [None] * classes
    for owner, parents, taken in reversed(trace):
        if taken[state] >= 0:
            chosen[owner] = int(taken[state])
        state = int(parents[state])
    return chosen


MOST_ENUMERATED: Final = 8
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
class SelectionRules:
    """The conditions for preferring a knapsack to filling by rank.

    Args:
        least_gain: Minimum gain in value for which the knapsack is preferred.
        rank_bonus: Bonus in the knapsack, as a share, of documents that filling by rank takes.
        exact_classes: Maximum number of candidates for an exact solution.
    """

    least_gain: float = 0.0
    rank_bonus: float = 0.0
    exact_classes: int = EXACT_CLASSES


def select_candidates(candidates: Sequence[Candidate], capacity: int, rules: SelectionRules) -> Selection:
    """Select candidates whose costs fit into the capacity, each with all that it requires.

    Args:
        candidates: Best ranked first; all that any of them requires is among them.
        capacity: In tokens.
        rules: When a knapsack is preferred to filling by rank.
    """
    by_id = {one.id: one for one in candidates}
    filled = _fill_by_rank(candidates, by_id, capacity)
    worth = _sum_worth(filled, by_id)
    raised = {
        name: replace(one, value=one.value * (1 + rules.rank_bonus)) if name in filled else one
        for name, one in by_id.items()
    }
    choices = [_make_options(component, raised) for component in _find_components(list(raised.values()))]
    packing = pack([options for options, _, _ in choices], capacity, rules.exact_classes)
    taken = _list_members(packing, [members for _, members, _ in choices])
    value = _sum_worth(taken, by_id)
    if value <= worth or value < worth + rules.least_gain:
        return Selection(ids=filled, value=worth, by="rank")
    exact = packing.exact and all(whole for _, _, whole in choices)
    return Selection(ids=taken, value=value, by="exact" if exact else "greedy", gap=packing.gap)


def _sum_worth(names: Iterable[str], by_id: Mapping[str, Candidate]) -> float:
    return sum(by_id[name].value for name in sorted(names))


def _fill_by_rank(
    candidates: Sequence[Candidate], by_id: Mapping[str, Candidate], capacity: int
) -> frozenset[str]:
    """Take candidates by rank, skipping what does not fit and what is worth nothing."""
    taken: set[str] = set()
    for one in candidates:
        fresh = {one.id, *one.requires} - taken
        cost = sum(by_id[name].cost for name in fresh)
        if one.value > 0 and cost <= capacity:
            taken |= fresh
            capacity -= cost
    return frozenset(taken)


def _list_members(packing: Packing, members: Sequence[Sequence[frozenset[str]]]) -> frozenset[str]:
    chosen = (own[at] for own, at in zip(members, packing.chosen, strict=True) if at is not None)
    return frozenset(chain.from_iterable(chosen))


def _find_components(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
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


def _make_options(
    component: Sequence[Candidate], by_id: Mapping[str, Candidate]
) -> tuple[list[Option], list[frozenset[str]], bool]:
    """Return a component's whole combinations, none of them dominated, and whether all were tried."""
    if len(component) == 1:
        only = component[0]
        return [Option(only.cost, only.value)], [frozenset((only.id,))], True
    needs = {one.id: sorted(one.requires) for one in component}
    number = number_components([one.id for one in component], needs)
    wholes = {number[one.id]: frozenset((one.id, *one.requires)) for one in component}
    every = len(wholes) <= MOST_ENUMERATED
    combined = _unite_all(list(wholes.values())) if every else _unite_greedily(list(wholes.values()), by_id)
    weighed = [(_weigh(names, by_id), names) for names in sorted(combined, key=sorted)]
    kept: list[tuple[Option, frozenset[str]]] = []
    for option, names in sorted(weighed, key=lambda pair: (pair[0].weight, -pair[0].value)):
        if option.value > (kept[-1][0].value if kept else 0.0):
            kept.append((option, names))
    return [option for option, _ in kept], [names for _, names in kept], every


def _weigh(names: Iterable[str], by_id: Mapping[str, Candidate]) -> Option:
    ordered = sorted(names)
    return Option(sum(by_id[name].cost for name in ordered), sum(by_id[name].value for name in ordered))


def _unite_all(wholes: Sequence[frozenset[str]]) -> Collection[frozenset[str]]:
    return {
        frozenset().union(*some) for size in range(1, len(wholes) + 1) for some in combinations(wholes, size)
    }


def _unite_greedily(
    wholes: Sequence[frozenset[str]], by_id: Mapping[str, Candidate]
) -> Collection[frozenset[str]]:
    """Return each whole alone, and unions that add one at a time, the highest value for weight first."""

    def ratio(names: frozenset[str]) -> tuple[float, list[str]]:
        option = _weigh(names, by_id)
        return -option.value / (option.weight or 1), sorted(names)

    joined: frozenset[str] = frozenset()
    found = set(wholes)
    for names in sorted(wholes, key=ratio):
        joined |= names
        found.add(joined)
    return found
