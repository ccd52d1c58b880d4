"""Where link groups and words are split into several partitions, all answers stay the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cassandra_tables import split_early
from conformance.probe import CLAIM, Probe, drive_by_run, link_both, make_record
from differential import assert_congruent
from internals import Ids, Lexical, WriteBatch
from oracle import OracleBackend
from stores import times

from linkstore.engines.cassandra import listing, members


@pytest.fixture
def opened(cassandra_session, keyspace) -> Iterator[Callable[[], Any]]:
    """Opens the store of the test once more, as another client does."""
    from internals import CassandraBackend, CassandraSettings

    backends = []

    def open_one(**settings) -> Any:
        backends.append(
            CassandraBackend(cassandra_session, keyspace, "t", settings=CassandraSettings(**settings))
        )
        return backends[-1]

    yield open_one
    for backend in backends:
        backend.close()


def put(backend, *names: str, text: str = "needle", tag: str = "t") -> None:
    backend.run(backend.claim(CLAIM))
    records = [make_record(name, 0.5, link_both(tag), text=text) for name in names]
    backend.run(backend.write(WriteBatch(put=records)))


def list_names(count: int, start: str = "d") -> list[str]:
    return [f"{start}{n:03}" for n in range(count)]


def find_words(backend, word: str = "needle") -> set[str]:
    def plan():
        matches = yield Lexical(terms=(word,), k=500)
        return set((yield Ids(refs=matches.refs)))

    return backend.run(backend.answer(plan()))


def assert_holds(backend, expected: set[str], tag: str = "t") -> None:
    """Check members, words, the count of documents and what ``verify`` finds."""
    met = Probe(backend, drive_by_run).met([tag], cap=500, take=500)
    assert set(met.of.get(tag, ())) == expected
    assert met.sizes == {tag: len(expected)}
    assert find_words(backend) == expected
    assert backend.run(backend.verify()).findings == ()


def read_buckets(session, keyspace: str, table: str) -> set[int]:
    """The buckets with rows of documents."""
    rows = session.execute(f'SELECT bucket, id FROM "{keyspace}".t_{table}')
    return {row.bucket for row in rows if row.id and not row.id.startswith("[")}


@pytest.mark.parametrize("seed", range(100, 100 + times(2, 20)))
def test_it_answers_as_the_oracle_on_random_graphs(
    opened, monkeypatch, cassandra_session, keyspace, seed
) -> None:
    """Everything is split as soon as it can be, and nothing of it is stray."""
    split_early(monkeypatch)
    backend = opened()
    assert_congruent(backend, OracleBackend(), seed=seed)
    assert len(read_buckets(cassandra_session, keyspace, "members")) > 10
    assert len(read_buckets(cassandra_session, keyspace, "words")) > 5
    assert backend.run(backend.verify()).sound


def test_what_is_small_is_not_split(opened, cassandra_session, keyspace, monkeypatch) -> None:
    """Each document asks here, and no partition is large."""
    monkeypatch.setattr(listing, "CHECKED", 1)
    put(opened(), *list_names(150))
    assert read_buckets(cassandra_session, keyspace, "words") == {0}
    assert opened().run(listing.read_splits()) == set()


def test_only_what_is_large_is_split(opened, monkeypatch) -> None:
    """By the bytes of members, and by the number of documents of a word."""
    monkeypatch.setattr(listing, "CHECKED", 1)
    monkeypatch.setattr(listing, "MAX_POSTINGS", 200)
    monkeypatch.setattr(listing, "LARGEST_GROUP_BYTES", 20_000)
    backend = opened()
    put(backend, *list_names(400))
    put(backend, *list_names(30, "small"), text="hay", tag="few")
    put(backend, "last", tag="t")
    names = backend.run(listing.read_splits())
    assert {name[1] for name in names} == {"t", "needle"}
    assert {name[2] for name in names if len(name) == 3} == {"in", "out"}
    assert_holds(opened(), {*list_names(400), "last"})


def test_rows_of_before_a_split_move_when_their_document_changes(
    opened, monkeypatch, cassandra_session, keyspace
) -> None:
    backend = opened()
    put(backend, *list_names(40))
    split_early(monkeypatch)
    put(backend, *list_names(5, "new"))
    everything = {*list_names(40), *list_names(5, "new")}
    assert_holds(backend, everything)
    put(backend, *list_names(40), text="needle again")
    assert_holds(opened(), everything)
    put(backend, *everything, text="needle thrice")
    assert_holds(opened(), everything)
    rows = cassandra_session.execute(f'SELECT bucket, tag, id FROM "{keyspace}".t_members')
    assert not [row for row in rows if row.tag == "t" and row.id and not row.bucket]


def test_documents_of_a_split_group_are_deleted_wherever_their_rows_are(opened, monkeypatch) -> None:
    backend = opened()
    put(backend, *list_names(20))
    split_early(monkeypatch)
    put(backend, *list_names(20, "new"))
    gone = {*list_names(10), *list_names(10, "new")}
    left = {*list_names(20), *list_names(20, "new")} - gone
    opened().run(opened().write(WriteBatch(remove=sorted(gone))))
    assert_holds(opened(), left)
    backend.run(backend.write(WriteBatch(remove=sorted(left))))
    assert find_words(opened()) == set()
    assert opened().run(opened().verify()).findings == ()


def test_links_are_replaced_in_a_split_group(opened, monkeypatch) -> None:
    backend = opened()
    put(backend, *list_names(30))
    split_early(monkeypatch)
    put(backend, *list_names(30, "new"))
    moved = [*list_names(15), *list_names(15, "new")]
    links = {name: [link_both("other")] for name in moved}
    backend.run(backend.relink(["k"], links))
    met = Probe(opened(), drive_by_run).met(["t", "other"], cap=500, take=500)
    assert set(met.of["other"]) == set(moved)
    assert set(met.of["t"]) == {*list_names(30), *list_names(30, "new")} - set(moved)
    assert backend.run(backend.verify()).findings == ()


def test_a_write_keeps_what_it_read_of_splits_while_another_of_the_client_splits(opened, monkeypatch) -> None:
    """Otherwise it would delete rows that it added before, as those of the place that was left."""
    backend = opened()
    put(backend, *list_names(10))
    split_early(monkeypatch)
    updates = [make_record(name, 0.5, link_both("t"), text="needle", lang="en") for name in list_names(10)]
    other = [make_record(name, 0.5, link_both("t"), text="needle") for name in list_names(10, "new")]

    def interleave():
        writing, answer, is_between = backend.write(WriteBatch(put=updates)), None, False
        while True:
            try:
                requests = writing.send(answer)
            except StopIteration:
                return is_between
            answer = yield requests
            if requests.what == "write members and words" and not is_between:
                is_between = True
                yield from backend.write(WriteBatch(put=other))

    assert backend.run(interleave())
    assert_holds(opened(), {*list_names(10), *list_names(10, "new")})


def test_a_client_that_does_not_know_of_a_split_writes_what_all_read(opened, monkeypatch) -> None:
    """Another client splits after it read the list: it writes to the first partition, and overwrites rows."""
    from linkstore.engines.cassandra import backend as module

    stale, other = opened(), opened()
    put(stale, *list_names(10))
    split_early(monkeypatch)
    put(other, *list_names(10, "new"))

    def read_nothing():
        yield from ()
        return frozenset()

    monkeypatch.setattr(module, "read_splits", read_nothing)
    monkeypatch.setattr(listing, "CHECKED", 1 << 64)
    put(stale, *list_names(10, "late"))
    everything = {*list_names(10), *list_names(10, "new"), *list_names(10, "late")}
    assert_holds(opened(), everything)


def test_a_client_that_stops_between_the_steps_of_a_split_loses_nothing(opened, monkeypatch) -> None:
    """The mark alone lets readers look further; the next document that asks lists the split."""
    backend = opened()
    put(backend, *list_names(20))
    split_early(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(listing, "orjson", None)  # so the list cannot be written
        with pytest.raises(AttributeError):
            put(backend, "during")
    assert_holds(opened(), {*list_names(20), "during"})
    put(opened(), "after")
    assert opened().run(listing.read_splits())
    assert_holds(opened(), {*list_names(20), "during", "after"})


def test_a_hub_whose_rows_have_all_moved_is_still_a_hub(opened, monkeypatch) -> None:
    split_early(monkeypatch)
    backend = opened()
    put(backend, *list_names(300))
    put(backend, *list_names(300), text="needle once more")
    for cap in (0, 1, 100, 299):
        met = Probe(opened(), drive_by_run).met(["t"], cap=cap)
        assert (met.of.get("t", []), met.sizes) == ([], {"t": cap + 1})
    monkeypatch.setattr(members, "_BUCKET_SHARE", 200)
    assert_holds(opened(), {*list_names(300)})


def test_repair_restores_a_lost_table_of_what_was_split(
    opened, monkeypatch, cassandra_session, keyspace
) -> None:
    split_early(monkeypatch)
    put(opened(), *list_names(20))
    put(opened(), *list_names(20, "new"))
    everything = {*list_names(20), *list_names(20, "new")}
    for lost in (["words"], ["members"], ["words", "members"]):
        for table in lost:
            cassandra_session.execute(f'TRUNCATE "{keyspace}".t_{table}', timeout=60)
        backend = opened(settle=0.001)
        backend.run(backend.repair())
        backend.run(backend.repair())
        assert_holds(opened(settle=0.001), everything)


def test_words_go_to_as_many_partitions_as_the_store_was_created_with(
    opened, cassandra_session, keyspace
) -> None:
    put(opened(shards=5), *list_names(5), text=" ".join(f"word{n}" for n in range(100)))
    rows = cassandra_session.execute(f'SELECT DISTINCT shard, bucket FROM "{keyspace}".t_words')
    assert {row.shard for row in rows} == set(range(5))
    assert find_words(opened(), "word7") == set(list_names(5))
