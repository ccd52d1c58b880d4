"""Dumps, sitemaps and vaults take time and memory in proportion to their length, whatever they hold."""

from __future__ import annotations

import bz2
import tracemalloc

import pytest
from growing import grows_with_length
from internals import (
    DEFAULT_LIMITS,
    GONE,
    MOST_URLS,
    Block,
    DumpCutShortError,
    NoteIndex,
    make_chunks,
    read_article,
    read_pages,
    read_sitemap,
    render_markdown,
    tidy,
)

from linkstore.errors import FetchError
from linkstore.extract import Hyperlink, Page

HEAD = b'<mediawiki xml:lang="en"><siteinfo><sitename>W</sitename></siteinfo>'
PAGE = b"<page><title>A</title><ns>0</ns><revision><text>hello</text></revision></page>"
MEGA = 2**20


@pytest.mark.parametrize(
    ("before", "filling", "times", "problem"),
    [
        (b'<page><title x="', b"A" * MEGA, 3, "bytes"),
        (b"<!--", b"A" * MEGA, 3, "bytes"),
        (b"<?x ", b"A" * MEGA, 3, "bytes"),
        (b"<", b"a" * MEGA, 3, "bytes"),
        (b"", b"<a>" * 1000, 10, "deep"),
        (b"<!DOCTYPE x [", b"x", 1, "document type"),
        (b"<page><title>Big</title><revision><text>", b"A" * MEGA, 70, "200 times its size"),
        (b"<page><title>Big</title><revision><text><![CDATA[", b"A" * MEGA, 70, "200 times its size"),
    ],
)
def test_a_dump_that_grows_beyond_measure_ends_there(tmp_path, before, filling, times, problem):
    path = tmp_path / "dump.xml.bz2"
    head = before if before.startswith(b"<!DOC") else HEAD + PAGE + before
    with bz2.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(times):
            file.write(filling)
    assert path.stat().st_size < 64 * 2**10
    pages = []
    tracemalloc.start()
    with pytest.raises(DumpCutShortError, match=problem):
        pages += read_pages(path, limit=4 * MEGA)
    assert tracemalloc.get_traced_memory()[1] < 32 * MEGA
    tracemalloc.stop()
    assert problem == "document type" or not pages or pages[0].text == "hello"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<urlset>" + b"<a>" * MEGA, "deep"),
        (b'<urlset a="' + b"a" * 2 * MEGA + b'"></urlset>', "bytes"),
        (b"<urlset " + b" ".join(b'a%d="1"' % number for number in range(200_000)) + b"/>", "bytes"),
        (b"<!DOCTYPE x><urlset/>", "document type"),
        (b"<urlset>" + b"<!--" + b"x" * 2 * MEGA, "bytes"),
    ],
)
def test_a_sitemap_that_grows_beyond_measure_is_refused(body, problem):
    with pytest.raises(FetchError, match=problem):
        read_sitemap(body)


def test_of_a_sitemap_no_more_is_read_than_the_protocol_allows():
    many = read_sitemap(b"<urlset>" + b"<url><loc>http://a/</loc></url>" * (MOST_URLS + 9) + b"</urlset>")
    assert (len(many.pages), many.is_cut) == (MOST_URLS, True)
    many = read_sitemap(b"http://a/ " * (MOST_URLS + 9))
    assert (len(many.pages), many.is_cut) == (MOST_URLS, True)
    long = read_sitemap(
        b"<urlset><url><loc>" + b"a" * MEGA + b"</loc></url><url><loc>http://b/</loc></url></urlset>"
    )
    assert (long.pages, long.is_cut) == (["http://b/"], False)


@pytest.mark.parametrize("piece", [" ", "( ", ", ", "(,", " ,", ") ", "\t(", GONE, ";"])
def test_what_templates_leave_takes_time_with_its_length_and_no_more(piece):
    assert grows_with_length(lambda length: tidy(GONE + piece * (length // len(piece)) + "a"), 5_000)


@pytest.mark.parametrize(
    ("marked", "shown"),
    [
        ("a (" + GONE + ") b", "a b"),
        ("a (" + GONE + ", b)", "a (b)"),
        ("a " + GONE + ", b", "a, b"),
        ("a (" + GONE + ", ; ) b", "a b"),
        ("a " + GONE + ".", "a."),
        ("(" + GONE + ", (" + GONE + "))", "()"),
    ],
)
def test_brackets_and_spaces_that_templates_leave_go(marked, shown):
    assert tidy(marked) == shown


@pytest.mark.parametrize("line", ["a", "a.jpg|b", "a.jpg|[[b]]\nc.jpg|d", "\n\n"])
def test_galleries_in_galleries_are_no_larger_than_they_are_written(line):
    inside = f"\n{line}\n"
    text = "<gallery>" * 40 + inside + f"{inside}</gallery>" * 40
    article = read_article(text, title="A", resolve=lambda _: None)
    assert sum(len(block.text) for block in article.blocks) <= len(text)


@pytest.mark.parametrize("piece", [" ", "{#", "{# ", " {", "{:", "\u00a0", "}"])
def test_a_heading_takes_time_with_its_length_and_no_more(piece):
    assert grows_with_length(
        lambda length: render_markdown("# a" + piece * (length // len(piece)) + "b"), 5_000
    )


def test_finding_notes_takes_time_with_their_number_and_no_more():
    def look_up(count):
        paths = [f"d{number}/index.md" for number in range(count)]
        notes = NoteIndex(paths, {})
        for path in paths:
            assert notes.resolve_path("gone/index.html", path) is None
            assert notes.resolve_name("x/index", path) is None

    assert grows_with_length(look_up, 150)


def test_links_of_a_long_block_take_time_with_their_number_and_no_more():
    def cut(length):
        links = tuple(Hyperlink(href=f"{number}", label=f"gone{number}") for number in range(length // 10))
        return make_chunks(Page(url="x"), [Block("word " * (length // 5), links=links)], DEFAULT_LIMITS)

    assert grows_with_length(cut, 20_000, times=8)
