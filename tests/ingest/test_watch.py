"""A folder that is watched: its index follows its files."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from internals import RemovalRefusedError, WriteCounts

from linkstore import LinkStore
from linkstore.errors import LinkStoreError, SourceNotFoundError
from linkstore.ingest import FolderSource, Summary, VaultSource, index, watch_folder

LONG = 30.0


def wait_until(holds: Callable[[], bool], seconds: float = LONG) -> float:
    """Return how long it took until something held."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds, "it did not come to that"
        time.sleep(0.02)
    return time.monotonic() - began


@contextmanager
def watching(
    store: LinkStore, folder: Path, kind=FolderSource, **options
) -> Iterator[list[Summary | LinkStoreError]]:
    """Watch a folder in another thread, from after its first run."""
    runs: list[Summary | LinkStoreError] = []
    failed: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            watch_folder(store, kind(folder), stop=stop, report=runs.append, jobs=1, **options)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        wait_until(lambda: bool(runs or failed))
        yield runs
    finally:
        stop.set()
        thread.join(LONG)
    assert not thread.is_alive()
    if failed:
        raise failed[0]


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "notes"
    place.mkdir()
    (place / "a.md").write_text("# Alpha\n\nThe first note.")
    (place / "b.md").write_text("# Beta\n\nThe second note, see [alpha](a.md).")
    return place


def texts(store: LinkStore) -> dict[str, str]:
    return {str(document.metadata["page"]): document.page_content for document in store.scan()}


def test_changed_new_renamed_and_deleted_files_are_followed(folder):
    with LinkStore() as store, watching(store, folder):
        assert set(texts(store)) == {"a.md", "b.md"}
        (folder / "a.md").write_text("# Alpha\n\nIt was written again.")
        wait_until(lambda: "written again" in texts(store)["a.md"])
        (folder / "c.md").write_text("# Gamma\n\nA third note.")
        wait_until(lambda: "c.md" in texts(store))
        (folder / "c.md").rename(folder / "d.md")
        wait_until(lambda: set(texts(store)) == {"a.md", "b.md", "d.md"})
        (folder / "b.md").unlink()
        wait_until(lambda: set(texts(store)) == {"a.md", "d.md"})
        (folder / "deep/er").mkdir(parents=True)
        (folder / "deep/er/e.md").write_text("# Epsilon\n\nFurther down.")
        wait_until(lambda: "deep/er/e.md" in texts(store))


@pytest.mark.parametrize("left", ["", "<!-- nothing yet -->\n"], ids=["no bytes", "a comment"])
def test_the_page_of_a_file_that_is_emptied_goes_and_comes_back(folder, left):
    with LinkStore() as store, watching(store, folder):
        (folder / "b.md").write_text(left)
        wait_until(lambda: set(texts(store)) == {"a.md"})
        (folder / "b.md").write_text("# Beta\n\nIt has a text again.")
        wait_until(lambda: "a text again" in texts(store).get("b.md", ""))


def test_a_burst_of_changes_and_a_file_that_is_being_written_are_waited_for(folder):
    with LinkStore() as store, watching(store, folder) as runs:
        with (folder / "long.md").open("w") as file:
            for number in range(300):
                (folder / f"n{number}.md").write_text(f"# Note {number}\n\nText {number}.")
                file.write(f"Line {number}.\n\n")
                file.flush()
                time.sleep(0.005)
        wait_until(lambda: "n299.md" in texts(store))
        assert len(runs) <= 1 + 3  # 1.5 s of changes; more than one run only if this machine paused
        assert all("Line 299" in one.page_content for one in store.scan() if "Line 298" in one.page_content)


@pytest.mark.parametrize("kind", [FolderSource, VaultSource])
def test_a_saved_file_is_stored_at_once_and_what_it_means_to_others_later(folder, kind, monkeypatch):
    """The second page names its title apart once the first page has the same."""
    monkeypatch.setattr("linkstore.ingest.watch.TIDY_SECONDS", 1.5)
    (folder / "deep").mkdir()
    (folder / "deep/a.md").write_text("# Gamma\n\nAnother note.")
    with LinkStore() as store, LinkStore() as other:
        with watching(store, folder, kind) as runs:
            (folder / "a.md").write_text("# Gamma\n\nIt was written again.")
            wait_until(lambda: "written again" in texts(store)["a.md"], 1.4)  # before any run begins
            wait_until(lambda: len(runs) == 2)
            assert runs[1].pages == WriteCounts(updated=1)
            time.sleep(2.5)
        index(other, kind(folder), progress=None)
        assert sorted(store.scan(), key=lambda one: one.id) == sorted(other.scan(), key=lambda one: one.id)


def test_a_store_within_the_folder_does_not_wake_the_watcher(folder):
    with LinkStore.open(folder / "kb") as store, watching(store, folder) as runs:
        (folder / "a.md").write_text("# Alpha\n\nChanged.")
        wait_until(lambda: len(runs) == 2)
        time.sleep(1.5)
        assert len(runs) == 2


