"""What a run says of itself: its summary as text, in a notebook, and the bar while it lasts."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from internals import is_notebook, show_progress

from linkstore import LinkStore
from linkstore.ingest import FolderSource, Summary, VaultSource, WriteCounts, index


@pytest.fixture
def pages(tmp_path):
    """A folder of three pages, one of which cannot be read."""
    (tmp_path / "a.html").write_text("<title>A</title><p>See <a href='b.html'>the other</a> page.")
    (tmp_path / "b.html").write_text("<title>B</title><p>It is the other page.")
    (tmp_path / "c.html").write_text("<p>" + "A long page. " * 50)
    return tmp_path


def test_a_summary_reads_well_as_text_and_in_a_notebook(pages):
    with LinkStore() as store:
        summary = index(store, FolderSource(pages, max_bytes=100), links=["hyperlink"])
    assert str(summary).splitlines()[:4] == [
        "pages     2 added, 0 updated, 0 unchanged, 0 removed",
        "chunks    2 written",
        f"links     {summary.links['hyperlink']} hyperlink written",
        "dangling  0 internal, 0 external",
    ]
    assert "skipped   c.html: " in str(summary)
    assert repr(summary) == (
        "<Summary: pages 2 added, 0 updated, 0 unchanged, 0 removed; chunks 2 written;"
        f" links {summary.links['hyperlink']} hyperlink written>"
    )
    assert summary._repr_html_().startswith("<pre>pages     2 added")


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
def test_front_matter_that_cannot_be_read_is_left_out_and_its_page_is_not_skipped(tmp_path, source):
    (tmp_path / "a.md").write_text("---\ntitle: [\n---\n# A\n\nText.\n")
    with LinkStore() as store:
        summary = index(store, source(tmp_path))
        assert [document.id for document in store.scan()] == ["a.md"]
    assert "left out  a.md (front matter): the front matter is not valid YAML" in str(summary)
    assert "skipped" not in str(summary)


def test_names_in_a_summary_are_no_markup():
    name = "<script>alert(1)</script>"
    summary = Summary(pages=WriteCounts(), chunks=0, links={}, skipped={name: "a & b"})
    assert "<script>" not in summary._repr_html_()
    assert "a &amp; b" in summary._repr_html_()


def test_nothing_is_shown_where_nobody_looks(pages, capfd):
    with LinkStore() as store:
        index(store, FolderSource(pages))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("progress", ["auto", None])
def test_a_terminal_shows_a_bar_unless_none_is_asked_for(pages, monkeypatch, capsys, progress):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with LinkStore() as store:
        index(store, FolderSource(pages), progress=progress)
    assert bool(capsys.readouterr().err) is (progress == "auto")


class Bar:
    """Stands for the bar of tqdm."""

    def __init__(self, **options):
        self.options, self.n, self.total, self.closed = options, 0, None, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed = True

    def set_postfix_str(self, text, refresh):
        assert len(text) <= 40

    def update(self, step):
        self.n += step


@pytest.fixture
def notebook(monkeypatch):
    """The kernel of a notebook, with tqdm; the bars that it made."""
    bars: list[Bar] = []

    def tqdm(**options):
        bars.append(Bar(**options))
        return bars[-1]

    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "tqdm.auto", SimpleNamespace(tqdm=tqdm))
    return bars


def test_a_notebook_shows_a_bar_of_tqdm(notebook):
    with show_progress("pages") as advance:
        assert advance is not None
        advance(1, 3, "a" * 100)
        advance(3, 3, "b")
    (bar,) = notebook
    assert (bar.n, bar.total, bar.closed, bar.options["leave"]) == (3, 3, True, False)


def test_a_notebook_without_tqdm_shows_none(notebook, monkeypatch, pages):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert is_notebook()
    with show_progress("pages") as advance:
        assert advance is None
    with LinkStore() as store:
        index(store, FolderSource(pages))
    assert notebook == []
