"""The knapsack against solvers that cannot be wrong."""

import itertools
import random

import numpy as np
import pytest
from context_cases import compiler, document, ids
from scipy.optimize import Bounds, LinearConstraint, milp
from stores import times

from linkstore import LinkStore
from linkstore.context.assembly import pack
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
    """By rank the long document is taken; two short ones are worth more together."""
    with LinkStore() as store:
        store.add_documents(
            [
                document("long", "hub hub hub hub hub hub hub hub"),
                document("one", "a hub of four"),
                document("two", "one hub for two"),
            ]
        )
        values = {"long": 1.0, "one": 0.7, "two": 0.6}

        def value(evidence):
            return np.where(evidence.tokens > 6, values["long"], 0.65)

        assert ids(compiler(store, 8, selection="rank").compile("hub hub hub hub hub hub hub hub")) == [
            "long"
        ]
        compiled = compiler(store, 8, selection="knapsack", value=value).compile("hub hub hub hub hub hub")
        assert sorted(ids(compiled)) == ["one", "two"]
        assert compiled.selection == "knapsack"


def test_a_table_that_is_too_large_and_values_that_are_none_are_refused():
    with LinkStore() as store:
        store.add_documents([document(f"d{n}", f"hub {n}") for n in range(3)])
        with pytest.raises(StrategyError, match="3 candidates times 99999999 tokens"):
            compiler(store, 99_999_999, selection="knapsack").compile("hub")
        with pytest.raises(StrategyError, match="finite number for each of 3 candidates"):
            compiler(store, 9, selection="knapsack", value=lambda evidence: evidence.rank[:1]).compile("hub")
