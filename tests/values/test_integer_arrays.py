"""Joins on integer arrays give what numpy's set functions give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from internals import find_distinct, find_positions, is_member, sort_integers, sort_unique

KEYS = arrays(np.int64, st.integers(0, 60), elements=st.integers(-5, 90) | st.integers(-(2**60), 2**60))


@given(keys=KEYS)
def test_distinct_values_ascend_as_those_of_numpy(keys):
    np.testing.assert_array_equal(sort_unique(keys), np.unique(keys))


@given(keys=KEYS, some=KEYS)
def test_contained_keys_are_those_of_numpy(keys, some):
    np.testing.assert_array_equal(is_member(keys, some), np.isin(keys, some))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_the_type_of_distinct_values_is_kept(kind):
    assert sort_unique(np.array([3, 1, 3], dtype=kind)).dtype == kind


@given(wanted=KEYS, ordered=KEYS)
def test_positions_are_those_of_a_list(wanted, ordered):
    ordered = np.unique(ordered)
    place = {key: at for at, key in enumerate(ordered.tolist())}
    assert find_positions(wanted, ordered).tolist() == [place.get(key, -1) for key in wanted.tolist()]


@given(keys=KEYS)
def test_distinct_keys_and_where_they_stand_give_the_keys(keys):
    distinct, where = find_distinct(np.abs(keys))
    np.testing.assert_array_equal(distinct, np.unique(np.abs(keys)))
    np.testing.assert_array_equal(distinct[where], np.abs(keys))


@given(keys=KEYS, shift=st.sampled_from([0, 2, 40]))
def test_whole_numbers_are_sorted_with_their_positions(keys, shift):
    keys = np.abs(keys) % 2**20 << shift
    order, ordered = sort_integers(keys, 2 ** (20 + shift))
    np.testing.assert_array_equal(ordered, np.sort(keys))
    np.testing.assert_array_equal(keys[order], ordered)
    assert sorted(order.tolist()) == list(range(len(keys)))
