"""The knapsack against solvers that cannot be wrong."""

import itertools
import random

import numpy as np
import pytest
from context_cases import compiler, document
from internals import pack
from scipy.optimize import Bounds, LinearConstraint, milp
from stores import times

from linkstore import LinkStore
from linkstore.errors import StrategyError


def by_brute_force(costs, values, capacity):
    """The highest value of all packings."""
    chosen = itertools.product((0, 1), repeat=len(costs))
    return max(
        sum(value for value, taken in zip(values, one, strict=True) if taken)
        for one in chosen
        if sum(cost for cost, taken in zip(costs, one, strict=True) if taken) <= capacity
    )


def by_integer_programming(costs, values, capacity):
    """The highest value of all packings, by the branch and bound of HiGHS."""
    fits = LinearConstraint(np.array([costs], dtype=float), ub=[capacity])
    found = milp(
        -np.array(values),
        constraints=fits,
        bounds=Bounds(0, 1),
        integrality=np.ones(len(values)),
        options={"mip_rel_gap": 0.0},
    )
    return -found.fun


def check(costs, values, capacity, best):
    chosen = pack(costs, values, capacity)
    assert sum(costs[at] for at in chosen) <= capacity
    assert len(set(chosen)) == len(chosen)
    assert sum(values[at] for at in chosen) == pytest.approx(best)


def test_small_packings_are_the_best_of_all():
    seed = 20260302
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(times(300, 3_000)):
        costs = [rng.randint(0, 12) for _ in range(rng.randint(1, 9))]
        values = [rng.choice([rng.random(), float(rng.randint(1, 5))]) for _ in costs]
        capacity = rng.randint(0, 40)
        check(costs, values, capacity, by_brute_force(costs, values, capacity))


def test_large_packings_equal_those_of_a_solver():
    seed = 7
    rng = random.Random(seed)
    for _ in range(times(5, 50)):
        costs = [rng.randint(1, 400) for _ in range(200)]
        values = [rng.random() for _ in costs]
        check(costs, values, 2_000, by_integer_programming(costs, values, 2_000))


def test_nothing_is_packed_into_no_room():
    assert pack([3, 4], [1.0, 1.0], 2) == []
    assert pack([], [], 5) == []


def test_a_knapsack_takes_what_adds_up_to_most():
    """By rank the first document is taken alone; the two after it are worth more together than nothing."""
    with LinkStore() as store:
        texts = {"first": "hub " * 20, "second": "hub hub " + "x " * 10, "third": "hub " + "y " * 10}
        store.add_documents([document(name, text.strip()) for name, text in texts.items()])
        ranked = [hit.document.id for hit in store.search("hub hub hub")]
        by_rank = compiler(store, 23, selection="rank").compile("hub hub hub")
        packed = compiler(store, 23, selection="knapsack").compile("hub hub hub")
        assert packed.selection == "knapsack"
        worth = [
            sum(1 / (1 + ranked.index(item.id)) for item in one.items if not item.is_excerpt)
            for one in (packed, by_rank)
        ]
        assert worth[0] >= worth[1]
        assert packed.tokens <= 23


def test_a_table_that_is_too_large_is_refused():
    with LinkStore() as store:
        store.add_documents([document(f"d{n}", f"hub {n}") for n in range(3)])
        with pytest.raises(StrategyError, match="3 candidates times 99999999 tokens"):
            compiler(store, 99_999_999, selection="knapsack").compile("hub")
