"""Rerankers: a callable whose score joins the sum."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import BaseDocumentCompressor, Document
from stores import embedding

from linkstore import LinkRetriever, LinkStore
from linkstore.errors import ArgumentError, StrategyError
from linkstore.strategies import PageRank, pagerank

TEXTS = ("alpha", "beta", "gamma", "delta")


@pytest.fixture(scope="module")
def store():
    with LinkStore.from_documents(
        [Document(id=text, page_content=text) for text in TEXTS], embedding()
    ) as it:
        yield it


@pytest.fixture(autouse=True)
def decisive(monkeypatch) -> None:
    """Let the reranker decide."""
    monkeypatch.setattr(pagerank, "RERANK_WEIGHT", 100.0)


def ids(hits) -> list[str]:
    return [hit.document.id for hit in hits]


def last_letters(question: str, texts: Sequence[str]) -> list[float]:
    """Likes what comes last in the alphabet."""
    return [ord(text[0]) * 100.0 for text in texts]


def test_its_say_decides_when_it_weighs_enough(store) -> None:
    hits = store.search("alpha", strategy=PageRank(reranker=last_letters))
    assert ids(hits) == ["gamma", "delta", "beta", "alpha"]
    assert sorted((hit.score for hit in hits), reverse=True) == [hit.score for hit in hits]
    for hit in hits:
        assert sum(hit.contributions.values()) == pytest.approx(hit.score, abs=1e-6)
    assert hits[0].contributions["reranker"] == pytest.approx(100 / 101)
    assert "reranker" in hits.explain()


def test_it_reads_the_first_hits_and_the_others_stay_behind(store, monkeypatch) -> None:
    monkeypatch.setattr(pagerank, "RERANKED", 2)
    plain = ids(store.search("alpha", strategy=PageRank()))
    read: list[tuple[str, ...]] = []

    def reader(question: str, texts: Sequence[str]) -> list[float]:
        read.append((question, *texts))
        return [float(n) for n in range(len(texts))]

    strategy = PageRank(reranker=reader)
    assert ids(store.search("alpha", strategy=strategy)) == [plain[1], plain[0], *plain[2:]]
    assert read == [("alpha", *plain[:2])]


def test_a_low_limit_still_lets_it_choose(store) -> None:
    strategy = PageRank(reranker=last_letters)
    assert ids(store.search("alpha", strategy=strategy.with_k(1))) == ["gamma"]
    assert LinkRetriever(store=store, strategy=strategy, k=1).invoke("alpha")[0].id == "gamma"


async def test_it_does_not_block_the_loop(store) -> None:
    threads: list[threading.Thread] = []

    def reader(question: str, texts: Sequence[str]) -> list[float]:
        threads.append(threading.current_thread())
        return last_letters(question, texts)

    strategy = PageRank(reranker=reader)
    found = await store.asearch("alpha", strategy=strategy)
    assert found == store.search("alpha", strategy=strategy)
    assert threads[0] is not threading.main_thread()
    assert threads[1] is threading.current_thread()


class Letters(BaseCrossEncoder):
    """As ``last_letters``, as LangChain's cross-encoders are asked."""

    def score(self, text_pairs):
        return [ord(text[0]) * 100.0 for _, text in text_pairs]


class Latest(BaseDocumentCompressor):
    """Returns new documents, the last in the alphabet first."""

    top_n: int = 4
    keeps: bool = True

    def compress_documents(self, documents, query, callbacks=None):
        found = sorted(documents, key=lambda one: one.page_content, reverse=True)[: self.top_n]
        return [
            Document(page_content=one.page_content.upper(), metadata=dict(one.metadata) if self.keeps else {})
            for one in found
        ]


@pytest.mark.parametrize("reranker", [Letters(), Latest(), CrossEncoderReranker(model=Letters(), top_n=4)])
async def test_rerankers_of_langchain_are_asked_as_they_are(store, reranker) -> None:
    strategy = PageRank(reranker=reranker)
    hits = store.search("alpha", strategy=strategy)
    assert ids(hits) == ["gamma", "delta", "beta", "alpha"]
    assert all(hit.document == store.get_by_ids([hit.document.id])[0] for hit in hits)
    assert await store.asearch("alpha", strategy=strategy) == hits


def test_what_a_compressor_leaves_out_comes_last_in_its_order(store) -> None:
    plain = ids(store.search("alpha", strategy=PageRank()))
    hits = ids(store.search("alpha", strategy=PageRank(reranker=Latest(top_n=1))))
    assert hits == ["gamma", *(one for one in plain if one != "gamma")]


def test_a_compressor_whose_documents_cannot_be_known_is_an_error(store) -> None:
    with pytest.raises(StrategyError, match="cannot rerank"):
        store.search("alpha", strategy=PageRank(reranker=Latest(keeps=False)))


@pytest.mark.parametrize("wrong", ["a model", 3, Latest])
def test_what_cannot_rerank_is_refused(wrong) -> None:
    with pytest.raises(ArgumentError, match="reranker must be a function, or a cross-encoder"):
        PageRank(reranker=wrong)


@pytest.mark.parametrize(
    "wrong",
    [lambda question, texts: [1.0], lambda question, texts: [float("nan")] * len(texts)],
    ids=["too few", "no number"],
)
def test_what_it_gives_is_checked(store, wrong) -> None:
    with pytest.raises(StrategyError, match="a finite number for each of 4 texts"):
        store.search("alpha", strategy=PageRank(reranker=wrong))


def test_it_needs_words(store) -> None:
    vector = embedding().embed_query("alpha")
    with pytest.raises(StrategyError, match="a reranker needs the text"):
        store.search(vector, strategy=PageRank(reranker=last_letters))


def test_an_empty_store_asks_nobody() -> None:
    with LinkStore.open(":memory:", embedding()) as store:
        assert store.search("alpha", strategy=PageRank(reranker=last_letters)).reason == "the store is empty"
