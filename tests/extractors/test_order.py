"""Pages whose tags nest as they are written are parsed without a closer look, which would find nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from trees import depth_of

from linkstore.cli.demo import site
from linkstore.extract.html_depth import ElementStack
from linkstore.extract.html_order import TagRewriter, is_well_nested

DEEP = "<div>" * 2000
SPRITE = """
    <svg style="display: none"><symbol id="sun"><title>Sun</title>
    <svg viewBox="0 0 24 24"><circle r="9"></circle><path d='M0 0'/></svg></symbol>
    <symbol id="line"><line x1="1"></line></symbol></svg>
"""
NAMES = """
    a b font nobr div p ul li dl dd dt table tr td th tbody caption colgroup col svg math g path button h1 h2
    select option object span x ruby rt form input br hr section body html head textarea title noscript image
    template link frameset desc symbol
"""
SPECIAL = """
    <!--_<p>_--> <!--> <!doctype_html> <svg><path_d=1_/><g></g></svg> <svg></g><path/></svg> <p/> x
    <svg><title>x</title></svg> <svg><symbol><svg><g/></svg></symbol></svg> <symbol><g></symbol>
    <select><option>a<option>b</select> <title>a<b</title> <![CDATA[x]]> </3
    <textarea><p></textarea>
"""
FORMS = (
    "<{0}>{1}</{0}>",
    "<{0}>{1}</{0}>",
    "<{0} id=1>{1}</{0}>",
    "<{0}>{1}",
    "{1}</{0}>",
    "<{0}/>{1}",
)
ELEMENTS = st.recursive(
    st.sampled_from([piece.replace("_", " ") for piece in SPECIAL.split()]),
    lambda inner: st.tuples(
        st.sampled_from(
            ["<{0}>{1}</{0}>", "<{0}>{1}</{0}>", "<{0}>{1}", "<{0} id=1>{1}</{0}>", "{1}</{0}>", "<{0}/>{1}"]
        ),
        st.sampled_from(NAMES.split()),
        st.lists(inner, max_size=3).map("".join),
    ).map(lambda drawn: drawn[0].format(drawn[1], drawn[2])),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "page",
    [
        "<ul><li>one<li>two</ul><p>a<p>b<div title='a > <b>'>c</div>",
        "<table><tr><td>a<td>b<tr><td>c</table><table><colgroup><col><tbody><tr><td><p>a</table>",
        "<script>if (a < b) write('<div>')</script><svg class=i><path d='M0 0'/></svg>",
        "<!doctype html><!-- <div> --><select><option>1<option>2</select>",
        "<table><td>a</td></tr></table>",
        "<dl><div><dt>a<dd>b</div></dl><ruby>a<rt>b</rt></ruby>",
        "<P><B>a</B><HR><A HREF=x NAME=y>z</A>",
        "<ul><li><p>a<ul><li>b</ul><li>c</ul>" * 1000,
        f"<p>a</p>{SPRITE}<p>b<svg><use href='#sun'></use></svg></p>",
    ],
)
def test_most_pages_are_in_order(page):
    assert is_well_nested(page)


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 200 + "</div>" * 200,
        "<b><div></b></div>",
        "<a><a></a></a>",
        "<p><b>x<p>y</p></b></p>",
        "<ul><li><div><li></div></ul>",
        "<p><table><tr><td>x</table>",
        "<table><b><tr><td>x</table></b>",
        "<table><form><tr><td></form></table>",
        "<h1><h2></h2></h1>",
        "<button><div><button></button></div></button>",
        "<script/><div>",
        "<title/><div>",
        f"<script></SCRIPT>{DEEP}</script>",
        f"<script>a</\u017fcript>{DEEP}",
        f"<hr></!{DEEP}",
        f'<hr "{DEEP}',
        f"<hr></3{DEEP}",
        "<g><svg></g><path/><path/></svg></g>",
        "<svg><style><div></style></svg>",
        "<svg><![CDATA[<div>]]></svg>",
        "<body a><body b>",
        "<symbol></symbol>",
        "<svg><symbol><path><svg></path></svg></symbol></svg>",
        "<svg><symbol><svg><svg></svg></svg></symbol></svg>",
        "<svg><symbol><path d=M/></symbol></svg>",
        "<svg><symbol><div></div></symbol></svg>",
        f"<svg><symbol><title></symbol></svg>{DEEP}",
        "<p title='",
        "<!-- a",
        "<plaintext>",
        "<image>",
        "<script><!--<script></script>",
        "<p " + "a " * 2000 + ">",
        "<select>" + "<option>" * 1001 + "</select>",
    ],
)
def test_what_a_parser_might_reopen_or_move_gets_the_closer_look(page):
    assert not is_well_nested(page)


@settings(max_examples=300)
@given(ELEMENTS, ELEMENTS, st.sampled_from(["", "<!doctype html>"]))
def test_a_page_in_order_is_as_flat_and_small_as_its_tags_say(before, piece, doctype):
    page = doctype + before + piece * 60
    if not is_well_nested(page):
        return
    deepest, count = depth_of(page)
    assert deepest <= 110
    assert count <= 4 * page.count("<") + 20
    nesting, tags = ElementStack(), TagRewriter(page)
    for tag in tags:
        if tag.text:
            nesting.text()
        if tag.closing:
            nesting.end(tag.name)
        else:
            nesting.start(tag.name, tag.attributes)
        tags.in_foreign = nesting.in_foreign
    assert nesting.reopened == nesting.compared == 0
    assert nesting.moved <= page.count("</form")
    assert LexborHTMLParser(tags.written()).html == LexborHTMLParser(page).html


def test_the_pages_of_the_demo_are_in_order():
    with site() as folder:
        pages = [path.read_text() for path in folder.rglob("*.html")]
    assert pages
    assert all(map(is_well_nested, pages))
