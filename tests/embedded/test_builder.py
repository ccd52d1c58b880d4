"""A process of its own that takes a snapshot while the writer goes on."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from awaited import until
from internals import DerivedData, WriteBatch, parse_snapshot, read_settings
from stores import SNAPSHOTS, Child, backend, exact, nearest, put, snapshot_file, times, vectors

from linkstore.engines.embedded import EmbeddedBackend, maintenance
from linkstore.errors import StoreBusyError

ASKED = vectors([10_000])[0]
pytestmark = pytest.mark.skipif(not hasattr(os, "waitid"), reason="snapshots are taken by the writer here")


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    """A hundred documents are already worth a process."""
    monkeypatch.setattr(maintenance, "BESIDE_FROM", 100)
    monkeypatch.setattr(maintenance, "count_cores", lambda: 2)


@pytest.fixture
def taken_here(monkeypatch) -> list[int]:
    """How many documents the snapshots have that this process takes."""
    taken: list[int] = []
    write = DerivedData.write

    def count(self, mirror, settings, **options):
        taken.append(mirror.living)
        return write(self, mirror, settings, **options)

    monkeypatch.setattr(DerivedData, "write", count)
    return taken


def indexed(store: EmbeddedBackend) -> int:
    """How many documents the recorded snapshot has."""
    recorded = parse_snapshot(store._database.read(read_settings))
    return recorded.documents if recorded else 0


def process(store: EmbeddedBackend):
    """The process that was started last."""
    return store._store._builder._process


def test_the_writer_goes_on_meanwhile_and_flush_adds_the_rest(tmp_path, taken_here) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    assert process(store) is not None
    put(store, 150, 180)
    store._store._builder.wait()
    assert taken_here == []
    assert indexed(store) in (150, 180)
    assert nearest(store, ASKED) == exact(range(180), ASKED)
    store.run(store.flush())
    assert indexed(store) == 180
    assert nearest(store, ASKED) == exact(range(180), ASKED)
    assert store.run(store.verify()).sound
    store.close()


def test_one_process_at_a_time(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    first = process(store)
    os.kill(first.pid, signal.SIGSTOP)
    put(store, 150, 400)
    assert process(store) is first
    os.kill(first.pid, signal.SIGCONT)
    store.close()
    assert first.returncode == 0


def test_close_waits_and_leaves_one_whole_snapshot(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    store.close()
    assert [path.name for path in (tmp_path / "kb").glob("*index*")] == [snapshot_file(tmp_path / "kb").name]
    store = EmbeddedBackend(tmp_path / "kb", create=False, settings=SNAPSHOTS)
    assert indexed(store) == 150
    assert store.run(store.verify()).sound
    store.close()


@pytest.mark.parametrize("program", ["fails", "is missing", "is not told"])
def test_the_writer_takes_the_snapshot_where_no_process_does(
    tmp_path, monkeypatch, taken_here, program
) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\nexit 3\n")
    failing.chmod(0o755)
    executable = {"fails": str(failing), "is missing": str(tmp_path / "none"), "is not told": ""}[program]
    monkeypatch.setattr(sys, "executable", executable)
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    if program == "fails":
        store._store._builder.wait()
        assert taken_here == []
        put(store, 150, 160)
    assert taken_here == [160 if program == "fails" else 150]
    assert store.run(store.verify()).sound
    store.close()


def test_a_process_that_is_killed_delays_the_snapshot_alone(tmp_path, taken_here) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    os.kill(process(store).pid, signal.SIGSTOP)
    process(store).kill()
    store.run(store.flush())
    assert process(store).returncode == -signal.SIGKILL
    assert taken_here == [150]
    assert nearest(store, ASKED) == exact(range(150), ASKED)
    assert store.run(store.verify()).sound
    store.close()


def test_processes_killed_at_random_moments_leave_a_sound_store(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    chance, count, killed = random.Random(7), 0, 0
    for _ in range(times(4, 100)):
        put(store, count, count + 60)
        count += 60
        time.sleep(chance.uniform(0, 0.6))
        if process(store) is not None and process(store).poll() is None:
            process(store).kill()
            killed += 1
        assert nearest(store, ASKED) == exact(range(count), ASKED)
        if count > 3000:
            store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(count)])))
            count = 0
    assert killed
    store.run(store.flush())
    assert store.run(store.verify()).sound
    store.close()
    assert not list((tmp_path / "kb").glob(".*.tmp"))


def test_compacting_waits_for_it_and_nothing_deleted_comes_back(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    os.kill(process(store).pid, signal.SIGSTOP)
    store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(50)])))
    threading.Timer(0.2, os.kill, (process(store).pid, signal.SIGCONT)).start()
    store.run(store.compact())
    store._store._builder.wait()
    assert indexed(store) == 100
    files = [path.read_bytes() for path in (tmp_path / "kb").iterdir()]
    assert not any(vectors([7])[0].tobytes() in content for content in files)
    assert any(vectors([77])[0].tobytes() in content for content in files)
    assert store.run(store.verify()).sound
    store.close()


def write_and_be_killed(told, folder: Path) -> None:
    maintenance.BESIDE_FROM, maintenance.count_cores = 100, lambda: 2
    store = backend(folder, SNAPSHOTS)
    put(store, 0, 150)
    told.send(process(store).pid)
    told.recv()


def test_the_snapshot_is_completed_if_the_writer_is_killed(tmp_path) -> None:
    child = Child(write_and_be_killed, tmp_path / "kb")
    assert child.connection.recv() > 0
    child.kill()
    store = EmbeddedBackend(tmp_path / "kb", create=False, settings=SNAPSHOTS)
    until(lambda: indexed(store) == 150)
    assert store.run(store.verify()).sound
    store.close()


def test_ctrl_c_does_not_reach_it(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    assert os.getpgid(process(store).pid) != os.getpgid(0)
    store.close()


def test_a_forked_child_neither_waits_for_it_nor_ends_it(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    os.kill(process(store).pid, signal.SIGSTOP)
    child = os.fork()
    if not child:
        put(store, 300, 310)
        store.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.kill(process(store).pid, signal.SIGCONT)
    store.run(store.flush())
    assert process(store).returncode == 0
    assert indexed(store) == 160
    store.close()


def test_a_signal_handler_may_close_the_store_while_flush_waits(tmp_path) -> None:
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    at_work = process(store)
    os.kill(at_work.pid, signal.SIGSTOP)

    class Interrupted(Exception):
        pass

    def close(*_) -> None:
        threading.Timer(0.1, os.kill, (at_work.pid, signal.SIGCONT)).start()
        store.close()
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, close)
    try:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(Interrupted):
            store.run(store.flush())
    finally:
        signal.signal(signal.SIGUSR1, before)
    store = EmbeddedBackend(tmp_path / "kb", create=False, settings=SNAPSHOTS)
    assert indexed(store) == 150
    store.close()


@pytest.mark.parametrize("work", ["flush", "compact"])
def test_a_signal_handler_does_not_wait_for_the_work_that_it_interrupted(tmp_path, monkeypatch, work) -> None:
    """compact() says so; flush() leaves the snapshot to the one that is being taken."""
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 150)
    write, told = DerivedData.write, []

    def interrupted(self, *args, **options):
        signal.raise_signal(signal.SIGUSR1)
        return write(self, *args, **options)

    def handle(*_) -> None:
        store.run(store.flush())
        with pytest.raises(StoreBusyError, match="interrupted work on its files") as refused:
            store.run(store.compact())
        told.append(refused)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        store.run(store.flush())
        put(store, 150, 160)
        monkeypatch.setattr(DerivedData, "write", interrupted)
        store.run(getattr(store, work)())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(told) == 1
    assert indexed(store) == 160
    assert store.run(store.verify()).sound
    store.close()
