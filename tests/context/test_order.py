"""The order of reading."""

from hypothesis import given
from hypothesis import strategies as st
from internals import find_cycles, order_topologically, put_best_at_edges

NODES = range(12)
GRAPHS = st.dictionaries(st.sampled_from(NODES), st.frozensets(st.sampled_from(NODES), max_size=4))
FOLLOWS = st.dictionaries(st.sampled_from(NODES), st.sampled_from(NODES))


def reaches(before, start):
    seen, stack = set(), [start]
    while stack:
        for other in before.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


@given(GRAPHS, FOLLOWS, st.permutations(NODES))
def test_every_precedence_that_is_on_no_cycle_is_honoured(before, follows, nodes):
    """Whatever is preferred otherwise."""
    ordered = order_topologically(nodes, before, follows)
    assert sorted(ordered) == sorted(nodes)
    place = {node: at for at, node in enumerate(ordered)}
    for node, others in before.items():
        for other in others:
            if node not in reaches(before, other):
                assert place[other] < place[node]


@given(GRAPHS, st.permutations(NODES))
def test_cycles_are_in_the_order_of_worth(before, nodes):
    ordered = order_topologically(nodes, before)
    cycles = find_cycles({node: list(before.get(node, ())) for node in nodes})
    for own in cycles:
        assert [one for one in ordered if one in own] == [one for one in nodes if one in own]


@given(GRAPHS)
def test_two_nodes_are_in_one_component_exactly_if_they_reach_each_other(before):
    cycles = find_cycles({node: list(before.get(node, ())) for node in NODES})
    cycle = {node: at for at, own in enumerate(cycles) for node in own}
    for one in NODES:
        for other in NODES:
            together = one == other or (other in reaches(before, one) and one in reaches(before, other))
            assert (cycle[one] == cycle[other]) == together


def test_ties_are_resolved_by_worth():
    assert order_topologically(["b", "c", "a"], {}) == ["b", "c", "a"]
    assert order_topologically(["b", "c", "a"], {"b": frozenset("a")}) == ["a", "b", "c"]


def test_what_continues_a_text_comes_right_after_it():
    assert order_topologically(["a", "x", "b"], {}, {"b": "a"}) == ["a", "b", "x"]
    assert order_topologically(["b", "x", "a"], {}, {"b": "a"}) == ["a", "b", "x"]
    assert order_topologically(["b", "x", "a"], {"a": frozenset("x")}, {"b": "a"}) == ["b", "x", "a"]


def test_a_long_chain_needs_no_recursion():
    chain = {number + 1: frozenset((number,)) for number in range(20_000)}
    assert order_topologically(list(range(20_001))[::-1], chain) == list(range(20_001))


def test_the_best_stand_at_the_edges():
    assert put_best_at_edges([1, 2, 3, 4, 5]) == [1, 3, 5, 4, 2]
    assert put_best_at_edges([]) == []
