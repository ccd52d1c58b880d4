"""Rows that no client of linkstore wrote, or that lost a column: what ``verify`` says, and what works."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from internals import CassandraSettings
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.errors import StoreClosedError, StoreFormatError
from linkstore.strategies import Eager, Words

COLUMNS = ("digest", "vector", "body", "attributes", "links", "written_links")
DAMAGES = (
    *(f"DELETE {column} FROM T WHERE id = 'd3'" for column in COLUMNS),
    *(f"UPDATE T SET attributes = '{text}' WHERE id = 'd3'" for text in ("{", "[1]", "")),
)
"""Statements after which a row is no whole document."""
SECONDS = 60


@pytest.fixture
def store(cassandra_session, emptied_keyspace):
    """Twenty documents that share a word and a link group."""
    opened = LinkStore.cassandra(
        embedding(),
        session=cassandra_session,
        keyspace=emptied_keyspace,
        settings=CassandraSettings(settle=1e-6),
    )
    opened.add_documents([document(f"d{n}") for n in range(20)])
    return opened


def document(id: str):
    from langchain_core.documents import Document

    made = Document(id=id, page_content=f"apple number {id}", metadata={"n": 1})
    add_links(made, Link.bidir(kind="k", tag="t"))
    return made


def cql(store, text: str, *values):
    """Behind the store's back; ``T`` stands for the start of its tables' names."""
    tables = store.backend._tables
    named = re.sub(r"\bT(_\w+)?\b", rf'"{tables.keyspace}"."{tables.name}\1"', text)
    return list(store.backend._executor.session.execute(named, values or None))


def problems(store) -> list[tuple[str, int]]:
    return [(finding.problem.split(" ")[0], finding.count) for finding in store.verify().findings]


def with_apple(store) -> set[str]:
    return {hit.document.id for hit in store.search("apple", strategy=Words(k=50))}


def test_a_wrong_word_in_the_place_of_a_right_one_is_found_and_mended(store):
    """The number of rows is right, and so are their states."""
    rows = cql(store, "SELECT shard, bucket, word, hash, id, states FROM T_words")
    (row,) = (row for row in rows if (row.id, row.word) == ("d3", "apple"))
    where = "WHERE shard = %s AND bucket = %s AND word = %s AND hash = %s AND id = %s"
    cql(store, f"DELETE FROM T_words {where}", *row[:5])
    cql(store, INSERT, row.shard, row.bucket, "apple0", row.hash, row.id, row.states)
    assert "d3" not in with_apple(store)
    assert problems(store) == [("words", 1), ("documents", 1)]
    store.verify(repair=True)
    assert store.verify().sound
    assert "d3" in with_apple(store)
    assert sorted(cql(store, "SELECT shard, bucket, word, hash, id, states FROM T_words")) == sorted(rows)


INSERT = "INSERT INTO T_words (shard, bucket, word, hash, id, states) VALUES (%s, %s, %s, %s, %s, %s)"


@pytest.mark.parametrize(("shard", "bucket"), [(999, 7), (-1, 0), (None, 3)])
@pytest.mark.parametrize("id", ["ghost", "d3"])
def test_rows_where_no_word_can_be_are_found_and_removed(store, shard, bucket, id):
    rows = cql(store, "SELECT shard, bucket, word, hash, id, states FROM T_words")
    (row,) = (row for row in rows if (row.id, row.word) == ("d3", "apple"))
    place = row.shard if shard is None else shard, bucket
    cql(store, INSERT, *place, "apple", row.hash, id, row.states)
    assert problems(store) == [("words", 1)]
    store.verify(repair=True)
    assert store.verify().sound
    assert sorted(cql(store, "SELECT shard, bucket, word, hash, id, states FROM T_words")) == sorted(rows)


@pytest.mark.parametrize("states", [None, "0x", "0x01", "0x" + "ff" * 24], ids=str)
@pytest.mark.parametrize("table", ["members", "words"])
def test_rows_whose_states_are_missing_or_damaged_harm_no_search(store, table, states):
    """Whoever writes rows by hand may leave the column empty; the document tells what is right."""
    columns = {
        "members": "kind, tag, side, bucket, id",
        "words": "shard, bucket, word, hash, id",
    }[table]
    for row in cql(store, f"SELECT {columns} FROM T_{table}"):
        if row.id in {"d3", "d4"}:
            key = " AND ".join(f"{name} = %s" for name in columns.split(", "))
            cql(store, f"DELETE states FROM T_{table} WHERE {key}", *row)
            cql(store, f"INSERT INTO T_{table} ({columns}) VALUES (%s, %s, %s, %s, %s)", *row)
            cql(store, f"INSERT INTO T_{table} ({columns}) VALUES (%s, %s, %s, %s, 'ghost')", *row[:-1])
            if states:
                cql(store, f"UPDATE T_{table} SET states = {{{states}}} WHERE {key}", *row)
    every = {f"d{n}" for n in range(20)}
    for limited in (None, {"n": 1}, {"n": {"$ne": 2}}):
        reached = store.search(
            "apple", strategy=Eager(start_k=1, k=50, depth=1, adjacent_k=50), filter=limited
        )
        assert {hit.document.id for hit in reached} == every
        worded = store.search("apple", strategy=Words(k=50), filter=limited)
        assert {hit.document.id for hit in worded} == every
    store.verify(repair=True)
    assert store.verify().sound


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_document_that_lacks_a_column_is_none_and_is_named(store, damage):
    """It is not found by any search; verify, repair and writes work, and to add it again mends it."""
    cql(store, damage)
    others = {f"d{n}" for n in range(20)} - {"d3"}
    assert {one.id for one in store.scan()} == with_apple(store) == others
    assert store.get_by_ids(["d3"]) == []
    assert {hit.document.id for hit in store.search("apple", strategy=Eager(k=50, depth=1))} <= others
    assert {hit.document.id for hit in store.search("apple", strategy=Eager(k=50), filter={"n": 1})} <= others
    finding = store.verify().findings[-1]
    assert (finding.count, finding.examples) == (1, ("d3",))
    assert "lack a column" in finding.problem
    store.links.replace(["k"], {"d3": [], "d4": []})
    store.verify(repair=True)
    assert store.verify().findings == (finding,)
    store.add_documents([document("d3")])
    assert [one.metadata for one in store.get_by_ids(["d3"])] == [document("d3").metadata]
    assert store.verify().sound


@pytest.mark.parametrize("column", COLUMNS)
def test_a_document_that_lacks_a_column_is_not_counted(store, column):
    cql(store, f"DELETE {column} FROM T WHERE id = 'd3'")
    assert (store.survey().documents, store.survey().documents) == (19, 19)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_document_that_lacks_a_column_can_be_deleted(store, damage):
    cql(store, damage)
    store.delete(["d3"])
    assert cql(store, "SELECT id FROM T WHERE id = 'd3'") == []
    store.verify(repair=True)
    assert store.verify().sound


@pytest.mark.parametrize(
    "damage", ["relinked = {'k': '{'}", "links = '{', written_links = '{'", "relinked = {'k': ''}"]
)
def test_links_that_are_not_json_raise_an_error_that_names_the_document(store, damage):
    cql(store, f"UPDATE T SET {damage} WHERE id = 'd3'")
    for work in (
        lambda: store.get_by_ids(["d3"]),
        lambda: list(store.scan()),
        lambda: store.search("apple", strategy=Eager(start_k=50, k=50)),
        lambda: store.links.replace(["k"], {"d3": []}),
    ):
        with pytest.raises(StoreFormatError, match="links of document 'd3' are not JSON"):
            work()
    cql(store, "DELETE FROM T WHERE id = 'd3'")
    store.verify(repair=True)
    store.add_documents([document("d3")])
    assert store.verify().sound


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("prepared", [True, False])
def test_a_forked_child_is_told_at_once(store, prepared):
    """Also of what the parent did not prepare, and of a store that the child opens over its session."""
    if prepared:
        store.get_by_ids(["d1"])
    session, tables = store.backend._executor.session, store.backend._tables

    def again() -> object:
        return LinkStore.cassandra(
            embedding(), table=tables.name, session=session, keyspace=tables.keyspace, create=False
        )

    def told() -> bool:
        for work in (lambda: store.get_by_ids(["d1"]), store.survey, again):
            with pytest.raises(StoreClosedError, match="forked"):
                work()
        return True

    assert in_child(told) == 0
    assert store.survey().documents == 20


def in_child(work: Callable[[], bool]) -> int:
    """The status of a forked child: 0 if the work was true, in time."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1
