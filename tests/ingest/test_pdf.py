"""PDF files: what is read of them, where links lead, and what is wrong with those that are not read."""

from __future__ import annotations

import subprocess
import sys
import zlib

import pytest
from internals import EmptyPageError, UnreadablePageError, describe_unread, read_pdf_page
from memory_store import MemoryStore
from pdfs import refer, stream, to_line, write_pdf
from stores import embedding

from linkstore import LinkStore
from linkstore.ingest import FolderSource, PageSource, index, workers

PARTS = (
    (
        "Harbour manual",
        f"This manual says how ships enter. {' '.join(['It is for masters.'] * 12)}",
        "See the rules of the pilot.",
    ),
    (
        "1 Entering",
        "A ship calls the tower first.",
        "1.1 Pilots",
        "A pilot boards every long ship.",
        "More here.",
    ),
    ("A long ship has 100 metres.", "The tariff is on the web."),
)
OUTLINE = (("Entering", to_line(1, 0)), ("Pilots", to_line(1, 2)))


@pytest.fixture
def manual():
    """A manual of three pages, with an outline, a link to its second section, and one to the web."""
    return write_pdf(
        PARTS,
        links=[
            (0, 2, f"/Dest {to_line(1, 2)}"),
            (1, 4, "/Dest (length)"),
            (2, 1, "/A << /S /URI /URI (https://example.org/tariff) >>"),
        ],
        outline=OUTLINE,
        names=[("length", to_line(2, 0))],
        info="/Title (Microsoft Word - Harbour manual.docx)",
    )


def texts(content):
    return [block.text for block in content.blocks if not block.level]


def test_pages_and_the_outline_divide_a_file(manual):
    content = read_pdf_page(manual)

    assert content.title == "Harbour manual"
    assert [(block.text, block.level, block.fragment) for block in content.blocks if block.level] == [
        ("Entering", 1, "page=2"),
        ("Pilots", 1, "page=2&view=FitH,84"),
    ]
    assert texts(content) == [
        "\n".join(PARTS[0]),
        "A ship calls the tower first.",
        "A pilot boards every long ship.\nMore here.",
        "\n".join(PARTS[2]),
    ]


def test_links_have_their_text_and_lead_to_the_section_the_page_and_the_web(manual):
    links = [link for block in read_pdf_page(manual).blocks for link in block.links]

    assert links == [
        ("#page=2&view=FitH,84", "See the rules of the pilot."),
        ("#page=3", "More here."),
        ("https://example.org/tariff", "The tariff is on the web."),
    ]


def test_a_search_follows_the_links_of_a_folder_into_a_file_and_says_the_page(manual, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/manual.pdf").write_bytes(manual)
    (tmp_path / "site/index.md").write_text(
        "# Home\n\nHow [long ones](manual.pdf#nameddest=length) are measured, [page 2](manual.pdf#page=2)."
    )
    with LinkStore.open(tmp_path / "kb", embedding=embedding()) as store:
        summary = index(store, FolderSource(tmp_path / "site"))
        hits = store.search("Home", k=10)
        by_id = {hit.document.id: hit.document for hit in hits}

    assert (summary.pages.added, summary.dangling.internal, dict(summary.skipped)) == (2, 0, {})
    assert set(by_id) == {"index.md", "manual.pdf", "manual.pdf#page=2", "manual.pdf#page=2&view=FitH,84"}
    assert by_id["manual.pdf#page=2&view=FitH,84"].page_content == (
        "Harbour manual > Pilots\n\nA pilot boards every long ship.\nMore here.\n\n" + "\n".join(PARTS[2])
    )


def test_a_file_in_another_one_is_reached(tmp_path):
    (tmp_path / "one.pdf").write_bytes(
        write_pdf([["Read the other file."]], links=[(0, 0, "/A << /S /GoToR /F (two.pdf) /D [0 /Fit] >>")])
    )
    (tmp_path / "two.pdf").write_bytes(write_pdf([["The other file."]]))

    assert index(MemoryStore(), FolderSource(tmp_path)).dangling.internal == 0


def test_a_single_file_is_a_source(manual, tmp_path):
    (tmp_path / "manual.pdf").write_bytes(manual)

    assert index(MemoryStore(), PageSource(tmp_path / "manual.pdf")).pages.added == 1


def test_a_link_over_two_lines_is_one_and_a_hyphen_joins_no_words():
    place = f"/Dest {to_line(1, 0)}"
    content = read_pdf_page(
        write_pdf([["It is told in", "chapter two."], ["Two."]], links=[(0, 0, place), (0, 1, place)])
    )

    assert content.blocks[1].links == (("#page=2", "It is told in chapter two."),)


def test_headers_footers_and_contents_are_left_out_and_counted():
    pages = [["Contents . . . . . . 3"]]
    pages += [
        [f"Harbour manual {n}", f"Text of page {n}, which is not the same.", str(n)] for n in range(2, 9)
    ]
    content = read_pdf_page(write_pdf(pages))

    assert texts(content) == [f"Text of page {n}, which is not the same." for n in range(2, 9)]
    assert set(content.left_out) == {"headers", "footers", "tables of contents"}


def test_a_first_line_that_only_two_pages_share_is_text():
    content = read_pdf_page(write_pdf([["Example", "One."], ["Example", "Two."]]))

    assert texts(content) == ["Example\nOne.", "Example\nTwo."]


def test_a_page_without_text_passes_its_anchors_on():
    content = read_pdf_page(write_pdf([["One."], [], ["Three."]], links=[(0, 0, f"/Dest [{refer(1)} /Fit]")]))

    assert [block.anchors for block in content.blocks] == [("page=1",), (), ("page=3",), ("page=2",)]
    assert content.blocks[1].links[0].href == "#page=2"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"%PDF-1.7\n", "broken", id="only a header"),
        pytest.param(b"no PDF at all", "no PDF", id="no PDF"),
        pytest.param(write_pdf([]), "broken", id="no page"),
        pytest.param(
            write_pdf(
                [["Hidden."]], trailer="/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O (x) /U (y) >>"
            ),
            "encrypted",
            id="encrypted",
        ),
        pytest.param(
            write_pdf([["Gone."]], objects=[(10, b"null")]), "none of its pages", id="no page object"
        ),
    ],
)
def test_what_cannot_be_read_is_said(content, said):
    with pytest.raises(UnreadablePageError, match=said):
        read_pdf_page(content)


