"""A store knows its embedding by what it computes, not by the name of its class."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import textwrap

import pytest
from internals import MIN_COSINE, cosine_similarities, normalize_vector, normalize_vectors
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from linkstore import LinkStore
from linkstore.embeddings import get_embedding, name_embedding
from linkstore.errors import EmbeddingError

TEXTS = ["The Space Needle is a tower.", "A market."]


class Wrapped(Embeddings):
    """Another embedding in a class of its own, which counts calls; as a cache does, it tells no model."""

    def __init__(self, inner: Embeddings) -> None:
        self.inner = inner
        self.calls: list[object] = []

    def embed_documents(self, texts):
        self.calls.append(texts)
        return self.inner.embed_documents(texts)

    def embed_query(self, text):
        self.calls.append(text)
        return self.inner.embed_query(text)


class Named(Wrapped):
    """The same, of a model with a name."""

    model = "large-3"


class Noisy(Wrapped):
    """Its vectors differ a little each time, by a share of noise."""

    def __init__(self, share: float) -> None:
        super().__init__(get_embedding("wordllama"))
        self.share, self.random = share, random.Random(7)

    def embed_documents(self, texts):
        noise = self.share / 16  # the root of the dimension, 256
        return [[x + self.random.gauss(0, noise) for x in one] for one in super().embed_documents(texts)]


def fake() -> Embeddings:
    """Of the same dimension as wordllama."""
    return DeterministicFakeEmbedding(size=256)


@pytest.fixture
def kb(tmp_path):
    with LinkStore.open(tmp_path / "kb", get_embedding("wordllama")) as store:
        store.add_texts(TEXTS, ids=["tower", "market"])
    return tmp_path / "kb"


def uses(store):
    """All that embeds something first."""
    return (
        lambda: store.search("tower"),
        lambda: asyncio.run(store.asearch("tower")),
        lambda: store.similarity_search("tower"),
        lambda: store.add_texts(["Bars of the city."]),
        lambda: asyncio.run(store.aadd_texts(["Bars of the city."])),
    )


def test_the_same_embedding_in_a_wrapper_is_the_same(kb) -> None:
    for use in range(5):
        wrapper = Wrapped(get_embedding("wordllama"))
        with LinkStore.open(kb, wrapper) as store:
            assert wrapper.calls == []  # opening asks for nothing
            uses(store)[use]()
            assert wrapper.calls[0] == ["A market."]
            uses(store)[use]()
            assert wrapper.calls.count(["A market."]) == 1


def test_what_was_built_in_a_wrapper_opens_without_it(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", Wrapped(get_embedding("wordllama"))) as store:
        store.add_texts(TEXTS, ids=["tower", "market"])
    with LinkStore.open(tmp_path / "kb", get_embedding("wordllama")) as store:
        assert store.search("the tower")[0].document.id == "tower"


@pytest.mark.parametrize("other", [fake, lambda: Wrapped(fake()), lambda: Named(fake())])
def test_another_embedding_of_the_same_dimension_is_refused_before_anything_is_mixed(kb, other) -> None:
    embedding = other()
    with LinkStore.open(kb, embedding) as store:
        for use in uses(store):
            with pytest.raises(
                EmbeddingError, match=r"built with the embedding 'wordllama-256', not '.*cosine"
            ):
                use()
        assert store.survey().documents == 2
    texts = [call for call in getattr(embedding, "calls", []) if call != ["A market."]]
    assert texts == []  # nothing but the probe was paid


def test_a_class_that_wraps_one_embedding_or_another_is_not_taken_for_both(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", Wrapped(get_embedding("wordllama"))) as store:
        store.add_texts(TEXTS)
    with LinkStore.open(tmp_path / "kb", Wrapped(fake())) as store:
        for use in uses(store):
            with pytest.raises(EmbeddingError, match="although both have this name"):
                use()


def test_a_built_in_one_of_another_dimension_is_refused_at_opening(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", DeterministicFakeEmbedding(size=8)) as store:
        store.add_texts(TEXTS)
    with pytest.raises(EmbeddingError, match="of dimension 8, and it gives 256"):
        LinkStore.open(tmp_path / "kb", get_embedding("wordllama"))


def test_a_name_that_tells_the_model_is_believed_and_costs_no_call(tmp_path) -> None:
    for text in ("a", "b"):
        embedding = Named(fake())
        with LinkStore.open(tmp_path / "kb", embedding) as store:
            store.add_texts([text])
            store.search("question")
        assert embedding.calls == [[text], "question"]


def test_a_store_that_one_object_began_is_its_own(tmp_path) -> None:
    embedding = Wrapped(fake())
    with LinkStore.open(tmp_path / "kb", embedding) as store:
        store.search("nothing yet")
        store.add_texts(["a"])
        store.add_texts(["b"])
        store.search("question")
    assert embedding.calls == ["nothing yet", ["a"], ["b"], "question"]


def test_small_differences_are_none_and_large_ones_are_of_another(kb) -> None:
    """Machines and batches may differ; see ``ALIKE``."""
    with LinkStore.open(kb, Noisy(0.1)) as store:
        assert store.search("the tower")[0].document.id == "tower"
    with (
        LinkStore.open(kb, Noisy(2.0)) as store,
        pytest.raises(EmbeddingError, match="another vector each time"),
    ):
        store.search("the tower")


def test_an_embedding_that_differs_each_time_is_known_by_its_name_alone(tmp_path) -> None:
    for n in range(2):
        with LinkStore.open(tmp_path / "kb", Noisy(2.0)) as store:
            store.add_texts(TEXTS)
            assert store.survey().documents == 2 * (n + 1)


def test_an_embedding_that_is_down_hinders_no_reading_and_is_asked_again(kb) -> None:
    class Down(Wrapped):
        down = True

        def embed_documents(self, texts):
            if self.down:
                raise ConnectionError("down")
            return super().embed_documents(texts)

    embedding = Down(get_embedding("wordllama"))
    with LinkStore.open(kb, embedding) as store:
        assert [one.page_content for one in store.get_by_ids(["tower"])] == TEXTS[:1]
        assert store.search(get_embedding("wordllama").embed_query("tower"))[0].document.id == "tower"
        with pytest.raises(ConnectionError):
            store.search("tower")
        embedding.down = False
        assert store.search("tower")[0].document.id == "tower"


def test_an_emptied_store_takes_any_embedding_of_its_dimension(kb) -> None:
    with LinkStore.open(kb) as store:
        store.delete(["tower", "market"])
    with LinkStore.open(kb, fake()) as store:
        store.add_texts(["bars"], ids=["bars"])
        assert store.search("bars")[0].document.id == "bars"
    wrapped = Wrapped(get_embedding("wordllama"))
    with LinkStore.open(kb, wrapped) as store, pytest.raises(EmbeddingError, match="cosine"):
        store.search("bars")


def test_a_class_of_the_main_program_is_the_same_in_a_process_that_it_spawns(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import json, multiprocessing, sys
            from langchain_core.embeddings import DeterministicFakeEmbedding
            from linkstore import LinkStore

            class Mine(DeterministicFakeEmbedding):
                pass

            def ask(folder, found):
                with LinkStore.open(folder, Mine(size=8)) as store:
                    store.add_texts(["market"], ids=["market"])
                    found.put([type(store.embeddings).__module__, store.search("tower")[0].document.id])

            if __name__ == "__main__":
                with LinkStore.open(sys.argv[1], Mine(size=8)) as store:
                    store.add_texts(["tower"], ids=["tower"])
                spawning = multiprocessing.get_context("spawn")
                found = spawning.Queue()
                process = spawning.Process(target=ask, args=(sys.argv[1], found))
                process.start()
                print(json.dumps(found.get(timeout=60)))
                process.join()
            """
        )
    )
    command = [sys.executable, str(program), str(tmp_path / "kb")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout or "null") == ["__mp_main__", "tower"], done.stderr


@pytest.mark.parametrize("name", ["wordllama", "minilm"])
def test_batches_change_vectors_far_less_than_is_allowed(name) -> None:
    if name == "minilm":
        pytest.importorskip("onnxruntime", reason="needs the extra 'minilm'")
    embedding = get_embedding(name)
    texts = [" ".join(["the tower and the market"] * n) for n in (1, 3, 9, 20)] + TEXTS
    together = normalize_vectors(embedding.embed_documents(texts))
    for text, vector in zip(texts, together, strict=True):
        alone = normalize_vectors(embedding.embed_documents([text]))
        assert 1 - cosine_similarities(alone, vector)[0] < (1 - MIN_COSINE) / 1000


def test_the_recorded_name_stays_that_of_the_first(kb) -> None:
    with LinkStore.open(kb, Wrapped(get_embedding("wordllama"))) as store:
        store.add_texts(["bars"])
        recorded = store.backend.run(store.backend.manifest())
        assert recorded.embedding == name_embedding(get_embedding("wordllama"))
        assert normalize_vector(store.embeddings.embed_query("x")).shape == (recorded.dimension,)
