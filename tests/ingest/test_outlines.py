"""What a run reads of a folder that was indexed before: files that may have changed, and no others."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections import Counter

import pytest
from internals import Folder
from langchain_core.embeddings import DeterministicFakeEmbedding

from linkstore import LinkStore
from linkstore.ingest import FolderSource, VaultSource, index

TICK = 0.02
"""Seconds between two changes, more than what a disk takes for one moment."""


@pytest.fixture(params=[FolderSource, VaultSource])
def kind(request):
    return request.param


@pytest.fixture
def store():
    with LinkStore(embedding=DeterministicFakeEmbedding(size=8)) as opened:
        yield opened


@pytest.fixture
def opened(monkeypatch):
    """How often each file was opened."""
    counts = Counter()
    really = Folder._open

    def count(self, name):
        counts[name] += 1
        return really(self, name)

    monkeypatch.setattr(Folder, "_open", count)
    return counts


@pytest.fixture
def settled(monkeypatch):
    """Files that were written a moment ago count as settled."""
    monkeypatch.setattr("linkstore.ingest.files._SECONDS_TO_SETTLE", 0.0)


@pytest.fixture
def root(tmp_path):
    for number in range(5):
        write(tmp_path / f"p{number}.md", f"# Page {number}\n\nText AAAA with [x](p{(number + 1) % 5}.md).\n")
    return tmp_path


def write(path, text):
    path.write_text(text)
    time.sleep(TICK)


def texts(store):
    return {document.metadata["page"]: document.page_content for document in store.scan()}


def run(store, source, opened, **options):
    """Index, and return the counts, and the files read as pages; each is sampled once in a folder."""
    opened.clear()
    pages = index(store, source, name="s", progress=None, jobs=1, **options).pages
    sampled = isinstance(source, FolderSource)
    return pages, {name for name, count in opened.items() if name.endswith(".md") and count > sampled}


def test_files_that_have_not_changed_are_not_read(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    pages, read = run(store, kind(root), opened)
    assert (pages.unchanged, pages.updated, read) == (5, 0, set())


def test_a_file_of_the_same_size_and_time_is_read_if_it_was_written(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    page, before = root / "p1.md", (root / "p1.md").stat()
    page.write_text(page.read_text().replace("AAAA", "BBBB"))
    os.utime(page, ns=(before.st_atime_ns, before.st_mtime_ns))
    time.sleep(TICK)
    pages, read = run(store, kind(root), opened)
    assert (page.stat().st_size, page.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert (pages.updated, read) == (1, {"p1.md"})
    assert "BBBB" in texts(store)["p1.md"]


def test_a_file_that_another_one_took_the_place_of_is_read(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    page, before = root / "p1.md", (root / "p1.md").stat()
    other = root / ".p1"
    other.write_text(page.read_text().replace("AAAA", "CCCC"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(page)
    time.sleep(TICK)
    assert run(store, kind(root), opened)[0].updated == 1
    assert "CCCC" in texts(store)["p1.md"]


def test_a_file_that_was_only_touched_is_read_once_and_not_embedded(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    os.utime(root / "p1.md")
    time.sleep(TICK)
    pages, read = run(store, kind(root), opened)
    assert (pages.unchanged, pages.updated, read) == (5, 0, {"p1.md"})
    assert run(store, kind(root), opened)[1] == set()


def test_a_file_that_changed_just_now_or_in_the_future_is_read_again(root, store, kind, opened):
    run(store, kind(root), opened)
    pages, read = run(store, kind(root), opened)
    assert (pages.unchanged, len(read)) == (5, 5)
    ahead = time.time() + 1000
    os.utime(root / "p1.md", (ahead, ahead))
    time.sleep(2.1)
    run(store, kind(root), opened)
    assert run(store, kind(root), opened)[1] == {"p1.md"}


def test_what_other_files_say_changes_pages_of_unchanged_files(root, store, kind, opened, settled):
    """Two pages of one title are told apart by their names, the second one though its file is as it was."""
    run(store, kind(root), opened)
    write(root / "p0.md", (root / "p0.md").read_text().replace("# Page 0", "# Page 2"))
    assert run(store, kind(root), opened)[0].updated == 2
    with LinkStore(embedding=DeterministicFakeEmbedding(size=8)) as anew:
        run(anew, kind(root), opened)
        assert texts(anew) == texts(store)


def test_a_page_that_has_become_too_large_is_reported(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    summary = index(store, kind(root, max_bytes=10), name="s", progress=None)
    assert (len(summary.skipped), summary.pages.total) == (5, 0)


def test_front_matter_that_is_no_unicode_is_read_each_time(tmp_path, store, kind, opened, settled):
    write(tmp_path / "p.md", '---\ntype: x\n"a\\ud800": 1\n---\nText.\n')
    assert run(store, kind(tmp_path), opened)[0].added == 1
    assert run(store, kind(tmp_path), opened)[0].updated == 0


def test_an_outline_that_is_damaged_is_made_anew(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    states = store.pages.states("s")
    store.pages.renew("s", {url: (digest, outline[:-3]) for url, (digest, outline) in states.items()})
    pages, read = run(store, kind(root), opened)
    assert (pages.unchanged, len(read)) == (5, 5)
    assert store.pages.states("s") == states


@pytest.mark.parametrize("options", [{"encoding": "latin-1"}, {"claims": "any"}])
def test_with_other_settings_all_files_are_read(root, store, kind, opened, settled, options):
    run(store, kind(root), opened)
    assert run(store, kind(root, **options), opened)[0].updated == 5


def test_with_other_links_all_files_are_read(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    assert run(store, kind(root), opened, links=["hyperlink"])[0].updated == 5


def test_a_page_that_lost_documents_is_read(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    store.delete([document.id for document in store.scan() if document.metadata["page"] == "p3.md"])
    assert run(store, kind(root), opened)[0].updated == 1


def test_a_run_that_was_dry_remembers_nothing(root, store, kind, opened, settled):
    run(store, kind(root), opened)
    os.utime(root / "p1.md")
    time.sleep(TICK)
    run(store, kind(root), opened, dry_run=True)
    assert run(store, kind(root), opened)[1] == {"p1.md"}


def test_what_a_link_leads_to_is_read_each_time(root, store, kind, opened, settled):
    (root / "p5.md").symlink_to("p4.md")
    (root / "p4.md").rename(root / "hidden.txt0")
    (root / "p5.md").unlink()
    (root / "p5.md").symlink_to("hidden.txt0")
    run(store, kind(root), opened)
    write(root / "hidden.txt0", "# Page 4\n\nText DDDD.\n")
    assert run(store, kind(root), opened)[0].updated == 1
    assert "DDDD" in texts(store)["p5.md"]


def test_the_successor_of_a_concept_follows_from_other_files(tmp_path, store, kind, opened, settled):
    write(tmp_path / "index.md", '---\nokf_version: "0.2"\n---\n# Index\n\nAll.\n')
    write(tmp_path / "a.md", "---\ntype: T\ntitle: A\nstatus: deprecated\n---\nOld. See [b](b.md).\n")
    write(tmp_path / "b.md", "---\ntype: T\ntitle: B\n---\nNew.\n")
    run(store, kind(tmp_path), opened)
    assert run(store, kind(tmp_path), opened)[0].unchanged == 3
    assert "superseded by B" in texts(store)["a.md"]
    write(tmp_path / "b.md", "---\ntype: U\ntitle: B\n---\nNew.\n")
    assert run(store, kind(tmp_path), opened)[0].updated == 2
    assert "superseded" not in texts(store)["a.md"]


def test_a_concept_goes_stale_though_its_file_is_as_it_was(
    tmp_path, store, kind, opened, settled, monkeypatch
):
    class Later(dt.datetime):
        @classmethod
        def now(cls, tz=None):
            return dt.datetime(3000, 1, 1, tzinfo=tz)

    write(tmp_path / "b.md", "---\ntype: T\ntitle: B\nstale_after: 2999-01-01\n---\nNew.\n")
    run(store, kind(tmp_path), opened)
    assert run(store, kind(tmp_path), opened)[0].unchanged == 1
    monkeypatch.setattr("datetime.datetime", Later)
    assert run(store, kind(tmp_path), opened)[0].updated == 1
    assert "Stale since" in texts(store)["b.md"]
