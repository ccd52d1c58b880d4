"""What pytest loads before the tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from stores import LONG

pytest.register_assert_rewrite("indexing_cases", "broken_backends")

pytest_plugins = ["cassandra_fixtures", "long_report"]

SLOW = {
    "cassandra": {"clocks", "conformance", "crashes", "damaged", "execution", "faults", "founding", "history"}
    | {"hostile", "interrupted", "lifetimes", "limits", "overlapping", "pool", "ring_store", "schedules"}
    | {"scopes", "server", "writer"},
    "contract": {"long_report", "oracle"},
    "docs": {"container", "demo_manual", "docs_site", "notebooks", "scale_benchmark"},
    "embedded": {"builder", "centring", "compacting", "damage", "power_cuts", "processes"},
    "explorer": {"browser"},
    "ingest": {"workers"},
    "memory": {"memory_kills", "short_answers"},
    "server": {"mcp_clients"},
}
"""Modules left to `make test-rest`: kills, rings of servers, schedules, a browser, notebooks, the site."""
PART = os.environ.get("LINKSTORE_TESTS", "all")
"""Which of the tests are run: `quick`, the `rest`, or `all`."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job: commands would ignore Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # a busy machine is no failure


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests to `make test-long`, and set up what a module shares in one worker only."""
    if PART != "all":
        left = [item for item in items if is_slow(item.path) == (PART == "quick")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if is_slow(item.path) != (PART == "quick")]
    if not LONG:
        config.hook.pytest_deselected(items=[item for item in items if is_long(item)])
        items[:] = [item for item in items if not is_long(item)]
    for item in items:
        if shares_a_module(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def is_slow(path: Path) -> bool:
    """Tell whether `make test` leaves a module to `make test-rest`."""
    return path.stem.removeprefix("test_") in SLOW.get(path.parent.name, ())


def shares_a_module(item: pytest.Item) -> bool:
    """Tell whether a test uses what is made once for all tests of its module."""
    made = getattr(item, "_fixtureinfo", None)
    used = made.name2fixturedefs.values() if made else ()
    return any(
        one[-1].scope == "module" and one[-1].baseid == item.parent.nodeid.partition("::")[0] for one in used
    )


def is_long(item: pytest.Item) -> bool:
    """Tell whether a test is marked as long, or its class as one of which only other tests are run."""
    sample = item.get_closest_marker("sample")
    if sample is None or not isinstance(item, pytest.Function):
        return item.get_closest_marker("long") is not None
    if missing := [name for name in sample.args if not hasattr(item.cls, name)]:
        raise pytest.UsageError(f"{item.nodeid}: its class has no {', '.join(missing)}")
    return item.originalname not in sample.args
