"""The one order, against sorting in plain Python, and how seldom it asks for ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    Ids,
    answer_plan,
    drive,
    mark_ties,
    rank_best,
    rank_by_group,
    rank_refs,
    select_by_group,
)

SCORES = st.sampled_from([-1.0, -0.5, -1e-30, -0.0, 0.0, 1e-30, 0.1, 0.5, float(np.float32(0.1)), 1.0])
IDS = st.lists(st.text(max_size=3), unique=True, max_size=12)


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[str], list[float], list[int]]:
    ids = draw(IDS)
    scores = draw(st.lists(SCORES, min_size=len(ids), max_size=len(ids)))
    groups = draw(st.lists(st.integers(0, 3), min_size=len(ids), max_size=len(ids)))
    return ids, scores, groups


def floats(scores: list[float]) -> np.ndarray:
    return np.array(scores, dtype=np.float32)


def named(ids: list[str]):
    return lambda positions: [ids[position] for position in positions]


@given(rows(), st.integers(0, 14))
def test_best_sorts_by_score_then_id(table, take) -> None:
    ids, scores, _ = table
    found = drive(rank_best(floats(scores), take), named(ids))
    expected = sorted(range(len(ids)), key=lambda at: (-np.float32(scores[at]), ids[at]))
    assert found.tolist() == expected[:take]


@given(rows())
def test_best_by_group_sorts_by_group_score_and_id(table) -> None:
    ids, scores, groups = table
    found = drive(rank_by_group(np.array(groups, dtype=np.int64), floats(scores)), named(ids))
    expected = sorted(range(len(ids)), key=lambda at: (groups[at], -np.float32(scores[at]), ids[at]))
    assert found.tolist() == expected


@given(rows(), st.integers(0, 14))
def test_the_best_of_each_group_are_its_first(table, take) -> None:
    ids, scores, groups = table
    found = select_by_group(np.array(groups, dtype=np.int64), floats(scores), take, named(ids))
    expected = sorted(range(len(ids)), key=lambda at: (groups[at], -np.float32(scores[at]), ids[at]))
    first = [
        at
        for place, at in enumerate(expected)
        if [groups[i] for i in expected[:place]].count(groups[at]) < take
    ]
    assert found.tolist() == first


def test_groups_of_any_number_are_ordered() -> None:
    random = np.random.default_rng(1)
    groups = random.choice([0, 2**20, 2**30, 2**31 - 8], 5000) + random.integers(0, 8, 5000)
    scores = random.permutation(5000).astype(np.float32) / np.float32(5000)
    found = drive(rank_by_group(groups, scores), lambda _: [])
    assert found.tolist() == np.lexsort((-scores, groups)).tolist()


@given(rows(), st.integers(0, 14))
def test_ranked_asks_by_a_fetch_of_names(table, take) -> None:
    ids, scores, _ = table
    refs = np.arange(len(ids), dtype=np.int64) + 100

    def answer(fetch):
        assert isinstance(fetch, Ids)
        yield from ()
        return [ids[ref - 100] for ref in fetch.refs]

    found = drive(answer_plan(rank_refs(refs, floats(scores), take), answer), str)
    expected = sorted(range(len(ids)), key=lambda at: (-np.float32(scores[at]), ids[at]))
    assert found.tolist() == expected[:take]


def test_ids_are_asked_for_only_where_scores_tie() -> None:
    asked: list[list[int]] = []

    def names(positions):
        asked.append(positions.tolist())
        return [str(position) for position in positions]

    drive(rank_best(floats([0.9, 0.1, 0.5, 0.7]), 3), names)
    assert asked == []
    drive(rank_best(floats([0.9, 0.1, 0.5, 0.5, 0.1, 0.1]), 3), names)
    assert [sorted(positions) for positions in asked] == [[2, 3]]
    drive(rank_by_group(np.array([0, 1, 1, 0]), floats([0.5, 0.5, 0.5, 0.1])), names)
    assert [sorted(positions) for positions in asked[1:]] == [[1, 2]]


def test_ties_at_the_cut_are_all_considered() -> None:
    ids = ["c", "b", "a", "first"]
    found = drive(rank_best(floats([0.5, 0.5, 0.5, 0.9]), 2), named(ids))
    assert [ids[at] for at in found] == ["first", "a"]


def test_ids_are_ordered_by_code_point_not_by_utf_16_unit() -> None:
    ids = ["\U0001f600", "\uffee", "z", "Z", "é"]
    found = drive(rank_best(floats([0.5] * 5), 5), named(ids))
    assert [ids[at] for at in found] == sorted(ids, key=str.encode)


def test_close_scores_are_no_ties() -> None:
    """Neighbouring float32 numbers are kept apart, on both sides of zero."""
    values = [0.5, np.nextafter(np.float32(0.5), np.float32(1)), 1e-45, 0.0, -1e-45, -0.5]
    order = drive(rank_by_group(np.zeros(6, dtype=np.int64), floats(values)), named(list("abcdef")))
    assert order.tolist() == [1, 0, 2, 3, 4, 5]


@pytest.mark.parametrize("take", [0, 1, 5])
def test_nothing_to_order(take: int) -> None:
    assert drive(rank_best(floats([]), take), named([])).tolist() == []
    assert drive(rank_by_group(np.array([], dtype=np.int64), floats([])), named([])).tolist() == []
    assert mark_ties(floats([])).tolist() == []
