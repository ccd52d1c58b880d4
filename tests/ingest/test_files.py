"""Only what belongs to a folder is read."""

from __future__ import annotations

import os
import socket

import pytest
from internals import Folder, UnreadablePageError, list_pages
from memory_store import MemoryStore

from linkstore.ingest import FolderSource, VaultSource, index

KEY = "The planted key is 4711."


@pytest.fixture
def folder(tmp_path):
    """A site with one page, beside a file that does not belong to it."""
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (site / "a.html").write_text("<h1>A</h1><p>A page.</p>")
    (site / "sub/b.md").write_text("# B\n\nA note.\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/key.md").write_text(KEY)
    (site / ".env.md").write_text(KEY)
    return site


@pytest.fixture(params=[FolderSource, VaultSource])
def source(request):
    return request.param


def texts(store):
    return [document.page_content for document in store.scan()]


def test_links_that_leave_the_folder_are_named_and_not_followed(folder, source):
    (folder / "key.md").symlink_to("../secret/key.md")
    (folder / "secret").symlink_to("../secret")
    (folder / "env.md").symlink_to(".env.md")
    store = MemoryStore()
    summary = index(store, source(folder))

    assert not any(KEY in text for text in texts(store))
    assert {"key.md (link)", "secret (link)", "env.md (link)"} <= set(summary.skipped)
    assert summary.unseen == ()


def test_what_was_stored_through_such_a_link_goes(folder, source):
    (folder / "key.md").write_text(KEY)
    (folder / "c.md").write_text("# C\n\nAnother.\n")
    store = MemoryStore()
    index(store, source(folder))
    (folder / "key.md").unlink()
    (folder / "key.md").symlink_to("../secret/key.md")

    assert index(store, source(folder)).pages.removed == 1
    assert not any(KEY in text for text in texts(store))


def test_links_within_the_folder_count_and_the_folder_may_be_one(folder, source, tmp_path):
    (folder / "sub/c.md").symlink_to("b.md")
    (folder / "d.md").write_text("# D\n\nSee [c](sub/c.md).\n")
    (folder / "latest").symlink_to("sub")
    (tmp_path / "link").symlink_to("site")
    store = MemoryStore()
    summary = index(store, source(tmp_path / "link"))

    assert summary.dangling.internal == 0
    assert ("sub/c.md" in {url for _, url in store.stored}) == (source is VaultSource)
    assert "sub/b.md" in {url for _, url in store.stored}
    assert "another folder of the source" in summary.skipped["latest (link)"]


def test_broken_and_looping_links_are_named_and_end_no_run(folder, source):
    (folder / "gone.md").symlink_to("nowhere.md")
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "sub/up").symlink_to("..")
    (folder / "ring").symlink_to("ring")
    store = MemoryStore()
    summary = index(store, source(folder))

    assert "sub/b.md" in {url for _, url in store.stored}
    assert {"gone.md", "loop.md", "ring"} <= set(summary.skipped)
    assert "broken link" in summary.skipped["loop.md"]


def test_pipes_sockets_and_devices_are_named_and_not_opened(folder, source, monkeypatch):
    os.mkfifo(folder / "pipe.md")
    (folder / "zero.md").symlink_to("/dev/zero")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(folder)  # the path of a socket may have 107 bytes only
    listening.bind("socket.md")
    for name in ("_redirects", "objects.inv"):
        os.mkfifo(folder / name)
    summary = index(MemoryStore(), source(folder))
    listening.close()

    assert {"pipe.md", "socket.md", "zero.md (link)"} <= set(summary.skipped)
    assert "not a file" in summary.skipped["pipe.md"]


def test_a_file_that_is_swapped_after_it_was_listed_is_not_read(folder):
    """The folder may change between listing and reading: what is opened is what counts."""
    found = Folder(folder)
    assert "sub/b.md" in {file.name for file in list_pages(found, {".md"}).files}
    (folder / "sub/b.md").unlink()
    (folder / "sub/b.md").symlink_to("../../secret/key.md")
    with pytest.raises(UnreadablePageError, match="leaves the folder"):
        found.read("sub/b.md", 1000)
    (folder / "sub/b.md").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to("../secret")
    with pytest.raises(UnreadablePageError, match="leaves the folder"):
        found.read("sub/key.md", 1000)
    (folder / "sub").unlink()
    (folder / "sub").mkdir()
    os.mkfifo(folder / "sub/b.md")
    with pytest.raises(UnreadablePageError, match="not a file"):
        found.read("sub/b.md", 1000)
    (folder / "up").symlink_to("..")
    with pytest.raises(UnreadablePageError, match="leaves the folder"):
        found.read("up/secret/key.md", 1000)


def test_a_file_is_read_up_to_its_limit(folder):
    found = Folder(folder)
    assert found.read("a.html", 100) == (folder / "a.html").read_bytes()
    with pytest.raises(UnreadablePageError, match="24 bytes, more than the 5 allowed"):
        found.read("a.html", 5)
    assert found.head("a.html", 4) == b"<h1>"


def test_a_file_that_grows_while_it_is_read_is_read_up_to_its_limit(folder, monkeypatch):
    whole, fstat = (folder / "a.html").read_bytes(), os.fstat
    monkeypatch.setattr(os, "fstat", lambda file: os.stat_result((*fstat(file)[:6], 3, *fstat(file)[7:])))
    found = Folder(folder)
    assert found.read("a.html", len(whole)) == whole
    with pytest.raises(UnreadablePageError, match="6 bytes, more than the 5 allowed"):
        found.read("a.html", 5)
