"""Nothing of a page's content is lost, and each anchor and link goes where it stands."""

from __future__ import annotations

import random

import pytest
from internals import (
    ChunkLimits,
    Response,
    UnreadablePageError,
    find_page_links,
    find_refresh_target,
    find_titles,
    make_chunks,
    parse_html,
    read_html_page,
)

from linkstore.extract import Page
from linkstore.ingest.web import reading as web_pages

WORDS = "The needle stands on the ground of the fair of 1962, and a lift goes up. "
SVG = (
    '<svg xmlns:xlink="http://www.w3.org/1999/xlink"><a xlink:href="b.html" xlink:title="B">'
    "<text>B</text></a><a id=none><text>C</text></a></svg>"
)


def chunks(html, **limits):
    content = read_html_page(html.encode())
    page = Page(url="page.html", title=content.title)
    return make_chunks(page, content.blocks, *([ChunkLimits(**limits)] if limits else []))


def texts(html):
    return [block.text for block in read_html_page(html.encode()).blocks]


def owner(found, anchor):
    (chunk,) = [chunk for chunk in found if anchor in chunk.anchors]
    return chunk


@pytest.mark.parametrize("frame", ["<p>{}</p>", "<div>text {}</div>", "<h2>{} Graph</h2>", "{}"])
def test_links_of_drawings_are_links(frame):
    html = f"<main><h1>T</h1><p>text</p>{frame.format(SVG)}</main>"
    assert [link.href for chunk in chunks(html) for link in chunk.hyperlinks] == ["b.html"]
    assert find_page_links(parse_html(html)) == {"b.html": "B"}


@pytest.mark.parametrize(
    "small",
    [
        "<article><p>A card.</p></article>",
        "<div class=body><p>A card.</p></div>",
        "<div class=document><p>A card.</p></div>",
        "<main><h2>Menu</h2></main>",
        "<div role=main><p>A card.</p></div>",
    ],
)
def test_what_holds_little_of_the_page_is_not_its_main_content(small):
    html = f"<body><h1>Title</h1><div><p>{WORDS}</p><p>{WORDS}</p></div>{small}</body>"
    assert texts(html).count(WORDS.strip()) == 2
    assert len(texts(html)) == 4
    assert read_html_page(html.encode()).left_out == {}


@pytest.mark.parametrize("box", ["<main>{}</main>", "<article>{}</article>", "<div class=body>{}</div>"])
def test_what_holds_most_of_the_page_is_its_main_content_whatever_links_stand_around(box):
    links = "".join(f'<li><a href="{n}.html">Another page of the site, number {n}</a>' for n in range(99))
    main = box.format(f"<h1>T</h1><p>{WORDS}</p>")
    html = f"<nav>menu</nav><ul>{links}</ul>{main}<p>© us"
    found = read_html_page(html.encode())
    assert [block.text for block in found.blocks] == ["T", WORDS.strip()]
    assert found.left_out["navigation"] == 4
    assert found.left_out["text outside the main content"] > 2500
    assert read_html_page(f"<nav>a menu</nav><p>{WORDS}".encode()).left_out == {"navigation": 5}


@pytest.mark.parametrize(
    "name", ["class=sidebar", "class=related", "id=toc", "role=complementary", "class=navpage"]
)
def test_a_name_for_noise_does_not_hide_most_of_the_page(name):
    assert texts(f"<div {name}><h1>T</h1><p>{WORDS}</p></div><p>End.</p>") == ["T", WORDS.strip(), "End."]
    around = f"<p>{WORDS * 4}</p>"
    links = '<a href="a.html">Chapter one</a> <a href="b.html">Chapter two</a>'
    if name != "class=navpage":
        assert texts(f"{around}<div {name}>{links}</div>") == [(WORDS * 4).strip()]


