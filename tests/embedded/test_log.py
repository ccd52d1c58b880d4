"""The log is folded into the database as it grows, and nothing depends on when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest
from stores import backend, nearest, put, vectors

from linkstore.engines.embedded import database
from linkstore.engines.embedded import database as connecting


@pytest.fixture
def eager(monkeypatch) -> None:
    """A log is folded in after nearly every write."""
    monkeypatch.setattr(connecting, "CHECKPOINT_PAGES", 2)
    monkeypatch.setattr(database, "LEAST_LOG_BYTES", 10_000)
    monkeypatch.setattr(database, "LOG_SHARE", 0.0)


def test_a_log_is_emptied_after_the_write_that_made_it_large(tmp_path, eager) -> None:
    store = backend(tmp_path / "kb")
    for start in range(0, 200, 50):
        put(store, start, start + 50)
        assert store._database.place.get_size("-wal") <= 10_000
    store.close()
    assert not (tmp_path / "kb" / "linkstore.db-wal").exists()


@pytest.mark.usefixtures("eager")
def test_threads_that_write_and_close_lose_nothing(tmp_path) -> None:
    for turn in range(5):
        store = backend(tmp_path / "kb")
        with ThreadPoolExecutor(4) as pool:
            starts = range(400 * turn, 400 * turn + 400, 20)
            list(pool.map(lambda start, store=store: put(store, start, start + 20), starts))
        store.close()
    store = backend(tmp_path / "kb")
    assert store.run(store.survey()).documents == 2000
    assert store.run(store.verify()).findings == ()
    assert nearest(store, vectors([777])[0], 1) == ["d777"]
    store.close()


def test_an_error_of_a_checkpoint_fails_no_write_and_the_next_one_tries_again(
    tmp_path, eager, caplog
) -> None:
    """The change is committed by then."""

    class Broken:
        def set_busy_handler(self, handler) -> None:
            pass

        def wal_checkpoint(self, mode: int) -> None:
            raise apsw.IOError("disk I/O error")

    store = backend(tmp_path / "kb")
    store._database._log_left = 10**9  # nothing is due yet
    size = store._database.place.get_size
    store._database.place.get_size = lambda suffix: 10**6 if suffix == "-wal" else size(suffix)
    store._database._log_left = 0
    store._database._shorten_log(Broken())
    assert "could not be folded in, and will be later: disk I/O error" in caplog.text
    del store._database.place.get_size
    put(store, 0, 50)
    assert store._database.place.get_size("-wal") <= 10_000
    store.close()


def test_a_reader_in_the_way_leaves_the_log_for_later(tmp_path, eager) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 50)
    other = apsw.Connection(str(tmp_path / "kb" / "linkstore.db"))
    other.execute("BEGIN; SELECT count(*) FROM document")
    put(store, 50, 100)
    assert store._database._log_left > 10_000
    other.execute("COMMIT")
    put(store, 100, 200)
    assert store._database._log_left <= store._database.place.get_size("-wal") <= 10_000
    other.close()
    store.close()
