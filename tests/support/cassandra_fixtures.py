"""Fixtures of real Cassandra servers.

Without Java 17 or Maven, tests that ask for them skip and say why; with LINKSTORE_REQUIRE_CASSANDRA=1 they
fail instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest
from cassandra_server import Endpoint, Proxy, Ring, Server, ServerError, connect, why_not
from cassandra_server.shared import SharedServer, ask
from cassandra_tables import empty, own_keyspace
from filelock import FileLock

REQUIRED = "LINKSTORE_REQUIRE_CASSANDRA"
DESK = pytest.StashKey[int]()
SHARED = pytest.StashKey[SharedServer]()
RING_TRIES = 3


def pytest_configure(config: pytest.Config) -> None:
    """The process that hands tests out holds the shared node; a worker is told where to ask for it."""
    given = getattr(config, "workerinput", None)
    if given is None:
        config.stash[SHARED] = SharedServer()
    else:
        config.stash[DESK] = given["cassandra_desk"]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist: tell a worker where the desk is."""
    node.workerinput["cassandra_desk"] = node.config.stash[SHARED].open_desk()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the shared node with the session."""
    shared = config.stash.get(SHARED, None)
    if shared is not None:
        shared.close()


def _skip_or_fail(reason: str) -> None:
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(f"{REQUIRED}=1, but: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cassandra_possible() -> None:
    """Skips, or fails where Cassandra is required, on a machine that cannot run it."""
    if find_spec("cassandra") is None:
        _skip_or_fail("cassandra-driver is not installed")
    if reason := why_not():
        _skip_or_fail(reason)


@pytest.fixture(scope="session")
def cassandra(request: pytest.FixtureRequest, cassandra_possible: None) -> Endpoint:
    """One running node, shared by all tests and workers: leave it running, and use a keyspace of your own."""
    stash = request.config.stash
    return stash[SHARED].endpoint() if SHARED in stash else ask(stash[DESK])


@pytest.fixture(scope="session")
def cassandra_session(cassandra: Endpoint) -> Iterator[Any]:
    """A driver's session on the shared node, without a keyspace."""
    with connect([cassandra.host], cassandra.port) as session:
        yield session


@pytest.fixture
def keyspace(cassandra: Endpoint, cassandra_session: Any) -> Iterator[str]:
    """A new keyspace (RF 1) on the shared node, dropped after the test."""
    with own_keyspace(cassandra_session, "test") as name:
        yield name


@pytest.fixture(scope="module")
def module_keyspace(cassandra_session: Any) -> Iterator[str]:
    """A keyspace (RF 1) for the tests of a module that one worker runs."""
    with own_keyspace(cassandra_session, "module") as name:
        yield name


@pytest.fixture
def emptied_keyspace(cassandra_session: Any, module_keyspace: str) -> Iterator[str]:
    """The keyspace of the module; each test gets its store empty, since making tables takes seconds.

    All tests of the module must have vectors of one dimension.
    """
    yield module_keyspace
    empty(cassandra_session, module_keyspace, "linkstore")


@pytest.fixture
def own_cassandra(cassandra_possible: None) -> Iterator[Callable[..., Server]]:
    """Starts nodes that belong to one test, to stop, kill and pause; arguments are those of ``Server``."""
    with ExitStack() as started:
        yield lambda **options: started.enter_context(Server(**options))


@pytest.fixture(scope="session")
def ring(cassandra_possible: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ring]:
    """Three running nodes, for one process at a time; a test that harms them calls ``ring.heal()`` after.

    Tests that use it are of the xdist group "ring", so that one worker has them all; others would wait.
    """
    with FileLock(_session_folder(tmp_path_factory) / "ring.lock"):
        made = _started_ring()
        try:
            yield made
        finally:
            made.close()


def _started_ring() -> Ring:
    """A ring that runs; one that does not start is given up for a new one, with other ports and folders."""
    failures = []
    for _ in range(RING_TRIES):
        try:
            made = Ring()
        except ServerError as error:
            _skip_or_fail(str(error))
        try:
            return made.__enter__()
        except ServerError as error:
            failures.append(str(error))
    pytest.fail("no ring of Cassandra nodes started:\n\n" + "\n\n".join(failures), pytrace=False)


def _session_folder(factory: pytest.TempPathFactory) -> Any:
    """One folder for all workers of a session."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def proxied(cassandra: Endpoint) -> Iterator[Proxy]:
    """A connection to the shared node that a test may cut, stall and delay."""
    with Proxy(cassandra.host, cassandra.port) as proxy:
        yield proxy
