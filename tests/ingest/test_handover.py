"""Pages on their way to the store: embedded in one thread, stored in another, in order."""

from __future__ import annotations

from threading import Event, current_thread

import numpy as np
import pytest
from internals import PageDocuments, write_pages
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from memory_store import MemoryStore
from pydantic import Field

from linkstore import LinkStore
from linkstore.errors import DocumentError, EmbeddingError, SourceConflictError

SECONDS = 20


def page(url, *texts):
    documents = tuple(
        Document(id=f"{url}#{n}", page_content=text, metadata={"page": url}) for n, text in enumerate(texts)
    )
    return PageDocuments(url=url, digest="1", documents=documents)


def batch(url):
    """A page that is a batch by itself."""
    return page(url, *(f"{url} {n}" for n in range(512)))


class Embedding(DeterministicFakeEmbedding):
    """Embeds; a text with ``zero`` in it has no direction."""

    size: int = 8

    def embed_documents(self, texts):
        return [
            [0.0] * self.size if "zero" in text else vector
            for text, vector in zip(texts, super().embed_documents(texts), strict=True)
        ]


class Counted(Embedding):
    """Remembers the threads in which it was called, and how many texts it got."""

    threads: list[str] = Field(default_factory=list)
    texts: list[int] = Field(default_factory=list)

    def embed_documents(self, texts):
        self.threads.append(current_thread().name)
        self.texts.append(len(texts))
        return super().embed_documents(texts)


def stored(store):
    return [document.id for document in store.scan()]


def test_a_batch_is_embedded_while_the_one_before_is_stored():
    second = Event()

    class Store(MemoryStore):
        def embed(self, source, pages):
            if pages[0].url == "b":
                second.set()
            return super().embed(source, pages)

        def put(self, source, pages):
            assert second.wait(SECONDS)
            super().put(source, pages)

    store = Store()
    outcomes = list(write_pages(store.pages, "s", iter([batch("a"), batch("b"), batch("c")])))
    assert [(one.url, problem) for one, problem in outcomes] == [("a", None), ("b", None), ("c", None)]
    assert store.puts == [["a"], ["b"], ["c"]]


def test_one_thread_alone_embeds():
    with LinkStore(Counted()) as store:
        list(write_pages(store.pages, "s", iter([batch(url) for url in "abcd"])))
        embedding = store._embedding.model
        assert len(set(embedding.threads)) == 1
        assert embedding.texts == [512] * 4


def test_pages_ahead_of_the_store_are_bounded():
    offered = []

    def pages():
        for url in "abcdefgh":
            offered.append(url)
            yield batch(url)

    outcomes = write_pages(MemoryStore().pages, "s", pages())
    for number, (one, _) in enumerate(outcomes, start=1):
        assert one.url == "abcdefgh"[number - 1]
        assert len(offered) <= number + 3


def test_what_cannot_be_stored_is_named_and_embedded_once():
    pages = [page("a", "one"), page("b", "two \ud800"), page("c", "zero"), page("d", "four")]
    with LinkStore(Counted()) as store:
        outcomes = {one.url: problem for one, problem in write_pages(store.pages, "s", iter(pages))}
        assert stored(store) == ["a#0", "d#0"]
        assert store._embedding.model.texts == [1, 1, 1]
    assert outcomes["a"] is outcomes["d"] is None
    assert "'b#0' cannot be stored" in outcomes["b"]
    assert "the vector of document 'c#0' is zero" in outcomes["c"]


def test_a_page_without_direction_does_not_have_others_embedded_again():
    pages = [page("a", "one"), page("b", "zero"), page("c", "three")]
    with LinkStore(Counted()) as store:
        assert [problem is None for _, problem in write_pages(store.pages, "s", iter(pages))] == [
            True,
            False,
            True,
        ]
        assert store._embedding.model.texts == [3]


@pytest.mark.parametrize("error", [EmbeddingError("no more"), RuntimeError("x"), KeyboardInterrupt()])
def test_an_embedding_that_fails_ends_the_run_after_what_came_before(error):
    class Fails(Embedding):
        def embed_documents(self, texts):
            if texts[0].startswith("c"):
                raise error
            return super().embed_documents(texts)

    with LinkStore(Fails()) as store:
        outcomes = write_pages(store.pages, "s", iter([batch(url) for url in "abcd"]))
        assert [next(outcomes)[0].url for _ in range(2)] == ["a", "b"]
        with pytest.raises(type(error)):
            next(outcomes)
        assert {"a", "b"} <= set(store.pages.digests()) <= {"a", "b", "d"}
        assert store.verify().sound


def test_an_interrupted_run_stores_what_was_handed_over():
    def pages():
        yield batch("a")
        yield batch("b")
        raise KeyboardInterrupt

    with LinkStore(Embedding()) as store:
        with pytest.raises(KeyboardInterrupt):
            list(write_pages(store.pages, "s", pages()))
        assert list(store.pages.digests()) == ["a", "b"]


def test_a_page_of_another_source_is_refused_before_anything_is_embedded():
    with LinkStore(Counted()) as store:
        store.pages.put("one", [page("a", "text")])
        with pytest.raises(SourceConflictError):
            list(write_pages(store.pages, "two", iter([page("a", "other")])))
        assert store._embedding.model.texts == [1]


class Arrays(Embedding):
    """Gives arrays."""

    def embed_array(self, texts):
        return np.array(self.embed_documents(list(texts)), dtype=np.float64)


@pytest.mark.parametrize("embedding", [Embedding(), Arrays()], ids=["lists", "arrays"])
def test_pages_embedded_beforehand_are_stored_as_others_are(embedding):
    pages = [page("a", "one", "two"), page("b"), page("c", "three")]
    with LinkStore(embedding) as ahead, LinkStore(embedding) as at_once:
        ahead.pages.put("s", ahead.pages.embed("s", pages))
        at_once.pages.put("s", pages)
        assert ahead.pages.digests() == at_once.pages.digests()
        assert everything(ahead) == everything(at_once)


def everything(store):
    records = store.backend.run(store.backend.scan(None, 100))
    return [(one.id, one.text, one.vector.tobytes()) for one in records]


def test_vectors_of_some_pages_alone_are_not_used():
    with LinkStore(Counted()) as store:
        (first,) = store.pages.embed("s", [page("a", "one")])
        store.pages.put("s", [first, page("b", "two")])
        assert store._embedding.model.texts == [1, 2]
        assert stored(store) == ["a#0", "b#0"]


def test_an_embedding_that_gives_too_few_vectors_is_refused():
    class Few(Embedding):
        def embed_documents(self, texts):
            return super().embed_documents(texts)[1:]

    with LinkStore(Few()) as store, pytest.raises(EmbeddingError, match="1 vectors for 2 texts"):
        store.pages.embed("s", [page("a", "one", "two")])


def test_vectors_of_another_dimension_are_refused():
    with LinkStore(Embedding()) as store, LinkStore(Embedding(size=4)) as other:
        store.pages.put("s", [page("a", "one")])
        with pytest.raises(EmbeddingError, match="dimension 8, the embedding gives 4"):
            store.pages.put("s", other.pages.embed("s", [page("b", "two")]))


async def test_pages_are_embedded_beforehand_without_blocking():
    with LinkStore(Embedding()) as store:
        found = await store.pages.aembed("s", [page("a", "one"), page("b", "two")])
        await store.pages.aput("s", found)
        assert stored(store) == ["a#0", "b#0"]
        with pytest.raises(DocumentError):
            await store.pages.aembed("s", [page("c", "\ud800")])
