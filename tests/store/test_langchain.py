"""LinkStore as LangChain expects a vector store: its standard tests, its indexing API, its rules."""

from __future__ import annotations

import asyncio
import copy
from inspect import signature

import pytest
from indexing_cases import IndexingCases
from internals import HIT_KEY
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests
from stores import SNAPSHOTS, document, documents, embedding

from linkstore import Link, LinkRetriever, LinkStore, add_links, get_links
from linkstore.engines.embedded import EmbeddedSettings
from linkstore.errors import DocumentError, EmbeddingError, LinkError, StoreNotFoundError, StrategyError
from linkstore.strategies import Eager, Similarity


class TestStandardOnDisk(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        with LinkStore.open(tmp_path / "kb", self.get_embeddings()) as store:
            yield store


class TestStandardInMemory(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        with LinkStore(embedding=self.get_embeddings()) as store:
            yield store


class TestStandardRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return _retriever

    @property
    def retriever_constructor_params(self):
        return {}

    @property
    def retriever_query_example(self):
        return "doc 1 v0"


def _retriever(k: int | None = None) -> LinkRetriever:
    store = LinkStore.from_documents(documents(0, 40), embedding())
    return LinkRetriever(store=store, strategy=Eager(start_k=4, depth=1), k=k)


@pytest.fixture
def store(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding(), settings=SNAPSHOTS) as store:
        yield store


def in_store(store: LinkStore) -> dict[str | None, str]:
    return {found.id: found.page_content for found in store.scan()}


class TestIndexing(IndexingCases):
    """On the embedded store."""


def test_the_caller_s_documents_stay_untouched(store) -> None:
    """Not when they are added, not when they are found, not when what was found is changed."""
    given = documents(0, 10)
    given[3].id = None
    given.append(Document(id="set", page_content="x", metadata={"links": {Link.bidir(kind="k", tag="t")}}))
    before = copy.deepcopy(given)
    store.add_documents(given)
    store.search("doc 1 v0")
    assert given == before
    found = store.get_by_ids(["d1"])[0]
    found.metadata["links"].clear()
    found.metadata["n"] = 7
    assert store.get_by_ids(["d1"])[0].metadata == before[1].metadata


def test_metadata_comes_back_exactly_as_given(store) -> None:
    metadata = {
        "int": 1,
        "float": 1.0,
        "bool": True,
        "none": None,
        "text": "é\U0001f600\0",
        "list": [1, [2.5, None], {"a": []}],
        "big": 2**63 - 1,
        "": "empty key",
        "linkstore": "mine",
    }
    store.add_documents([Document(id="a", page_content="x", metadata=metadata)])
    every = [
        store.get_by_ids(["a"])[0],
        store.similarity_search("x", k=1)[0],
        store.similarity_search_with_score("x", k=1)[0][0],
        store.max_marginal_relevance_search("x", k=1)[0],
        store.search("x")[0].document,
        next(store.scan()),
    ]
    for found in every:
        assert found == Document(id="a", page_content="x", metadata=metadata)
        assert repr(found.metadata) == repr(metadata)


@pytest.mark.parametrize("links", [None, [], [{"kind": "k", "tag": "t", "direction": "out", "label": "l"}]])
def test_links_come_back_as_their_author_wrote_them(store, links) -> None:
    store.add_documents([Document(id="a", page_content="x", metadata={"links": links, "z": 1})])
    assert store.get_by_ids(["a"])[0].metadata == {"links": links, "z": 1}


def test_links_in_any_form_are_stored_as_plain_dicts(store) -> None:
    link = Link.bidir(kind="k", tag="t", label="l", weight=0.5)
    store.add_documents([Document(id="a", page_content="x", metadata={"links": (link, link.to_dict())})])
    found = store.get_by_ids(["a"])[0]
    assert found.metadata == {"links": [link.to_dict(), link.to_dict()]}
    assert get_links(found) == (link,)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), 2**70, {1: "a"}, b"x"])
def test_metadata_that_would_not_come_back_is_refused_before_anything_is_written(store, value) -> None:
    bad = Document(id="bad", page_content="x", metadata={"n": 1, "value": [value]})
    with pytest.raises(DocumentError, match=r"'bad' cannot be stored.*plain JSON"):
        store.add_documents([*documents(0, 5), bad], batch_size=2)
    assert in_store(store) == {}


