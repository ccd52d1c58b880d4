"""Where a store lies: decided once, and said when it is no longer so."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from internals import Candidates, Ids, Nearest, Plan, WriteBatch
from stores import SNAPSHOTS, backend, embedding, exact, nearest, put, record, sql, vectors

from linkstore import LinkStore
from linkstore.engines.embedded import EmbeddedBackend, maintenance
from linkstore.errors import BackendError, StoreFormatError, StoreMovedError, StoreNotFoundError

ASKED = vectors([10_000])[0]


def two_at_once(store: EmbeddedBackend) -> list[list[str]]:
    """The nearest documents, by two searches that overlap, so that one needs a connection of its own."""
    both = threading.Barrier(2)

    def plan() -> Plan[list[str]]:
        found: Candidates = yield Nearest(vector=ASKED, k=10)
        both.wait(10)
        ids: list[str] = yield Ids(refs=found.refs)
        return ids

    answers: list[list[str]] = []

    def ask() -> None:
        answers.append(store.run(store.answer(plan())))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def made(folder: Path, start: int, stop: int) -> Path:
    store = backend(folder)
    put(store, start, stop)
    store.close()
    return folder


def test_a_relative_path_is_resolved_once(tmp_path, monkeypatch) -> None:
    made(tmp_path / "here" / "kb", 0, 20)
    made(tmp_path / "there" / "kb", 100, 120)
    (tmp_path / "nowhere" / "kb").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    store = EmbeddedBackend("kb", settings=SNAPSHOTS)
    assert store.folder == tmp_path / "here" / "kb"
    for place in ("there", "nowhere"):
        monkeypatch.chdir(tmp_path / place)
        assert two_at_once(store) == [exact(range(20), ASKED)] * 2
    put(store, 20, 30)
    assert two_at_once(store) == [exact(range(30), ASKED)] * 2
    store.close()
    assert list((tmp_path / "nowhere" / "kb").iterdir()) == []


def test_a_symlink_that_is_moved_leads_new_stores_only(tmp_path) -> None:
    """The blue/green way: the link goes to another build while a store is open."""
    made(tmp_path / "v1", 0, 20)
    made(tmp_path / "v2", 100, 120)
    link = tmp_path / "current"
    link.symlink_to("v1")
    store = EmbeddedBackend(link, settings=SNAPSHOTS)
    (tmp_path / "next").symlink_to("v2")
    (tmp_path / "next").replace(link)
    assert two_at_once(store) == [exact(range(20), ASKED)] * 2
    put(store, 20, 21)
    store.close()
    fresh = EmbeddedBackend(link, settings=SNAPSHOTS)
    assert nearest(fresh, ASKED) == exact(range(100, 120), ASKED)
    fresh.close()


@pytest.mark.parametrize("fate", ["deleted", "renamed", "replaced", "swapped", "parent renamed"])
def test_a_store_whose_folder_went_says_so(tmp_path, fate) -> None:
    folder = tmp_path / "in" / "kb"
    store = backend(folder)
    put(store, 0, 200)
    store.run(store.flush())
    nearest(store, ASKED)
    other = made(tmp_path / "other", 300, 310)
    match fate:
        case "deleted":
            shutil.rmtree(folder)
        case "renamed":
            folder.rename(tmp_path / "elsewhere")
        case "replaced":
            shutil.rmtree(folder)
            other.rename(folder)
        case "swapped":
            folder.rename(tmp_path / "old")
            other.rename(folder)
        case "parent renamed":
            folder.parent.rename(tmp_path / "elsewhere")
    before = sorted(path.name for path in folder.iterdir()) if folder.exists() else None
    said = "replaced by another" if fate in ("replaced", "swapped") else "deleted or moved"
    for use in (
        lambda: nearest(store, ASKED),
        lambda: put(store, 500, 501),
        lambda: store.run(store.flush()),
        lambda: store.run(store.verify()),
        lambda: store.run(store.repair()),
        lambda: store.run(store.survey()),
        lambda: store.run(store.scan(None, 10)),
    ):
        with pytest.raises(StoreMovedError, match=said):
            use()
    store.close()
    assert (sorted(path.name for path in folder.iterdir()) if folder.exists() else None) == before
    if fate in ("replaced", "swapped"):
        fresh = EmbeddedBackend(folder, settings=SNAPSHOTS)
        assert nearest(fresh, ASKED) == exact(range(300, 310), ASKED)
        fresh.close()


def test_closing_a_store_that_was_swapped_leaves_the_log_of_the_new_one_alone(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 10)
    newer = backend(tmp_path / "newer")
    put(newer, 100, 110)
    (tmp_path / "kb").rename(tmp_path / "old")
    shutil.copytree(tmp_path / "newer", tmp_path / "kb")  # as its writer was killed: all is in the log
    newer.close()
    log = (tmp_path / "kb" / "linkstore.db-wal").read_bytes()
    assert log
    store.close()
    assert (tmp_path / "kb" / "linkstore.db-wal").read_bytes() == log
    fresh = EmbeddedBackend(tmp_path / "kb")
    assert nearest(fresh, ASKED) == exact(range(100, 110), ASKED)
    fresh.close()


def test_a_folder_that_comes_back_is_the_store_again(tmp_path) -> None:
    store = backend(tmp_path / "kb")
    put(store, 0, 20)
    (tmp_path / "kb").rename(tmp_path / "away")
    with pytest.raises(StoreMovedError):
        nearest(store, ASKED)
    (tmp_path / "away").rename(tmp_path / "kb")
    put(store, 20, 30)
    assert nearest(store, ASKED) == exact(range(30), ASKED)
    store.close()


def test_a_database_set_back_while_open_ends_in_an_error_and_not_in_a_loop(tmp_path, monkeypatch) -> None:
    """Restored in place from a copy: the same file, with an older state in it."""
    monkeypatch.setattr(maintenance, "STALE_SECONDS", 0.2)
    store = backend(tmp_path / "kb")
    put(store, 0, 20)
    store.run(store.write(WriteBatch(put=[record(30)])))
    store.run(store.write(WriteBatch(put=[record(30, 1)])))  # comes and goes unseen
    nearest(store, ASKED)
    sql(tmp_path / "kb", "UPDATE setting SET value = 1 WHERE name = 'change'")
    with pytest.raises(StoreMovedError, match="older state"):
        nearest(store, ASKED)
    store.close()


@pytest.mark.parametrize("path", ["a\0b", "loop/kb"])
def test_a_path_that_names_no_folder_is_refused(tmp_path, monkeypatch, path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StoreFormatError, match="path"):
        EmbeddedBackend(path)


def test_a_relative_path_in_a_folder_that_is_gone_is_refused(tmp_path, monkeypatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StoreNotFoundError, match="working directory is gone"):
        EmbeddedBackend("kb")


def test_a_missing_an_empty_and_a_foreign_database_are_told_apart(tmp_path) -> None:
    with pytest.raises(StoreNotFoundError, match="there is no linkstore at"):
        EmbeddedBackend(tmp_path / "missing", create=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "linkstore.db").touch()
    with pytest.raises(StoreFormatError, match="is empty: making the store was interrupted"):
        EmbeddedBackend(tmp_path / "empty", create=False)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "linkstore.db").write_bytes(b"something else " * 1000)
    for create in (True, False):
        with pytest.raises(StoreFormatError, match="no SQLite database"):
            EmbeddedBackend(tmp_path / "foreign", create=create)
    (tmp_path / "folder" / "linkstore.db").mkdir(parents=True)
    with pytest.raises(BackendError, match=r"linkstore\.db: the system does not open it"):
        EmbeddedBackend(tmp_path / "folder")


def test_a_store_whose_making_was_interrupted_is_made(tmp_path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "linkstore.db").touch()
    store = backend(tmp_path / "kb")
    put(store, 0, 5)
    assert len(nearest(store, ASKED)) == 5
    store.close()


@pytest.mark.parametrize("state", ["is missing", "is empty"])
def test_a_store_that_lost_its_database_is_not_started_anew(tmp_path, state) -> None:
    made(tmp_path / "kb", 0, 5)
    path = tmp_path / "kb" / "linkstore.db"
    path.unlink()
    if state == "is empty":
        path.touch()
    for create in (True, False):
        with pytest.raises(StoreFormatError, match=f"{state}, but writer.pid shows"):
            EmbeddedBackend(tmp_path / "kb", create=create)


@pytest.mark.skipif(os.name != "posix", reason="links need no privilege on POSIX alone")
def test_two_names_of_one_folder_are_one_store(tmp_path) -> None:
    (tmp_path / "link").symlink_to("kb")
    with LinkStore.open(tmp_path / "kb", embedding()) as one, LinkStore.open(tmp_path / "link") as two:
        assert one.backend.folder == two.backend.folder == tmp_path / "kb"
