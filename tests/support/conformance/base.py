"""What the cases of every capability share: the fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.probe import CLAIM, Drive, Probe, drive_by_arun, drive_by_run
from linkstore.engines.bookkeeping import Backend


class Cases:
    """Fixtures of the suite. A subclass defines ``backend``, and ``reopen`` if it is durable."""

    @pytest.fixture
    def backend(self) -> Backend:
        """Return an empty backend, new for each test. Close it after a ``yield``."""
        pytest.fail("give a fixture named 'backend' that returns an empty backend")

    @pytest.fixture
    def reopen(self) -> Callable[[], Backend] | None:
        """Return a function that opens the store again after ``backend.close()``; None: it is not durable."""
        return None

    @pytest.fixture(params=[drive_by_run, drive_by_arun], ids=["run", "arun"])
    def drive(self, request: pytest.FixtureRequest) -> Drive:
        """Return each of the two ways to drive an operation. Every case must hold for both."""
        drive: Drive = request.param
        return drive

    @pytest.fixture
    def unclaimed(self, backend: Backend, drive: Drive) -> Probe:
        """Probe the backend as it is at first, without a recorded embedding."""
        return Probe(backend, drive)

    @pytest.fixture
    def probe(self, unclaimed: Probe) -> Probe:
        """Probe the backend after recording an embedding, ready for records of DIMENSION."""
        unclaimed.do(unclaimed.backend.claim(CLAIM))
        return unclaimed
