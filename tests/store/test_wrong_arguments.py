"""Arguments of a wrong kind are refused, with a message that says what they must be."""

from __future__ import annotations

import asyncio
import re
import warnings
from uuid import UUID

import numpy as np
import pytest
from internals import WordLlamaEmbeddings, strip_links
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from linkstore import Link, LinkRetriever, LinkStore, add_links, copy_with_links, get_links
from linkstore.errors import ArgumentError, DocumentError, EmbeddingError, LinkStoreError, StoreClosedError
from linkstore.memory import ConversationMemory

ONE = Document(id="one", page_content="one")


@pytest.fixture
def store():
    with LinkStore.from_texts(["tower", "bars"], DeterministicFakeEmbedding(size=16), ids=["t", "b"]) as made:
        yield made


@pytest.mark.parametrize("size", [0, -1, 2.0, "3", None])
def test_a_batch_size_that_would_write_nothing_is_refused(store, size) -> None:
    with pytest.raises(DocumentError, match="batch_size must be an integer of at least 1"):
        store.add_documents([ONE], batch_size=size)
    with pytest.raises(DocumentError, match="batch_size"):
        asyncio.run(store.aadd_documents([ONE], batch_size=size))
    assert store.get_by_ids(["one"]) == []


@pytest.mark.parametrize("given", [{"question": "tower"}, ["tower"], None, 3, b"tower", [], [[0.1] * 16]])
def test_a_question_that_is_neither_text_nor_vector_is_named(store, given) -> None:
    """The first is what a chain passes to a retriever that was given the whole input."""
    retrievers = (
        store.as_retriever(),
        store.as_retriever(search_type="similarity"),
        store.as_retriever(search_type="traversal"),
        LinkRetriever(store=store),
    )
    for ask in (store.search, store.similarity_search, *(one.invoke for one in retrievers)):
        with pytest.raises(EmbeddingError, match="must be a string or a list of numbers, not ") as error:
            ask(given)
        assert repr(given)[:200] in str(error.value)
    with pytest.raises(EmbeddingError, match="must be a string or a list of numbers"):
        asyncio.run(LinkRetriever(store=store).ainvoke(given))


def test_a_vector_may_be_a_list_a_tuple_or_an_array(store) -> None:
    vector = store.embeddings.embed_query("tower")
    found = [store.search(one)[0].document.id for one in (vector, tuple(vector), np.array(vector))]
    assert found == ["t", "t", "t"]


def test_a_blank_question_is_called_a_question() -> None:
    with LinkStore.from_texts(["tower"]) as store, pytest.raises(EmbeddingError, match="question is blank"):
        store.search("  ")


FULL_AND_EMPTY = [Document(id="full", page_content="tower"), Document(id="empty", page_content=" ")]


def test_a_document_without_text_is_left_out_with_a_warning() -> None:
    with LinkStore.from_texts(["market"], ids=["empty"]) as store:
        with pytest.warns(UserWarning, match="1 of 2 documents have no text: empty; they are left out"):
            assert store.add_documents(FULL_AND_EMPTY) == ["full", "empty"]
        assert [document.id for document in store.scan()] == ["full"], "what was stored of it is removed"
        with pytest.warns(UserWarning, match="1 of 1 documents"):
            asyncio.run(store.aadd_documents(FULL_AND_EMPTY[1:]))
        assert store.survey().documents == 1


def test_a_document_without_text_is_refused_where_that_is_asked_for() -> None:
    with LinkStore.from_texts(["market"]) as store:
        with pytest.raises(DocumentError, match="1 of 2 documents have no text: empty"):
            store.add_documents(FULL_AND_EMPTY, strict=True)
        assert store.survey().documents == 1


def test_a_document_without_text_is_stored_with_the_vector_that_is_given() -> None:
    with LinkStore.from_texts(["market"]) as store:
        store.add_documents(FULL_AND_EMPTY, vectors=np.ones((2, 256), np.float32))
        assert store.survey().documents == 3


