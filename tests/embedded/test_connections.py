"""The settings of every connection are in force, and the log stays bounded."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import apsw
import pytest
from internals import Candidates, Ids, Nearest, Plan, WriteBatch
from stores import backend, nearest, put, records, vectors

from linkstore.engines.embedded import EmbeddedSettings
from linkstore.engines.embedded import database as connecting

ASKED = vectors([10_000])[0]
FULL, NORMAL = 2, 1


def settings_in_force(connection: apsw.Connection) -> dict[str, object]:
    names = ("journal_mode", "synchronous", "wal_autocheckpoint", "mmap_size", "temp_store", "cache_size")
    return {name: connection.pragma(name) for name in names}


@pytest.mark.parametrize(("durable", "synchronous"), [(True, FULL), (False, NORMAL)])
def test_every_connection_has_the_settings_that_were_chosen(tmp_path, durable, synchronous) -> None:
    store = backend(tmp_path / "kb", EmbeddedSettings(durable=durable))
    put(store, 0, 10)
    both = threading.Barrier(4)

    def look(connection: apsw.Connection) -> dict[str, object]:
        both.wait(10)  # so that each has a connection of its own
        return settings_in_force(connection)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: store._database.read(look), range(4)))
    found.append(store._database.read(settings_in_force, anew=True))
    writer = store._database.write(settings_in_force)
    wanted = {
        "journal_mode": "wal",
        "synchronous": synchronous,
        "wal_autocheckpoint": connecting.CHECKPOINT_PAGES,
        "mmap_size": 0,
        "temp_store": 0,
        "cache_size": -16_384,
    }
    assert found == [wanted] * 5
    assert writer == wanted
    assert len(store._database._pool.idle) == 5
    store.close()


def test_verify_is_right_on_a_store_that_was_searched_by_words_before_it_was_written(tmp_path) -> None:
    """FTS5 checks its tables against what the connection remembers of them."""
    from internals import Lexical, LexicalMatches

    def plan() -> Plan[int]:
        found: LexicalMatches = yield Lexical(terms=("doc",), k=5)
        return len(found.refs)

    store = backend(tmp_path / "kb")
    for n in range(40):
        store.run(store.answer(plan()))
        put(store, n, n + 1)
        assert store.run(store.verify()).findings == ()
    store.close()


def test_the_log_stays_bounded_while_readers_overlap(tmp_path, monkeypatch) -> None:
    """Two readers, of which one is always reading, so that no commit finds a moment without any."""
    bound = 400_000
    monkeypatch.setattr(connecting, "LOG_BYTES", bound)
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    stop, turns = threading.Event(), [threading.Event(), threading.Event()]

    def plan(mine: int) -> Plan[list[str]]:
        found: Candidates = yield Nearest(vector=ASKED, k=3)
        turns[mine].set()
        turns[1 - mine].wait(0.02)  # until the other has begun
        turns[1 - mine].clear()
        ids: list[str] = yield Ids(refs=found.refs)
        return ids

    def read(mine: int) -> None:
        while not stop.is_set():
            store.run(store.answer(plan(mine)))

    readers = [threading.Thread(target=read, args=(n,)) for n in range(2)]
    for reader in readers:
        reader.start()
    sizes, given = [], records(0, 60)
    try:
        for version in range(60):
            changed = [type(one)(**{**_fields(one), "text": f"{version} " * 200}) for one in given]
            store.run(store.write(WriteBatch(put=changed)))
            sizes.append(store._database.place.get_size("-wal"))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    written = sum(max(0, later - sooner) for sooner, later in pairwise(sizes))
    assert written > 6 * bound
    assert max(sizes) < 4 * bound
    assert nearest(store, ASKED)
    store.close()


def test_an_idle_log_is_not_larger_than_half_the_database(tmp_path, monkeypatch) -> None:
    """SQLite folds a log in but never cuts it off: it stays as large as it ever was."""
    monkeypatch.setattr(connecting, "LEAST_LOG_BYTES", 50_000)
    store = backend(tmp_path / "kb")
    place = store._database.place
    for version in range(12):
        put(store, 0, 100, version)
        assert place.get_size("-wal") <= max(50_000, place.get_size("") // 2)
    store.close()


def _fields(one) -> dict:
    return {name: getattr(one, name) for name in one.__slots__}


def test_a_reader_that_stays_keeps_a_writer_only_for_a_moment(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(connecting, "LOG_BYTES", 100_000)
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    began, go_on = threading.Event(), threading.Event()

    def stay(connection: apsw.Connection) -> int:
        count = connection.execute("SELECT count(*) FROM document").get
        began.set()
        go_on.wait(60)
        assert connection.execute("SELECT count(*) FROM document").get == count
        return count

    with ThreadPoolExecutor(1) as pool:
        staying = pool.submit(store._database.read, stay)
        began.wait(60)
        started = time.monotonic()
        for n in range(10, 300, 29):
            put(store, n, n + 29)
        assert time.monotonic() - started < 60  # 5 s for each write, did it wait as for another writer
        assert store._database.place.get_size("-wal") > 100_000
        go_on.set()
        assert staying.result() == 10
    put(store, 300, 700)
    put(store, 700, 701)
    assert store._database.place.get_size("-wal") < 600_000
    store.close()
