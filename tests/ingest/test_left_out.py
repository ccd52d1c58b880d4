"""What is named like navigation and is not is kept; menus are not, and what is left out is reported."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from growing import grows_with_length
from internals import find_page_links, parse_html, read_html_page
from memory_store import MemoryStore

from linkstore import LinkStore
from linkstore.ingest import FolderSource, index, workers

BEFORE = "<h1>T</h1><p>This is the ordinary text of the page, and what a reader came for.</p>"
AFTER = "<p>It goes on below, in another paragraph that is as long as the first one.</p>"
TEXT = ["T", "This is the ordinary text of the page, and what a reader came for."]
REST = ["It goes on below, in another paragraph that is as long as the first one."]
MENU = "".join(f'<li><a href="p{n}.html">Page number {n}</a></li>' for n in range(9))


def texts(html):
    return [block.text for block in read_html_page(html.encode()).blocks]


def left_out(html):
    return read_html_page(html.encode()).left_out


@pytest.mark.parametrize(
    ("box", "content"),
    [
        pytest.param(
            '<div class="sidebar"><div class="titlepage"><p class="title"><b>TOOL apt</b></p></div>'
            "<p>The tool installs packages.</p></div>",
            ["TOOL apt", "The tool installs packages."],
            id="DocBook sidebar",
        ),
        pytest.param(
            '<aside class="sidebar"><p class="sidebar-title">Side</p><p>Told of here.</p></aside>',
            ["Side", "Told of here."],
            id="docutils sidebar",
        ),
        pytest.param(
            '<section id="sidebar"><h2>Sidebar</h2><p>The option.</p></section>',
            ["Sidebar", "The option."],
            id="section called Sidebar",
        ),
        pytest.param(
            '<section id="footer"><h2>Footer</h2><p>Sets it.</p></section>',
            ["Footer", "Sets it."],
            id="section called Footer",
        ),
        pytest.param(
            '<div class="section" id="toc"><h2>TOC</h2><p>Sets its depth.</p></div>',
            ["TOC", "Sets its depth."],
            id="section called TOC",
        ),
        pytest.param(
            '<aside class="notice">Replace it with your key.</aside>',
            ["Replace it with your key."],
            id="Slate",
        ),
        pytest.param(
            '<aside aria-label="Caution"><p>Caution</p><div><p>It deletes all.</p></div></aside>',
            ["Caution", "It deletes all."],
            id="Starlight",
        ),
        pytest.param('<aside class="example"><pre>parse(\n  1)</pre></aside>', ["parse(\n  1)"], id="ReSpec"),
        pytest.param(
            '<aside class="example"><a href="a.html">The longer of them</a><pre>parse()</pre></aside>',
            ["The longer of them", "parse()"],
            id="code beside a link",
        ),
        pytest.param(
            '<aside class="footnotes" role="doc-endnotes"><ol><li><p>A note on it.</p></li></ol></aside>',
            ["- A note on it."],
            id="pandoc's footnotes",
        ),
        pytest.param(
            '<aside class="footnotes"><ol><li><a href="https://x.org/">https://x.org/</a></li></ol></aside>',
            ["- https://x.org/"],
            id="a footnote that is a link",
        ),
        pytest.param(
            '<div class="related"><h3>Related</h3><p>Use the other command, which writes it again.</p></div>',
            ["Related", "Use the other command, which writes it again."],
            id="prose in div.related",
        ),
        pytest.param(
            '<div class="sidebar"><p>詳しくは<a href="a.html">説明書</a>を読んでください。</p></div>',
            ["詳しくは説明書を読んでください。"],
            id="Japanese",
        ),
        pytest.param(
            '<nav><ul><li><a href="a.html">A</a></li></ul><p>It was called otherwise before.</p></nav>',
            ["It was called otherwise before."],
            id="a paragraph in nav",
        ),
        pytest.param(
            '<div class="sidebar"><table><tr><td>port</td><td>8080</td></tr></table></div>',
            ["port | 8080"],
            id="a table without links",
        ),
    ],
)
def test_a_name_alone_makes_no_noise(box, content):
    assert texts(f"{BEFORE}{box}{AFTER}") == [*TEXT, *content, *REST]
    if "<nav>" not in box:
        assert texts(f"<main>{BEFORE}{box}{AFTER}</main>") == [*TEXT, *content, *REST]
        assert left_out(f"{BEFORE}{box}{AFTER}") == {}


def test_a_header_with_title_and_abstract_is_content_and_gives_the_title():
    header = (
        '<header id="title-block-header"><h1 class="title">The Title</h1><p class="author">Ann</p>'
        '<div class="abstract"><p>It tells of all.</p></div></header>'
    )
    content = ["The Title", "Ann", "It tells of all."]
    head = "<title>The Title - Site</title>"
    assert texts(f"{header}<h1>One</h1>{AFTER}") == [*content, "One", *REST]
    page = read_html_page(f"{head}{header}<main><h2>One</h2>{AFTER}</main>".encode())
    assert [block.text for block in page.blocks] == [*content, "One", *REST]
    assert page.title == "The Title"


def test_a_footer_outside_of_the_main_content_is_called_by_its_name():
    html = f"<main>{BEFORE}</main><footer><p>We make this for you.</p></footer><p>Beside.</p>"
    assert texts(html) == TEXT
    assert left_out(html) == {
        "footers": len("Wemakethisforyou."),
        "text outside the main content": len("Beside."),
    }


def test_a_banner_does_not_give_the_title():
    banner = "<header><h1>Acme</h1><p>The finest of all anvils, made by hand.</p></header>"
    page = read_html_page(f"<title>Install | Acme</title>{banner}<h2>Install</h2>{AFTER}".encode())
    assert page.title == "Install | Acme"


def test_a_heading_in_the_header_of_a_section_is_kept():
    section = "<section><header><h2>{}</h2></header>{}</section>"
    html = f"<div>{section.format('Install', AFTER)}{section.format('Configure', AFTER)}</div>"
    assert texts(html) == ["Install", *REST, "Configure", *REST]


def test_links_are_content_below_a_heading_that_a_link_leads_to():
    related = f'<div class="related"><h2 id="see">See also</h2><ul>{MENU}</ul></div>'
    link = '<p>There is <a href="#see">more</a>, for who has the time to read on.</p>'
    assert "- Page number 3" in texts(f"{BEFORE}{link}{related}")
    assert texts(f"{BEFORE}{related}") == TEXT
    own = related.replace("See also", 'See also <a href="#see">¶</a>')
    assert texts(f"{BEFORE}{own}") == TEXT, "a heading's link to itself tells nothing"


def test_of_a_menu_with_a_paragraph_the_menu_goes():
    menu = f"<h3>Pages</h3><ul>{MENU}</ul>"
    box = f'<div class="sidebar"><h3>About</h3><p>Anvils are made by hand here.</p>{menu}</div>'
    assert texts(f"{BEFORE}{box}{AFTER}") == [*TEXT, "About", "Anvils are made by hand here.", *REST]
    assert left_out(f"{BEFORE}{box}{AFTER}") == {"sidebars": len("Pages") + 9 * len("Pagenumber0")}


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (f'<div class="sidebar"><h3>Pages</h3><ul>{MENU}</ul></div>', "sidebars"),
        (f"<aside><ul>{MENU}</ul></aside>", "sidebars"),
        (f'<div class="subNav"><ul class="subNavList"><li>Summary:</li>{MENU}</ul></div>', "navigation"),
        (f'<div class="pageToc"><ul>{MENU}</ul></div>', "tables of contents"),
        (f'<div id="toc"><b>Contents</b><ul>{MENU}</ul></div>', "tables of contents"),
        (f'<nav class="toc"><ul>{MENU}</ul></nav>', "tables of contents"),
        (f'<div class="related"><h3>Navigation</h3><ul>{MENU}<li>Anvils 3.1 »</ul></div>', "navigation"),
        ('<header><h1><a href="/">Acme</a></h1></header>', "headers"),
        ("<footer>© 2026 Acme and others. All rights reserved, as they always were.</footer>", "footers"),
        ('<div role="search"><h3>Quick search</h3></div>', "search forms"),
    ],
)
def test_menus_and_labels_at_the_frame_are_left_out_by_kind(frame, kind):
    assert texts(f"{frame}{BEFORE}{AFTER}") == [*TEXT, *REST]
    assert list(left_out(f"{frame}{BEFORE}{AFTER}")) == [kind]


@pytest.mark.parametrize("name", ["article", "div class=body", "div class=document"])
def test_a_paragraph_beside_an_article_is_kept_and_labels_are_not(name):
    beside = f"<ul>{MENU}</ul><h2>Notes</h2><p>The first one is the best of them.</p><p>Top</p>"
    html = f"<{name}>{BEFORE}{AFTER * 4}</{name.split()[0]}>{beside}"
    assert texts(html) == [*TEXT, *REST * 4, "Notes", "The first one is the best of them."]
    assert left_out(html) == {"text outside the main content": 9 * len("Pagenumber0") + len("Top")}


@pytest.mark.parametrize("sign", ["+", "==", "$", "->", "<*>", "C#", "..."])
def test_an_operator_that_links_to_itself_stays(sign):
    shown = sign.replace("<", "&lt;").replace(">", "&gt;")
    term = f'<dl><dt id="p"><a href="#p"><code>{shown}</code></a> (a, b)</dt><dd>Adds.</dd></dl>'
    assert texts(f"{BEFORE}{term}")[2:] == [f"{sign} (a, b)", "Adds."]
    heading = f'<h2 id="q"><a href="#q">{shown}</a></h2><p>Compares.</p>'
    assert texts(f"{BEFORE}{heading}")[2:] == [sign, "Compares."]


@pytest.mark.parametrize("sign", ["#", "¶"])
def test_a_sign_that_is_all_that_a_heading_says_is_no_permalink(sign):
    assert texts(f'{BEFORE}<h2 id="q"><a href="#q">{sign}</a></h2><p>Counts.</p>')[2:] == [sign, "Counts."]
    assert texts(f'{BEFORE}<h2 id="q">Count <a href="#q">{sign}</a></h2><p>It.</p>')[2:] == ["Count", "It."]


def test_a_heading_within_its_permalink_stays():
    heading = '<h2 id="q"><a class="header-anchor" href="#q"><span>Queries</span></a></h2><p>Ask.</p>'
    assert texts(f"{BEFORE}{heading}")[2:] == ["Queries", "Ask."]


def test_a_line_of_cross_references_is_no_table_of_contents():
    line = '<p><a href="#l">ST_Length</a>, <a href="#b">ST_Buffer</a></p>'
    assert texts(f"{BEFORE}<h2>See Also</h2>{line}")[2:] == ["See Also", "ST_Length, ST_Buffer"]
    assert texts(f"<h1>T</h1>{line}{AFTER}") == ["T", *REST]


def test_links_of_what_is_kept_are_links_and_those_of_menus_are_not():
    html = (
        f'{BEFORE}<aside>See <a href="a.html">this</a> on what it does.</aside><aside><ul>{MENU}</ul></aside>'
    )
    assert find_page_links(parse_html(html)) == {"a.html": "this"}


def write(folder, pages):
    for name, content in pages.items():
        (folder / name).write_text(content)


def stored(store, name):
    return [one.page_content for one in store.scan() if one.metadata["page"] == name]


def test_a_suspect_that_repeats_from_page_to_page_is_noise_wherever_it_stands(tmp_path):
    box = '<div class="sidebar"><p>Anvils are made by hand, by people who know how.</p></div>'
    note = '<aside><p class="title">Note</p><p>Number {0} differs from the others.</p></aside>'
    page = f"<h1>Topic {{0}}</h1><p>Text of {{0}}.</p>{box}{note}<p>More of {{0}}.</p>"
    write(tmp_path, {f"p{n}.html": page.format(n) for n in range(4)})
    store = MemoryStore()
    summary = index(store, FolderSource(tmp_path), links=())
    assert stored(store, "p2.html") == [
        "Topic 2\n\nText of 2.\n\nNote\n\nNumber 2 differs from the others.\n\nMore of 2."
    ]
    assert "made by hand" in stored(store, "p0.html")[0], "the first page keeps what all have"
    letters = len("Anvilsaremadebyhand,bypeoplewhoknowhow.")
    assert summary.left_out.kinds == {"text of most pages": 3 * letters}


def test_two_pages_do_not_tell_what_repeats(tmp_path):
    page = "<h1>Page {0}</h1><p>Text of {0}.</p><aside><p>Anvils are made by hand.</p></aside>"
    write(tmp_path, {f"p{n}.html": page.format(n) for n in range(2)})
    store = MemoryStore()
    index(store, FolderSource(tmp_path), links=())
    assert all("by hand" in one.page_content for one in store.scan())


FRAMED = f"<nav><ul>{MENU}</ul></nav><h1>Page {{0}}</h1><p>Text of {{0}}.</p><aside><ul>{MENU}</ul></aside>"
LETTERS = 9 * len("Pagenumber0")


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_left_out_is_reported_by_kind(tmp_path, monkeypatch, jobs):
    monkeypatch.setattr(workers, "PATIENCE", 0.0)
    site = tmp_path / "site"
    site.mkdir()
    pages = {f"p{n:02}.html": FRAMED.format(n) for n in range(20)}
    write(site, {**pages, "z.html": "<nav>more</nav><p>End."})
    with LinkStore.open(tmp_path / "kb") as store:
        found = index(store, FolderSource(site), links=(), jobs=jobs).left_out
    assert list(found.kinds.items()) == [("navigation", 20 * LETTERS + 4), ("sidebars", 20 * LETTERS)]
    assert (found.letters, found.pages) == (40 * LETTERS + 4, 21)
    assert found.most["p03.html"] == 2 * LETTERS
    assert "z.html" not in found.most


def test_the_command_line_says_by_kind_what_is_left_out(tmp_path):
    write(tmp_path, {f"p{n}.html": FRAMED.format(n) for n in range(20)})
    asked = ("index", str(tmp_path), "--store", str(tmp_path / "kb"), "--dry-run")
    _, told, _ = linkstore(*asked)
    assert "left out  1,980 letters of navigation, 1,980 of sidebars on 20 pages\n" in told
    _, told, _ = linkstore(*asked, "--json")
    assert json.loads(told)["left_out"]["kinds"] == {"navigation": 1980, "sidebars": 1980}


@pytest.mark.parametrize(
    ("opened", "closed"),
    [
        ("<aside>", "</aside>"),
        ("<nav><p>It is a sentence of a menu. </p>", "</nav>"),
        ("<aside><h2 id=a>A</h2><a href=#a>a</a>", "</aside>"),
        ("<div class=sidebar><a href=x>a link of some length</a><p>And a sentence.</p>", "</div>"),
        ("<header><h1>T</h1>", "</header>"),
    ],
)
@pytest.mark.parametrize("deep", [1, 50])
def test_suspects_take_time_with_their_number_and_no_more(opened, closed, deep):
    nested = opened * deep + closed * deep

    def read(length):
        return read_html_page((nested * (length // len(nested)) + "<p>text").encode())

    assert grows_with_length(read, 8_000)
