"""What pytest loads before the tests."""

from __future__ import annotations

pytest_plugins = ["cassandra_fixtures"]
