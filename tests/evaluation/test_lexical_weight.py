"""The weight of words: that of the embedding, that of the store, and what the store's texts say of it."""

from __future__ import annotations

import asyncio
import json
import random
import zlib

import numpy as np
import pytest
from documented import linkstore
from internals import LEXICAL_NOTE, LEXICAL_WEIGHT, LEXICAL_WEIGHTS
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.errors import EvaluationError, StoreBusyError, StoreFormatError, StrategyError
from linkstore.evaluate import estimate_lexical_weight
from linkstore.strategies import AllPaths, PageRank

TOPICS = 60


def vector(seed: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(seed.encode())).normal(size=48)


class Subjects(Embeddings):
    """Knows which subject a text is about, whatever words it uses: "s7w3" is a word of subject 7."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        subjects = [word.partition("w")[0] for word in text.split() if word.startswith("s")]
        return (sum(map(vector, subjects), vector("any")) + 0.1 * vector(text)).tolist()


class Blind(Embeddings):
    """Knows nothing: every text has another vector."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return vector(text).tolist()


def texts(*, shared: bool) -> list[str]:
    """Three sentences on each subject, whose words are the same in all of them, or in none."""
    chance = random.Random(0)
    found = []
    for topic in range(TOPICS):
        words = [f"s{topic}w{number}" for number in range(6)]
        others = [f"s{topic}w{number} common{chance.randrange(9)}" for number in range(18)]
        lines = (
            [chance.sample(words, 6) for _ in range(3)] if shared else [others[:6], others[6:12], others[12:]]
        )
        found.append(" ".join(" ".join(line).capitalize() + "." for line in lines))
    return found


def filled(embedding: Embeddings, *, shared: bool) -> LinkStore:
    store = LinkStore(embedding)
    store.add_documents(
        [Document(id=str(number), page_content=text) for number, text in enumerate(texts(shared=shared))]
    )
    return store


def test_words_count_much_where_similarity_says_nothing():
    with filled(Blind(), shared=True) as store:
        found = estimate_lexical_weight(store)
    assert found.weight >= 1
    assert found.found[3.0] > 0.9 > 0.2 > found.found[0.0]
    assert (found.sentences, tuple(found.found)) == (TOPICS, LEXICAL_WEIGHTS)


def test_words_count_little_where_they_mislead_and_similarity_is_right():
    with filled(Subjects(), shared=False) as store:
        found = estimate_lexical_weight(store)
    assert found.weight < 1
    assert found.found[0.0] > 0.9 > found.found[3.0]


def test_it_stays_the_default_where_nothing_speaks_for_another():
    with filled(Subjects(), shared=True) as store:
        assert estimate_lexical_weight(store).weight == 1.0


def test_too_few_texts_are_an_error():
    with LinkStore() as store:
        store.add_texts([f"One sentence of some words, number {number}." for number in range(60)])
        with pytest.raises(EvaluationError, match="0 documents drawn from the store have several sentences"):
            estimate_lexical_weight(store)


def test_the_embedding_has_a_weight_and_the_store_another(tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        assert store.search_settings.lexical_weight == LEXICAL_WEIGHT["wordllama-256"]
        store.configure(lexical_weight=0.25)
        assert store.search_settings.lexical_weight == 0.25
    with LinkStore.open(tmp_path / "kb") as store:
        assert store.search_settings.lexical_weight == 0.25
        asyncio.run(store.aconfigure(lexical_weight=None))
        assert store.search_settings.lexical_weight == LEXICAL_WEIGHT["wordllama-256"]
        for wrong in (-1, 101, float("nan")):
            with pytest.raises(StrategyError, match="lexical_weight"):
                store.configure(lexical_weight=wrong)
        store.backend.run(store.backend.set_note(LEXICAL_NOTE, "many", None))
    with pytest.raises(StoreFormatError, match=r"lexical_weight.*'many'"):
        LinkStore.open(tmp_path / "kb")


def test_another_client_is_not_overwritten(tmp_path):
    with LinkStore.open(tmp_path / "kb") as one, LinkStore.open(tmp_path / "kb") as two:
        exchange = one.backend.set_note

        def meanwhile(name, value, expected):
            two.configure(lexical_weight=2.0)
            return exchange(name, value, expected)

        one.backend.set_note = meanwhile
        with pytest.raises(StoreBusyError, match="set lexical_weight at the same time"):
            one.configure(lexical_weight=0.5)


@pytest.mark.parametrize("strategy", [PageRank, AllPaths])
def test_searches_that_set_none_use_that_of_the_store(strategy):
    with filled(Subjects(), shared=False) as store:
        question = "S3w1 s4w8 s4w9"
        for weight in (0.0, 0.5, 4.0):
            store.configure(lexical_weight=weight)
            given = store.search(question, strategy=strategy(lexical=weight)).hits
            assert store.search(question, strategy=strategy()).hits == given
        assert given != store.search(question, strategy=strategy(lexical=0.0)).hits


def test_the_command_estimates_saves_and_clears_it_for_an_unknown_embedding(tmp_path, monkeypatch):
    from linkstore.embeddings import names

    place = str(tmp_path / "kb")
    with LinkStore.open(place) as store:
        store.add_texts(texts(shared=True))
    out = json.loads(linkstore("eval", "--calibrate", "--store", place, "--json")[1])
    assert (out["lexical_weight"], out["estimate"]) == (LEXICAL_WEIGHT["wordllama-256"], None)
    monkeypatch.setattr(names, "LEXICAL_WEIGHT", {})
    code, told, err = linkstore("eval", "--calibrate", "--store", place, "--save")
    assert (code, "lexical_weight" in told, "recorded" in err) == (0, True, True)
    with LinkStore.open(place) as store:
        estimated = estimate_lexical_weight(store).weight
        assert store.search_settings.lexical_weight == estimated
        assert f"lexical_weight {estimated:g}" in told
    code, _, told = linkstore("eval", "--calibrate", "--store", place, "--clear")
    assert code == 0
    assert "words have the weight 1\n" in told
    with LinkStore.open(place) as store:
        assert store.search_settings.lexical_weight == 1.0
