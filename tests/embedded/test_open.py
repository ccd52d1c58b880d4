"""Opening what is no store, another format or another embedding; verify and repair."""

from __future__ import annotations

import apsw
import pytest
from internals import APPLICATION_ID, FORMAT_VERSION, Manifest
from langchain_core.embeddings import DeterministicFakeEmbedding, FakeEmbeddings
from stores import (
    DIMENSION,
    SNAPSHOTS,
    backend,
    document,
    documents,
    embedding,
    exact,
    nearest,
    put,
    sql,
    vectors,
)

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import (
    EmbeddingError,
    StoreFormatError,
    StoreNotFoundError,
)
from linkstore.strategies import Eager, Similarity

ASKED = vectors([10_000])[0]


def test_a_missing_store_is_not_made_when_it_must_be_there(tmp_path) -> None:
    with pytest.raises(StoreNotFoundError, match="no linkstore at"):
        LinkStore.open(tmp_path / "kb", embedding(), create=False)
    assert not (tmp_path / "kb").exists()


def test_a_file_is_no_store(tmp_path) -> None:
    (tmp_path / "kb").write_text("text")
    with pytest.raises(StoreFormatError, match="is a file; a linkstore is a folder"):
        LinkStore.open(tmp_path / "kb", embedding())
    assert (tmp_path / "kb").read_text() == "text"


def test_another_sqlite_database_is_refused_and_left_alone(tmp_path) -> None:
    sql(tmp_path, "CREATE TABLE mine (a)", "INSERT INTO mine VALUES (1)")
    with pytest.raises(StoreFormatError, match="not one of linkstore's"):
        LinkStore.open(tmp_path, embedding())
    connection = apsw.Connection(str(tmp_path / "linkstore.db"))
    assert connection.execute("SELECT a FROM mine").get == 1
    connection.close()


def test_a_file_that_is_no_database_is_refused(tmp_path) -> None:
    (tmp_path / "linkstore.db").write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(StoreFormatError, match="damaged"):
        LinkStore.open(tmp_path, embedding())