def test_readers_beside_it_see_each_run(folder, tmp_path):
    place = tmp_path / "kb"
    with LinkStore.open(place) as store, watching(store, folder), LinkStore.open(place) as reader:
        (folder / "a.md").write_text("# Alpha\n\nA walrus.")
        wait_until(lambda: "walrus" in texts(reader)["a.md"])
        assert "walrus" in reader.search("walrus", k=1)[0].document.page_content


def test_a_run_that_fails_is_reported_and_the_watch_goes_on(folder):
    for number in range(8):
        (folder / f"n{number}.md").write_text(f"# Note {number}\n\nText {number}.")
    with LinkStore() as store, watching(store, folder) as runs:
        for path in folder.glob("*.md"):
            path.unlink()  # more than half: refused, as it may be a disk that was not mounted
        wait_until(lambda: len(runs) == 2)
        assert isinstance(runs[1], LinkStoreError)
        assert len(texts(store)) == 10
        for number in range(9):
            (folder / f"n{number}.md").write_text(f"# Note {number}\n\nAgain {number}.")
        wait_until(lambda: "n8.md" in texts(store))


@pytest.fixture
def soon_settled(monkeypatch):
    monkeypatch.setattr("linkstore.ingest.watch.SETTLED_SECONDS", 1.0)


@pytest.mark.usefixtures("soon_settled")
def test_what_is_deleted_on_purpose_goes_even_if_it_is_most_or_all_of_a_folder(folder, tmp_path):
    (folder / "old").mkdir()
    (folder / "old/c.md").write_text("# Gamma\n\nAn old note.")
    link = tmp_path / "link"
    link.symlink_to(folder)
    with LinkStore() as store, watching(store, link) as runs:
        (folder / "old/c.md").unlink()
        wait_until(lambda: set(texts(store)) == {"a.md", "b.md"})
        (folder / "old/c.md").write_text("# Gamma\n\nIt is back.")
        wait_until(lambda: isinstance(runs[-1], Summary) and runs[-1].pages.added == 1)
        told = len(runs)
        (folder / "a.md").unlink()
        (folder / "old").rename(tmp_path / "attic")
        wait_until(lambda: len(runs) > told)
        assert isinstance(runs[told], RemovalRefusedError)
        assert "what was deleted goes when nothing has changed for 1 s" in str(runs[told])
        wait_until(lambda: set(texts(store)) == {"b.md"})


@pytest.mark.usefixtures("soon_settled")
def test_what_is_deleted_and_comes_back_was_never_gone(folder):
    with LinkStore() as store, watching(store, folder) as runs:
        said = {path.name: path.read_text() for path in folder.iterdir()}
        for name in said:
            (folder / name).unlink()
        wait_until(lambda: len(runs) == 2)
        for name, text in said.items():
            (folder / name).write_text(text)
        time.sleep(2)
        assert set(texts(store)) == {"a.md", "b.md"}
        assert all(not isinstance(run, Summary) or not run.pages.removed for run in runs)


def test_a_folder_that_is_built_anew_or_replaced_is_followed(folder, tmp_path):
    with LinkStore() as store, watching(store, folder) as runs:
        shutil.rmtree(folder)
        wait_until(lambda: len(runs) == 2)
        assert isinstance(runs[1], SourceNotFoundError)
        assert set(texts(store)) == {"a.md", "b.md"}
        folder.mkdir()
        (folder / "a.md").write_text("# Alpha\n\nBuilt anew.")
        (folder / "b.md").write_text("# Beta\n\nThe same.")
        wait_until(lambda: "Built anew" in texts(store)["a.md"])
        other = tmp_path / "other"
        shutil.copytree(folder, other)
        (other / "a.md").write_text("# Alpha\n\nIn its place.")
        folder.rename(tmp_path / "before")
        other.rename(folder)
        wait_until(lambda: "In its place" in texts(store)["a.md"])
        (folder / "a.md").write_text("# Alpha\n\nAnd changed there.")
        wait_until(lambda: "changed there" in texts(store)["a.md"])


def test_the_first_error_ends_it(tmp_path):
    with LinkStore() as store:
        with pytest.raises(SourceNotFoundError, match="there is no folder"):
            watch_folder(store, FolderSource(tmp_path / "none"))
        (tmp_path / "empty").mkdir()
        with pytest.raises(LinkStoreError), watching(store, tmp_path / "empty"):
            pass


def test_a_vault_is_indexed_as_one(folder):
    (folder / "b.md").write_text("# Beta\n\nSee [[a]].")
    with LinkStore() as store, watching(store, folder, VaultSource):
        beta = next(str(one.id) for one in store.scan() if one.metadata["title"] == "Beta")
        led = [id for near in store.links.neighbours(beta).outgoing for id in near.ids]
        assert "The first note." in next(one.page_content for one in store.get_by_ids(led))