def test_a_page_that_is_a_table_of_contents_has_text():
    html = '<div class="toc"><p>Contents</p><ul><li><a href="a.html">Chapter A</a></ul></div>'
    (chunk,) = chunks(html)
    assert "- Chapter A" in chunk.text
    assert [link.href for link in chunk.hyperlinks] == ["a.html"]


def test_a_part_that_has_only_a_title_and_contents_keeps_both():
    toc = '<dl class="toc"><dt><a href="a.html">Chapter A</a></dt></dl>'
    assert texts(f"{DOCBOOK}<h1>Part</h1><div class=toc>{toc}</div>{DOCBOOK}") == ["Part", "Chapter A"]


DOCBOOK = """<div class="navheader"><table><tr><th colspan="3">SELECT</th></tr><tr>
<td><a accesskey="p" href="a.html">Prev</a></td><th>SQL Commands</th>
<td><a accesskey="n" href="b.html">Next</a></td>
</tr></table><hr></div>"""
TEXINFO = """<div class="header"><p>Next: <a href="b.html" accesskey="n" rel="next">Broadcasting</a>, Up:
<a href="u.html" rel="up">Vectors</a> [<a href="i.html" rel="contents">Contents</a>]</p></div>"""
GTK_DOC = """<table id="top"><tr><td><a href="#">Top</a> | <a href="#d">Description</a></td>
<td><a accesskey="h" href="i.html"><img alt=Home></a></td>
<td><a accesskey="n" href="b.html"><img></a></td></tr>
</table>"""
FLEX = """<div class="pager"><div><a rel="prev" href="a.html">Previous: Install</a></div>
<div><a rel="next" href="b.html">Next: Configure</a></div></div>"""

PYDATA = """<div class="prev-next-area"><a class="left-prev" id="prev-link" href="a.html">
<i></i><div class="prev-next-info"><p>previous</p><p>A page with a title of some length</p></div></a>
<a href="b.html" title="next page"><div><p>next</p><p>B</p></div></a></div>"""
QUESTION = DOCBOOK.replace("SELECT", "1. What Is PostgreSQL, and why is it called what it is called?")


@pytest.mark.parametrize("bar", [DOCBOOK, TEXINFO, GTK_DOC, FLEX, PYDATA, QUESTION])
def test_bars_that_lead_to_the_pages_around_are_noise(bar):
    html = f"{bar}<div id=content>{bar}<h1>T</h1><p>Short.</p>{bar}</div>"
    assert texts(html) == ["T", "Short."]
    assert [link for chunk in chunks(html) for link in chunk.hyperlinks] == []
    assert find_page_links(parse_html(html)) == {}


def test_an_anchor_on_noise_leads_to_what_follows_it():
    assert owner(chunks(f"{GTK_DOC}<h1>T</h1><p>{WORDS}</p><h2>U</h2><p>u"), "top").index == 0


def test_an_empty_anchor_in_noise_leads_to_what_follows_it():
    bar = "<nav id=bar><a href='#start'>Skip</a><ul id=menu><li>m</ul><span id=start></span></nav>"
    html = f"{bar}<h1>T</h1><p>t"
    assert chunks(html)[0].anchors == ("bar", "menu", "start")


def test_a_line_of_links_to_the_own_page_is_a_table_of_contents():
    line = '<div id=top><a href="#a">Types</a> | <a href="#b">Functions</a></div>'
    found = read_html_page(f"{line}<h1>T</h1><p>See <a href='#a'>a</a> and <a href='#b'>b</a>.".encode())
    assert [block.text for block in found.blocks] == ["T", "See a and b."]
    assert found.blocks[0].anchors == ("top",)
    assert found.left_out == {"tables of contents": len("Types|Functions")}
    assert texts("<ul><li><a href='#a'>a</a>, <a href='#b'>b</a></ul>") == ["- a, b"]


SECTIONS = "".join(f"<h2 id=s{number}>Part {number}</h2><p>Text of part {number}.</p>" for number in range(3))
LISTED = "".join(f'<li>{number}. <a href="#s{number}">Part {number}</a></li>' for number in range(3))


