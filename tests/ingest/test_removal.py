"""Nothing is removed unless it is known to be gone."""

from __future__ import annotations

import os
from threading import Timer

import pytest
from internals import BadInput
from listed import offering
from memory_store import MemoryStore

from linkstore.ingest import (
    DocumentsSource,
    FolderSource,
    JsonLinesSource,
    NothingIndexedError,
    RemovalRefusedError,
    VaultSource,
    WriteCounts,
    index,
)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def folder(tmp_path):
    """Six notes at the root, two in a folder."""
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    for name in ("a", "b", "c", "d", "e", "f", "sub/x", "sub/y"):
        (site / f"{name}.md").write_text(f"# {name}\n\nA note.\n")
    return site


def test_a_page_that_is_known_to_be_gone_does_not_count_towards_the_half(store, folder):
    index(store, FolderSource(folder, prefix="docs"))
    for name in ("a", "b", "c", "d", "e", "sub/x", "sub/y"):
        (folder / f"{name}.md").unlink()
    with pytest.raises(RemovalRefusedError):
        index(store, FolderSource(folder, prefix="docs"), prune="sub/x.md".__eq__)
    summary = index(store, FolderSource(folder, prefix="docs"), prune={"a.md", "sub/x.md"}.__contains__)
    assert summary.pages.removed == 6
    assert names(store) == ["docs/f.md", "docs/sub/y.md"]


@pytest.mark.parametrize("text", ["", "<!-- removed -->\n", "---\ntags: [old]\n---\n"])
@pytest.mark.parametrize("prune", [False, True])
def test_a_page_that_its_author_emptied_is_removed(store, folder, text, prune):
    index(store, FolderSource(folder))
    (folder / "a.md").write_text(text)
    summary = index(store, FolderSource(folder), prune=prune)
    assert (summary.pages.removed, list(summary.skipped)) == (1, ["a.md"])
    assert "a.md" not in names(store)


def test_an_emptied_page_of_html_is_removed(store, folder):
    (folder / "x.html").write_text("<h1>X</h1><p>Text.</p>")
    index(store, FolderSource(folder))
    (folder / "x.html").write_text("<html><body></body></html>")
    assert index(store, FolderSource(folder)).pages.removed == 1
    assert "x.html" not in names(store)


def test_more_than_half_a_source_is_not_emptied_without_being_said(store, folder):
    index(store, FolderSource(folder))
    for name in ("a", "b", "c", "d", "e"):
        (folder / f"{name}.md").write_text("")
    with pytest.raises(RemovalRefusedError):
        index(store, FolderSource(folder))
    assert len(names(store)) == 8
    assert index(store, FolderSource(folder), prune=True).pages.removed == 5


def test_a_file_that_was_just_emptied_is_waited_for(store, folder):
    """A program that writes a file empties it first."""
    index(store, FolderSource(folder))
    (folder / "a.md").write_text("")
    writing = Timer(0.2, (folder / "a.md").write_text, ["# a\n\nA longer note.\n"])
    writing.start()
    summary = index(store, FolderSource(folder))
    writing.join()
    assert (summary.pages.updated, summary.pages.removed, summary.skipped) == (1, 0, {})


def names(store):
    return sorted(url for _, url in store.stored)


class Unreadable:
    """Makes a folder as it is to those who may not look into it, also for root."""

    def __init__(self, monkeypatch, folder):
        self.folder = str(folder)
        self.scandir = os.scandir
        monkeypatch.setattr(os, "scandir", self)

    def __call__(self, path):
        if str(path).startswith(self.folder):
            raise PermissionError(13, "Permission denied", str(path))
        return self.scandir(path)


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
def test_a_folder_that_cannot_be_read_keeps_its_pages(store, folder, source, monkeypatch):
    index(store, source(folder))
    before = names(store)
    (folder / "a.md").unlink()
    with monkeypatch.context() as patched:
        Unreadable(patched, folder / "sub")
        summary = index(store, source(folder))

    assert summary.pages == WriteCounts(unchanged=5, removed=1)
    assert summary.skipped == {"sub/": "the folder cannot be read: Permission denied"}
    assert summary.unseen == ("sub/",)
    assert names(store) == before[1:]
    assert index(store, source(folder)).unseen == ()


def test_other_options_do_not_hide_what_cannot_be_read(store, folder, monkeypatch):
    """All pages are read anew, so the source is told of none: they stay all the same."""
    index(store, FolderSource(folder))
    Unreadable(monkeypatch, folder / "sub")
    summary = index(store, FolderSource(folder), links=("hyperlink",), prune=True)

    assert summary.pages == WriteCounts(updated=6)
    assert len(names(store)) == 8


def test_a_root_that_cannot_be_read_keeps_everything(store, folder, monkeypatch):
    index(store, FolderSource(folder))
    Unreadable(monkeypatch, folder)
    summary = index(store, FolderSource(folder), prune=True)

    assert (summary.pages, len(names(store))) == (WriteCounts(), 8)
    assert "." in summary.unseen