def test_dates_become_strings_and_tuples_lists(store) -> None:
    from datetime import UTC, datetime

    when = datetime.now(UTC)
    store.add_texts(["x"], [{"when": when, "box": ((1, 2), (3, 4))}], ids=["a"])
    assert store.get_by_ids(["a"])[0].metadata == {"when": when.isoformat(), "box": [[1, 2], [3, 4]]}


def test_an_invalid_link_names_its_document_and_nothing_is_written(store) -> None:
    bad = Document(
        id="bad", page_content="x", metadata={"links": [{"kind": "", "tag": "t", "direction": "in"}]}
    )
    with pytest.raises(LinkError, match=r"'bad'.*kind must be a non-empty string"):
        store.add_documents([*documents(0, 5), bad], batch_size=2)
    assert in_store(store) == {}


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_an_id_that_cannot_be_stored_is_refused_when_written_and_unknown_when_asked(store, name) -> None:
    with pytest.raises(DocumentError, match="is not allowed"):
        store.add_texts(["x"], ids=[name])
    store.add_documents(documents(0, 2))
    assert store.get_by_ids([name, "d1"])[0].id == "d1"
    assert store.delete([name])
    assert len(store.search("x", initial_roots=[name])) == 2
    with pytest.raises(DocumentError, match="does not exist"):
        store.links.neighbours(name)


def test_unknown_arguments_raise_type_error(store) -> None:
    store.add_documents(documents(0, 3))
    wrong = {"fliter": {"c": 1}}
    for use in (
        lambda: store.add_documents([], **wrong),
        lambda: store.add_texts([], **wrong),
        lambda: store.delete([], **wrong),
        lambda: store.search("x", **wrong),
        lambda: store.similarity_search("x", **wrong),
        lambda: store.similarity_search_with_score("x", **wrong),
        lambda: store.similarity_search_by_vector([1.0] * 16, **wrong),
        lambda: store.max_marginal_relevance_search("x", **wrong),
        lambda: store.traversal_search("x", **wrong),
        lambda: store.mmr_traversal_search("x", **wrong),
        lambda: store.as_retriever(search_kwargs=wrong).invoke("x"),
        lambda: LinkStore.from_texts(["x"], embedding(), **wrong),
        lambda: asyncio.run(store.aadd_documents([], **wrong)),
        lambda: asyncio.run(store.asearch("x", **wrong)),
        lambda: asyncio.run(store.atraversal_search("x", **wrong)),
    ):
        with pytest.raises(TypeError, match="fliter"):
            use()


def test_scores_and_relevance(store) -> None:
    store.add_documents(documents(0, 30))
    scored = store.similarity_search_with_score("doc 3 v0", k=5)
    assert scored[0][0].id == "d3"
    assert scored[0][1] == pytest.approx(1.0)
    assert [score for _, score in scored] == sorted((score for _, score in scored), reverse=True)
    relevant = store.similarity_search_with_relevance_scores("doc 3 v0", k=5)
    assert [score for _, score in relevant] == pytest.approx([(1 + score) / 2 for _, score in scored])
    assert all(0 <= score <= 1 for _, score in relevant)
    above = store.similarity_search_with_relevance_scores("doc 3 v0", k=5, score_threshold=0.9)
    assert [found.id for found, _ in above] == ["d3"]


def test_filters_hold_in_every_search(store) -> None:
    store.add_documents(documents(0, 30))
    vector = embedding().embed_query("doc 3 v0")
    for found in (
        store.similarity_search("doc 3 v0", k=20, filter={"c": 1}),
        store.similarity_search_by_vector(vector, k=20, filter={"c": 1}),
        [one for one, _ in store.similarity_search_with_score("doc 3 v0", k=20, filter={"c": 1})],
        store.max_marginal_relevance_search("doc 3 v0", k=10, filter={"c": 1}),
        store.max_marginal_relevance_search_by_vector(vector, k=10, filter={"c": 1}),
        store.traversal_search("doc 3 v0", k=10, depth=2, filter={"c": 1}),
        store.mmr_traversal_search("doc 3 v0", k=10, depth=2, filter={"c": 1}),
    ):
        assert found
        assert {one.metadata["c"] for one in found} == {1}


