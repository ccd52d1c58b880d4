"""Sessions and namespaces stay apart on the embedded engine."""

import pytest
from isolation_cases import IsolationCases

from linkstore import LinkStore


class TestEmbedded(IsolationCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "memory") as store:
            yield store