def test_a_file_that_cannot_be_read_keeps_its_page_and_counts_as_not_seen(store, folder, monkeypatch):
    from internals import Folder

    index(store, FolderSource(folder))
    (folder / "b.md").unlink()
    read = Folder.read

    def refused(self, name, most):
        if name == "a.md":
            raise PermissionError(13, "Permission denied", name)
        return read(self, name, most)

    monkeypatch.setattr(Folder, "read", refused)
    summary = index(store, FolderSource(folder))

    assert (summary.pages.removed, summary.unseen) == (1, ("a.md",))
    assert "a.md" in names(store)
    assert "b.md" not in names(store)


def test_an_empty_folder_may_be_one_that_is_not_mounted(store, folder):
    index(store, FolderSource(folder))
    for file in (folder / "sub").iterdir():
        file.unlink()
    (folder / "none").mkdir()
    summary = index(store, FolderSource(folder))

    assert (summary.pages.removed, summary.unseen) == (0, ("sub/",))
    assert "not mounted" in summary.skipped["sub/"]
    assert "none/" not in summary.skipped, "nothing of it is stored"
    summary = index(store, FolderSource(folder), prune=True)
    assert (summary.pages.removed, summary.skipped) == (2, {})


def test_a_folder_that_is_gone_is_gone(store, folder):
    index(store, FolderSource(folder))
    for file in (folder / "sub").iterdir():
        file.unlink()
    (folder / "sub").rmdir()

    assert index(store, FolderSource(folder)).pages.removed == 2


def test_more_than_half_a_source_goes_only_if_it_is_said(store, folder):
    index(store, FolderSource(folder))
    for name in ("a", "b", "c", "d", "e"):
        (folder / f"{name}.md").unlink()
    (folder / "new.md").write_text("# New\n\nA note.\n")
    with pytest.raises(RemovalRefusedError, match=r"5 of the 8 stored pages .*--prune") as refused:
        index(store, FolderSource(folder))

    assert refused.value.summary.pages == WriteCounts(added=1, unchanged=3)
    assert len(names(store)) == 9, "what is new was stored all the same"
    assert index(store, FolderSource(folder), prune=True).pages == WriteCounts(unchanged=4, removed=5)


def test_a_source_that_is_not_mounted_keeps_everything(store, folder, tmp_path):
    index(store, FolderSource(folder))
    folder.rename(tmp_path / "elsewhere")
    folder.mkdir()
    for dry_run in (True, False):
        with pytest.raises(RemovalRefusedError, match="8 of the 8 stored pages"):
            index(store, FolderSource(folder), dry_run=dry_run)

    assert len(names(store)) == 8


def test_half_of_a_source_may_go(store):
    index(store, offering(("a",), ("b",)), links=())
    assert index(store, offering(("a",)), links=()).pages.removed == 1
    with pytest.raises(RemovalRefusedError):
        index(store, offering(), links=())
    assert index(store, offering(), links=(), prune=True).pages.removed == 1


def test_only_the_part_that_was_not_seen_is_kept(store):
    index(store, offering(("a/1",), ("a/2",), ("b/1",), ("c",), ("d",)), links=())
    source = offering(("c",), ("d",), BadInput(name="a", reason="no permission", hides=("a/",)))
    summary = index(store, source, links=())

    assert (summary.pages.removed, summary.unseen, names(store)) == (1, ("a",), ["a/1", "a/2", "c", "d"])


def test_what_was_not_seen_lies_below_the_prefix(store, tmp_path, monkeypatch):
    for name in ("a", "b", "sub/x"):
        path = tmp_path / "v1" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# N\n\nA note.\n")
    index(store, FolderSource(tmp_path / "v1", prefix="v1"))
    (tmp_path / "v1/a.md").unlink()
    Unreadable(monkeypatch, tmp_path / "v1/sub")

    assert index(store, FolderSource(tmp_path / "v1", prefix="v1")).pages.removed == 1
    assert names(store) == ["v1/b.md", "v1/sub/x.md"]


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
@pytest.mark.parametrize(
    ("files", "says"),
    [((), "no files"), (("a.odt", "b.ODT", "c.png", "d"), r"4 other files \(2 \.odt, 1 \.png, 1 \(none\)\)")],
)
def test_a_folder_without_pages_says_what_it_holds(store, tmp_path, source, files, says):
    for name in files:
        (tmp_path / name).write_text("text")
    with pytest.raises(NothingIndexedError, match=rf"{says}; pages are .*\.md"):
        index(store, source(tmp_path))


def test_nothing_indexed_says_why_once(store, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "body": "x"}\n{"id": "b", "body": "x"}\n')
    with pytest.raises(NothingIndexedError, match=r"a: line 1: unknown body; known are .*\(and 1 more"):
        index(store, JsonLinesSource(path))
    with pytest.raises(NothingIndexedError, match="it offers no page"):
        index(store, DocumentsSource([], "x"))


def test_a_page_that_breaks_its_reader_ends_no_run(store, caplog):
    caplog.set_level("INFO", logger="linkstore")
    source = offering(("a",), ("b",), ("c",))

    def broken():
        raise KeyError("href")

    source.offered[1] = type(source.offered[1])(url="b", digest="1", read=broken)
    summary = index(store, source, links=())

    assert (summary.pages.added, dict(summary.skipped)) == (2, {"b": "reading it failed: KeyError: 'href'"})
    assert "Traceback" in caplog.text
