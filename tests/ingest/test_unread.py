"""Files that are pages to a reader and are not read are named by kind, and what to give instead is said."""

from __future__ import annotations

import codecs
import gzip
import json
from dataclasses import asdict

import pytest
from internals import Encodings, UsageError, describe_unread, recognize_kind

from linkstore import LinkStore
from linkstore.errors import SourceNotFoundError
from linkstore.ingest import FolderSource, JsonLinesSource, NothingIndexedError, VaultSource, index

PAGE = "<h1>T</h1><p>Text of the page.</p>"


@pytest.fixture
def store(tmp_path):
    with LinkStore.open(tmp_path / "kb") as opened:
        yield opened


def fill(folder, names, content=None):
    for name in names.split():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written = f"{PAGE}<p>It is {name}.</p>" if content is None else content
        path.write_bytes(written if isinstance(written, bytes) else written.encode())
    return folder


def pages(store):
    return sorted({document.metadata["page"] for document in store.scan()})


def test_kinds_that_are_not_read_are_counted(store, tmp_path):
    site = fill(
        tmp_path / "site",
        "a.html a.txt a.mdx b.mdx g.adoc n.txt c.canvas page.php robots.txt _static/g.html _sources/a.txt",
    )
    summary = index(store, FolderSource(site))
    assert summary.unread == {
        ".mdx": 2,
        ".adoc": 1,
        ".canvas": 1,
        ".php": 1,
        ".html in _static": 1,
        ".txt beside HTML of its name": 1,
    }
    assert asdict(summary)["unread"] == dict(summary.unread)
    assert describe_unread({".mdx": 12, ".adoc": 3}) == "12 .mdx, 3 .adoc; --as vault reads .mdx"


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
def test_tables_and_records_are_counted_and_it_is_said_what_to_do(store, tmp_path, source):
    place = fill(tmp_path / "data", "a.csv b.csv c.json d/e.jsonl package.json search/search_index.json")
    with pytest.raises(NothingIndexedError, match="write each row as a line of JSON"):
        index(store, source(place))

    fill(place, "a.md")
    summary = index(store, source(place))
    assert summary.unread == {".csv": 2, ".json": 1, ".jsonl": 1}
    (line,) = (line for line in str(summary).splitlines() if line.startswith("left out"))
    assert line.endswith(
        "2 .csv, 1 .json, 1 .jsonl; data are not read; write each row as a line of JSON with id and text, and"
        " give the .jsonl"
    )


def test_a_vault_counts_html(store, tmp_path):
    summary = index(store, VaultSource(fill(tmp_path / "vault", "a.md b.mdx c.html.en")))
    assert (summary.pages.added, summary.unread) == (2, {".html": 1})


def test_pages_have_many_suffixes(store, tmp_path):
    names = "old.shtml x.xht page.html.de page.html.en only.htm.pt-br search.html search/index.html search.md"
    fill(tmp_path / "site", f"{names} no.html.bak no.html.br no.tar.gz")
    index(store, FolderSource(tmp_path / "site"))
    assert pages(store) == sorted(names.split())


def test_pages_that_are_compressed_are_read_and_linked(store, tmp_path):
    packed = {"b.md.gz": b"# B\n\nText.", "d.html.gz": b"<h1>D</h1><p>Text."}
    for name, content in packed.items():
        fill(tmp_path, name, gzip.compress(content))
    fill(tmp_path, "e.txt.gz", gzip.compress(b"cut off" * 99)[:20])
    fill(tmp_path, "bomb.html.gz", gzip.compress(bytes(2**20)))
    fill(tmp_path, "a.md", "# A\n\nSee [b](b.md), [d](d.html) and [d](d.html.gz).\n")
    summary = index(store, FolderSource(tmp_path, max_bytes=2**19))
    titles = {document.metadata["page"]: document.metadata["title"] for document in store.scan()}
    assert titles == {"a.md": "A", "b.md.gz": "B", "d.html.gz": "D"}
    assert summary.dangling.internal == 0
    assert "--max-bytes" in summary.skipped["bomb.html.gz"]
    assert summary.skipped["e.txt.gz"].startswith("it cannot be unpacked")


def test_of_languages_one_stands_for_the_page(store, tmp_path):
    site = fill(tmp_path / "site", "page.html.de page.html.en only.html.fr")
    fill(site, "index.html", PAGE + '<p>See <a href="page.html">it</a> and <a href="only.html">this</a>.')
    assert index(store, FolderSource(site)).dangling.internal == 0


