"""What pytest loads before the tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("indexing_cases", "broken_backends")

pytest_plugins = ["cassandra_fixtures"]

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # a busy machine is no failure
