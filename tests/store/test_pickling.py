"""Stores that are pickled and copied: by reopening them where they are."""

from __future__ import annotations

import copy
import pickle

import pytest
from stores import documents, embedding

from linkstore import LinkRetriever, LinkStore
from linkstore.engines.embedded import EmbeddedSettings
from linkstore.errors import CapabilityError, StoreClosedError, StoreNotFoundError

ASK = "doc 3 v0"


@pytest.fixture
def store(tmp_path):
    settings = EmbeddedSettings(exact_below=7, durable=False)
    with LinkStore.open(tmp_path / "kb", embedding(), settings=settings) as opened:
        opened.add_documents(documents(0, 20))
        yield opened


WAYS = pytest.mark.parametrize(
    "again",
    [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy],
    ids=["pickle", "deep"],
)


@WAYS
def test_a_copy_is_the_same_store_opened_again(store, again):
    with again(store) as other:
        assert repr(other) == repr(store)
        assert other.backend is not store.backend
        assert other.backend._settings == store.backend._settings
        assert [hit.document.id for hit in other.search(ASK)] == [
            hit.document.id for hit in store.search(ASK)
        ]
        store.add_documents(documents(20, 21))
        assert other.survey().documents == 21
    assert store.survey().documents == 21, "closing the copy closes nothing else"


def test_a_retriever_is_pickled_with_its_store(store):
    for retriever in (LinkRetriever(store=store, k=2), store.as_retriever(search_kwargs={"k": 2})):
        other = pickle.loads(pickle.dumps(retriever))
        assert other.invoke(ASK) == retriever.invoke(ASK)


def test_no_connection_and_no_model_is_pickled(tmp_path):
    with LinkStore.open(tmp_path / "kb") as opened:
        opened.add_texts(["one"], ids=["a"])
        written = pickle.dumps(opened)
    assert len(written) < 1000
    with pickle.loads(written) as other:
        assert other.search("one")[0].document.id == "a"


@WAYS
def test_a_store_in_memory_says_why_it_cannot_be_copied(again):
    with LinkStore(embedding()) as store, pytest.raises(CapabilityError, match=r"in memory.*LinkStore\.open"):
        again(store)


def test_a_closed_store_is_not_opened_again(store):
    store.close()
    with pytest.raises(StoreClosedError):
        pickle.dumps(store)


def test_a_pickle_of_a_store_that_is_gone_makes_no_new_one(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding()) as opened:
        written = pickle.dumps(opened)
    (tmp_path / "kb").rename(tmp_path / "elsewhere")
    with pytest.raises(StoreNotFoundError):
        pickle.loads(written)
    assert not (tmp_path / "kb").exists()
