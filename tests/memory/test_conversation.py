"""Conversation memory on the embedded engine."""

import pytest
from memory_cases import MemoryCases

from linkstore import LinkStore


class TestEmbedded(MemoryCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "memory") as store:
            yield store
