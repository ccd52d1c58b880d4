"""A thread folds the log into the database between writes, and nothing depends on when."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest
from stores import backend, nearest, put, settled, vectors

from linkstore.engines.embedded import connection as connecting
from linkstore.engines.embedded import database
from linkstore.engines.embedded.connection import WriteAheadLog
from linkstore.engines.embedded.database import Database


@pytest.fixture
def eager(monkeypatch) -> None:
    """A log is folded in after nearly every write."""
    monkeypatch.setattr(connecting, "CHECKPOINT_PAGES", 2)


def unfolded(store) -> int:
    """Pages that only the log has."""

    def count(connection: apsw.Connection) -> int:
        return connection.execute("SELECT count(*) FROM document").get

    store._database.read(count)
    pages, folded = store._database._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return pages - folded


@pytest.mark.usefixtures("eager")
def test_the_log_is_folded_in_by_another_thread(tmp_path, monkeypatch) -> None:
    folding = []
    fold = WriteAheadLog._fold

    def noted(self, connection):
        folding.append(threading.current_thread().name)
        fold(self, connection)

    monkeypatch.setattr(WriteAheadLog, "_fold", noted)
    store = backend(tmp_path / "kb")
    put(store, 0, 50)
    settled(store._database._log)
    assert set(folding) == {"linkstore-log"}
    assert unfolded(store) == 0
    store.close()


@pytest.mark.usefixtures("eager")
def test_a_commit_during_a_fold_is_folded_in_too(tmp_path, monkeypatch) -> None:
    began, go_on = threading.Event(), threading.Event()
    fold = WriteAheadLog._fold

    def slow(self, connection):
        fold(self, connection)
        began.set()
        go_on.wait(10)

    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    settled(store._database._log)
    monkeypatch.setattr(WriteAheadLog, "_fold", slow)
    put(store, 10, 20)
    began.wait(10)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(put, store, 20, 30)  # waits for its turn
        go_on.set()
        second.result()
    settled(store._database._log)
    assert unfolded(store) == 0
    assert store.run(store.verify()).findings == ()
    store.close()


@pytest.mark.usefixtures("eager")
def test_a_writer_waits_for_the_log_as_long_as_the_disk_needs(tmp_path, monkeypatch) -> None:
    """A writer that folded it in by itself would not give up either."""
    began, fold = threading.Event(), WriteAheadLog._fold

    def slow(self, connection):
        began.set()
        threading.Event().wait(1)
        fold(self, connection)

    store = backend(tmp_path / "kb")
    settled(store._database._log)
    monkeypatch.setattr(WriteAheadLog, "_fold", slow)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)
    put(store, 0, 10)
    assert began.wait(60)
    put(store, 10, 20)
    settled(store._database._log)
    assert store.run(store.survey()).documents == 20
    store.close()


@pytest.mark.usefixtures("eager")
def test_a_log_that_cannot_be_looked_at_fails_no_write(tmp_path, monkeypatch) -> None:
    """The change is committed by then."""

    class Broken:
        def wal_checkpoint(self, mode: int) -> None:
            raise apsw.IOError("disk I/O error")

    store = backend(tmp_path / "kb")
    put(store, 0, 1)
    settled(store._database._log)
    store._database._log.after_commit(Broken(), store._database._between_writes)
    store.close()


@pytest.mark.usefixtures("eager")
def test_threads_that_write_and_close_lose_nothing(tmp_path) -> None:
    for turn in range(5):
        store = backend(tmp_path / "kb")
        with ThreadPoolExecutor(4) as pool:
            starts = range(400 * turn, 400 * turn + 400, 20)
            list(pool.map(lambda start, store=store: put(store, start, start + 20), starts))
        store.close()  # while the log may be folded in
    store = backend(tmp_path / "kb")
    assert store.run(store.survey()).documents == 2000
    assert store.run(store.verify()).findings == ()
    assert nearest(store, vectors([777])[0], 1) == ["d777"]
    store.close()


def test_without_threads_closing_folds_the_log_in(tmp_path, monkeypatch, eager) -> None:
    def refused(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    store = backend(tmp_path / "kb")
    put(store, 0, 50)
    put(store, 50, 100)
    assert unfolded(store) > 0
    store.close()
    assert not (tmp_path / "kb" / "linkstore.db-wal").exists()
    again = backend(tmp_path / "kb")
    assert again.run(again.survey()).documents == 100
    again.close()


def test_an_error_of_a_checkpoint_is_logged_and_the_next_one_tries_again(
    tmp_path, monkeypatch, eager, caplog
) -> None:
    class Broken:
        def set_busy_handler(self, handler) -> None:
            pass

        def wal_checkpoint(self, mode: int) -> None:
            raise apsw.IOError("disk I/O error")

    store = backend(tmp_path / "kb")
    settled(store._database._log)
    store._database._log._fold(Broken())
    assert "could not be folded in, and will be later: disk I/O error" in caplog.text
    put(store, 0, 50)
    settled(store._database._log)
    assert unfolded(store) == 0
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.usefixtures("eager")
def test_a_fork_waits_until_the_log_is_folded_in(tmp_path, monkeypatch) -> None:
    began = threading.Event()
    fold = WriteAheadLog._fold

    def slow(self, connection):
        began.set()
        threading.Event().wait(0.2)
        fold(self, connection)

    store = backend(tmp_path / "kb")
    monkeypatch.setattr(WriteAheadLog, "_fold", slow)
    put(store, 0, 50)
    began.wait(10)
    child = os.fork()
    if not child:
        status = 1
        try:
            put(store, 50, 60)  # refused if the parent was in the middle of it
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert store.run(store.survey()).documents == 60
    assert store.run(store.verify()).findings == ()
    store.close()


def test_a_closed_database_gives_its_writer_to_nobody(tmp_path, caplog, eager) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    closed: Database = store._database
    store.close()
    caplog.set_level("DEBUG", logger="linkstore")
    closed._log._begin(closed._between_writes)
    settled(closed._log)
    assert "was left as it is" in caplog.text
