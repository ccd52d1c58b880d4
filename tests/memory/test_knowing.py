"""What a memory knows of what was meant, on the embedded engine."""

import pytest
from knowing_cases import KnowingCases

from linkstore import LinkStore


class TestInMemory(KnowingCases):
    @pytest.fixture
    def store(self):
        with LinkStore.open(":memory:") as store:
            yield store
