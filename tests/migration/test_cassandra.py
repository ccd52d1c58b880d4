"""Migration on a real server: embedded to Cassandra and back, and from tables of langchain-community."""

from __future__ import annotations

import itertools
import json
import time
import uuid
import warnings
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_server import connect
from cassandra_tables import own_keyspace
from documented import ROOT, linkstore, run_markdown
from internals import CassandraBackend, CassandraSettings, CommunityTable, Manifest, WriteBatch
from langchain_core.documents import Document
from migrating import PAGES, every, same
from stores import DIMENSION, backend, embedding, record, records

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.embeddings import get_embedding, name_embedding
from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import StoreFormatError, StoreNotFoundError, StoreUnavailableError
from linkstore.store import migrate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from cassio.table import ClusteredMetadataVectorCassandraTable
    from langchain_community.graph_vectorstores.cassandra import CassandraGraphVectorStore
    from langchain_community.graph_vectorstores.links import Link as TheirLink
    from langchain_community.vectorstores import Cassandra

NAME = name_embedding(embedding())
NUMBERS = itertools.count()


@pytest.fixture
def target(tmp_path):
    """An empty embedded store."""
    made = EmbeddedBackend(tmp_path / "target")
    yield made
    made.close()


@pytest.fixture(scope="module")
def tables(cassandra_session):
    """A keyspace of this module: making one takes a second."""
    with own_keyspace(cassandra_session, "migration") as name:
        yield name


@pytest.fixture
def at(cassandra_session, tables):
    """Where a test's own table lies: session, keyspace and name."""
    return cassandra_session, tables, f"t{next(NUMBERS)}"


@pytest.fixture
def url(cassandra, tables):
    """The URL of a table."""
    return lambda table: cassandra.store_url(tables, table)


def community(at) -> CommunityTable:
    """A table as a source."""
    session, keyspace, table = at
    return CommunityTable(embedding(), table=table, session=session, keyspace=keyspace)


def wait_for_indexes(at) -> None:
    """Until the server answers from a new table's indexes; cassio does not wait for that."""
    session, keyspace, table = at
    look = (
        "SELECT is_queryable FROM system_views.sai_column_indexes"
        " WHERE keyspace_name = %s AND table_name = %s ALLOW FILTERING"
    )
    until, found = time.monotonic() + 30, []
    while not found or not all(found):
        assert time.monotonic() < until, "the indexes are not there after 30 s"
        found = [row.is_queryable for row in session.execute(look, (keyspace, table))]


@pytest.fixture
def graph(at):
    """langchain-community's graph store over an empty table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = CassandraGraphVectorStore(embedding(), *at)
    wait_for_indexes(at)
    return made


@pytest.fixture
def plain(at):
    """langchain-community's vector store over an empty table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Cassandra(embedding(), *at)
    wait_for_indexes(at)
    return made


def page(number: int) -> Document:
    """A document as langchain-community takes it: it leads to the next and shares a word with every third."""
    links = {
        TheirLink.outgoing("hyperlink", f"u{number + 1}"),
        TheirLink.incoming("hyperlink", f"u{number}"),
        TheirLink.bidir("keyword", f"k{number % 3}"),
    }
    metadata = {"title": f"Page {number}", "year": 2000 + number, "links": links}
    return Document(id=f"p{number}", page_content=f"the page {number}", metadata=metadata)


# --- embedded and Cassandra -------------------------------------------------------------------


def test_there_and_back_nothing_changes(tmp_path, target, at):
    """Vectors bit for bit, link groups, pages' entries, times of access, notes, and the embedding's name."""
    source = backend(tmp_path / "source")
    source.run(source.write(WriteBatch(put=records(0, 60), put_pages=PAGES)))
    times = {one.id: 1_700_000_000_000_000 + n for n, one in enumerate(records(0, 60)) if n % 2}
    notes = {"min_similarity": "0.31", "schema": '{"version": 1}'}
    assert source.run(source.touch(times)) == len(times)
    for name, text in notes.items():
        source.run(source.set_note(name, text, None))
    middle = CassandraBackend(*at)

    there = migrate(source, middle, batch=25)
    back = migrate(middle, target, batch=25)

    before, between, after = every(source), every(middle), every(target)
    assert before.keys() == between.keys() == after.keys()
    assert all(same(before[one], between[one]) and same(before[one], after[one]) for one in before)
    assert target.run(target.pages(None)) == middle.run(middle.pages(None)) == PAGES
    assert target.run(target.manifest()) == source.run(source.manifest())
    for one in (middle, target):
        assert one.run(one.accessed(sorted(before))) == times
        assert {name: one.run(one.note(name)) for name in notes} == notes
    assert there.links == back.links == target.run(target.survey()).links
    assert middle.run(middle.verify()).sound
    source.close()


