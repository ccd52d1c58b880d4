"""Compiled contexts on the embedded engine."""

import pytest
from context_cases import ContextCases, compiler, document, ids

from linkstore import LinkStore
from linkstore.context import ContextCompiler


class TestInMemory(ContextCases):
    @pytest.fixture
    def store(self):
        with LinkStore.open(":memory:") as store:
            yield store


@pytest.mark.sample("test_chunks_that_follow_each_other_are_joined", "test_what_was_touched_is_strong_again")
class TestOnDisk(ContextCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "kb") as store:
            yield store


def test_10000_candidates_with_equal_values_are_selected_the_same_way_each_time(tmp_path):
    """Equal scores, and far more candidates than the exact knapsack takes."""
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from linkstore.strategies import Similarity

    with LinkStore.open(":memory:", DeterministicFakeEmbedding(size=8)) as store:
        store.add_documents([document(f"d{n}", f"t{n}") for n in range(10_000)])
        made = ContextCompiler(
            store,
            budget=500,
            tokenizer=lambda text: len(text.split()),
            strategy=Similarity(),
            candidates=10_000,
        )
        first, second = made.compile("hub"), made.compile("hub")
    assert ids(first) == ids(second)
    assert (len(first.items), first.tokens) == (500, 500)
    assert len(first.items) + len(first.left_out) == 10_000


def test_the_bill_is_readable():
    with LinkStore.open(":memory:") as store:
        store.add_documents([document("a", "A hub."), document("b\x1b[31m", "hub " * 99)])
        lines = compiler(store, 10).compile("hub").explain().splitlines()
    assert lines[0].startswith("2 of 10 tokens (words), 1 document, selected by rank")
    assert "\x1b" not in "".join(lines)
    assert lines[-1].endswith("longer than the budget")
