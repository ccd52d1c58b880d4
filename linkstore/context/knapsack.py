"""The 0/1 knapsack with choices: of each class of options at most one, the highest value that fits.

Exact: states (weight, value) that no other state dominates, class by class, without those that cannot beat
the best solution found greedily: G. Nemhauser and Z. Ullmann, "Discrete dynamic programming and capital
allocation", Management Science 15, 1969; bounds as in S. Martello and P. Toth, "Knapsack Problems", 1990,
chapter 2. Beyond a stated number of classes: greedy by value for weight, with an upper bound from the linear
relaxation (G. Dantzig, "Discrete-variable extremum problems", Operations Research 5, 1957).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

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
class _Steps:
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
    steps = _steps(classes, capacity)
    if not len(steps.owner):
        return Packing(chosen=(None,) * len(classes), value=0.0, bound=0.0, exact=True)
    greedy = _greedy(classes, steps, capacity)
    upper = float(steps.bound(slice(None), np.array([capacity]))[0])
    if len(np.unique(steps.owner)) > exact_classes:
        value = _value(classes, greedy)
        return Packing(chosen=tuple(greedy), value=value, bound=max(upper, value), exact=False)
    chosen = _exact(classes, steps, capacity, _value(classes, greedy)) or greedy
    value = _value(classes, chosen)
    return Packing(chosen=tuple(chosen), value=value, bound=value, exact=True)


def _steps(classes: Sequence[Sequence[Option]], capacity: int) -> _Steps:
    rows = [
        (owner, *step)
        for owner, options in enumerate(classes)
        for step in _hull([(at, one) for at, one in enumerate(options) if one.weight <= capacity])
    ]
    owner, option, weight = (np.array([row[column] for row in rows], dtype=np.int64) for column in (0, 1, 2))
    value = np.array([row[3] for row in rows], dtype=np.float64)
    with np.errstate(divide="ignore"):
        ratio = np.where(weight > 0, value / np.maximum(weight, 1), np.inf)
    order = np.lexsort((owner, -ratio))
    return _Steps(owner[order], option[order], weight[order], value[order])


def _hull(options: Sequence[tuple[int, Option]]) -> list[tuple[int, int, float]]:
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


def _greedy(classes: Sequence[Sequence[Option]], steps: _Steps, capacity: int) -> list[int | None]:
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
    if value > _value(classes, chosen):
        chosen = [None] * len(classes)
        chosen[-owner] = -at
    return chosen


def _value(classes: Sequence[Sequence[Option]], chosen: Sequence[int | None]) -> float:
    return float(
        sum(options[at].value for options, at in zip(classes, chosen, strict=True) if at is not None)
    )


def _exact(
    classes: Sequence[Sequence[Option]], steps: _Steps, capacity: int, least: float
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
        kept = _undominated(weights, values, fits[hopeful])
        weight, value = weights[kept], values[kept]
        trace.append((owner, parents[kept], taken[kept]))
    if not len(value) or value[-1] <= least:
        return None
    return _followed(trace, int(np.argmax(value)), len(classes))


def _undominated(weights: Ints, values: Doubles, rows: Ints) -> Ints:
    """Return the rows, by weight, that no other row of at most their weight equals in value."""
    rows = rows[np.lexsort((-values[rows], weights[rows]))]
    best = np.maximum.accumulate(values[rows]) if len(rows) else values[rows]
    better = np.ones(len(rows), dtype=np.bool_)
    better[1:] = values[rows][1:] > best[:-1]
    return rows[better]


def _followed(trace: Sequence[tuple[int, Ints, Ints]], state: int, classes: int) -> list[int | None]:
    """Return the options on the way to a state."""
    chosen: list[int | None] = [None] * classes
    for owner, parents, taken in reversed(trace):
        if taken[state] >= 0:
            chosen[owner] = int(taken[state])
        state = int(parents[state])
    return chosen