@pytest.mark.parametrize(
    "contents",
    [
        f"<ul>{LISTED}</ul>",
        f"<p>By A. Author.</p><details><summary>Table of Contents</summary><ul>{LISTED}</ul></details>",
        '<ul><li><a href="#s0">Part 0</a><ul><li><a href="#s1">Part 1</a></ul></li>'
        '<li><a href="#s2">Part 2</a></ul>',
    ],
)
def test_a_list_of_the_headings_below_it_is_a_table_of_contents(contents):
    found = " ".join(texts(f"<h1>Title</h1><p>Beginning.</p>{contents}{SECTIONS}"))
    assert found.count("Part 1") == 1
    assert "Table of Contents" not in found
    assert "Beginning." in found


@pytest.mark.parametrize(
    "item",
    [
        '<a href="#s1">Part 1</a>, which says how an anvil is made',
        '<a href="other.html">Part 1</a>',
        '<a href="#term">Part 1</a>',
    ],
)
def test_a_list_that_says_more_or_leads_elsewhere_is_text(item):
    page = f"<h1>Title</h1><p>Beginning.</p><ul>{f'<li>{item}</li>' * 3}</ul>{SECTIONS}<p id=term>Term.</p>"
    assert " ".join(texts(page)).count("Part 1") == 4


@pytest.mark.parametrize(
    "page",
    [
        "<h1>T</h1><section id=table_of_contents><h2>Table of contents</h2><ul>{}</ul></section>{}",
        "<h1>T</h1><h3>Overview</h3><div class=text><ul>{}</ul></div>{}",
        "<h2 id=toc>In this guide</h2><ul>{}</ul>{}",
    ],
)
def test_the_heading_of_a_table_of_contents_goes_with_it(page):
    listed = "".join(f'<li><a href="#{n}">Part {n}</a>' for n in "abc")
    parts = "".join(f"<h3 id={n}>Part {n}</h3><p>Text of {n}.</p>" for n in "abc")
    assert texts(page.format(listed, parts)) == [
        *(["T"] if "T</h1>" in page else []),
        *(line for n in "abc" for line in (f"Part {n}", f"Text of {n}.")),
    ]


def test_a_table_of_contents_that_leads_astray_is_one_by_its_name():
    html = '<h1>T</h1><h2>Contents</h2><ul><li><a href="#gone">Install</a></ul><h2>Install</h2><p>Text.'
    assert texts(html) == ["T", "Install", "Text."]


def test_a_section_keeps_its_heading_above_a_list_of_its_own_sections():
    html = f"<h1>T</h1><p>Text.</p><h2>Functions</h2><ul>{LISTED}</ul>{SECTIONS.replace('h2', 'h3')}"
    assert "Functions" in texts(html)


def test_a_picture_without_a_text_of_its_own_has_none_in_asciidoctor():
    html = '<h1>T</h1><p>See <img src="images/two-way_link.svg" alt="two way link"> here, <img src=x alt=Why>'
    assert texts(html) == ["T", "See here, Why"]


def test_what_doxygen_calls_the_title_of_a_page_is_its_heading():
    html = (
        "<title>SFML - A Library</title><div id=banner><h1>SFML</h1></div><div class=header>"
        '<div class="headertitle"><div class="title">sf::Clock Class Reference<div class="ingroups">'
        '<a href="g.html">System</a></div></div></div></div><div class=contents><p>Text.</p></div>'
    )
    page = read_html_page(html.encode())
    assert page.title == "sf::Clock Class Reference"
    assert [(block.level, block.text) for block in page.blocks][1:3] == [(1, page.title), (0, "System")]
    assert find_titles(html) == {"SFML - A Library", "SFML", page.title}


def test_a_list_below_what_it_leads_to_is_text():
    assert " ".join(texts(f"<h1>Title</h1>{SECTIONS}<p>See also:</p><ul>{LISTED}</ul>")).count("Part 1") == 2