def test_documents_without_links_are_told_of() -> None:
    with pytest.warns(UserWarning, match="no link leads from one of the documents"):
        LinkStore.from_documents([Document(page_content="tower")]).close()
    with warnings.catch_warnings(action="error"):
        linked = Document(page_content="tower")
        add_links(linked, Link.outgoing(kind="hyperlink", tag="/x"))
        LinkStore.from_documents([linked]).close()
        LinkStore.from_texts(["tower"]).close()


def test_a_path_in_the_home_of_the_user_is_there(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    LinkStore.open("~/kb").close()
    assert (tmp_path / "kb" / "linkstore.db").is_file()


def test_arguments_that_a_memory_lacks_are_named(store) -> None:
    memory = ConversationMemory(store)
    for call, message in (
        (lambda: memory.recall("s", "q", limit=3), "recall() has no argument 'limit'; it has as_of, budget"),
        (lambda: memory.search("s", "q", limit=3), "search() has no argument 'limit'"),
        (lambda: memory.add("s", "q", when=3), "add() has no argument 'when'; it has entities, key"),
        (lambda: memory.add_later("s", "q", when=3), "add_later() has no argument 'when'"),
        (lambda: memory.forget(user="x"), "forget() has no argument 'user'; it has agent_id"),
    ):
        with pytest.raises(TypeError, match=re.escape(message)):
            call()


def test_what_is_no_schema_and_no_dict_is_refused(store) -> None:
    with pytest.raises(ArgumentError, match="schema must be a Schema or None"):
        store.schema.set("types: a")
    with pytest.raises(ArgumentError, match="search_kwargs must be a dict"):
        store.as_retriever(search_kwargs="k=3")


def test_a_closed_store_in_memory_is_called_so() -> None:
    store = LinkStore.open(":memory:")
    store.close()
    with pytest.raises(StoreClosedError, match="the store in memory is closed"):
        store.search("tower")


@pytest.mark.parametrize("given", [ONE, ["one"], [None], [{"page_content": "one"}], "one"])
def test_what_is_not_a_list_of_documents_is_refused(store, given) -> None:
    with pytest.raises(ArgumentError, match="must be a list of documents"):
        store.add_documents(given)
    assert store.survey().documents == 2


def test_an_iterator_of_documents_is_read_once(store) -> None:
    assert store.add_documents(iter([ONE])) == ["one"]
    assert store.get_by_ids(["one"]) == [ONE]


def test_a_string_is_not_taken_for_a_list_of_its_letters(store) -> None:
    for act in (
        lambda: store.add_texts("tb"),
        lambda: store.add_texts(["x"], ids="t"),
        lambda: store.get_by_ids("tb"),
        lambda: asyncio.run(store.aget_by_ids("tb")),
        lambda: store.delete("tb"),
        lambda: store.pages.remove("tb"),
        lambda: store.accesses.record("tb"),
        lambda: store.accesses.read("tb"),
        lambda: store.search("x", initial_roots="tb"),
        lambda: LinkStore.from_texts("tb"),
    ):
        with pytest.raises(ArgumentError, match=r"must be a list of strings, not '(tb|t)'"):
            act()
    assert store.survey().documents == 2


@pytest.mark.parametrize("wrong", [3, None, b"t", UUID(int=0), ["t"]])
def test_an_id_that_is_not_a_string_is_refused(store, wrong) -> None:
    """It was ignored like an id that no document has: a document that was to be deleted stayed."""
    for act in (
        lambda: store.get_by_ids(["t", wrong]),
        lambda: store.delete(["t", wrong]),
        lambda: asyncio.run(store.adelete(["t", wrong])),
        lambda: store.pages.remove(["t", wrong]),
        lambda: store.accesses.record(["t", wrong]),
        lambda: store.accesses.read(["t", wrong]),
        lambda: store.links.replace(["k"], {"t": [], 3: []}),
        lambda: store.search("x", initial_roots=["t", wrong]),
    ):
        with pytest.raises(ArgumentError, match=r"must be a string, not "):
            act()
    assert store.survey().documents == 2
    assert store.accesses.read(["t"]) == {}


def test_what_is_no_document_and_no_link_is_named() -> None:
    for act in (get_links, add_links, copy_with_links, strip_links):
        with pytest.raises(ArgumentError, match="document must be a Document of LangChain, not 'x'"):
            act("x")
    for given in ("x", "abc", None, 3, ["k", "t", "out"]):
        with pytest.raises(ArgumentError, match="must be a dict with kind, tag and direction, not "):
            Link.from_dict(given)


@pytest.mark.parametrize("metadatas", [{"a": 1}, [None], ["a"], "a", 3])
def test_metadata_that_is_not_a_dict_is_refused(store, metadatas) -> None:
    with pytest.raises(ArgumentError, match="metadatas must be a list of dicts"):
        store.add_texts(["x"], metadatas)


def test_metadata_may_come_from_a_generator(store) -> None:
    store.add_texts((text for text in "xy"), ({"n": n} for n in range(2)), ids=iter(["x", "y"]))
    assert [one.metadata for one in store.get_by_ids(["x", "y"])] == [{"n": 0}, {"n": 1}]
    with pytest.raises(DocumentError, match="got 1 texts and 2 metadatas"):
        asyncio.run(store.aadd_texts(["z"], ({"n": n} for n in range(2))))
    assert LinkStore.from_texts(["z"], store.embeddings, ({"n": n} for n in range(1))).survey().documents == 1


class Faulty(Embeddings):
    """Gives what it is told to."""

    gives: object = None

    def embed_documents(self, texts):
        return [[1.0, 2.0, 3.0] for _ in texts] if self.gives is None else [self.gives for _ in texts]

    def embed_query(self, text):
        return self.gives


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "gives",
    [
        "abc",
        "123",
        ["a", "b", "c"],
        ["1", "2", "3"],
        [[1, 2], [3]],
        {"vector": [1, 2, 3]},
        [float("nan"), 1, 2],
        [1e300, 1, 2],
        [10**400, 1, 2],
        [0, 0, 0],
        [1, None, 2],
        [1j, 2, 3],
        [],
        5,
    ],
    ids=repr,
)
def test_what_is_no_vector_is_refused_for_questions_and_for_documents(gives) -> None:
    embedding = Faulty()
    with LinkStore.open(":memory:", embedding) as store:
        store.add_texts(["a"])
        embedding.gives = gives
        for ask in (
            lambda: store.search("a"),
            lambda: asyncio.run(store.asearch("a")),
            lambda: store.similarity_search("a"),
        ):
            with pytest.raises(EmbeddingError, match=r"must give a list of numbers|vector of the question"):
                ask()
        for add in (lambda: store.add_texts(["b"]), lambda: asyncio.run(store.aadd_texts(["b"]))):
            with pytest.raises(LinkStoreError, match=r"must give a list of numbers|vector of document '"):
                add()
        assert store.survey().documents == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "given", [[float("nan")] * 16, [1e300] * 16, [0.0] * 16, [float("inf")] * 16], ids=repr
)
def test_a_question_without_a_direction_is_called_a_question(store, given) -> None:
    with pytest.raises(
        EmbeddingError, match=r"vector of the question (is zero|has a number that is not finite)"
    ):
        store.search(given)


@pytest.mark.parametrize("name", ["persist_directory", "collection_name"])
def test_an_argument_of_another_vector_store_is_named_with_those_there_are(name) -> None:
    with pytest.raises(TypeError, match=rf"no argument '{name}'; it has create, max_depth, path, settings"):
        LinkStore.from_texts(["x"], **{name: "kb"})


@pytest.mark.parametrize("given", ["wordllama", WordLlamaEmbeddings, 3])
def test_what_is_not_an_embedding_is_refused(given) -> None:
    """A class would be stored under the name of its metaclass."""
    with pytest.raises(TypeError, match=r"must be an object such as get_embedding\('wordllama'\)"):
        LinkStore.open(":memory:", given)
