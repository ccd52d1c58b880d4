"""Whatever a page of HTML holds, parsing it takes time and memory in proportion to its length."""

from __future__ import annotations

import re
from contextlib import suppress
from unittest import mock

import pytest
from growing import grows_with_length
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from trees import depth_of

from linkstore.errors import ExtractionError
from linkstore.extract import html_bounds
from linkstore.extract.html import DEEPEST_ELEMENT, parse_html
from linkstore.extract.html_bounds import MOST_OPTIONS, UnboundedPageError, bound_page
from linkstore_extractors.html import HtmlLinkExtractor, HtmlSource

MANY = 2000
ATTRIBUTES = " ".join(f"a{number}" for number in range(900))
DISTINCT = "".join(f"<b id={number}>" for number in range(400))


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("<div>" * MANY, "deep"),
        ("<DIV class=x>" * MANY, "deep"),
        ("<x/>" * MANY, "deep"),
        ("<svg>" + "<g>" * MANY, "deep"),
        ("<svg><div></div>" + "<x/>" * MANY, "deep"),
        ("<svg>" + "<a href=q>" * MANY, "deep"),
        ("<svg><font color=red/>" + "<x/>" * MANY, "deep"),
        ("<math><annotation-xml>" + "<input>" * MANY, "deep"),
        ("<ul><li>" * MANY, "deep"),
        ("<li><dd>" * MANY, "deep"),
        ("<p>" + "<optgroup>" * MANY, "deep"),
        ("<ruby><p><rt>" * MANY, "deep"),
        ("<ul></li><p><li>" * MANY, "deep"),
        ("<select><title>" + "</select>" + "<div>" * MANY + "</title>" + "<div>" * MANY, "deep"),
        ("<script><!--<script></script>" + "<x>" * MANY + "</script>" + "<div>" * MANY, "deep"),
        ("<a href=q><table><td>" * MANY, "not closed"),
        ("".join(f"<b id={number}>" for number in range(MANY)), "not closed have"),
        ("<p>" + DISTINCT + "<p>x" * MANY, "opened again"),
        (DISTINCT + ("<div>" + "<i></i>" * 9000 + "</div>") + "</b>" * 400, "out of order"),
        ("<p " + " ".join(f"a{number}" for number in range(MANY * 5)) + ">", "attributes"),
        ("".join(f"<body a{number}>" for number in range(MANY)), "attributes"),
        ("<p>" + "".join(f"<html a{number} a>" for number in range(MANY)), "attributes"),
        (f"<p><b {ATTRIBUTES}>" + "<p>x" * MANY, "opened again"),
        (f"<p><b {ATTRIBUTES}><i {ATTRIBUTES}>" + "<p>x" * 200, "attributes"),
        ("".join(f"<b {ATTRIBUTES} b{number}>" for number in range(40)), "attributes"),
        *((piece * 400_000, "deep") for piece in ("<div>", "<x/>", "<b>", "<p><button>", "<table><td>")),
    ],
)
def test_a_page_that_would_grow_beyond_measure_is_refused(page, problem):
    with pytest.raises(ExtractionError, match=problem):
        HtmlLinkExtractor().extract(HtmlSource(content=page, url="https://o.org/"))


@pytest.mark.parametrize(
    "page",
    [
        "<svg>" + "<style>" * MANY,
        "<math>" + "<plaintext>" * MANY,
        ("<b><div>" + "<x>" * 100 + "</b></div>") * 4,
    ],
)
def test_what_parsers_read_in_another_state_does_not_make_a_page_deep(page):
    assert depth_of(bound_page(page).text)[0] < 520


@pytest.mark.parametrize(
    "page",
    [
        "<div></div>" * MANY,
        "<p>one<br>" * MANY,
        "<table>" + "<tr><td>x" * MANY,
        "<table>" + "<tr><td><font size=2>x</td></tr>\n" * MANY + "</table>",
        "<ul>" + "<li><span>x</li>" * MANY,
        "<p><i>x</p>" * MANY,
        "<dl>" + "<dt>a<dd><tt>x" * MANY,
        "<p>" + "<ruby>a<rt>b</ruby>" * MANY,
        "<p>" + "if a<b then x " * MANY,
        "<b><p>x</b></p>" * MANY,
        "<form><p></form>x" * MANY,
        "<svg>" + '<path d="M0 0"/>' * MANY + "</svg>",
        "<p>" + '<span title="<div>">x</span>' * MANY,
        "<script>" + "a<b;" * MANY + "</script>",
        "<script>" + "a<b;" * MANY,
        "<!--" + "<div>" * MANY + "-->",
        "<!-- <div> -->" * MANY,
        "a < b" * MANY,
        "<select>" + "<option>x" * MANY,
        "<p>" + "x</p>" * MANY,
        "<body id=a>x" * MANY,
        "<p><font face='a, b' size=2 color=red>x" * 200,
    ],
)
def test_what_does_not_lie_deep_is_not_refused(page):
    bounded = bound_page(page)
    assert depth_of(bounded.text)[0] < 50