def test_a_stray_nul_does_not_make_a_page_binary():
    assert texts(f"<h1>T</h1><p>a\0b {WORDS * 3}") == ["T", f"ab {(WORDS * 3).strip()}"]
    with pytest.raises(UnreadablePageError, match="binary"):
        read_html_page("<p>text".encode("utf-16-le") * 99)


def test_a_paragraph_with_a_link_to_the_next_page_is_no_bar():
    html = f'<p>{WORDS} Read on in <a rel="next" href="b.html">the next chapter</a>.</p>'
    assert len(texts(html)) == 1
    html = (
        "<table><tr><td><a rel=next href=b>Next</a></td></tr><tr><td><h2>H</h2><p>text</p></td></tr></table>"
    )
    assert texts(html)[-2:] == ["H", "text"]


@pytest.mark.parametrize(
    ("heading", "fragment"),
    [
        ('<h2>Title<span><a class="mark" href="#title" id="title">#</a></span></h2>', "title"),
        ('<h2 id="title">Title<a href="#title"> &para;</a></h2>', "title"),
        ('<h2 id="title"><a href="#title">§</a>Title</h2>', "title"),
        ('<section id="title"><h2>Title <a class="headerlink" href="#title">Link</a></h2>', "title"),
        ('<h2>Title <a name="title" href="#title">🔗</a></h2>', "title"),
        ('<h2><a id="title" class="anchor" href="#title"></a>Title</h2>', "title"),
    ],
)
def test_permalinks_leave_their_anchor_and_nothing_else(heading, fragment):
    found = chunks(f"<h1>T</h1><p>t</p>{heading}<p>text</p>")[1]
    assert (found.text, found.fragment, found.anchors) == ("T > Title\n\ntext", fragment, ("title",))
    assert found.hyperlinks == ()


def test_permalinks_in_terms_and_paragraphs_go_and_marks_of_footnotes_stay():
    html = """<dl><dt id=f>f()<a href="#f"> ¶</a></dt><dd>Does f<a href="#n1" id=r1>*</a>, see
    <a href="#g">#</a>.</dd></dl><p id=p><a href="#p">¶</a>Numbered.</p><p id=n1>* A note.</p>"""
    assert texts(html) == ["f()", "Does f*, see #.", "Numbered.", "* A note."]
    assert [link.href for chunk in chunks(html) for link in chunk.hyperlinks] == ["#n1", "#g"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1><div>Chapter 1</div><div>Title</div></h1><p>x", ["Chapter 1 Title", "x"]),
        ("<details><summary><div>one</div><p>two</p></summary>x</details>", ["one", "two", "x"]),
        ("<dl><dt><div>one</div><div>two</div><dd>def</dl>", ["one", "two", "def"]),
        ("<pre><div>a = 1</div><div>b = 2</div></pre>", ["a = 1\nb = 2"]),
        ("<pre>a = 1\n<p>b = 2</p>c</pre>", ["a = 1\nb = 2\nc"]),
        (
            "<figure><figcaption>A <b>b</b>old<ul><li>one<li>two</ul></figcaption></figure>",
            ["A bold", "- one", "- two"],
        ),
        ("<h2><button>Install <b>it</b></button></h2><p>x", ["Install it", "x"]),
        ("<h2>Install <button>Copy</button></h2><p>x", ["Install", "x"]),
        ("<button><h3>How?</h3></button><p>x", ["How?", "x"]),
        ("<pre>code <button>Copy</button></pre>", ["code"]),
    ],
)
def test_what_stands_apart_is_not_glued_together_nor_lost(html, expected):
    assert texts(html) == expected


def test_labels_of_links_are_not_glued_together():
    html = "<p><a href=x><span>Card</span><br><span>Text</span></a></p><a href=y><div>A</div><p>b</p></a>"
    assert [link.label for chunk in chunks(html) for link in chunk.hyperlinks] == ["Card Text", "A b"]
    assert find_page_links(parse_html(html)) == {"x": "Card Text", "y": "A b"}