async def test_async_gives_what_sync_gives(store) -> None:
    store.add_documents(documents(0, 60))
    vector = await embedding().aembed_query("doc 5 v0")
    ask = {"query": "doc 5 v0"}
    assert await store.aget_by_ids(["d1", "d2"]) == store.get_by_ids(["d1", "d2"])
    assert await store.asearch(**ask) == store.search(**ask)
    assert await store.asimilarity_search(**ask) == store.similarity_search(**ask)
    assert await store.asimilarity_search_with_score(**ask) == store.similarity_search_with_score(**ask)
    assert await store.asimilarity_search_by_vector(vector) == store.similarity_search_by_vector(vector)
    mmr = await store.amax_marginal_relevance_search(**ask)
    assert mmr == store.max_marginal_relevance_search(**ask)
    by_vector = await store.amax_marginal_relevance_search_by_vector(vector)
    assert by_vector == store.max_marginal_relevance_search_by_vector(vector) == mmr
    assert await store.atraversal_search(**ask, depth=2) == store.traversal_search(**ask, depth=2)
    assert await store.ammr_traversal_search(**ask) == store.mmr_traversal_search(**ask)
    relevant = await store.asimilarity_search_with_relevance_scores("doc 5 v0")
    assert relevant == store.similarity_search_with_relevance_scores("doc 5 v0")
    assert await store.adelete(["d1"])
    assert await store.aadd_documents([document(1)]) == ["d1"]
    assert await store.aadd_texts(["x"], ids=["x"]) == ["x"]
    assert store.survey().documents == 61


async def test_sync_methods_work_inside_a_running_loop(store) -> None:
    store.add_documents(documents(0, 40))
    assert store.search("doc 1 v0")[0].document.id == "d1"
    assert (
        store.as_retriever(search_type="traversal", search_kwargs={"k": 3, "depth": 1})
        .invoke("doc 1 v0")[0]
        .id
        == "d1"
    )
    assert LinkRetriever(store=store).invoke("doc 1 v0")[0].id == "d1"
    assert store.delete(["d1"])


def test_it_is_made_from_texts_and_documents(tmp_path) -> None:
    async def all_four() -> list[VectorStore]:
        texts, metadatas, ids = ["a", "b"], [{"n": 1}, {"n": 2}], ["1", "2"]
        docs = [
            Document(id=i, page_content=t, metadata=m) for i, t, m in zip(ids, texts, metadatas, strict=True)
        ]
        return [
            LinkStore.from_texts(texts, embedding(), metadatas, ids=ids),
            LinkStore.from_documents(docs, embedding(), path=tmp_path / "kb"),
            await LinkStore.afrom_texts(texts, embedding(), metadatas, ids=ids),
            await LinkStore.afrom_documents(docs, embedding()),
        ]

    for made in asyncio.run(all_four()):
        assert isinstance(made, LinkStore)
        assert [(one.id, one.metadata) for one in made.get_by_ids(["1", "2"])] == [
            ("1", {"n": 1}),
            ("2", {"n": 2}),
        ]
        made.close()
    with LinkStore.open(tmp_path / "kb", embedding(), create=False) as kept:
        assert kept.survey().documents == 2


def test_a_search_type_finds_what_langchain_s_method_finds(store) -> None:
    store.add_documents(documents(0, 20))
    near = store.search("doc 1 v0", "similarity", k=2)
    assert [hit.document for hit in near] == store.similarity_search("doc 1 v0", k=2)
    diverse = store.search("doc 1 v0", "mmr", k=2)
    assert [hit.document for hit in diverse] == store.max_marginal_relevance_search("doc 1 v0", k=2)
    relevant = store.search("doc 1 v0", "similarity_score_threshold", k=9, score_threshold=0.8)
    expected = store.similarity_search_with_relevance_scores("doc 1 v0", k=9, score_threshold=0.8)
    assert [(hit.document, (1 + hit.score) / 2) for hit in relevant] == expected
    assert 0 < len(relevant) < 9
    assert len(store.search("doc 1 v0", "similarity")) == 4
    with pytest.raises(StrategyError, match="no search_type 'nonsense'; it has 'links', 'traversal'"):
        store.search("doc 1 v0", "nonsense")


def test_traversal_carries_score_depth_and_path_beside_the_metadata(store) -> None:
    store.add_documents(documents(0, 40))
    found = store.traversal_search("doc 1 v0", k=1, depth=1)
    seed, linked = found[0], next(one for one in found if one.id == "d7")
    assert seed.metadata[HIT_KEY]["depth"] == 0
    assert linked.metadata[HIT_KEY]["depth"] == 1
    assert linked.metadata[HIT_KEY]["path"] == [
        {"id": "d1", "url": None, "kind": None, "tag": None, "label": None},
        {"id": "d7", "url": None, "kind": "hyperlink", "tag": "u7", "label": None},
    ]
    rest = {key: value for key, value in linked.metadata.items() if key != HIT_KEY}
    assert rest == document(7).metadata


