"""A store where nothing can be written: it opens, answers and verifies, and refuses writes by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from internals import StoreFolder
from stores import SNAPSHOTS, Child, backend, exact, nearest, put, vectors

from linkstore.engines.embedded import EmbeddedBackend
from linkstore.errors import (
    StoreBusyError,
    StorePermissionError,
    StoreReadOnlyError,
)

ASKED = vectors([10_000])[0]
NOBODY = 65534


@pytest.fixture
def frozen(tmp_path):
    """Shows a folder at another place, where nothing can be written."""
    mounted: list[str] = []

    def freeze(folder) -> str:
        target = tmp_path / "frozen"
        target.mkdir(exist_ok=True)
        for command in (
            ["mount", "--bind", str(folder), str(target)],
            ["mount", "-o", "remount,ro,bind", str(target)],
        ):
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except FileNotFoundError:
                pytest.skip("there is no mount command here")
            if done.returncode:
                pytest.skip(f"nothing may be mounted here: {done.stderr.strip()}")
            if "--bind" in command:
                mounted.append(str(target))
        return str(target)

    yield freeze
    for target in mounted:
        subprocess.run(["umount", "--lazy", target], check=True)


def may_not_write(monkeypatch) -> None:
    """As the system answers a user who may read but not write: root may always write."""
    monkeypatch.setattr(StoreFolder, "writable", property(lambda _: False))


def filled(folder) -> EmbeddedBackend:
    store = backend(folder)
    put(store, 0, 100)
    store.run(store.flush())
    put(store, 100, 120)
    return store


def check_answers(store: EmbeddedBackend, count: int, *, writable: bool = False) -> None:
    assert nearest(store, ASKED) == exact(range(count), ASKED)
    assert store.run(store.survey()).documents == count
    assert store.run(store.verify()).sound
    store.run(store.flush())
    assert store.run(store.repair()).sound
    if not writable:
        with pytest.raises(StoreReadOnlyError, match="nothing can be written"):
            put(store, 500, 501)
    assert nearest(store, ASKED) == exact(range(count), ASKED)


def test_a_store_on_a_read_only_mount_answers(tmp_path, frozen) -> None:
    filled(tmp_path / "kb").close()
    before = sorted(path.name for path in (tmp_path / "kb").iterdir())
    store = EmbeddedBackend(frozen(tmp_path / "kb"), create=False, settings=SNAPSHOTS)
    check_answers(store, 120)
    store.close()
    assert sorted(path.name for path in (tmp_path / "kb").iterdir()) == before


def test_a_read_only_mount_of_a_store_that_is_open_elsewhere_follows_it(tmp_path, frozen) -> None:
    writer = filled(tmp_path / "kb")
    store = EmbeddedBackend(frozen(tmp_path / "kb"), create=False, settings=SNAPSHOTS)
    check_answers(store, 120)
    put(writer, 120, 130)
    check_answers(store, 130)
    store.close()
    writer.close()


def test_no_store_is_made_on_a_read_only_mount(tmp_path, frozen) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreReadOnlyError, match="no linkstore can be made"):
        EmbeddedBackend(frozen(tmp_path / "empty"))
    with pytest.raises(StoreReadOnlyError, match="no linkstore can be made"):
        EmbeddedBackend(frozen(tmp_path / "empty") + "/kb")


def test_a_store_of_another_user_answers(tmp_path, monkeypatch) -> None:
    filled(tmp_path / "kb").close()
    may_not_write(monkeypatch)
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    check_answers(store, 120)
    assert store.run(store.scan("d49", 1))[0].text == "doc 5 v0"
    store.close()


def test_what_another_user_writes_meanwhile_is_seen(tmp_path, monkeypatch) -> None:
    """Between its closing and its next opening the writer leaves no lock; the reader watches the file."""
    filled(tmp_path / "kb").close()
    with monkeypatch.context() as patched:
        may_not_write(patched)
        reader = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
        check_answers(reader, 120)
    writer = backend(tmp_path / "kb")
    put(writer, 120, 130)
    assert nearest(reader, ASKED) == exact(range(130), ASKED)  # from the log
    writer.close()
    assert nearest(reader, ASKED) == exact(range(130), ASKED)  # from the file

    def write_meanwhile(connection) -> int:
        writer = backend(tmp_path / "kb")
        put(writer, 130, 140)
        writer.close()
        return len(connection.execute("SELECT 1 FROM document").fetchall())

    with pytest.raises(StoreBusyError, match="written by another process"):
        reader._database.read(write_meanwhile)
    assert nearest(reader, ASKED) == exact(range(140), ASKED)
    reader.close()


def test_a_log_that_must_be_folded_in_is_no_silent_loss(tmp_path, monkeypatch) -> None:
    store = filled(tmp_path / "kb")
    shutil.copytree(tmp_path / "kb", tmp_path / "copy")
    store.close()
    (tmp_path / "copy" / "linkstore.db-shm").unlink()
    with monkeypatch.context() as patched:
        may_not_write(patched)
        with pytest.raises(StoreReadOnlyError, match="its log cannot be folded in"):
            EmbeddedBackend(tmp_path / "copy")
    EmbeddedBackend(tmp_path / "copy").close()
    may_not_write(monkeypatch)
    store = EmbeddedBackend(tmp_path / "copy", settings=SNAPSHOTS)
    check_answers(store, 120)
    store.close()


def test_damaged_derived_files_do_no_harm(tmp_path, monkeypatch, caplog) -> None:
    filled(tmp_path / "kb").close()
    for path in (tmp_path / "kb").glob("index-*.bin"):
        path.write_bytes(b"x")
    may_not_write(monkeypatch)
    store = EmbeddedBackend(tmp_path / "kb", settings=SNAPSHOTS)
    assert "searches do without it" in caplog.text
    assert nearest(store, ASKED) == exact(range(120), ASKED)
    assert not store.run(store.verify()).sound
    with pytest.raises(StoreReadOnlyError):
        store.run(store.repair())
    store.close()


def as_another_user(told, folder) -> None:
    """What a user finds who may read the store of root, and then one whose database they may not read."""
    check_answers(filled(folder / "own"), 120, writable=True)  # all modules are loaded, as root
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    store = EmbeddedBackend(folder / "kb", settings=SNAPSHOTS)
    check_answers(store, 120)
    store.close()
    with pytest.raises(StorePermissionError, match="may not read it"):
        EmbeddedBackend(folder / "secret")
    told.send("done")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be another user")
def test_another_user_reads_what_they_may_read_and_writes_nothing() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are for their owner alone
        folder = Path(name)
        folder.chmod(0o755)
        for one in ("kb", "secret"):
            filled(folder / one).close()
            (folder / one).chmod(0o755)
        (folder / "secret" / "linkstore.db").chmod(0o600)
        assert Child(as_another_user, folder).finish() == ["done"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_database_is_an_error_of_its_own(tmp_path) -> None:
    filled(tmp_path / "kb").close()
    (tmp_path / "kb" / "linkstore.db").chmod(0)
    with pytest.raises(StorePermissionError, match="may not read it"):
        EmbeddedBackend(tmp_path / "kb")


def test_an_unreadable_database_is_told_from_a_missing_one(tmp_path, monkeypatch) -> None:
    """As above, for a user whom permissions do not bind: SQLite cannot open it, the system says why."""
    filled(tmp_path / "kb").close()
    real = os.access
    path = tmp_path / "kb" / "linkstore.db"
    (tmp_path / "hidden").mkdir()
    path.rename(tmp_path / "hidden" / "linkstore.db")
    path.mkdir()  # what SQLite cannot open, whoever asks
    monkeypatch.setattr(os, "access", lambda at, mode: mode != os.R_OK and real(at, mode))
    with pytest.raises(StorePermissionError, match="may not read it"):
        EmbeddedBackend(tmp_path / "kb")