@pytest.mark.parametrize("inner", ["<h3 id=q2>How?</h3>", "<section><h3 id=q2>How?</h3></section>"])
def test_headings_in_summaries_head_sections(inner):
    html = f"<h1>FAQ</h1><p>intro</p><details><summary>{inner}</summary><p>So.</p></details>"
    assert owner(chunks(html), "q2").text == "FAQ > How?\n\nSo."


@pytest.mark.parametrize("tag", ["section", "article", "div"])
def test_a_section_begins_before_its_heading(tag):
    parts = "".join(
        f"<{tag} id=s{n}><p class=date>2020-0{n}-01</p><h2>Part {n}</h2><p>About {n}.</p></{tag}>"
        for n in (1, 2)
    )
    found = chunks(f"<h1>Top</h1><p>{WORDS}</p>{parts}")
    assert [(chunk.text, chunk.fragment) for chunk in found[1:]] == [
        (f"Top > Part {n}\n\n2020-0{n}-01\n\nAbout {n}.", f"s{n}") for n in (1, 2)
    ]
    assert owner(found, "s2").headings == ("Top", "Part 2")


def test_an_introduction_does_not_go_below_the_first_of_several_headings():
    html = "<h1>T</h1><div id=content><p>Intro.</p><h2>A</h2><p>a</p><h2>B</h2><p>b</p></div>"
    assert [chunk.text for chunk in chunks(html)] == ["T\n\nIntro.", "T > A\n\na", "T > B\n\nb"]


def test_links_of_a_long_block_go_where_they_stand_whatever_they_are_called():
    made = random.Random(3)
    entries = ", ".join(f'key{n} <a href="#{n}">{made.randint(1, 99)}</a>' for n in range(2000))
    found = chunks(f"<h1>Index</h1><p>{entries}</p>")
    assert len(found) > 10
    for chunk in found:
        for link in chunk.hyperlinks:
            # An entry may be cut before its link.
            key = f"key{int(link.href[1:]) + 1}" if link == chunk.hyperlinks[0] else f"key{link.href[1:]}"
            assert key in chunk.text, link


@pytest.mark.parametrize(
    ("around", "entry"),
    [
        ("<pre>{}</pre>", "<span id=a{0}>line{0}: {1}</span>\n"),
        ("<p>{}</p>", "<a name=a{0}></a>line{0}: {1}<br>"),
        ("<div>{}</div>", "<i id=a{0}>line{0}: {1}</i> "),
        ("<ul><li>{}</ul>", "<b id=a{0}>line{0}: {1}</b> "),
        ("<table><tr><td>x<td>{}</table>", "<b id=a{0}>line{0}: {1}</b> "),
        ("<dl><dt>{}<dd>d</dl>", "<code id=a{0}>line{0}: {1}</code> "),
    ],
)
def test_anchors_of_a_long_block_go_where_they_stand(around, entry):
    html = around.format("".join(entry.format(n, "text " * 5) for n in range(200)))
    found = chunks(f"<h1>T</h1><p>t</p><h2>S</h2>{html}")
    assert len(found) > 3
    for n in range(200):
        assert f"line{n}:" in owner(found, f"a{n}").text


@pytest.mark.parametrize(
    ("around", "heading"),
    [
        ("first<a name=there></a></p><h2 id=own>", "Second"),  # as in the manual of SQLite
        ("first <a name=there></a><p></p><h2>", "Second"),
        ("first<a name=there></a></p><h2>", "Second"),
        ("first<a name=there href='#x'></a></p><h2>", "First"),  # a link, which belongs to its text
        ("first<a name=there> words</a></p><h2>", "First"),
        ("first<a name=there></a></p><p>more</p><h2>", "First"),
        ("<a name=there></a>first</p><h2>", "First"),
    ],
)
def test_an_empty_anchor_before_a_heading_leads_to_its_section(around, heading):
    found = chunks(f"<main><h1>Page</h1><h2>First</h2><p>{around}Second</h2><p>second</p></main>")
    section = owner(found, "there")

    assert f"> {heading}\n" in section.text
    assert section.anchors.count("there") == 1


