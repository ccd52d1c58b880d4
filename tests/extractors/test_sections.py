"""Links between the sections of a page."""

from __future__ import annotations

from internals import SectionExtractor

from linkstore.extract import Chunk, LinkExtractor, Page

PAGE = Page(url="guide/index.html")


def extract(**fields):
    return SectionExtractor().extract(Chunk(page=PAGE, text="x", **fields))


def test_a_chunk_names_itself_by_page_and_section():
    assert [(link.tag, link.direction) for link in extract(section="intro")] == [("/guide#intro", "in")]
    assert [(link.tag, link.direction) for link in extract()] == [("/guide", "in")]


def test_it_points_at_parent_next_and_previous():
    found = extract(section="b", parent="", next="c", previous="a")
    assert [(link.label, link.tag) for link in found if link.direction == "out"] == [
        ("parent", "/guide"),
        ("next", "/guide#c"),
        ("previous", "/guide#a"),
    ]


def test_the_parent_that_comes_before_is_said_once():
    found = extract(section="b", parent="a", previous="a")
    assert [(link.label, link.tag) for link in found if link.direction == "out"] == [("parent", "/guide#a")]


def test_it_is_a_link_extractor_of_chunks():
    assert isinstance(SectionExtractor(), LinkExtractor)
    assert {link.kind for link in extract(next="c")} == {"section"}
