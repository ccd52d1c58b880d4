"""What pytest loads before the tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("indexing_cases")

pytest_plugins = ["cassandra_fixtures"]
