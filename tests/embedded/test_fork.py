"""A forked child has a store of its own, whatever its parent was doing."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from internals import FORKS, Database, infrequent_gc, run_exclusively
from stores import backend, exact, nearest, put, sql, vectors

from linkstore.engines.embedded import EmbeddedBackend, derived, location
from linkstore.engines.embedded import backend as embedded
from linkstore.errors import BackendError, StoreClosedError

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
ASKED = vectors([10_000])[0]
SECONDS = 60


def in_child(work: Callable[[], bool]) -> None:
    """Do something in a forked child, which must end well and in time."""
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
            assert status == 0
            return
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail(f"the child still runs after {SECONDS} s")


def at_once(count: int, work: Callable[[int], None]) -> list[BaseException]:
    """Do something in threads that start together; what they raised."""
    together, raised = threading.Barrier(count), []

    def one(n: int) -> None:
        together.wait()
        try:
            work(n)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_threads_that_use_a_store_first_in_a_child_share_its_own_database(tmp_path, monkeypatch) -> None:
    """Opening takes a while, during which no other thread may find the parent's."""
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    parents = store._database
    real = embedded.OpenStore

    def slow(*args):
        time.sleep(0.1)
        return real(*args)

    monkeypatch.setattr(embedded, "OpenStore", slow)
    right = exact(range(100), ASKED)

    def child() -> bool:
        seen: set[int] = set()
        asked = threading.Barrier(8)

        def use(n: int) -> None:
            time.sleep(n / 100)
            database = store._database
            assert database is not parents
            seen.add(id(database))
            assert nearest(store, ASKED) == right
            asked.wait(SECONDS)  # none finds what another adds
            put(store, 1000 + n, 1001 + n)

        return at_once(8, use) == [] and len(seen) == 1

    in_child(child)
    there = [*range(100), *range(1000, 1008)]
    assert nearest(store, ASKED, 200) == exact(there, ASKED, 200)
    assert store.run(store.verify()).sound
    store.close()


