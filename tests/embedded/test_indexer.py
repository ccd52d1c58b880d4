"""A process beside the writer builds the index; whatever becomes of either, the store is sound."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from stores import Child, backend, exact, long, nearest, put, records, times, vectors

import linkstore.core.processes
from linkstore.engines.contract import Change
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings, index_process, maintenance
from linkstore.engines.embedded.derived import Snapshot, parse_snapshot
from linkstore.engines.embedded.index_process import Indexer
from linkstore.engines.embedded.location import run_exclusively
from linkstore.engines.embedded.schema import read_settings

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
ASKED = vectors([10_000])[0]
SECONDS = 120
"""How long a busy machine may take to start a process and to give it its turn."""


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    """A few hundred documents are much to do."""
    monkeypatch.setattr(maintenance, "BACKLOG", 100)


def of(store: EmbeddedBackend) -> Indexer:
    return store._store.indexer


def process_of(store: EmbeddedBackend) -> subprocess.Popen | None:
    """The process that builds the index, if there is one."""
    started = of(store)._started
    return started[0] if started else None


def pid_of(store: EmbeddedBackend) -> int:
    """The process that builds the index, which must be there."""
    process = process_of(store)
    assert process is not None
    return process.pid


def is_there(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return state.rsplit(")", 1)[1].split()[0] != "Z"


def until(what, seconds: float = SECONDS) -> None:
    """Wait for something that must come true."""
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)


def stopped_at_once(store: EmbeddedBackend) -> int:
    """Write so much that the process is started, and stop it before it has an index; returns its pid."""

    def write_and_stop() -> None:
        put(store, 0, 400)
        os.kill(pid_of(store), signal.SIGSTOP)

    run_exclusively(
        Path(store.folder) / "snapshot.lock", write_and_stop, wait=True
    )  # the process finds it taken
    return pid_of(store)


def recorded(store: EmbeddedBackend) -> Snapshot | None:
    return store._database.read(lambda connection: parse_snapshot(read_settings(connection)))


def check(store: EmbeddedBackend, documents: int) -> None:
    """All documents are there, and derived data are right and complete."""
    assert nearest(store, ASKED) == exact(range(documents), ASKED)
    assert store.run(store.survey()).documents == documents
    assert store.run(store.verify()).findings == ()


def test_another_process_builds_the_index_and_flush_waits_for_it(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    pid = pid_of(store)
    put(store, 400, 700)
    check(store, 700)  # whether or not there is an index yet
    store.run(store.flush())
    taken = recorded(store)
    assert taken is not None
    assert (taken.last_key, taken.documents) == (700, 700)
    assert of(store).problem is None
    assert not is_there(pid)  # it has done its work
    check(store, 700)
    store.close()
    assert not is_there(pid)
    assert not list((tmp_path / "kb").glob(".*.tmp"))
    with_index = backend(tmp_path / "kb")
    check(with_index, 700)
    with_index.close()


def test_closing_waits_for_the_index_and_says_how_far_it_is(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(index_process, "TOLD_SECONDS", 0.0)
    caplog.set_level("INFO", "linkstore")
    store = backend(tmp_path / "kb")
    put(store, 0, 3000)
    store.close()
    assert "of 3000 documents" in caplog.text
    again = backend(tmp_path / "kb")
    taken = recorded(again)
    assert taken is not None
    assert taken.documents == 3000
    check(again, 3000)
    again.close()


def test_small_stores_start_no_process(tmp_path, monkeypatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(linkstore.core.processes, "start_python", None)
    store = backend(tmp_path / "kb", EmbeddedSettings(durable=False))
    for start in range(0, 12_000, 4_000):
        put(store, start, start + 4_000)
    store.run(store.flush())
    assert of(store).problem is None
    store.close()
    assert not list((tmp_path / "kb").glob("ann-*"))


def test_a_flush_does_not_wait_for_ever_for_a_process_that_was_stopped(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(index_process, "STALL_SECONDS", 1.0)
    store = backend(tmp_path / "kb")
    pid = stopped_at_once(store)
    store.run(store.flush())
    assert not is_there(pid)
    assert "was not heard for 1 s; this one builds it now" in caplog.text
    taken = recorded(store)
    assert taken is not None
    assert taken.documents == 400
    store.run(store.repair())
    check(store, 400)
    store.close()


def test_a_process_that_works_for_long_is_waited_for(tmp_path, monkeypatch) -> None:
    """The process is heard while it takes a snapshot, however long that takes."""
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    until(lambda: recorded(store) is not None)
    monkeypatch.setattr(index_process, "STALL_SECONDS", 1.9 * index_process.BEAT_SECONDS)
    flushed = threading.Thread(target=lambda: store.run(store.flush()))

    def flush_and_wait() -> None:
        put(store, 400, 500)
        flushed.start()
        flushed.join(2 * index_process.BEAT_SECONDS)
        assert flushed.is_alive()
        assert of(store).problem is None

    run_exclusively(
        tmp_path / "kb" / "snapshot.lock", flush_and_wait, wait=True
    )  # the process waits for the lock
    flushed.join()
    assert of(store).problem is None
    check(store, 500)
    store.close()


def test_what_python_prints_at_its_start_is_not_taken_for_a_reply(tmp_path, monkeypatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('3')\nprint('hello', end='')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    store.run(store.flush())
    assert of(store).problem is None
    check(store, 400)
    store.close()


def test_a_killed_process_loses_nothing_and_verify_says_so(tmp_path, caplog) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    os.kill(pid_of(store), signal.SIGKILL)
    until(lambda: not of(store).running)
    assert "ended with signal 9" in caplog.text
    put(store, 400, 600)  # this process builds the index now
    assert process_of(store) is None
    taken = recorded(store)
    assert taken is not None
    assert taken.documents == 600
    assert nearest(store, ASKED) == exact(range(600), ASKED)
    assert [one.problem for one in store.run(store.verify()).findings] == [
        "the process that builds the index ended with signal 9"
    ]
    assert not store.run(store.repair()).sound
    check(store, 600)
    put(store, 600, 1600)
    assert process_of(store) is not None  # repair gives it another chance
    store.run(store.flush())
    check(store, 1600)
    store.close()


def test_where_no_process_starts_the_writer_builds_the_index(tmp_path, monkeypatch) -> None:
    def refused(*_: object, **options: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(linkstore.core.processes, "start_python", refused)
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    taken = recorded(store)
    assert taken is not None
    assert taken.documents == 400
    assert nearest(store, ASKED) == exact(range(400), ASKED)
    assert of(store).problem == "could not be started: no more processes"
    store.close()


def test_where_python_is_not_a_program_of_its_own_no_process_is_tried(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    check(store, 400)
    assert recorded(store) is not None
    store.close()


def test_a_process_that_cannot_work_says_why(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setattr(index_process, "__name__", "linkstore.no_such_module")
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    store.run(store.flush())
    assert of(store).problem == "ended with exit code 1"
    taken = recorded(store)
    assert taken is not None
    assert taken.documents == 400
    store.close()


def test_killed_at_any_moment_it_leaves_a_sound_store(tmp_path) -> None:
    chance, there = random.Random(4), 0
    for _ in range(times(2, 60)):
        store = backend(tmp_path / "kb")
        put(store, there, there + 300)
        there += 300
        if process_of(store) is not None:
            time.sleep(chance.uniform(0, 2.5))
            os.kill(pid_of(store), signal.SIGKILL)
        put(store, there, there + 20)
        there += 20
        assert nearest(store, ASKED) == exact(range(there), ASKED)
        store.run(store.flush())
        store.run(store.repair())
        check(store, there)
        store.close()
        assert not list((tmp_path / "kb").glob(".*.tmp"))


def test_a_process_whose_writer_was_killed_before_it_started_ends_without_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = "from linkstore.core.processes import take_pipes; take_pipes(); raise SystemExit('it goes on')"
    started = [sys.executable, "-c", code]
    done = subprocess.run(
        started, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def write_and_say(told, folder, first: int) -> None:
    """Write until killed."""
    maintenance.BACKLOG = 100
    store = backend(folder)
    while True:
        put(store, first, first + 100)
        first += 100
        process = process_of(store)
        told.send((first, process.pid if process else 0))


def test_a_killed_writer_leaves_a_sound_store_and_no_process(tmp_path) -> None:
    chance, there = random.Random(7), 0
    for _ in range(times(2, 40)):
        child = Child(write_and_say, tmp_path / "kb", there)
        there, pid = child.connection.recv()
        time.sleep(chance.uniform(0.5, 3))
        said = child.kill()
        there, pid = said[-1] if said else (there, pid)
        until(lambda pid=pid: not pid or not is_there(pid))
        store = backend(tmp_path / "kb")
        count = store.run(store.survey()).documents
        assert count in (there, there + 100)  # the last may have been written and not said
        check(store, count)
        there = count
        store.close()


def test_an_interrupt_of_the_wait_ends_the_process_and_the_store_is_sound(tmp_path, monkeypatch) -> None:
    store = backend(tmp_path / "kb")
    pid = stopped_at_once(store)
    main = threading.get_ident()

    def interrupt() -> None:
        time.sleep(1)  # until it waits
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        store.run(store.flush())
    thread.join()
    until(lambda: not is_there(pid))
    check(store, 400)
    assert of(store).problem is None
    put(store, 400, 800)
    store.run(store.flush())
    check(store, 800)
    store.close()


def test_interrupts_at_any_moment_leave_a_sound_store(tmp_path) -> None:
    chance, there, main = random.Random(3), 0, threading.get_ident()
    store = backend(tmp_path / "kb")
    for _ in range(times(4, 100)):
        timer = threading.Timer(chance.uniform(0, 1.5), lambda: signal.pthread_kill(main, signal.SIGINT))
        with contextlib.suppress(KeyboardInterrupt):
            timer.start()
            for first in range(there, there + 600, 200):
                put(store, first, first + 200)
            store.run(store.flush())
            timer.join()  # so that the interrupt comes in here
        there = store.run(store.survey()).documents
        assert there % 200 == 0
        assert nearest(store, ASKED) == exact(range(there), ASKED)
    store.run(store.flush())
    assert of(store).problem is None
    check(store, there)
    store.close()


def test_ctrl_c_in_a_terminal_does_not_reach_it(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    assert os.getpgid(pid_of(store)) != os.getpgrp()
    until(lambda: recorded(store) is not None)
    os.kill(pid_of(store), signal.SIGINT)
    put(store, 400, 500)
    store.run(store.flush())
    assert of(store).problem is None
    check(store, 500)
    store.close()


def test_updates_and_removals_meanwhile_count(tmp_path) -> None:
    chance, there, store = random.Random(2), set(range(0)), backend(tmp_path / "kb")
    for first in range(0, 2000, 250):
        put(store, first, first + 250)
        there |= set(range(first, first + 250))
        gone = set(chance.sample(sorted(there), 40))
        store.run(store.write(Change(remove=[f"d{n}" for n in gone], put=records(first, first + 30))))
        there = there - gone | set(range(first, first + 30))
        assert nearest(store, ASKED) == exact(sorted(there), ASKED)
    store.run(store.flush())
    assert nearest(store, ASKED) == exact(sorted(there), ASKED)
    assert store.run(store.verify()).sound
    store.run(store.compact())
    assert process_of(store) is None
    assert nearest(store, ASKED) == exact(sorted(there), ASKED)
    assert store.run(store.verify()).sound
    store.close()


def write_some(told, folder, first: int) -> None:
    maintenance.BACKLOG = 100
    store = backend(folder)
    for start in range(first, first + 600, 100):
        put(store, start, start + 100)
    store.run(store.flush())
    store.close()


def test_two_writers_have_a_process_each_and_one_index(tmp_path) -> None:
    backend(tmp_path / "kb").close()
    children = [Child(write_some, tmp_path / "kb", first) for first in (0, 600)]
    for child in children:
        child.finish()
    store = backend(tmp_path / "kb")
    check(store, 1200)
    assert len(list((tmp_path / "kb").glob("ann-*.usearch"))) <= 2
    store.close()


def test_a_forked_child_has_its_own(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    pid = pid_of(store)
    child = os.fork()
    if not child:
        status = 1
        try:
            put(store, 400, 800)
            own = pid_of(store)
            store.run(store.flush())
            status = 0 if own != pid and nearest(store, ASKED) == exact(range(800), ASKED) else 2
            store.close()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert is_there(pid)
    store.run(store.flush())
    check(store, 800)
    store.close()


async def test_it_works_inside_a_running_loop(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 400)
    await asyncio.gather(*(store.arun(store.write(Change(put=records(n, n + 100)))) for n in (400, 500, 600)))
    await store.arun(store.flush())
    check(store, 700)
    store.close()


SCRIPT = """
import sys
sys.path[:0] = {path!r}
from stores import backend, put
from linkstore.engines.embedded import maintenance
maintenance.BACKLOG = 100
print("once")
store = backend({where!r})
put(store, 0, 400)
print(store.folder, store._store.indexer._started[0].pid)
{end}
"""


@pytest.mark.parametrize(
    ("where", "end"),
    [
        ("folder", "raise KeyboardInterrupt"),
        ("memory", ""),
        *(long("folder", end) for end in ("store.close()", "")),
        *(long("memory", end) for end in ("store.close()", "raise KeyboardInterrupt")),
    ],
)
def test_a_script_without_a_main_guard(tmp_path, where, end) -> None:
    """It runs once, and when it ends no process is left; a store in memory leaves no folder."""
    script = tmp_path / "script.py"
    path = [str(Path(__file__).parents[1] / "support"), str(Path(__file__).parents[2])]
    place = str(tmp_path / "kb") if where == "folder" else ":memory:"
    script.write_text(SCRIPT.format(path=path, where=place, end=end))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=SECONDS)
    once, line = done.stdout.splitlines()
    folder, pid = line.rsplit(" ", 1)
    assert once == "once"
    assert "Error" not in done.stderr
    until(lambda: not is_there(int(pid)))
    assert Path(folder).exists() == (where == "folder")
    if where == "folder":
        store = backend(folder)
        check(store, 400)
        store.close()
