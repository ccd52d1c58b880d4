"""Kinds of pages and sources beside HTML, Markdown and their folders: text, notebooks, one page, llms.txt."""

from __future__ import annotations

import json
import os

import pytest
from internals import (
    UnreadablePageError,
    find_named_pages,
    find_original,
    read_notebook_page,
    read_rst_page,
    read_text_page,
    recognize_kind,
)

from linkstore import LinkStore, get_links
from linkstore.errors import SourceNotFoundError
from linkstore.ingest import FolderSource, LlmsTxtSource, PageSource, WebsiteSource, index

OUTPUTS = [
    {"output_type": "stream", "text": ["\x1b[1m3\x1b[0m\n"]},
    {"output_type": "execute_result", "data": {"text/plain": "a  b\n1  2", "text/html": "<table>"}},
    {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "AAAA"}},
    {"output_type": "error", "traceback": ["secret trace"]},
    "broken",
]
NOTEBOOK = {
    "nbformat": 4,
    "metadata": {"language_info": {"name": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Bay\n", "\n", "See [the pier](pier.md)."]},
        {"cell_type": "code", "source": "depth = 3\nprint(depth)", "outputs": OUTPUTS},
        {"cell_type": "markdown", "source": "## Tides\n\nThey come twice."},
        {"cell_type": "code", "source": ""},
        {"cell_type": "raw", "source": "raw ``` text"},
    ],
}


@pytest.fixture
def store():
    with LinkStore() as opened:
        yield opened


def pages(store):
    return sorted({document.metadata["page"] for document in store.scan()})


def test_plain_text_has_paragraphs_a_title_and_the_links_in_it():
    page = read_text_page(b"The Bay\n=======\n\nFirst, see https://c.org/bay.\n\nSecond\nline.\r\n")
    assert page.title == "The Bay"
    assert [block.text for block in page.blocks] == [
        "The Bay",
        "First, see https://c.org/bay.",
        "Second\nline.",
    ]
    assert [link.href for block in page.blocks for link in block.links] == ["https://c.org/bay"]


@pytest.mark.parametrize(
    ("text", "title"),
    [("One line.", ""), ("A title\n\nText.", "A title"), ("a long line of text " * 9 + "\n\nText.", "")],
)
def test_a_line_of_text_is_a_title_where_it_stands_alone(text, title):
    page = read_text_page(text.encode())
    assert page.title == title
    assert " ".join(block.text for block in page.blocks).split() == text.split()


def test_text_that_is_none_is_refused():
    for content in (b"", b"\0" * 100, b" \n \n"):
        with pytest.raises(UnreadablePageError):
            read_text_page(content)


def test_of_a_notebook_the_text_and_the_code_are_read():
    page = read_notebook_page(json.dumps(NOTEBOOK).encode())
    text = "\n".join(block.text for block in page.blocks)
    assert page.title == "Bay"
    assert "depth = 3\nprint(depth)" in text
    assert "raw ``` text" in text
    assert "secret" not in text


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{torn", b'{"cells": 3}', b'{"cells": [1, {}]}'])
def test_what_is_no_notebook_is_refused(content):
    with pytest.raises(UnreadablePageError):
        read_notebook_page(content)


def test_a_folder_has_them_among_its_pages_with_their_links(store, tmp_path):
    (tmp_path / "bay.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "pier.md").write_text("# Pier\n\nOld. See [notes](notes.txt) and [tides](bay.ipynb#tides).\n")
    (tmp_path / "notes.txt").write_text("Notes\n\nThe pier was built in 1920.\n")
    summary = index(store, FolderSource(tmp_path))
    assert pages(store) == ["bay.ipynb", "notes.txt", "pier.md"]
    assert (summary.dangling.internal, summary.skipped) == (0, {})
    assert index(store, FolderSource(tmp_path)).pages.unchanged == 3


def test_a_single_page_is_indexed_alone(store, tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nSee [b](b.md).\n")
    (tmp_path / "b.md").write_text("# B\n\nText.\n")
    assert recognize_kind(str(tmp_path / "a.md")).name == "page"
    assert index(store, PageSource(tmp_path / "a.md")).pages.added == 1
    assert index(store, PageSource(tmp_path / "a.md")).pages.unchanged == 1
    assert pages(store) == ["a.md"]
    (tmp_path / "a.md").unlink()
    with pytest.raises(SourceNotFoundError, match="does not exist"):
        index(store, PageSource(tmp_path / "a.md"))
    (tmp_path / "x.png").write_bytes(b"x")
    with pytest.raises(SourceNotFoundError, match="is no page"):
        index(store, PageSource(tmp_path / "x.png"))


def test_the_pages_are_indexed_that_a_list_names(store, tmp_path):
    for name in ("index.html", "guide.html", "other.html", "deep/api.html"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"<h1>{name}</h1><p>Text of {name}. <a href='/guide.html'>Guide</a></p>")
    (tmp_path / "tour.html.md").write_text("# Tour\n\nText of the tour.\n")
    (tmp_path / "llms.txt").write_text(
        "# Site\n\n> What it is.\n\n## Docs\n\n- [Guide](https://c.org/guide.html#start): how to begin\n"
        "- [API](deep/api.html)\n- [Tour](/tour.html.md)\n- [Gone](gone.html): not there\n"
    )
    path = tmp_path / "llms.txt"
    assert recognize_kind(str(path)).name == "llms"
    summary = index(store, LlmsTxtSource(path))
    assert pages(store) == ["deep/api.html", "guide.html", "tour.html.md"]
    assert summary.skipped == {"gone.html": "the list names it, and it is not in the folder"}
    (tour,) = store.get_by_ids(["tour.html.md"])
    assert {"/tour.html", "/tour.html.md"} <= {link.tag for link in get_links(tour) if link.leads_in}
    path.write_text("- [Guide](guide.html)\n- [Tour](tour.html.md)\n- [Gone](gone.html)\n")
    assert index(store, LlmsTxtSource(path)).pages.removed == 1


def test_a_list_names_each_page_once():
    text = "[a](x.md), [b](<y.md> 'title') [c](x.md#part) ![no](<>) [d](http://e.org/z) [broken](a b"
    assert find_named_pages(text) == ["x.md", "y.md", "http://e.org/z"]
    assert find_original("https://e.org/a.html.md") == "https://e.org/a.html"
    assert find_original("https://e.org/.md") is None


def test_of_the_web_a_page_and_a_list_are_named_by_their_kind():
    page, listed = (recognize_kind("https://c.org/llms.txt", kind) for kind in ("page", "llms"))
    source = page.make("https://c.org/a", {})
    assert isinstance(source, WebsiteSource)
    assert not source.follow_links
    assert listed is recognize_kind("https://c.org/llms.txt")


class TestCopies:
    """A page under several names is indexed once, and found by all of them."""

    def test_links_to_one_file(self, store, tmp_path):
        (tmp_path / "en").mkdir()
        (tmp_path / "de").mkdir()
        (tmp_path / "en/p.html").write_text("<h1>P</h1><p>Text of the page.</p>")
        (tmp_path / "de/p.html").symlink_to("../en/p.html")
        (tmp_path / "index.html").write_text("<h1>I</h1><p>See <a href='de/p.html'>this</a> one.</p>")
        assert index(store, FolderSource(tmp_path)).dangling.internal == 0
        assert pages(store) == ["en/p.html", "index.html"]

    @pytest.mark.parametrize(("named", "kept"), [("ch-bay", "ch-bay.html"), ("elsewhere", "ch1.html")])
    def test_equal_files_of_one_folder(self, store, tmp_path, named, kept):
        page = f"<link rel=canonical href='https://c.org/{named}.html'><h1>Bay</h1><p>Text of the bay.</p>"
        for name in ("ch1.html", "ch-bay.html" if named == "ch-bay" else "x-bay.html"):
            (tmp_path / name).write_text(page)
        (tmp_path / "index.html").write_text("<h1>I</h1><p>See <a href='ch1.html'>this</a> one.</p>")
        assert index(store, FolderSource(tmp_path)).dangling.internal == 0
        assert pages(store) == sorted(["index.html", kept])

    def test_a_page_in_another_folder_whose_links_are_written_otherwise(self, store, tmp_path):
        page = (
            "<title>A</title><h1>A</h1><p id=x>See <a href='#x'>here</a> and <a href='{}i.html#y'>there</a>."
        )
        (tmp_path / "old/adt").mkdir(parents=True)
        (tmp_path / "stack.html").write_text(page.format(""))
        (tmp_path / "old/adt/stack.html").write_text(page.format("../../"))
        (tmp_path / "i.html").write_text("<h1>I</h1><p id=y>See <a href='old/adt/stack.html'>it</a>.")
        assert index(store, FolderSource(tmp_path)).dangling.internal == 0
        assert pages(store) == ["i.html", "stack.html"]

    def test_pages_that_only_redirect_lead_on_from_each_of_their_names(self, store, tmp_path):
        for name in ("a", "b"):
            (tmp_path / f"{name}.html").write_text("<meta http-equiv=refresh content='0; url=p.html'>")
        (tmp_path / "p.html").write_text("<h1>P</h1><p>Not <a href=a.html>a</a>, <a href=b.html>b</a>.")
        assert index(store, FolderSource(tmp_path)).dangling.internal == 0
        assert pages(store) == ["p.html"]

    def test_equal_files_of_different_folders_stay_apart(self, store, tmp_path):
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "p.html").write_text("<h1>P</h1><p>See <a href='q.html'>q</a>.</p>")
        index(store, FolderSource(tmp_path))
        assert pages(store) == ["a/p.html", "b/p.html"]


RST = """
The Bay
=======

Known from :doc:`the guide <guide>` and :py:func:`~os.path.join`, see `a site <https://c.org>`_.

.. toctree::
   :maxdepth: 2

   intro
   The API <api/index>

.. py:function:: join(a, *p)
   :noindex:

   Joins what is given.

Tides
-----

.. include:: /etc/passwd

.. code-block:: python

   x = 1

.. unheard::

   Said all the same.
"""


def test_restructured_text_is_read_with_what_sphinx_adds_to_it(tmp_path, store):
    page = read_rst_page(RST.encode())
    assert page.title == "The Bay"
    assert [block.text for block in page.blocks] == [
        "The Bay",
        "Known from the guide and os.path.join, see a site.",
        "- intro",
        "- The API",
        "join(a, *p)",
        "Joins what is given.",
        "Tides",
        "x = 1",
        "Said all the same.",
    ]
    links = [link.href for block in page.blocks for link in block.links]
    assert links == ["guide.rst", "https://c.org", "intro.rst", "api/index.rst"]
    (tmp_path / "index.rst").write_text(RST)
    (tmp_path / "guide.rst").write_text("Guide\n=====\n\nText of the guide.\n")
    summary = index(store, FolderSource(tmp_path), links=("hyperlink",))
    assert (summary.pages.added, dict(summary.skipped)) == (2, {})
    assert summary.dangling.internal == 2


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"Boiler.md": "Serviced by [[Brown & Sons]].", "Brown & Sons.md": "Call."}, "vault"),
        ({"a.md": "See [[sub/Some note#Part|that]].", "sub/Some-note.md": "x"}, "vault"),
        ({".foam/x.json": "{}", "a.md": "x"}, "vault"),
        ({"logseq/config.edn": "{}", "pages/a.md": "- x"}, "vault"),
        ({"a.md": "In Bash, [[ -f b ]] tests for a file.", "b.md": "x"}, "folder"),
        ({"a.md": "```\n[[b]]\n```\nand `[[b]]`", "b.md": "x"}, "folder"),
        ({"a.md": "[[a]] is this note, [[c]] is none", "b.md": "x"}, "folder"),
        ({"a.md": "[b](b.md)", "b.md": "x"}, "folder"),
        ({"a.md": "[[b]]", "b.md": "x", "c.html": "x"}, "folder"),
        ({"a.md": "[[b.html]]", "b.html.md": "x"}, "vault"),
        ({"a.md": "[[b]]", "b.md": "x", "c.html": "x"} | {f"{n}.md": "x" for n in range(8)}, "vault"),
        ({"a.md": "[[that|dendron://notes/b]]", "b.md": "x", "d.md": "[[dendron://notes/b]]"}, "vault"),
    ],
)
def test_a_folder_whose_notes_name_each_other_is_a_vault(tmp_path, files, kind):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert recognize_kind(str(tmp_path)).name == kind


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_among_notes_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.md")
    (tmp_path / "b.md").write_text("[[c]]")
    (tmp_path / "c.md").write_text("x")
    assert recognize_kind(str(tmp_path)).name == "vault"
