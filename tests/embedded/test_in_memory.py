"""A store in memory: nothing of it is in a file, and it is gone with its process, whatever ends that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import apsw
import pytest
from internals import Documents, Ids, Nearest, WriteBatch
from stores import SNAPSHOTS, backend, exact, meanwhile, nearest, put, vectors

from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import StoreBusyError

ASKED = vectors([10_000])[0]
SECONDS = 60
PROGRAM = """
import sys
sys.path[:0] = {path}
from stores import backend, put
store = backend(":memory:")
put(store, 0, 200)
store.run(store.flush())
print("ready", flush=True)
sys.stdin.read()
"""


def files() -> set[Path]:
    return {path for path in Path(tempfile.gettempdir()).glob("linkstore-*") if path.is_dir()}


@pytest.mark.parametrize("by", ["SIGTERM", "SIGKILL"])
def test_a_process_that_is_ended_leaves_nothing(tmp_path, by) -> None:
    """The store was a temporary folder, which stayed with its documents."""
    path = [str(Path(__file__).parents[1] / "support"), str(Path(__file__).parents[2])]
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(path=path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=tmp_path,
    )
    assert child.stdout.readline() == "ready\n"
    assert list(tmp_path.iterdir()) == []
    child.send_signal(getattr(signal, by))
    child.communicate(timeout=SECONDS)
    assert list(tmp_path.iterdir()) == []


def test_writes_do_not_wait_for_readers_nor_change_what_they_see() -> None:
    """Whoever writes: the thread that reads, or another."""
    store = backend(":memory:")
    put(store, 0, 100)

    def plan():
        before = yield Nearest(vector=ASKED, k=3)
        put(store, 0, 100, version=1)
        writer = threading.Thread(target=put, args=(store, 100, 200))
        writer.start()
        writer.join(SECONDS)
        assert not writer.is_alive()
        assert store.run(store.survey()).documents == 200
        texts = yield Documents(refs=before.refs)
        ids = yield Ids(refs=before.refs)
        return ids, {document.metadata["v"] for document in texts}

    assert store.run(store.answer(plan())) == (exact(range(100), ASKED, 3), {0})
    assert store.run(store.verify()).sound
    assert {one.metadata["v"] for one in store.run(store.scan(None, 100))} == {0, 1}
    store.close()


def test_threads_read_while_others_write() -> None:
    store = backend(":memory:", SNAPSHOTS)
    put(store, 0, 100)
    right = exact(range(100), ASKED, 3)

    def read() -> None:
        assert [name for name in nearest(store, ASKED, 10_000) if int(name[1:]) < 100][:3] == right

    with meanwhile(read, read):
        for n in range(100, 400, 10):
            put(store, n, n + 10)
    assert store.run(store.verify()).sound
    assert nearest(store, ASKED, 400) == exact(range(400), ASKED, 400)
    store.close()


def test_an_interrupted_write_leaves_what_was_there() -> None:
    store = backend(":memory:")
    put(store, 0, 10)

    def interrupted(connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM document")
        with pytest.raises(StoreBusyError, match="this thread"):
            nearest(store, ASKED)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store._database.write(interrupted)
    assert nearest(store, ASKED, 10) == exact(range(10), ASKED, 10)
    assert store.run(store.verify()).sound
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_the_content_for_itself() -> None:
    store = backend(":memory:")
    put(store, 0, 100)
    store.run(store.flush())
    child = os.fork()
    if not child:
        status = 1
        try:
            ok = nearest(store, ASKED) == exact(range(100), ASKED)
            put(store, 100, 200)
            store.run(store.flush())
            ok &= nearest(store, ASKED, 200) == exact(range(200), ASKED, 200)
            ok &= store.run(store.verify()).sound
            store.close()
            status = 0 if ok else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    put(store, 100, 110)
    assert nearest(store, ASKED, 200) == exact(range(110), ASKED, 200)
    store.close()


def test_a_large_store_has_an_index_and_keeps_it_up_to_date() -> None:
    store = backend(":memory:", SNAPSHOTS)
    put(store, 0, 200)
    assert store._store.derived._held is None or store._store.derived._held.ann is None
    nearest(store, ASKED)
    first = store._store.derived._held.ann
    assert first is not None
    put(store, 200, 600)
    store.run(store.flush())
    assert nearest(store, ASKED) == exact(range(600), ASKED)
    assert store._store.derived._held.ann.covered == 600
    assert (len(first.index), first.covered) == (200, 200)  # searches that began before go on with it
    store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(570)])))
    assert nearest(store, ASKED, 40) == exact(range(570, 600), ASKED, 40)
    assert store.run(store.verify()).sound
    store.run(store.compact())
    assert store.run(store.repair()).sound
    store.close()


def test_stores_in_memory_are_apart() -> None:
    one, other = backend(":memory:"), EmbeddedBackend(":memory:")
    put(one, 0, 10)
    assert other.run(other.survey()).documents == 0
    one.close()
    other.close()