def test_no_hit_has_a_reason(store) -> None:
    assert store.search("x").reason == "the store is empty"
    assert store.search("x", strategy=Similarity(k=3)).reason == "the store is empty"
    start = [Link.outgoing(kind="hyperlink", tag="nowhere")]
    assert store.search("x", initial_links=start).reason == "the store is empty"
    store.add_documents(documents(0, 3))
    assert "filter" in str(store.search("x", filter={"c": 9}).reason)


def test_the_last_of_several_with_one_id_counts(store) -> None:
    store.add_documents([document(1, 0), document(1, 1)])
    assert in_store(store) == {"d1": "doc 1 v1"}


def test_a_link_to_a_document_that_comes_later_works_when_it_comes(store) -> None:
    early = Document(id="early", page_content="early")
    add_links(early, Link.outgoing(kind="hyperlink", tag="late"))
    store.add_documents([early])
    assert store.survey().dangling == (("hyperlink", "late", 1),)
    late = Document(id="late", page_content="late")
    add_links(late, Link.incoming(kind="hyperlink", tag="late"))
    for _ in range(2):
        store.add_documents([late])
        hits = store.search(
            "early", strategy=Eager(start_k=1, depth=1), seed_filter={"x": {"$exists": False}}
        )
        assert {hit.document.id for hit in hits} == {"early", "late"}
        store.delete(["late"])
        assert {hit.document.id for hit in store.search("early", strategy=Eager(start_k=1))} == {"early"}


def test_vectors_that_cannot_be_compared_are_refused(store) -> None:
    class Zero(type(embedding())):
        def embed_documents(self, texts):
            return [[0.0] * 16 for _ in texts]

    with LinkStore(embedding=Zero(size=16)) as zero, pytest.raises(DocumentError, match="'a' is zero"):
        zero.add_texts(["x"], ids=["a"])
    store.add_documents(documents(0, 1))
    with pytest.raises(EmbeddingError, match="dimension"):
        store.similarity_search_by_vector([1.0, 2.0])


def test_a_store_that_cannot_be_filled_is_closed(tmp_path) -> None:
    """The folder can be opened for writing again at once; a backend of the caller's stays open."""
    place = tmp_path / "kb"
    with pytest.raises(DocumentError):
        LinkStore.from_texts(["x"], embedding(), [{"n": float("nan")}], path=place)
    with pytest.raises(DocumentError):
        asyncio.run(LinkStore.afrom_texts(["x"], embedding(), [{"n": float("nan")}], path=place))
    with LinkStore.open(place, embedding()) as store:
        assert store.add_texts(["x"])
        with pytest.raises(DocumentError):
            LinkStore.from_texts(["y"], embedding(), [{"n": float("nan")}], backend=store.backend)
        assert store.survey().documents == 1


def test_it_is_made_with_the_settings_of_open(tmp_path) -> None:
    settings = EmbeddedSettings(exact_below=7)
    with LinkStore.from_texts(["x"], embedding(), path=tmp_path / "kb", settings=settings) as store:
        assert store.backend._settings == settings
    with pytest.raises(StoreNotFoundError):
        LinkStore.from_texts(["x"], embedding(), path=tmp_path / "none", create=False)


WITHOUT_TWIN = {"as_retriever", "from_folder", "from_vault", "from_website"}
"""They wait for nothing, like properties, or show a bar while they index: see ``ingest.aindex``."""


def test_every_method_that_waits_has_an_async_twin_with_the_same_parameters() -> None:
    public = {name for name in dir(LinkStore) if not name.startswith("_")}
    public -= {name for name in public if isinstance(getattr(LinkStore, name), property)}
    sync = {name for name in public if f"a{name}" in public}
    alone = public - sync - {f"a{name}" for name in sync} - WITHOUT_TWIN
    assert alone == set()
    for name in sync - {"cassandra"}:
        own, twin = getattr(LinkStore, name), getattr(LinkStore, f"a{name}")
        assert list(signature(own).parameters) == list(signature(twin).parameters), name


def test_a_store_is_opened_without_blocking_the_event_loop(tmp_path) -> None:
    async def reopened() -> int:
        async with await LinkStore.aopen(tmp_path / "kb", embedding()) as store:
            await store.aadd_texts(["x"])
        async with await LinkStore.aopen(tmp_path / "kb", embedding(), create=False) as store:
            return (await store.asurvey()).documents

    assert asyncio.run(reopened()) == 1
    with pytest.raises(StoreNotFoundError):
        asyncio.run(LinkStore.aopen(tmp_path / "none", create=False))