def test_a_file_of_pictures_has_no_text():
    with pytest.raises(EmptyPageError, match="scanned"):
        read_pdf_page(write_pdf([[], []]))


def test_one_broken_page_is_named_and_the_others_are_read(tmp_path):
    (tmp_path / "manual.pdf").write_bytes(
        write_pdf([["One."], ["Two."], ["Three."]], objects=[(12, b"null")])
    )
    store = MemoryStore()
    summary = index(store, FolderSource(tmp_path))

    assert list(summary.skipped) == ["manual.pdf (page 2)"]
    assert [document.page_content for document in store.scan()] == [
        "manual > Page 1\n\nOne.",
        "manual > Page 3\n\nThree.",
    ]


def test_a_broken_table_of_objects_is_mended(manual):
    broken = manual.replace(b"00000 n", b"00000 f").replace(b"startxref", b"startxref 9")

    assert read_pdf_page(broken) == read_pdf_page(manual)


def test_a_cyclic_outline_and_a_cyclic_tree_of_pages_end():
    outline = b"<< /Title (A) /Parent 5 0 R /First 12 0 R /Next 12 0 R /Dest [10 0 R /Fit] >>"
    content = read_pdf_page(write_pdf([["Text."]], outline=[("A", to_line(0, 0))], objects=[(12, outline)]))
    assert [block.text for block in content.blocks] == ["A", "Text."]

    pages = b"<< /Type /Pages /Count 3 /Kids [10 0 R 2 0 R 2 0 R] >>"
    with pytest.raises(UnreadablePageError):
        read_pdf_page(write_pdf([["Text."]], objects=[(2, pages), (10, b"null")]))


def test_destinations_that_are_nowhere_are_left_out():
    nowhere = ["[99 0 R /Fit]", "(no such name)", "[10 0 R /XYZ 1e30 nan null]", "null", "[-7 /Fit]"]
    content = read_pdf_page(
        write_pdf(
            [["Text of the only page."]],
            links=[(0, 0, f"/Dest {place}") for place in nowhere],
            outline=[(f"Part {n}", place) for n, place in enumerate(nowhere)],
            names=[(f"n{n}", place) for n, place in enumerate(nowhere)],
        )
    )

    assert texts(content)[-1] == "Text of the only page."
    assert {link.href for block in content.blocks for link in block.links} <= {"#page=1"}


def test_a_bomb_ends_its_process_and_not_the_run(tmp_path, monkeypatch):
    """30 KB that unpack to 32 MB of text operators."""
    monkeypatch.setattr(workers, "SECONDS_A_PAGE", 1.0)
    packed = zlib.compress(b"BT /F 10 Tf 1 0 0 1 72 700 Tm " + b"(x) Tj " * 4_500_000 + b"ET", 9)
    bomb = write_pdf([["Text."]], objects=[(11, stream(packed, "/Filter /FlateDecode"))])
    (tmp_path / "bomb.pdf").write_bytes(bomb)
    (tmp_path / "good.pdf").write_bytes(write_pdf([["Good."]]))
    store = MemoryStore()
    summary = index(store, FolderSource(tmp_path))

    assert "good.pdf" in {url for _, url in store.stored}
    assert summary.skipped == {"bomb.pdf": "reading it took more than 1 s"}


def test_without_the_extra_one_notice_says_how_to_get_it(tmp_path):
    (tmp_path / "a.pdf").write_bytes(write_pdf([["Text."]]))
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    code = (
        "import sys; sys.modules['pypdfium2'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'pypdfium2' else find(name, *rest)\n"
        "from linkstore.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "index", tmp_path, "--store", tmp_path / "kb"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.count("langchain-linkstore[pdf]") == 1
    assert "1 .pdf" in done.stdout


def test_with_the_extra_nothing_is_said_of_it():
    assert "[pdf]" not in describe_unread({".doc": 1})