NAMES = """
    a b font i div p ul li dl dd dt table tr td th tbody caption svg math mi foreignobject desc g button
    select option optgroup object nobr h1 span x ruby rt form input br section hr body html script textarea
    title xmp template frameset noscript image annotation-xml
"""
TAGS = st.tuples(
    st.sampled_from(["<{}>", "<{} id=1>", "<{}/>", "</{}>", "<{} color=red>", "x<{}>"]),
    st.sampled_from(NAMES.split()),
).map(lambda drawn: drawn[0].format(drawn[1]))


@given(
    st.lists(TAGS, max_size=2).map("".join),
    st.lists(TAGS, min_size=1, max_size=6).map("".join),
    st.booleans(),
)
def test_depth_and_size_are_told_before_the_parser_knows_them(before, piece, numbered):
    page = before + "".join(
        re.sub(r"(?<=<)([a-z]+\d?) id=1", rf"\1 id={number}", piece) if numbered else piece
        for number in range(100)
    )
    with mock.patch.object(html_bounds, "_REOPENED", (200, 0.25)), suppress(UnboundedPageError):
        bounded = bound_page(page)
        depth, size = depth_of(bounded.text)
        assert depth <= 6 * bounded.depth + 20
        assert size <= 4 * page.count("<") + len(page) // 2 + 400


@given(st.lists(TAGS, max_size=9))
def test_no_text_that_a_browser_shows_is_lost(tags):
    page = "<!doctype html><body>" + "".join(f"{tag}t{number} " for number, tag in enumerate(tags))
    assert shown(page) <= shown(bound_page(page).text)


def shown(page):
    """The words of a page beside its forms, as a parser finds them that takes it as it is."""
    tree = LexborHTMLParser(page)
    for element in tree.css("script, textarea, title"):
        element.remove()
    return set(re.findall(r"t\d+ ", tree.body.text()))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<p title="a>b">t</p>', "t"),
        ("<title/><p>shown</p>", "shown"),
        ('<?xml version="1.0"?><html><title/><script src="x"/><body><p>shown</p>', "shown"),
        ("<script><!-- <script> </script> --></script>shown", "shown"),
        ("<script>'</p>'</script>shown", "shown"),
        ("<textarea><b></textarea>shown", "<b>shown"),
        ("<xmp><b>&amp;</xmp>shown", "<b>&amp;shown"),
        ("<plaintext><b>", "<b>"),
        ("<p>a<![CDATA[<b>]]>c", "a]]>c"),
        ("<svg><text>a<![CDATA[<b>]]></text></svg>c", "a<b>c"),
        *(
            (f"<svg><{name} id=x/><g/></svg>shown<{name}></{name}>", "shown")
            for name in ("title", "style", "script", "textarea", "iframe", "noembed", "xmp")
        ),
        ("<svg><style></svg>shown<style></style>", "shown"),
        ("<svg><plaintext>a</plaintext></svg>b<p>c", "abc"),
        ("<svg><title>a<p>b</title></svg>c<style/>d</style>e", "abcde"),
        ("<!--><p>--></p>shown", "-->shown"),
        ("<!-- <p> --!>shown", "shown"),
        ("</3 <p>shown", "shown"),
    ],
)
def test_what_readers_see_stays(page, text):
    assert LexborHTMLParser(bound_page(page).text).body.text() == text


def test_the_title_of_a_page_keeps_its_signs():
    page = "<title>a < b, <b>, &amp;</title>" + "<p>x</p>" * MANY
    assert parse_html(page).head.css_first("title").text() == "a < b, <b>, &"


def test_of_long_lists_to_choose_from_the_rest_is_left_out():
    page = "<p>x</p><select>" + "<option>y" * (MOST_OPTIONS + 500) + "</select><p>z</p>"
    tree = parse_html(page)
    assert len(tree.css("option")) <= MOST_OPTIONS
    assert [node.text() for node in tree.css("p")] == ["x", "z"]


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "<p>x",
            "<b></b>",
            "<a>",
            "<p><button>",
            "<b><p>x</b></p>",
            "<option>x",
            "</p>",
            "<title/>",
            "<!--",
        ),
        *("<![CDATA[", "<script>", "<script></script>", "<", "</", "<!", "<a b=", '<a b="', "<a =", "<nobr>"),
        *("<style/>", "<xmp>", "&", "<option a='<'>", "<svg></svg>", "<svg/>", "<td>", "<table>", "<rt>"),
    ],
)
def test_a_page_takes_time_with_its_length_and_no_more(piece):
    def read(length):
        with suppress(UnboundedPageError):
            parse_html("<p>" + piece * (length // len(piece)))

    assert grows_with_length(read, 8_000)


def test_a_page_as_deep_as_allowed_is_read():
    assert parse_html("<div>" * DEEPEST_ELEMENT + "x").body.text() == "x"
