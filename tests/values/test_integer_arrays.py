"""Joins on integer arrays give what numpy's set functions give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from internals import is_member, sort_unique

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
