"""A store that is updated again and again answers, is verified and repaired as a fresh one is.

The server fails reads that meet more than a few deleted rows, so that a short history shows what a long one
would do to a server as it comes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stores import times

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_executors import Counting
from cassandra_server import Server, create_keyspace
from internals import (
    Candidates,
    CassandraBackend,
    CassandraSettings,
    Ids,
    Lexical,
    LexicalMatches,
    Manifest,
    Nearest,
    PageEntry,
    Plan,
    Record,
    Requests,
    Statement,
    WriteBatch,
    normalize_vector,
)

from linkstore import Link
from linkstore.errors import BackendError, StoreUnavailableError

THRESHOLD = 1_000
DOCUMENTS = 40
ROUNDS = times(60, 400)
KEYSPACE = "history"


def record(n: int, revision: int) -> Record:
    """All have a word and a link in common; a word and a link are of the revision."""
    vector = normalize_vector(
        np.random.default_rng(n + 1000 * revision).standard_normal(8).astype(np.float32)
    )
    links = (Link.bidir(kind="k", tag="all"), Link.outgoing(kind="k", tag=f"of {revision % 7}"))
    metadata: dict[str, Any] = {"links": [link.to_dict() for link in links]}
    text = f"report number{n} revision{revision}"
    return Record(id=f"d{n}", text=text, metadata=metadata, vector=vector, links=links)


def written(revision: int) -> WriteBatch:
    return WriteBatch(put=[record(n, revision) for n in range(DOCUMENTS)])


def by_word(word: str) -> Plan[list[str]]:
    found: LexicalMatches = yield Lexical(terms=(word,), k=1_000)
    ids: list[str] = yield Ids(refs=found.refs)
    return ids


@pytest.fixture(scope="module")
def session(cassandra_possible: None) -> Iterator[Any]:
    """Of a server that gives a read up early."""
    settings = {"tombstone_failure_threshold": THRESHOLD, "tombstone_warn_threshold": THRESHOLD // 2}
    with Server(settings=settings) as server, server.connect() as connected:
        create_keyspace(connected, KEYSPACE)
        yield connected


@pytest.fixture
def backend(session, request) -> CassandraBackend:
    made = CassandraBackend(session, KEYSPACE, request.node.originalname[-30:].strip("_"))
    made.run(made.claim(Manifest(embedding="history", dimension=8)))
    return made


def test_updates_leave_nothing_that_reads_must_pass(backend) -> None:
    """Far more updates of one word and one link group than the server lets a read pass over."""
    for revision in range(ROUNDS):
        backend.run(backend.write(written(revision)))
    assert ROUNDS * DOCUMENTS > 2 * THRESHOLD
    patient = CassandraBackend(
        backend._executor.session,
        KEYSPACE,
        backend._tables.name,
        settings=CassandraSettings(settle=1e-6),
    )
    for one in (backend, patient):
        assert sorted(one.run(one.answer(by_word("report")))) == sorted(f"d{n}" for n in range(DOCUMENTS))
        assert one.run(one.answer(by_word(f"revision{ROUNDS - 2}"))) == []
        assert one.run(one.survey()).documents == DOCUMENTS
        assert one.run(one.verify()).sound
        assert one.run(one.repair()).sound


def test_expired_documents_keep_nothing_from_working(session) -> None:
    """Each leaves as many deleted cells as it has columns and fields."""
    name, claim = "expired", Manifest(embedding="history", dimension=8)
    expiring = CassandraBackend(session, KEYSPACE, name, settings=CassandraSettings(ttl=3))
    lasting = CassandraBackend(session, KEYSPACE, name)
    expiring.run(expiring.claim(claim))
    gone = [replace(record(n, 1), id=f"gone{n}") for n in range(4 * DOCUMENTS)]
    lasting.run(lasting.write(written(1)))
    expiring.run(expiring.write(WriteBatch(put=gone)))
    ends = time.monotonic() + 60
    while lasting.run(lasting.survey()).documents > DOCUMENTS:
        assert time.monotonic() < ends
        time.sleep(0.2)
    near = lasting.run(lasting.answer(nearest(gone[0], 2 * DOCUMENTS)))
    assert sorted(near) == sorted(f"d{n}" for n in range(DOCUMENTS))
    assert len(lasting.run(lasting.scan(None, 1_000))) == DOCUMENTS
    assert lasting.run(lasting.verify()).sound


def nearest(to: Record, k: int) -> Plan[list[str]]:
    found: Candidates = yield Nearest(vector=to.vector, k=k)
    ids: list[str] = yield Ids(refs=found.refs)
    return ids


def test_removed_page_entries_keep_no_source_from_being_indexed(backend) -> None:
    entries = [PageEntry(source="s", url=f"u{n}", digest="", ids=()) for n in range(2 * THRESHOLD)]
    backend.run(backend.write(WriteBatch(put_pages=entries)))
    backend.run(backend.write(WriteBatch(remove_pages=[("s", entry.url) for entry in entries])))
    last = PageEntry(source="s", url="last", digest="1", ids=("a",))
    backend.run(backend.write(WriteBatch(put_pages=[last])))
    for source, urls in (("s", None), (None, None), (None, ["last", "u1"])):
        assert backend.run(backend.pages(source, urls)) == [last]


def test_what_is_removed_takes_no_more_statements_than_what_is_added(backend) -> None:
    """The rows of a partition are deleted together."""
    backend._executor = counting = Counting(backend._executor)
    backend.run(backend.write(written(1)))
    adding = counting.statements
    counting.reset()
    backend.run(backend.write(WriteBatch(remove=[f"d{n}" for n in range(DOCUMENTS)])))
    assert counting.statements <= adding
    assert backend.run(backend.survey()).documents == 0
    assert backend.run(backend.verify()).sound


def test_too_many_deleted_rows_are_said_and_not_tried_again(backend, session) -> None:
    """As an error of the backend that names the threshold, at once."""
    table = f"{KEYSPACE}.deleted"
    session.execute(f"CREATE TABLE {table} (a int, b int, PRIMARY KEY (a, b))")
    delete = f"DELETE FROM {table} WHERE a = ? AND b = ?"
    statements = tuple(Statement(cql=delete, values=(1, n), level="write") for n in range(THRESHOLD + 100))
    backend._executor.run(Requests(statements=statements, what="delete"))
    read = Statement(cql=f"SELECT b FROM {table} WHERE a = ?", values=(1,))
    began = time.monotonic()
    with pytest.raises(
        BackendError, match=r"could not look up: .*tombstone_failure_threshold.*compact"
    ) as info:
        backend._executor.run(Requests(statements=(read,), what="look up"))
    assert not isinstance(info.value, StoreUnavailableError)
    assert " tries in " not in str(info.value)
    assert time.monotonic() - began < backend._settings.deadline