def test_a_run_out_of_cassandra_goes_on_in_the_order_of_the_ring(tmp_path, target, at):
    source = CassandraBackend(*at)
    source.run(source.claim(Manifest(embedding="test", dimension=DIMENSION)))
    source.run(source.write(WriteBatch(put=records(0, 60))))

    def stop(done, *_):
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(source, target, batch=10, checkpoint="run", progress=stop)
    assert len(every(target)) == 20
    report = migrate(source, target, batch=10, checkpoint="run")

    assert report.resumed
    assert (report.written.added, report.written.unchanged) == (60, 0)
    assert every(target).keys() == every(source).keys()


def test_a_document_that_the_server_refuses_is_named_and_the_rest_is_copied(tmp_path, at):
    """Its id is longer than the 64 KiB that a key may have."""
    source = backend(tmp_path / "source")
    long = "x" * 70_000
    source.run(source.write(WriteBatch(put=[*records(0, 5), replace(record(6), id=long)])))
    target = CassandraBackend(*at)

    report = migrate(source, target)

    assert list(report.refused) == [long]
    assert len(every(target)) == report.documents == 5
    source.close()


# --- from langchain-community -----------------------------------------------------------------


def test_a_graph_store_is_taken_over_with_vectors_links_and_metadata(graph, at, target):
    graph.add_documents([page(number) for number in range(20)])

    report = migrate(community(at), target, batch=6)

    assert (report.documents, report.refused) == (20, {})
    assert report.links == {"hyperlink": 40, "keyword": 20}
    taken = every(target)["p7"]
    assert taken.text == "the page 7"
    assert {key: value for key, value in taken.metadata.items() if key != "links"} == {
        "title": "Page 7",
        "year": "2007.0",
    }
    assert {(link.kind, link.tag, link.direction) for link in taken.links} == {
        ("hyperlink", "u8", "out"),
        ("hyperlink", "u7", "in"),
        ("keyword", "k1", "bidir"),
    }
    given = np.array(embedding().embed_documents(["the page 7"])[0])
    np.testing.assert_allclose(taken.vector, given / np.linalg.norm(given), atol=1e-6)


def test_the_store_taken_over_finds_what_the_graph_store_found(graph, at, target):
    """The same nearest document, and what it links to, without embedding anything again."""
    graph.add_documents([page(number) for number in range(20)])
    migrate(community(at), target)
    store = LinkStore(embedding(), backend=target)

    for query in ("the page 3", "the page 15"):
        theirs = graph.traversal_search(query, k=1, depth=1)
        ours = store.traversal_search(query, k=1, depth=1)
        assert {one.id for one in ours} == {one.id for one in theirs}


def test_documents_added_without_links_or_ids_are_taken_over(graph, at, target):
    ids = graph.add_texts(["one", "two"], [{"a": "b"}, {}])

    report = migrate(community(at), target)

    assert every(target).keys() == set(ids)
    assert report.links == {}
    assert every(target)[next(iter(ids))].metadata == {"a": "b"}


def test_a_plain_vector_store_is_taken_over(plain, at, target):
    """Without links; its metadata are strings already."""
    plain.add_texts(
        [f"text {n}" for n in range(10)], [{"n": n, "ok": True} for n in range(10)], ids=list("abcdefghij")
    )

    report = migrate(community(at), target, batch=4)

    assert (report.documents, report.links, report.refused) == (10, {}, {})
    assert every(target)["d"].metadata == {"n": "3.0", "ok": "true"}
    found = LinkStore(embedding(), backend=target).similarity_search("text 3", k=3)
    assert [one.id for one in found] == [one.id for one in plain.similarity_search("text 3", k=3)]