def test_trailing_anchors_belong_to_the_end_of_a_long_block():
    found = chunks(f"<p>{WORDS * 60}</p><i id=end></i>")
    assert owner(found, "end") == found[-1]


def test_a_long_block_that_holds_the_mark_itself_is_read():
    html = f"<p>\ufdd1{WORDS * 40}<a href=x id=y>x\ufdd1</a></p>"
    assert [link.href for chunk in chunks(html) for link in chunk.hyperlinks] == ["x"]
    assert "\ufdd1" not in texts(html)[0]


@pytest.mark.parametrize(
    ("html", "target"),
    [
        ("<noscript><meta http-equiv=refresh content='0; url=nojs.html'></noscript><p>Short.</p>", None),
        (
            "<head><noscript><meta http-equiv=refresh content='0; url=n.html'></noscript></head><p>Short.",
            None,
        ),
        ("<meta http-equiv=refresh content='300; url=next.html'><p>A slide.</p>", None),
        (f"<meta http-equiv=refresh content='{'9' * 5000}; url=next.html'><p>A slide.</p>", None),
        ("<meta http-equiv=refresh content='300; url=next.html'>", "next.html"),
        ("<meta http-equiv=refresh content='5; url=next.html'><p>You are sent on.</p>", "next.html"),
    ],
)
def test_a_page_that_is_there_to_be_read_is_no_redirect(html, target):
    assert find_refresh_target(html.encode()) == target


def test_a_fault_in_reading_a_page_is_its_problem_alone(monkeypatch):
    def broken(*_, **__):
        raise KeyError("href")

    monkeypatch.setattr(web_pages, "find_page_links", broken)
    response = Response(url="https://x.org/", status=200, body=b"<p>text")
    found = web_pages.read_web_page(response, encoding="utf-8")
    assert str(found.content) == "reading it failed: KeyError: 'href'"


def test_a_cell_of_links_to_the_own_page_is_data_beside_others():
    read = read_html_page(
        b"<h1>Streams</h1><p>Text.</p><table><tr><th>Use<th>To implement</tr><tr><td>Writing only"
        b"<td><a href=#w>write()</a>, <a href=#v>writev()</a></tr></table>"
    )
    assert "Writing only | write(), writev()" in [block.text for block in read.blocks]
    assert read.left_out == {}


def test_a_row_that_is_only_links_to_the_own_page_is_contents():
    read = read_html_page(
        b"<h1>Streams</h1><table><tr><td><a href=#w>Writing</a> <a href=#r>Reading</a></tr></table>"
        b"<p>Text.</p>"
    )
    assert [block.text for block in read.blocks] == ["Streams", "Text."]
    assert read.left_out == {"tables of contents": len("WritingReading")}


def test_an_element_with_two_names_of_main_content_is_one():
    html = f'<div class="document body"><h1>T</h1><p>{WORDS}</div><p><a href="n.html">Next</a> page'
    assert [block.text for block in read_html_page(html.encode()).blocks] == ["T", WORDS.strip()]


def test_an_anchor_behind_white_space_stands_at_the_start():
    blocks = read_html_page(b"<h1>T</h1><p>\n <a id=a></a>Text<p>Text <a id=b></a>more").blocks
    assert [block.starts for block in blocks] == [False, True, False]


def test_a_term_in_a_list_has_no_dash():
    blocks = read_html_page(b"<h1>T</h1><ul><li><dl><dt>kind<dd>What it is.</dl></ul>").blocks
    assert [(block.text, block.term) for block in blocks[1:]] == [("- kind", ""), ("What it is.", "kind")]