def test_the_forms_of_sphinx_are_no_pages(store, tmp_path):
    fill(tmp_path / "site", "index.html search.html genindex.html searchindex.js search.md")
    fill(tmp_path / "site", "arm/index.html arm/genindex.html arm/search.html guide/search.html")
    index(store, FolderSource(tmp_path / "site"))
    assert pages(store) == ["arm/index.html", "guide/search.html", "index.html", "search.md"]


def test_what_a_server_says_of_missing_pages_and_stubs_of_pictures_are_no_pages(store, tmp_path):
    site = fill(tmp_path, "index.html 404.html codes/404.html")
    for number in range(2):
        fill(site, f"ld-{number}.html", f"<title>Long Description</title><p>Picture {number}.")
    fill(site, "ld-c.html", "<title>LD C compiler</title><p>Not one.")
    assert index(store, FolderSource(site)).unread == {"descriptions of pictures": 2}
    assert pages(store) == ["codes/404.html", "index.html", "ld-c.html"]


@pytest.mark.parametrize(("name", "said"), [("n.doc", "convert it to HTML or Markdown")])
def test_of_a_single_file_it_is_said_what_to_give_instead(store, tmp_path, name, said):
    path = fill(tmp_path, name) / name
    with pytest.raises(UsageError, match=said):
        recognize_kind(str(path))
    for source in (FolderSource, VaultSource):
        with pytest.raises(SourceNotFoundError, match=said):
            index(store, source(path))


def test_bytes_that_are_no_text_are_told(store, tmp_path):
    site = fill(tmp_path / "site", "ok.html")
    fill(site, "stray.html", f"<meta charset=utf-8>{PAGE}<p>caf".encode() + b"\xff</p>")
    fill(site, "latin.html", "<h1>x</h1><p>Grüße aus Köln, ohne Angabe.</p>".encode("latin-1"))
    summary = index(store, FolderSource(site))
    assert summary.encodings == Encodings(replaced=1, pages=1, most={"stray.html": 1}, guessed=1)
    assert (summary.pages.added, summary.skipped) == (3, {})
    assert "x (latin)\n\nGrüße aus Köln, ohne Angabe." in {document.page_content for document in store.scan()}


def test_an_encoding_that_is_given_is_that_of_all_pages(store, tmp_path):
    site = fill(tmp_path / "site", "a.html", f"<meta charset=utf-8>{PAGE}<p>Привет".encode("koi8-r"))
    index(store, FolderSource(site, encoding="KOI8-R"))
    assert any("Привет" in document.page_content for document in store.scan())


LINE = json.dumps({"id": "a", "text": "Grüße aus Köln"}, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (LINE.encode(), None),
        (codecs.BOM_UTF16_LE + LINE.encode("utf-16-le"), None),
        (LINE.encode("utf-16-be"), "utf-16-be"),
        (LINE.encode("latin-1"), "latin-1"),
    ],
)
def test_json_lines_have_an_encoding(store, tmp_path, content, encoding):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    assert index(store, JsonLinesSource(path, encoding=encoding)).skipped == {}
    assert [document.page_content for document in store.scan()] == ["Grüße aus Köln"]


def test_a_stray_byte_does_not_cost_the_line(store, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINE.encode("latin-1"))
    summary = index(store, JsonLinesSource(path))
    assert summary.skipped == {"line 1 (encoding)": "3 characters not in utf-8, replaced by U+FFFD"}
    assert [document.page_content for document in store.scan()] == ["Gr\ufffd\ufffde aus K\ufffdln"]


def write_book(folder, *, head="", extra=""):
    """A book of eight chapters, with all of it on one page."""
    chapters = [
        "".join(
            f"<p>In chapter {chapter}, paragraph {number} explains how part {number} of it works.</p>"
            for number in range(200)
        )
        for chapter in range(8)
    ]
    folder.mkdir()
    for number, text in enumerate(chapters):
        (folder / f"ch{number}.html").write_text(f"<h1>Chapter {number}</h1>{text}")
    (folder / "print.html").write_text(f"{head}<h1>The book</h1>{''.join(chapters)}{extra}")
    return folder


def test_a_page_that_repeats_a_whole_book_is_left_out_and_named(store, tmp_path):
    found = index(store, FolderSource(write_book(tmp_path / "book")), links=())
    assert pages(store) == [f"ch{number}.html" for number in range(8)]
    assert found.unread == {"repeating other pages (print.html)": 1}


def test_a_page_with_more_than_the_others_say_stays(store, tmp_path):
    more = "".join(
        f"<p>What no chapter says is said in note {number} of this page.</p>" for number in range(40)
    )
    found = index(store, FolderSource(write_book(tmp_path / "book", extra=more)), links=())
    assert "print.html" in pages(store)
    assert not found.unread