@pytest.mark.parametrize("order", ["ASC", "DESC"])
def test_a_clustered_table_is_read_partition_by_partition(at, order):
    """However rows lie in pages; ids are unique by their partition, and keys need not be text."""
    session, keyspace, name = at
    table = ClusteredMetadataVectorCassandraTable(
        session=session,
        keyspace=keyspace,
        table=name,
        vector_dimension=DIMENSION,
        partition_id_type="TEXT",
        row_id_type="UUID",
        ordering_in_partition=order,
    )
    keys = [(f"a/{number % 2}", uuid.UUID(int=number // 2)) for number in range(12)]
    for partition, row in keys:
        table.put(partition_id=partition, row_id=row, body_blob="", vector=[1.0] * DIMENSION, metadata={})

    for batch in (1, 3, 5, 6, 50):
        source, got, after = community(at), [], None
        while (read := source.batch(after, batch)).cursor is not None:
            got += [one.id for one in read.records]
            after = read.cursor
        assert sorted(got) == sorted(f"{quote(partition, safe='')}/{row}" for partition, row in keys)


VECTOR = [1.0] + [0.0] * (DIMENSION - 1)
LONG = json.dumps([{"kind": "k", "tag": "t" * 9000, "direction": "in"}])
BAD = {
    "no text": ((None, VECTOR, None, None), "no text"),
    "no vector": (("a", None, None, None), "no vector"),
    "zero": (("a", [0.0] * DIMENSION, None, None), "'zero' is zero"),
    "no json": (("a", VECTOR, "{", None), "metadata cannot be read"),
    "no object": (("a", VECTOR, "[1]", None), "not a JSON object"),
    "big number": (("a", VECTOR, json.dumps({"n": 2**70}), None), "64-bit"),
    "a set": (("a", VECTOR, None, {"links": "{Link(kind='k', direction='in', tag='t')}"}), "not valid JSON"),
    "a dict": (("a", VECTOR, None, {"links": '{"kind": "k"}'}), "list of links"),
    "no direction": (("a", VECTOR, json.dumps({"links": '[{"kind": "k", "tag": "t"}]'}), None), "direction"),
    "long tag": (("a", VECTOR, json.dumps({"links": LONG}), None), "9000 bytes"),
}
"""Rows that make no record, and what is said of them."""


def test_what_cannot_be_taken_is_reported_by_id_and_skipped(graph, at, target):
    """Nothing else is lost, and nothing is silent. An index by cosine would not take a zero vector."""
    session, keyspace, table = at
    graph.add_documents([page(number) for number in range(3)])
    session.execute(f'DROP INDEX "{keyspace}".idx_vector_{table}')
    insert = session.prepare(
        f'INSERT INTO "{keyspace}".{table} (row_id, body_blob, vector, attributes_blob, metadata_s)'
        " VALUES (?, ?, ?, ?, ?)"
    )
    for name, (values, _) in BAD.items():
        session.execute(insert, (name, *values))
    session.execute(insert, ("fine", "a", VECTOR, json.dumps({"links": "[]", "n": 1}), {"s": "t"}))

    report = migrate(community(at), target, batch=5)

    assert every(target).keys() == {"p0", "p1", "p2", "fine"}
    assert every(target)["fine"].metadata == {"n": 1, "s": "t"}
    assert report.refused.keys() == BAD.keys()
    for name, (_, reason) in BAD.items():
        assert reason in report.refused[name]


def test_a_run_over_a_community_table_goes_on(graph, at, target, tmp_path):
    graph.add_documents([page(number) for number in range(30)])

    def stop(done, *_):
        if done == 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(community(at), target, batch=7, checkpoint="run", progress=stop)
    report = migrate(community(at), target, batch=7, checkpoint="run")

    assert (report.written.added, report.written.unchanged, report.resumed) == (30, 0, True)


def test_a_server_that_goes_away_ends_the_run_and_the_next_goes_on(graph, at, target, proxied, tmp_path):
    """With a typed error, soon, and nothing lost."""
    _, keyspace, table = at
    graph.add_documents([page(number) for number in range(30)])
    with connect([proxied.host], proxied.port) as session:
        source = CommunityTable(
            embedding(),
            table=table,
            session=session,
            keyspace=keyspace,
            settings=CassandraSettings(timeout=0.5, deadline=1.0),
        )
        with pytest.raises(StoreUnavailableError, match="could not read documents: Cassandra at 127"):
            migrate(source, target, batch=7, checkpoint="run", progress=lambda *_: proxied.cut())
    assert len(every(target)) == 7

    report = migrate(community(at), target, batch=7, checkpoint="run")

    assert (report.written.added, report.resumed) == (30, True)


def test_a_table_that_is_not_there_or_of_another_kind_is_refused(at):
    session, keyspace, table = at
    with pytest.raises(StoreNotFoundError, match=f"table '{table}' .* does not exist"):
        community(at)
    session.execute(f'CREATE TABLE "{keyspace}".{table} (id text PRIMARY KEY, name text)')
    with pytest.raises(StoreFormatError, match="not made by langchain-community: it has id, name"):
        community(at)
    odd = f"{table}odd"
    session.execute(
        f'CREATE TABLE "{keyspace}".{odd} (id double PRIMARY KEY, body_blob text, vector vector<float, 3>)'
    )
    with pytest.raises(StoreFormatError, match="key of id double"):
        community((session, keyspace, odd))


# --- the command ------------------------------------------------------------------------------


def test_the_command_takes_a_community_table_to_a_folder_and_to_cassandra(graph, at, url, tmp_path):
    graph.add_documents([page(number) for number in range(5)])
    table = at[2]
    folder, words = str(tmp_path / "kb"), ("--embedding-name", NAME, "--json")

    for target in (folder, url(f"{table}_taken")):
        code, out, err = linkstore("migrate", url(at[2]), target, *words)
        assert (code, err) == (0, "")
        report = json.loads(out)
        assert report["written"]["added"] == 5
        assert report["links"] == {"hyperlink": 10, "keyword": 5}
    code, out, _ = linkstore("migrate", url(f"{table}_taken"), folder, "--json")
    assert (code, json.loads(out)["written"]["unchanged"]) == (0, 5)
    with LinkStore.open(folder, embedding()) as store:
        assert store.survey().documents == 5


def test_the_embedding_of_a_community_table_must_be_named(graph, at, url, tmp_path):
    graph.add_documents([page(0)])

    code, _, err = linkstore("migrate", url(at[2]), str(tmp_path / "kb"))

    assert code == exits.EMBEDDING_MISSING
    assert "--embedding-name" in err
    assert not (tmp_path / "kb").exists()


def test_the_table_of_langchain_community_is_no_target(graph, at, url, tmp_path):
    session, keyspace, table = at
    backend(tmp_path / "kb").close()

    code, _, err = linkstore("migrate", str(tmp_path / "kb"), url(table))

    assert code == exits.DAMAGED
    assert "name another one" in err
    look = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    assert f"{table}_settings" not in {one.table_name for one in session.execute(look, (keyspace,))}


def test_a_source_that_is_none_is_said(at, url, tmp_path):
    session, keyspace, table = at
    session.execute(f'CREATE TABLE "{keyspace}".{table} (id text PRIMARY KEY, name text)')

    for name, code, said in (
        (f"{table}x", exits.NOT_FOUND, "has no store named"),
        (table, exits.DAMAGED, "id, name"),
    ):
        got, _, err = linkstore("migrate", url(name), str(tmp_path / "kb"))
        assert (got, said in err) == (code, True)
    assert not (tmp_path / "kb").exists()


def test_the_page_on_migration_runs_and_prints_what_it_shows(cassandra, at, tmp_path):
    """On this server, over a table that langchain-community made before."""
    session, keyspace, _ = at
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        articles = CassandraGraphVectorStore(get_embedding("wordllama"), session, keyspace, "articles")
    words = {3: "the third article"}
    articles.add_documents(
        [
            page(number).model_copy(update={"page_content": words.get(number, f"article number {number}")})
            for number in range(20)
        ]
    )
    session.execute(f'INSERT INTO "{keyspace}".articles (row_id) VALUES (%s)', ("p20",))
    text = (ROOT / "docs" / "how-to" / "migrate.md").read_text()
    replaced = {"9042": str(cassandra.port), "/linkstore/": f"/{keyspace}/", '"linkstore"': f'"{keyspace}"'}
    for there, here in replaced.items():
        assert there in text
        text = text.replace(there, here)
    (tmp_path / "page.md").write_text(text)

    assert run_markdown(tmp_path / "page.md", tmp_path) == 7
