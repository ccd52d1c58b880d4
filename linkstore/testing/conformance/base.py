"""What the cases of every capability share: the fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from linkstore.backends.base import Backend
from linkstore.testing.conformance.probe import CLAIM, Drive, Probe, by_arun, by_run


class Cases:
    """Fixtures of the suite; a subclass gives ``backend``, and ``reopen`` if it is durable."""

    @pytest.fixture
    def backend(self) -> Backend:
        """An empty backend, new for each test; close it after a ``yield``."""
        pytest.fail("give a fixture named 'backend' that returns an empty backend")

    @pytest.fixture
    def reopen(self) -> Callable[[], Backend] | None:
        """Opens the same store again, after ``backend.close()``; None for one that is not durable."""
        return None

    @pytest.fixture(params=[by_run, by_arun], ids=["run", "arun"])
    def drive(self, request: pytest.FixtureRequest) -> Drive:
        """Both ways to drive an operation; every case is held by both."""
        drive: Drive = request.param
        return drive

    @pytest.fixture
    def unclaimed(self, backend: Backend, drive: Drive) -> Probe:
        """The backend as it came: no embedding is recorded yet."""
        return Probe(backend, drive)

    @pytest.fixture
    def probe(self, unclaimed: Probe) -> Probe:
        """The backend, with an embedding recorded: ready for records of DIMENSION."""
        unclaimed.do(unclaimed.backend.claim(CLAIM))
        return unclaimed