@pytest.mark.parametrize("head", ['<meta name="robots" content="NoIndex, follow">', ""])
@pytest.mark.parametrize(("others", "left_out"), [(20, 1), (60, 0)])
def test_a_book_beside_others_is_left_out_if_it_is_a_tenth_of_them(store, tmp_path, head, others, left_out):
    folder = write_book(tmp_path / "book", head=head)
    for number in range(others):
        text = "".join(
            f"<p>Other text {number} has a paragraph with number {n} in it.</p>" for n in range(500)
        )
        (folder / f"other{number}.html").write_text(text)
    found = index(store, FolderSource(folder), links=())
    assert sum(found.unread.values()) == left_out


def test_pages_of_a_folder_that_ask_not_to_be_indexed_are_read_where_they_say_something(store, tmp_path):
    index(
        store,
        FolderSource(fill(tmp_path / "site", "a.html b.html", f'<meta name="robots" content="none">{PAGE}')),
    )
    assert pages(store)


def test_a_list_of_chapters_is_no_book(store, tmp_path):
    folder = write_book(tmp_path / "book")
    titles = "".join(f'<li><a href="ch{n}.html">Chapter {n}</a></li>' for n in range(8))
    (folder / "print.html").write_text(f"<h1>Contents</h1><ul>{titles * 700}</ul>")
    index(store, FolderSource(folder), links=())
    assert "print.html" in pages(store)


MENU = "<ol><li>Part one</li>" + "".join(
    f"<li><a href=ch{n}.html target=_parent>Chapter {n}</a>" for n in range(8)
)


@pytest.mark.parametrize(
    ("page", "left_out"),
    [
        (MENU, 1),
        (f"<title>Chapters</title>{MENU}", 0),
        (MENU.replace(" target=_parent", "", 1), 0),
        (
            f"{MENU}</ol><p>The chapters of this book were written by many people, one after the other.",
            0,
        ),
        ("<p>A page without links.", 0),
    ],
)
def test_a_menu_that_is_shown_in_a_frame_is_no_page(store, tmp_path, page, left_out):
    """Such as mdBook's ``toc.html``. What has a title, another link or text is a page."""
    for number in range(8):
        (tmp_path / f"ch{number}.html").write_text(f"<h1>Chapter {number}</h1><p>Text of {number}.")
    (tmp_path / "toc.html").write_text(page)
    found = index(store, FolderSource(tmp_path), links=())
    assert ("toc.html" in pages(store)) is not bool(left_out)
    assert found.unread == ({"menus shown in frames": 1} if left_out else {})


SOURCE = """---
title: Setup
---
# Setup

Read [the manual](manual.html#start) *first*, since the `setup` asks for what it explains.

1. Unpack the archive into a folder of your own.
2. Run the program & answer its questions.

```sh
./setup --prefix=/opt
```

The program writes its settings into the folder, and tells where the log of the installation is kept.
"""
BUILT = """<title>Setup</title><nav>Home Manual Setup</nav><h1>Setup</h1>
<p>Read <a href="manual.html#start">the manual</a> <em>first</em>, since the <code>setup</code> asks for
what it explains.</p><ol><li>Unpack the archive into a folder of your own.
<li>Run the program &amp; answer its questions.</ol><pre>./setup --prefix=/opt</pre>
<p>The program writes its settings into the folder,
and tells where the log of the installation is kept.</p>"""


@pytest.mark.parametrize(
    ("source", "html", "kept"),
    [
        ("setup.md", BUILT, ["setup.html"]),
        ("setup.html.md", BUILT, ["setup.html"]),
        ("other.md", BUILT, ["other.md", "setup.html"]),
        ("setup.md", BUILT.replace("The program writes", "It wrote"), ["setup.html", "setup.md"]),
        ("setup.md", f"<script>{BUILT}</script><p>Nothing of it.</p>", ["setup.html", "setup.md"]),
    ],
)
def test_the_markdown_that_a_page_is_made_from_is_a_name_of_it(store, tmp_path, source, html, kept):
    (tmp_path / source).write_text(SOURCE)
    (tmp_path / "setup.html").write_text(html)
    (tmp_path / "z.md").write_text(f"# Z\n\nSee [how it is set up]({source}).\n")
    found = index(store, FolderSource(tmp_path), links=("hyperlink",))
    assert pages(store) == [*kept, "z.md"]
    assert found.unread == ({} if len(kept) > 1 else {"other names of pages": 1})
    assert source not in repr(found.dangling)
