"""Numbers of things, as messages have them."""

from __future__ import annotations

import pytest
from internals import format_count


@pytest.mark.parametrize(
    ("count", "written"), [(0, "0 pages"), (1, "1 page"), (2, "2 pages"), (1234, "1,234 pages")]
)
def test_only_one_thing_is_named_in_the_singular(count, written):
    assert format_count(count, "page") == written
