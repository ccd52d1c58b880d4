"""What would take a parser of HTML far more than its length says is refused, what people write is read."""

from __future__ import annotations

from contextlib import suppress

import pytest
from growing import grows_with_length
from internals import (
    DEEPEST_ELEMENT,
    MOST_OPTIONS,
    MOST_TAGS,
    HtmlInput,
    HtmlLinkExtractor,
    UnboundedPageError,
    estimate_depth,
    parse_html,
)

from linkstore.errors import ExtractionError

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
        ("<svg>" + "<a href=q>" * MANY, "deep"),
        ("<select>" + "<option>x" * 200_000, "options"),
        ("<ul><li>" * MANY, "deep"),
        ("<li><dd>" * MANY, "deep"),
        ("<p>" + "<optgroup>" * MANY, "deep"),
        ("<ruby><p><rt>" * MANY, "deep"),
        ("<a href=q><table><td>" * MANY, "deep"),
        ("".join(f"<b id={number}>" for number in range(MANY)), "not closed"),
        ("<p>" + DISTINCT + "<p>x" * MANY, "opened again"),
        ("<p>" + DISTINCT + "<p>x</p>" * MANY, "opened again"),
        ("<p>" + DISTINCT + "<div><p>x</p></div>" * MANY, "opened again"),
        ("<p title='<b>'>x</p>" + "<p><i></i>" + "<div>" * MANY, "deep"),
        ("<p " + " ".join(f"a{number}" for number in range(MANY * 5)) + ">", "attributes"),
        (f"<p><b {ATTRIBUTES}>" + "<p>x" * MANY, "opened again"),
        (f"<p><b {ATTRIBUTES}><i {ATTRIBUTES}>" + "<p>x" * 200, "attributes"),
        ("".join(f"<b {ATTRIBUTES} b{number}>" for number in range(40)), "attributes"),
        ("<br>" * (MOST_TAGS + 1), "tags"),
        *((piece * 400_000, "deep") for piece in ("<div>", "<x/>", "<p><button>", "<table><td>")),
    ],
)
def test_a_page_that_would_grow_beyond_measure_is_refused(page, problem):
    with pytest.raises(ExtractionError, match=problem):
        HtmlLinkExtractor().extract(HtmlInput(content=page, base_url="https://o.org/"))


@pytest.mark.parametrize(
    "page",
    [
        "<div></div>" * MANY,
        "<p>one<br>" * MANY,
        "<table>" + "<tr><td>x" * MANY,
        "<table>" + "<tr><td><font size=2>x</td></tr>\n" * MANY + "</table>",
        "<ul>" + "<li><span>x</span></li>" * MANY,
        "<ul>" + "<li>x" * MANY,
        "<p><i>x</p>" * MANY,
        "<dl>" + "<dt>a<dd><tt>x" * MANY,
        "<p>" + "<ruby>a<rt>b</ruby>" * MANY,
        "<p>" + "if a<b then x " * MANY,
        "<b><p>x</b></p>" * MANY,
        "<svg>" + '<path d="M0 0"/>' * MANY + "</svg>",
        "<svg>" + "<a href=q><path/></a>" * MANY + "</svg>",
        ("<select>" + "<option>x" * 300 + "</select>") * 50,
        "<p>" + '<span title="<div>">x</span>' * MANY,
        "<script>" + "a<b;" * MANY + "</script>",
        "<script>" + "a<b;" * MANY,
        "<!--" + "<div>" * MANY + "-->",
        "<!-- <div> -->" * MANY,
        "a < b" * MANY,
        "<select>" + "<option>x" * MOST_OPTIONS,
        "<p>" + "x</p>" * MANY,
        "<body id=a>x" * MANY,
        "<p><font face='a, b' size=2 color=red>x" * 200,
    ],
)
def test_what_does_not_lie_deep_is_not_refused(page):
    assert estimate_depth(page.encode()) < 50
    parse_html(page)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<p title="a>b">t</p>', "t"),
        ('<?xml version="1.0"?><html><title/><script src="x"/><body><p>shown</p>', "shown"),
        ("<script><!-- <script> </script> --></script>shown", "shown"),
        ("<script>'</p>'</script>shown", "shown"),
        ("<textarea><b></textarea>shown", "<b>shown"),
        ("<xmp><b></xmp>shown", "<b>shown"),
        ("<svg><text>a<![CDATA[<b>]]></text></svg>c", "a<b>c"),
        ("<!--><p>--></p>shown", "-->shown"),
        ("<!-- <p> --!>shown", "shown"),
        ("</3 <p>shown", "shown"),
    ],
)
def test_what_readers_see_stays(page, text):
    assert parse_html(page).body.text() == text


@pytest.mark.parametrize(
    "piece", ['<p><a id="{}"/>x</p>', "<i class='{}' />x", '<div id="{}"/>x', "<span/>x"]
)
def test_elements_that_xhtml_closes_by_a_slash_are_not_left_open(piece):
    page = "<!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.1//EN'>" + "".join(map(piece.format, range(MANY)))
    tree = parse_html(page)
    assert tree.body.text() == "x" * MANY
    assert all(not node.text() for node in tree.css("[id], [class], span"))


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<p>a<br/>b<hr />c", "<p>a<br>b</p><hr>c"),
        ('<a href="x"/>text</a>', '<a href="x">text</a>'),
        ("<b title=x/>text</b>", '<b title="x/">text</b>'),
        ('<b/><svg><path d="M0"/><g/></svg>', '<b></b><svg><path d="M0"></path><g></g></svg>'),
        ('<A NAME="x"/>text', '<a name="x"></a>text'),
    ],
)
def test_which_elements_of_xhtml_hold_nothing(page, found):
    assert parse_html(f'<?xml version="1.0"?>{page}').body.html == f"<body>{found}</body>"


def test_the_title_of_a_page_keeps_its_signs():
    page = "<title>a < b, <b>, &amp;</title>" + "<p>x</p>" * MANY
    assert parse_html(page).head.css_first("title").text() == "a < b, <b>, &"


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
        *("<a '", "<a <", "<b id=x>", "</b>", "<p><a>", "<p><b></b>", "<p><a><b></b></a>", "<p><b><i>"),
    ],
)
def test_a_page_takes_time_with_its_length_and_no_more(piece):
    def read(length):
        with suppress(UnboundedPageError):
            parse_html("<p>" + piece * (length // len(piece)))

    assert grows_with_length(read, 8_000)


def test_a_page_as_deep_as_allowed_is_read():
    assert parse_html("<div>" * DEEPEST_ELEMENT + "x").body.text() == "x"