def test_a_newer_format_is_refused(tmp_path) -> None:
    backend(tmp_path / "kb").close()
    sql(tmp_path / "kb", f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    with pytest.raises(
        StoreFormatError, match=f"format {FORMAT_VERSION + 1}, .* open it with the version that wrote it"
    ):
        EmbeddedBackend(tmp_path / "kb")


def test_the_file_says_whose_it_is_and_reads_well(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 3)
    store.close()
    connection = apsw.Connection(str(tmp_path / "kb" / "linkstore.db"))
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("user_version") == FORMAT_VERSION
    row = connection.execute("SELECT id, text, metadata ->> 'n' FROM document ORDER BY id").fetchone()
    assert row == ("d0", "doc 0 v0", 0)
    links = connection.execute(
        "SELECT kind, tag, direction FROM link JOIN link_group ON link_group.key = link_group"
        " JOIN document ON document.key = document WHERE id = 'd1' ORDER BY 1, 2"
    ).fetchall()
    assert links == [("hyperlink", "u1", "in"), ("hyperlink", "u7", "out"), ("keyword", "k1", "bidir")]
    connection.close()


def test_another_embedding_is_refused_and_named(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_documents(documents(0, 2))
    named = pytest.raises(EmbeddingError, match=r"DeterministicFakeEmbedding.*not .*FakeEmbeddings")
    with LinkStore.open(tmp_path / "kb", FakeEmbeddings(size=DIMENSION)) as store, named:
        store.search("x")
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        assert len(store.similarity_search("x", k=5)) == 2


def test_another_dimension_is_refused(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        store.add_documents(documents(0, 2))
    with LinkStore.open(tmp_path / "kb", DeterministicFakeEmbedding(size=DIMENSION + 1)) as store:
        for use in (lambda: store.add_documents(documents(2, 3)), lambda: store.search("x")):
            with pytest.raises(EmbeddingError, match=f"dimension {DIMENSION}.*gives {DIMENSION + 1}"):
                use()


def test_the_embedding_is_recorded_with_the_first_document(tmp_path) -> None:
    with LinkStore.open(tmp_path / "kb", FakeEmbeddings(size=3)):
        pass
    with LinkStore.open(tmp_path / "kb", embedding()) as store:
        assert store.backend.run(store.backend.manifest()) == Manifest()
        store.add_documents(documents(0, 1))
        recorded = store.backend.run(store.backend.manifest())
        assert recorded.dimension == DIMENSION
        assert str(recorded.embedding).endswith("DeterministicFakeEmbedding")


DAMAGE = {
    "links removed": ["DELETE FROM link WHERE document % 5 = 0"],
    "links of other directions": ["UPDATE link SET direction = 'in' WHERE document = 7"],
    "links without a document": ["INSERT INTO link VALUES (9999, 1, 'out', NULL, 1.0)"],
    "a link group removed": ["DELETE FROM link_group WHERE key = 3"],
    "a vector without a document": ["INSERT INTO vector VALUES (9999, zeroblob(64))"],
    "a wrong count": ["UPDATE setting SET value = 7 WHERE name = 'documents'"],
    "links that cannot be read": ["UPDATE document SET links = '[{' WHERE id = 'd4'"],
    "links that are none": ["""UPDATE document SET links = '[{"kind": ""}]' WHERE id = 'd4'"""],
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("count", [40, 200], ids=["exact", "indexed"])
def test_damage_by_hand_is_found_and_mended(tmp_path, kind, count) -> None:
    folder = tmp_path / "kb"
    store = LinkStore.open(folder, embedding(), settings=SNAPSHOTS)
    store.add_documents(documents(0, count))
    searches = [(f"doc {n} v0", Eager(start_k=3, depth=2)) for n in range(4)]
    before = [_shown(store, *search) for search in searches]
    store.close()
    sql(folder, *DAMAGE[kind])
    store = LinkStore.open(folder, embedding(), settings=SNAPSHOTS)
    report = store.verify()
    assert not report.sound
    assert all(finding.count > 0 for finding in report.findings)
    assert store.verify() == report
    assert store.verify(repair=True) == report
    assert store.verify().sound
    assert [_shown(store, *search) for search in searches] == before
    store.close()
    store = LinkStore.open(folder, embedding(), settings=SNAPSHOTS)
    assert store.verify().sound
    assert [_shown(store, *search) for search in searches] == before
    assert store.survey().documents == count
    store.close()


def _shown(store: LinkStore, query: str, strategy) -> list[tuple[object, ...]]:
    hits = store.search(query, strategy=strategy)
    return [(hit.document.id, hit.document.page_content, hit.score, str(hit.path)) for hit in hits]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM vector WHERE key = 3",
        "UPDATE vector SET embedding = x'00' WHERE key = 3",
    ],
)
def test_a_document_without_its_vector_is_named_and_removed(tmp_path, damage) -> None:
    store = LinkStore.open(tmp_path / "kb", embedding())
    store.add_documents(documents(0, 20))
    store.close()
    sql(tmp_path / "kb", damage)
    store = LinkStore.open(tmp_path / "kb", embedding())
    report = store.verify()
    assert report.findings[0].examples == ("d2",)
    store.verify(repair=True)
    assert store.verify().sound
    assert store.get_by_ids(["d2"]) == []
    store.add_documents([document(2)])
    assert store.search("doc 2 v0", strategy=Similarity(k=1))[0].document.id == "d2"
    store.close()


def test_metadata_that_cannot_be_read_is_named_and_nothing_else_is_lost(tmp_path) -> None:
    store = LinkStore.open(tmp_path / "kb", embedding())
    store.add_documents(documents(0, 20))
    store.close()
    sql(tmp_path / "kb", "UPDATE document SET metadata = '{', links = '[' WHERE id = 'd2'")
    store = LinkStore.open(tmp_path / "kb", embedding())
    store.verify(repair=True)
    report = store.verify()
    assert [finding.examples for finding in report.findings] == [("d2",)]
    assert "add them again" in report.findings[0].problem
    store.add_documents([document(2)])
    assert store.verify().sound
    assert store.survey().documents == 20
    store.close()


def test_an_empty_store_can_be_repaired(tmp_path) -> None:
    EmbeddedBackend(tmp_path / "kb").close()
    sql(tmp_path / "kb", "UPDATE setting SET value = 5 WHERE name = 'documents'")
    store = LinkStore.open(tmp_path / "kb", embedding())
    assert not store.verify(repair=True).sound
    assert store.verify().sound
    assert store.search("x").reason == "the store is empty"
    store.add_documents(documents(0, 2))
    assert len(store.search("x")) == 2
    store.close()


def test_repair_is_seen_by_stores_that_are_open(tmp_path) -> None:
    first = backend(tmp_path / "kb")
    put(first, 0, 200)
    first.run(first.flush())
    assert nearest(first, ASKED) == exact(range(200), ASKED)
    sql(tmp_path / "kb", "DELETE FROM vector WHERE key <= 50")
    second = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    second.run(second.repair())
    assert nearest(second, ASKED, 300) == exact(range(50, 200), ASKED, 300)
    assert nearest(first, ASKED, 300) == exact(range(50, 200), ASKED, 300)
    first.close()
    second.close()
