"""ZIM files are read where libzim, which linkstore does not depend on, is installed."""

from __future__ import annotations

import sys

import pytest
from documented import linkstore
from internals import EMBEDDING_MISSING, Link, MissingLibzimError, get_exit_code, get_links

from linkstore import LinkStore
from linkstore.errors import SourceNotFoundError
from linkstore.ingest import WriteCounts, ZimSource, index


def made(path, pages, redirects):
    """A ZIM file with these pages and redirects."""
    from libzim import writer

    class Entry(writer.Item):
        def __init__(self, path, content):
            super().__init__()
            self.path, self.content = path, content

        def get_path(self):
            return self.path

        def get_title(self):
            return self.path

        def get_mimetype(self):
            return "text/css" if self.path.endswith(".css") else "text/html"

        def get_contentprovider(self):
            return writer.StringProvider(self.content)

        def get_hints(self):
            return {}

    with writer.Creator(path) as creator:
        creator.set_mainpath("A")
        for name, content in pages.items():
            creator.add_item(Entry(name, content))
        for start, end in redirects.items():
            creator.add_redirection(start, start, end, {})
    return path


def test_a_zim_file_becomes_documents_with_links(tmp_path):
    pages = {
        "A": '<h1>A</h1><p>See <a href="Old">b</a>.</p>',
        "B b": '<h1>B</h1><p>Text.</p><h2 id="x">X</h2><p>More.</p>',
        "empty": "",
        "s.css": "p {}",
    }
    path = made(tmp_path / "wiki.zim", pages, {"Old": "B b"})
    with LinkStore() as store:
        summary = index(store, ZimSource(path))

        assert (summary.pages, set(summary.skipped)) == (WriteCounts(added=2), {"empty"})
        old = Link.incoming(kind="hyperlink", tag="/Old")
        assert [d.id for d in store.scan() if old in get_links(d)] == ["B%20b"]
        assert summary.dangling.internal == 0
        assert index(store, ZimSource(path)).pages == WriteCounts(unchanged=2)
    code, out, _ = linkstore("index", str(path), "--store", str(tmp_path / "kb"), "--dry-run")
    assert (code, "2 added" in out) == (0, True)


def test_what_is_no_zim_file_is_refused(tmp_path):
    pytest.importorskip("libzim.reader", reason="libzim (GPL) is not installed")
    (tmp_path / "x.zim").write_bytes(b"nonsense")
    with LinkStore() as store, pytest.raises(SourceNotFoundError, match="is not a ZIM file"):
        index(store, ZimSource(tmp_path / "x.zim"))


def test_without_libzim_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "libzim.reader", None)
    (tmp_path / "x.zim").write_bytes(b"nonsense")
    with LinkStore() as store, pytest.raises(MissingLibzimError, match=r"pip install .*\[zim\]") as error:
        index(store, ZimSource(tmp_path / "x.zim"))
    assert get_exit_code(error.value) == EMBEDDING_MISSING  # that of every extra that is not installed


def test_a_page_that_repeats_a_whole_book_is_left_out_and_named(tmp_path):
    chapters = {
        f"book/ch{number}.html": "".join(
            f"<p>Paragraph {n} of chapter {number} says what no other one does.</p>" for n in range(90)
        )
        for number in range(8)
    }
    path = made(tmp_path / "book.zim", {**chapters, "book/print.html": "".join(chapters.values())}, {})
    with LinkStore() as store:
        found = index(store, ZimSource(path))
        assert sorted(store.pages.digests()) == sorted(chapters)
        assert found.unread == {"repeating other pages (book/print.html)": 1}
