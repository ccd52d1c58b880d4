"""The knapsack against solvers that cannot be wrong."""

import itertools
import random

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from stores import times

from linkstore.context.selection import EXACT_CLASSES, Option, pack


def by_brute_force(classes, capacity):
    """The highest value of all packings."""
    best = 0.0
    for chosen in itertools.product(*[[None, *options] for options in classes]):
        taken = [option for option in chosen if option is not None]
        if sum(option.weight for option in taken) <= capacity:
            best = max(best, sum(option.value for option in taken))
    return best


def by_dynamic_programming(weights, values, capacity):
    """The highest value of a 0/1 knapsack, over all capacities."""
    best = [0] * (capacity + 1)
    for weight, value in zip(weights, values, strict=True):
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


def by_integer_programming(classes, capacity):
    """The highest value of all packings, by the branch and bound of HiGHS."""
    options = [(owner, option) for owner, own in enumerate(classes) for option in own]
    if not options:
        return 0.0
    weights = np.array([[float(option.weight) for _, option in options]])
    owners = np.array([[owner == own for own, _ in options] for owner in range(len(classes))], dtype=float)
    fits = LinearConstraint(np.vstack((weights, owners)), ub=[capacity, *([1.0] * len(classes))])
    values = np.array([-option.value for _, option in options])
    exactly = {"mip_rel_gap": 0.0}
    found = milp(
        values, constraints=fits, bounds=Bounds(0, 1), integrality=np.ones(len(values)), options=exactly
    )
    assert found.status == 0, found.message
    return -found.fun


def weight_of(classes, packing):
    return sum(
        options[at].weight for options, at in zip(classes, packing.chosen, strict=True) if at is not None
    )


def value_of(classes, packing):
    return sum(
        options[at].value for options, at in zip(classes, packing.chosen, strict=True) if at is not None
    )


def some_classes(rng, classes, options, most=12):
    return [
        [
            Option(rng.randint(0, most), rng.choice([rng.random(), float(rng.randint(-1, 5))]))
            for _ in range(rng.randint(1, options))
        ]
        for _ in range(classes)
    ]


def test_1000_small_instances_with_choices_equal_brute_force():
    rng = random.Random(14)
    for _ in range(1000):
        classes, capacity = some_classes(rng, rng.randint(0, 6), 3), rng.randint(0, 30)
        packing = pack(classes, capacity)
        assert packing.exact
        assert weight_of(classes, packing) <= capacity
        assert packing.value == pytest.approx(value_of(classes, packing))
        assert packing.value == pytest.approx(by_brute_force(classes, capacity)), (classes, capacity)


def test_1000_instances_of_the_whole_exact_range_equal_integer_programming():
    """Up to 200 classes, weights as of passages, values as of probabilities; 60 of them without LONG."""
    rng = random.Random(1957)
    for _ in range(times(60, 1000)):
        count, options = rng.randint(1, EXACT_CLASSES), rng.choice([1, 1, 3])
        classes = [
            [Option(rng.randint(1, 400), rng.random() ** 3) for _ in range(rng.randint(1, options))]
            for _ in range(count)
        ]
        capacity = rng.choice([200, 400, 800, 1600, 4000])
        packing, best = pack(classes, capacity), by_integer_programming(classes, capacity)
        assert packing.exact
        assert packing.gap == 0
        assert weight_of(classes, packing) <= capacity
        assert packing.value == pytest.approx(value_of(classes, packing), rel=1e-12)
        assert packing.value == pytest.approx(best, rel=1e-6), (classes, capacity)


def test_the_gap_of_instances_beyond_the_exact_range_covers_what_integer_programming_finds():
    """More than 200 classes: greedy, with its gap to the upper bound; 10 instances of 100 without LONG."""
    rng = random.Random(1972)
    for _ in range(times(10, 100)):
        classes = [
            [Option(rng.randint(1, 200), rng.random() ** 3)]
            for _ in range(rng.randint(EXACT_CLASSES + 1, 600))
        ]
        capacity = rng.choice([200, 800, 4000])
        packing, best = pack(classes, capacity), by_integer_programming(classes, capacity)
        assert not packing.exact
        assert weight_of(classes, packing) <= capacity
        assert packing.value <= best * (1 + 1e-6) <= packing.bound * (1 + 2e-6)
        assert 1 - packing.value / best <= packing.gap + 1e-6
        assert packing.gap < 0.1


@pytest.mark.parametrize("correlated", [False, True])
def test_instances_of_60_documents_equal_dynamic_programming(correlated):
    """Whole values, so that sums have no rounding; correlated ones are the hard ones."""
    rng = random.Random(7)
    for _ in range(25):
        weights = [rng.randint(20, 400) for _ in range(60)]
        values = [weight + 40 if correlated else rng.randint(1, 1000) for weight in weights]
        capacity = rng.randint(0, 6000)
        classes = [[Option(*pair)] for pair in zip(weights, map(float, values), strict=True)]
        packing = pack(classes, capacity)
        assert packing.exact
        assert packing.value == by_dynamic_programming(weights, values, capacity)


def test_beyond_the_exact_range_the_bound_holds_and_the_gap_is_reported():
    rng = random.Random(3)
    for _ in range(300):
        classes, capacity = some_classes(rng, rng.randint(1, 6), 3), rng.randint(0, 30)
        packing, best = pack(classes, capacity, exact_classes=0), by_brute_force(classes, capacity)
        assert weight_of(classes, packing) <= capacity
        assert packing.value <= best + 1e-9
        assert packing.bound >= best - 1e-9
        assert packing.value >= (1 - packing.gap) * packing.bound - 1e-9
        assert packing.value >= best / 2 - 1e-9


@pytest.mark.parametrize("capacity", [0, -5])
def test_nothing_fits_into_no_capacity(capacity):
    assert pack([[Option(1, 1.0)]], capacity).chosen == (None,)


def test_what_weighs_nothing_is_taken():
    assert pack([[Option(0, 0.1)], [Option(0, 0.0)], [Option(0, -1.0)]], 0).chosen == (0, None, None)


def test_ties_are_resolved_the_same_way_for_the_first_that_are_given():
    classes = [[Option(5, 1.0)] for _ in range(50)]
    assert pack(classes, 12).chosen == (0, 0, *[None] * 48)
