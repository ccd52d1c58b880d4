"""How often the database is asked: a search is one read transaction, and parses each filter once."""

from __future__ import annotations

import shutil
from collections import Counter

import apsw
import pytest
from internals import parse_filter

from linkstore import Link, LinkStore
from linkstore.errors import EmbeddingError, StoreMovedError
from linkstore.strategies import Eager, PageRank, Similarity, base

STRATEGIES = [PageRank(), Eager(depth=2), Similarity()]
QUESTION = "Which link is followed?"


class Fixed:
    """Vectors of another length than those of the store."""

    def embed_query(self, text):
        return [1.0, 0.0, 0.0]


@pytest.fixture
def statements(monkeypatch):
    """The statements that connections execute, as far as they are told by their first word."""
    executed: Counter[str] = Counter()

    def heard(connection):
        def told(cursor, sql, bindings):
            executed[sql.split()[0].upper()] += 1
            return True

        connection.exec_trace = told

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, heard])
    return executed


@pytest.fixture
def store(tmp_path, statements):
    with LinkStore.open(tmp_path / "kb") as store:
        for n in range(8):
            links = [Link.outgoing(kind="to", tag=f"{n + 1}"), Link.incoming(kind="to", tag=f"{n}")]
            metadata = {"lang": "en", "links": [link.to_dict() for link in links]}
            store.add_texts([f"The link {n} is followed."], metadatas=[metadata], ids=[f"{n}"])
        store.search(QUESTION)
        statements.clear()
        yield store


@pytest.mark.parametrize("strategy", STRATEGIES, ids=[type(one).__name__ for one in STRATEGIES])
def test_a_search_is_one_read_transaction(store, statements, strategy):
    assert store.search(QUESTION, strategy=strategy)
    assert (statements["BEGIN"], statements["COMMIT"]) == (1, 1)


def test_the_embedding_is_read_until_one_is_recorded(tmp_path, statements):
    with LinkStore.open(tmp_path / "new") as store, LinkStore.open(tmp_path / "new") as other:
        assert not store.search(QUESTION)
        other.add_texts(["A link is followed."])
        assert store.search(QUESTION)
        statements.clear()
        assert store.search(QUESTION)
        assert statements["BEGIN"] == 1


def test_a_vector_of_another_length_is_refused_before_the_search(store, statements):
    store._embedding.model = Fixed()
    with pytest.raises(EmbeddingError, match="dimension 256, the embedding gives 3"):
        store.search(QUESTION)
    assert not statements["BEGIN"]


def test_a_store_that_another_one_replaced_is_not_searched(store, tmp_path):
    shutil.rmtree(tmp_path / "kb")
    with LinkStore.open(tmp_path / "kb") as other:
        other.add_texts(["Something else."])
        with pytest.raises(StoreMovedError):
            store.search(QUESTION)


def test_each_filter_is_parsed_once(store, monkeypatch):
    parsed = []

    def counted(filter):
        if isinstance(filter, dict):
            parsed.append(filter)
        return parse_filter(filter)

    monkeypatch.setattr(base, "parse_filter", counted)
    monkeypatch.setattr("linkstore.core.filters.parse_filter", counted)
    asked = {"lang": "en"}
    assert store.search(QUESTION, filter=asked)
    assert parsed == [asked]
