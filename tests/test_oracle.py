"""The oracle conforms to the contract, and the suite finds out backends that do not."""

from __future__ import annotations

import pytest

from linkstore.testing import OracleBackend
from linkstore.testing.conformance import BackendConformance


class TestOracle(BackendConformance):
    @pytest.fixture
    def backend(self):
        backend = OracleBackend()
        yield backend
        backend.close()