def test_a_child_forked_while_threads_read_and_write_goes_on(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    stop = threading.Event()

    def busy(n: int) -> None:
        at = 1000 * (n + 1)
        while not stop.is_set():
            put(store, at, at + 1)
            nearest(store, ASKED)
            at += 1

    threads = [threading.Thread(target=busy, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(5):

            def child(turn: int = turn) -> bool:
                put(store, 50_000 + turn, 50_001 + turn)
                return f"d{50_000 + turn}" in nearest(store, vectors([50_000 + turn])[0], 1)

            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert store.run(store.verify()).sound
    store.close()


def test_a_child_does_not_keep_the_lock_that_a_thread_of_its_parent_held(tmp_path) -> None:
    """The parent's thread writes a snapshot, which takes longer than any fork may wait."""
    lock, held, release = tmp_path / "snapshot.lock", threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        release.wait(SECONDS)

    thread = threading.Thread(target=run_exclusively, args=(lock, hold), kwargs={"wait": True})
    thread.start()
    assert held.wait(SECONDS)
    asked, tell = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.read(asked, 1)  # the parent's thread has released the lock meanwhile
            status = 0 if run_exclusively(lock, lambda: True, wait=False) else 2
        finally:
            os._exit(status)
    release.set()
    thread.join()
    assert run_exclusively(lock, lambda: "free", wait=True) == "free"  # once the child has run its handlers
    os.write(tell, b"x")
    assert os.waitpid(child, 0)[1] == 0


def test_a_child_forked_at_any_moment_does_not_keep_the_lock(tmp_path) -> None:
    """Not even one that was forked before it could know of the lock, or after it was to."""
    asked, tell = os.pipe()
    children: list[int] = []

    def trace(frame, event, _):
        if frame.f_code is not run_exclusively.__code__:
            return None
        if event == "line":
            child = os.fork()
            if not child:
                try:
                    os.close(tell)
                    os.read(asked, 1)
                finally:
                    os._exit(0)
            children.append(child)
        return trace

    lock = tmp_path / "snapshot.lock"
    sys.settrace(trace)
    try:
        run_exclusively(lock, lambda: True, wait=False)
    finally:
        sys.settrace(None)
    try:
        assert len(children) > 5
        assert run_exclusively(lock, lambda: "free", wait=False) == "free"
    finally:
        os.close(tell)
        for child in children:
            os.waitpid(child, 0)
        os.close(asked)


def test_a_fork_inside_a_transaction_leaves_it_to_the_parent(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    other = backend(tmp_path / "other")
    put(store, 0, 10)
    put(other, 0, 20)

    def child() -> bool:
        with pytest.raises(BackendError, match="forked while a transaction was under way"):
            nearest(store, ASKED)
        return len(nearest(other, ASKED, 100)) == 20

    def work(connection) -> None:
        connection.execute("UPDATE setting SET value = 'changed' WHERE name = 'embedding'")
        in_child(child)

    store._database.write(work)
    assert store.run(store.manifest()).embedding == "changed"
    assert store.run(store.verify()).sound
    other.close()
    store.close()


def test_what_a_child_writes_outlives_its_parents_closing(tmp_path) -> None:
    """The child holds locks of its own, so that the parent is not the last to close."""
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    asked, tell = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            put(store, 10, 20)
            os.read(asked, 1)  # the parent has closed
            put(store, 20, 30)
            status = 0
        finally:
            os._exit(status)
    while len(nearest(store, ASKED, 100)) < 20:
        time.sleep(0.01)
    store.close()
    os.write(tell, b"x")
    assert os.waitpid(child, 0)[1] == 0
    again = backend(tmp_path / "kb")
    assert len(nearest(again, ASKED, 100)) == 30
    assert again.run(again.verify()).sound
    again.close()


def test_a_closed_store_is_closed_in_a_child_too(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    store.close()

    def child() -> bool:
        with pytest.raises(StoreClosedError):
            nearest(store, ASKED)
        return True

    in_child(child)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_database_that_cannot_be_left_to_the_parent_does_not_keep_others_from_it(tmp_path) -> None:
    """Such as one whose close was interrupted, and which nothing has collected yet."""

    class Broken:
        def close_inherited(self) -> None:
            raise RuntimeError("broken")

    broken = [Broken() for _ in range(10)]  # one of them is very likely to come before the store
    for one in broken:
        FORKS.databases.add(one)
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    in_child(lambda: len(nearest(store, ASKED, 100)) == 10)
    store.close()


def test_a_connection_that_an_interrupted_close_has_closed_is_left_as_it_is(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    store._database._pool.idle[0].close()
    in_child(lambda: len(nearest(store, ASKED, 100)) == 10)


def test_the_collector_is_as_before_in_a_child_forked_while_it_was_slow() -> None:
    before = gc.get_threshold()

    def child() -> bool:
        return gc.get_threshold()[0] == 20_000

    with infrequent_gc():
        in_child(child)
        pid = os.fork()
    if not pid:
        os._exit(0 if gc.get_threshold() == before else 3)
    assert os.waitpid(pid, 0)[1] == 0
    assert gc.get_threshold() == before


def test_no_connection_is_used_unless_a_fork_waits_for_it(tmp_path, monkeypatch) -> None:
    """Compaction was none of the uses for which a fork waits."""
    used: list[str] = []

    def watch(connection: apsw.Connection) -> None:
        def trace(cursor, sql: str, bindings) -> bool:
            own = threading.get_ident()
            if all(thread != own for thread, *_ in FORKS.under_way.values()):
                used.append(sql)
            return True

        connection.exec_trace = trace

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, watch])
    store = backend(tmp_path / "kb")
    put(store, 0, 200)
    store.run(store.flush())
    put(store, 0, 100, version=1)
    assert len(nearest(store, ASKED)) == 10
    store.run(store.compact())
    sql(tmp_path / "kb", "DELETE FROM link WHERE document > 250")
    assert [text for text in used if "DELETE FROM link" not in text] == []  # that was not the store
    used.clear()
    assert not store.run(store.repair()).sound
    assert store.run(store.verify()).sound
    store.close()
    assert used == []


def test_a_fork_in_the_middle_of_a_compaction_waits_for_its_end(tmp_path, monkeypatch) -> None:
    """SQLite's mutex of the connection was held in the child, which could not close it."""
    inside = threading.Event()

    def watch(connection: apsw.Connection) -> None:
        def trace(cursor, sql: str, bindings) -> bool:
            if sql == "VACUUM":
                connection.set_progress_handler(slow, 100)
            return True

        def slow() -> bool:
            connection.set_progress_handler(None)
            inside.set()
            time.sleep(0.5)
            return False

        connection.exec_trace = trace

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, watch])
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    compacting = threading.Thread(target=lambda: store.run(store.compact()))
    compacting.start()
    assert inside.wait(SECONDS)
    in_child(lambda: nearest(store, ASKED) == exact(range(100), ASKED))
    compacting.join()
    assert store.run(store.verify()).sound
    store.close()


def test_a_fork_waits_until_a_close_has_closed_all_connections(tmp_path, monkeypatch) -> None:
    """A child kept those that were still open: it believed to hold their locks, and lost what it wrote."""
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    together, closing = threading.Barrier(3), threading.Event()
    real = Database._close_connection

    def slow(database: Database, connection: apsw.Connection) -> None:
        closing.set()
        time.sleep(0.2)
        real(database, connection)

    assert at_once(3, lambda n: store._database.read(lambda connection: together.wait())) == []
    assert len(store._database._pool.idle) == 3
    monkeypatch.setattr(Database, "_close_connection", slow)
    closer = threading.Thread(target=store.close)
    closer.start()
    assert closing.wait(SECONDS)
    (asked, tell), (told, say) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            again = backend(tmp_path / "kb")
            put(again, 10, 20)
            os.write(say, b"x")
            os.read(asked, 1)  # the parent has closed
            put(again, 20, 30)
            status = 0
        finally:
            os._exit(status)
    os.read(told, 1)
    closer.join()
    os.write(tell, b"x")
    assert os.waitpid(child, 0)[1] == 0
    again = backend(tmp_path / "kb")
    assert len(nearest(again, ASKED, 100)) == 30
    again.close()


def in_time(name: str, folder: Path) -> None:
    """Run a case of this module in a process of its own, which a thread that waits for ever would keep."""
    here = Path(__file__)
    code = f"import sys; sys.path[:0] = [{str(here.parent)!r}, *{sys.path!r}]; import {here.stem} as cases;"
    code += f" from pathlib import Path; cases.{name}(Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=SECONDS)


def read_slowly(store: EmbeddedBackend, seconds: float) -> threading.Thread:
    """Start a thread that uses a connection for some time, and return it once it does."""
    inside = threading.Event()

    def work(connection: apsw.Connection) -> None:
        inside.set()
        time.sleep(seconds)

    thread = threading.Thread(target=store._database.read, args=(work,))
    thread.start()
    assert inside.wait(SECONDS)
    return thread


def use_in_handler(folder: Path) -> None:
    """A signal handler searches and closes a store while its thread waits to fork."""
    store, answers = backend(folder), []
    put(store, 0, 10)

    def handle(*_: object) -> None:
        answers.append(nearest(store, ASKED))
        store.close()

    signal.signal(signal.SIGALRM, handle)
    reader = read_slowly(store, 1.0)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    in_child(lambda: True)
    assert answers == [exact(range(10), ASKED)]
    reader.join()


def fork_while_a_child_opens(folder: Path) -> None:
    """In a child, a thread uses a store for the first time while another waits to fork."""
    first, second = backend(folder / "first"), backend(folder / "second")
    put(first, 0, 10)
    put(second, 0, 10)

    def child() -> bool:
        reader = read_slowly(first, 1.0)
        forker = threading.Thread(target=in_child, args=(lambda: True,))
        forker.start()
        while not FORKS.forking:
            time.sleep(0.01)
        found = nearest(second, ASKED)
        reader.join()
        forker.join()
        return found == exact(range(10), ASKED)

    in_child(child)


@pytest.mark.parametrize("case", [use_in_handler, fork_while_a_child_opens])
def test_nobody_waits_for_ever_for_a_fork(tmp_path, case) -> None:
    """Both did: the one for itself, the other for a thread that needed the lock that it held."""
    in_time(case.__name__, tmp_path)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fork_that_a_signal_interrupts_does_not_block_the_store(tmp_path) -> None:
    """Python drops what a handler of a signal raises in a hook of a fork, and goes on."""
    store = backend(tmp_path / "kb")
    put(store, 0, 10)

    def interrupt(frame, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == location.__file__:
            raise KeyboardInterrupt

    sys.setprofile(interrupt)
    try:
        child = os.fork()
        if not child:
            os._exit(0)
    finally:
        sys.setprofile(None)
    os.waitpid(child, 0)
    assert not FORKS.forking
    assert nearest(store, ASKED) == exact(range(10), ASKED)
    store.close()


def test_a_child_forked_while_an_index_is_measured_uses_the_one_before(monkeypatch) -> None:
    """The new one was used by a thread that the child does not have, and the child waited for its mutex."""
    store, measuring, forked = backend(":memory:"), threading.Event(), threading.Event()
    put(store, 0, 200)
    real = derived.choose_expansion

    def measure(index, mirror) -> float:
        measuring.set()
        while not forked.is_set():
            index.near(ASKED)
        return real(index, mirror)

    monkeypatch.setattr(derived, "choose_expansion", measure)
    writer = threading.Thread(target=put, args=(store, 200, 500))
    writer.start()
    assert measuring.wait(60)
    try:
        for _ in range(30):
            in_child(lambda: store.run(store.verify()).sound)
    finally:
        forked.set()
    writer.join()
    store.close()
