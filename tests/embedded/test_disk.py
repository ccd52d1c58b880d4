"""A full disk is a typed error; what was stored stays readable, and all goes on when there is space."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import subprocess

import apsw
import pytest
from internals import WriteBatch
from stores import SNAPSHOTS, backend, exact, nearest, put, vectors

from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.errors import BackendError, StoreFullError

ASKED = vectors([10_000])[0]


@pytest.fixture
def small_disk(tmp_path):
    """A tmpfs of 8 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if mounted.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder, leave: int) -> None:
    """Leave so many bytes."""
    state = os.statvfs(folder)
    (folder / "ballast").write_bytes(b"x" * max(0, state.f_bavail * state.f_frsize - leave))


def almost_full(folder, settings: EmbeddedSettings, documents: int, leave: int) -> EmbeddedBackend:
    """A store on a disk that has so many bytes left, none of which its log gives back later."""
    store = backend(folder / "kb", settings)
    put(store, 0, documents)
    store.close()  # folds the log in
    fill(folder, leave)
    return backend(folder / "kb", settings)


def test_a_full_disk_refuses_writes_and_keeps_what_was_there(small_disk) -> None:
    store = backend(small_disk / "kb", EmbeddedSettings(exact_below=64))
    put(store, 0, 100)
    there, full = 100, None
    while full is None and there < 20_000:
        try:
            put(store, there, there + 50)
            there += 50
        except StoreFullError as error:
            full = error
    assert "linkstore.db: no space left" in str(full)
    for _ in range(2):
        with pytest.raises(StoreFullError):
            put(store, there, there + 50)
        with pytest.raises(StoreFullError):
            put(store, 0, 50, version=1)
    assert nearest(store, ASKED) == exact(range(there), ASKED)
    assert store.run(store.survey()).documents == there
    store.run(store.flush())
    store.close()
    store = backend(small_disk / "kb", EmbeddedSettings(exact_below=64))
    assert nearest(store, ASKED) == exact(range(there), ASKED)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    put(store, there, there + 50)
    store.run(store.flush())
    assert nearest(store, ASKED) == exact(range(there + 50), ASKED)
    assert store.run(store.verify()).sound
    assert list((small_disk / "kb").glob("index-*.bin"))
    store.close()


@pytest.mark.parametrize("leave", [250_000, 400_000])
def test_a_write_counts_though_there_is_no_space_for_its_snapshot(small_disk, leave, caplog) -> None:
    settings = EmbeddedSettings(exact_below=2000, durable=False)
    store = almost_full(small_disk, settings, 2000, leave)
    put(store, 2000, 2010)  # the first past the bound, so a snapshot is due
    assert "not brought up to date" in caplog.text
    put(store, 2010, 2020)
    assert nearest(store, ASKED) == exact(range(2020), ASKED)
    (small_disk / "ballast").unlink()
    put(store, 2020, 2030)
    store.run(store.flush())
    assert list((small_disk / "kb").glob("index-*.bin"))
    assert nearest(store, ASKED) == exact(range(2030), ASKED)
    assert store.run(store.verify()).sound
    store.close()


def test_a_snapshot_that_failed_is_taken_again_with_all_in_it(tmp_path, monkeypatch, caplog) -> None:
    """The index in memory was ahead of the file that could not be saved."""
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    store.run(store.flush())
    put(store, 100, 130)  # too few for a snapshot of their own
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", _no_space)
        store.run(store.flush())
    assert "No space left" in caplog.text
    put(store, 130, 200)
    store.run(store.flush())
    assert nearest(store, ASKED, 200) == exact(range(200), ASKED, 200)
    store.close()
    store = backend(tmp_path / "kb")
    assert nearest(store, ASKED, 200) == exact(range(200), ASKED, 200)
    assert store.run(store.verify()).sound
    store.close()


def _no_space(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("number", "raised"),
    [(errno.ENOSPC, StoreFullError), (errno.EIO, BackendError), (errno.EMFILE, BackendError)],
)
def test_what_the_system_refuses_is_an_error_of_the_store(
    tmp_path, monkeypatch, caplog, number, raised
) -> None:
    """It was an OSError, which is no LinkStoreError."""
    store = backend(tmp_path / "kb")
    put(store, 0, 100)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    for function in ("fsync", "open"):
        with monkeypatch.context() as patched:
            patched.setattr(os, function, refuse)
            with pytest.raises(raised, match=os.strerror(number)) as caught:
                store.run(store.compact())
            assert type(caught.value) is raised
            put(store, 100, 400)  # a snapshot is due
        assert "not brought up to date" in caplog.text
        caplog.clear()
        assert nearest(store, ASKED) == exact(range(400), ASKED)
        store.run(store.write(WriteBatch(remove=[f"d{n}" for n in range(100, 400)])))
    store.run(store.compact())
    assert store.run(store.verify()).sound
    store.close()


def test_no_more_files_can_be_opened(tmp_path) -> None:
    """Whatever is done then, an error of the store says so, and everything is there afterwards."""
    store = backend(tmp_path / "kb")
    put(store, 0, 100)
    store.close()
    most, raised = resource.getrlimit(resource.RLIMIT_NOFILE), 0
    for left in range(8):
        store = backend(tmp_path / "kb")
        for name in ("open", "search", "flush", "compact", "verify", "repair"):
            opened: list[int] = []
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(400, most[0]), most[1]))
            try:
                with contextlib.suppress(OSError):
                    while True:
                        opened.append(os.open(os.devnull, os.O_RDONLY))
                for _ in range(left):
                    os.close(opened.pop())
                if name == "open":
                    backend(tmp_path / "kb").close()
                elif name == "search":
                    nearest(store, ASKED)
                else:
                    store.run(getattr(store, name)())
            except BackendError:
                raised += 1
            finally:
                for descriptor in opened:
                    os.close(descriptor)
                resource.setrlimit(resource.RLIMIT_NOFILE, most)
            assert nearest(store, ASKED) == exact(range(100), ASKED)
        store.close()
    assert raised


def test_a_full_database_is_a_typed_error_wherever_it_happens(tmp_path) -> None:
    """Injected: SQLite may use no more pages than it has."""
    store = backend(tmp_path / "kb", SNAPSHOTS)
    put(store, 0, 50)
    (connection,) = store._database._pool.idle
    connection.pragma("max_page_count", connection.pragma("page_count"))
    with pytest.raises(StoreFullError, match="intact") as caught:
        put(store, 50, 2000)
    assert isinstance(caught.value.__cause__, apsw.FullError)
    assert nearest(store, ASKED, 100) == exact(range(50), ASKED, 100)
    put(store, 50, 80)
    store.run(store.write(WriteBatch(remove=["d0"])))
    assert nearest(store, ASKED, 100) == exact(range(1, 80), ASKED, 100)
    store.close()
