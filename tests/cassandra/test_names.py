"""The names of link kinds and metadata fields, which lie among the settings."""

from __future__ import annotations

import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra_executors import Counting
from conformance.probe import link_both, link_out, make_record
from internals import CassandraBackend, Manifest, Vocabulary, WriteBatch

CLAIM = Manifest(embedding="mine", dimension=4)
NAMES = Vocabulary(kinds=frozenset({"k", "word"}), fields=frozenset({"links", "lang", "n"}))
WRITTEN = WriteBatch(
    put=[
        make_record("a", 0.5, link_out("x"), lang="en"),
        make_record("b", 0.5, link_both("y", kind="word"), n=1),
        make_record("c"),
    ]
)


@pytest.fixture
def opened(cassandra_session, emptied_keyspace):
    """Opens the same store again and again; a client of its own each time."""

    def opened(**options) -> CassandraBackend:
        return CassandraBackend(cassandra_session, emptied_keyspace, "linkstore", **options)

    opened.settings = f'"{emptied_keyspace}"."linkstore_settings"'
    return opened


@pytest.fixture
def backend(opened):
    made = opened()
    made.run(made.claim(CLAIM))
    made.run(made.write(WRITTEN))
    return made


def names(backend: CassandraBackend, asked: Vocabulary | None = None) -> Vocabulary:
    return backend.run(backend.vocabulary(asked))


def forget(session, settings: str) -> None:
    for row in session.execute(f"SELECT name FROM {settings}"):
        if row.name.startswith(("kind ", "field ")):
            session.execute(f"DELETE FROM {settings} WHERE name = %s", (row.name,))


def test_a_client_reads_a_name_once_and_writes_it_once(backend, opened):
    other = opened()
    other._executor = counting = Counting(other._executor)
    assert names(other, NAMES) == NAMES
    assert counting.statements > 0
    counting.reset()
    assert names(other, NAMES) == NAMES
    assert counting.statements == 0
    backend._executor = counting = Counting(backend._executor)
    backend.run(backend.write(WriteBatch(put=[make_record("d", 0.5, link_out("z"), lang="de")])))
    first = counting.statements
    counting.reset()
    backend.run(backend.write(WriteBatch(put=[make_record("e", 0.5, link_out("z"), new=1)])))
    assert counting.statements == first + 1


def test_many_names_are_written_ten_at_once(backend, opened):
    """A document with thousands of fields waited for as many statements."""
    fields = {f"f{n}": n for n in range(200)}
    backend.run(backend.write(WriteBatch(put=[make_record("d", 0.5)])))
    backend._executor = counting = Counting(backend._executor)
    backend.run(backend.write(WriteBatch(put=[make_record("e", 0.5, **fields)])))
    assert counting.statements < 60
    assert names(opened()).fields >= set(fields)


def test_a_name_that_another_client_brought_is_known(backend, opened):
    other, asked = opened(), Vocabulary(kinds=frozenset({"later"}), fields=frozenset({"later"}))
    assert names(other, asked) == Vocabulary()
    backend.run(backend.write(WriteBatch(put=[make_record("d", 0.5, link_out("z", kind="later"), later=1)])))
    assert names(other, asked) == asked


def test_names_that_are_missing_are_found_and_recorded(backend, opened, cassandra_session):
    """As after a backup of the documents alone was restored."""
    forget(cassandra_session, opened.settings)
    other = opened()
    assert names(other) == Vocabulary()
    report = other.run(other.verify())
    assert [(one.count, "not recorded" in one.problem) for one in report.findings] == [(5, True)]
    assert other.run(other.repair()) == report
    assert other.run(other.verify()).sound
    assert names(opened()) == names(other) == NAMES
    forget(cassandra_session, opened.settings)
    assert other.run(other.repair()) == report, "now it has cached them"
    assert other.run(other.verify()).sound
