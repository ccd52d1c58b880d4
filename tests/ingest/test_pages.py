"""From HTML and Markdown to blocks and chunks."""

from __future__ import annotations

import pytest
from growing import grows_with_length
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import ChunkLimits, UnreadablePageError, make_chunks, read_html_page, read_markdown_page, slug

from linkstore import LinkStore
from linkstore.extract import Page
from linkstore.ingest import FolderSource, VaultSource, index


def test_headings_of_the_same_name_take_time_with_their_number_and_no_more():
    def read(length):
        return chunks("<h2>h</h2><p>p" * (length // 14))

    assert grows_with_length(read, 6_000, times=8)


def test_a_heading_that_is_repeated_without_text_is_one():
    (found,) = chunks("<h1 id=a>array</h1><h1 id=b>array</h1><p>Functional arrays.</p>")
    assert found.anchors == ("a", "b")
    assert found.text == "array\n\nFunctional arrays."


@pytest.mark.parametrize(
    "piece",
    [
        "<h1 id=z>",
        "<h1 id=z></table>",
        "<a name=x></a><div></div>",
        "<h1><a href=x></a></h1>",
        "<h1><a href=#x></a></h1>",
        "<a href=#x name=y>a</a> <a href=#y>b</a><div></div>",
        "<section id=a><p id=b></p></section>",
    ],
)
def test_anchors_and_links_without_text_take_time_with_their_number_and_no_more(piece):
    def read(length):
        return chunks(piece * (length // len(piece)) + "</h1><p>text")

    assert grows_with_length(read, 3_000)


@pytest.mark.parametrize("below", ["", "<p>x"])
def test_a_page_with_many_headings_and_nothing_below_them_is_divided_as_a_list(below):
    found = chunks("<h1>Names</h1>" + "".join(f"<h2 id=n{n}>name {n}</h2>{below}" for n in range(2000)))
    assert len(found) < 120
    assert {chunk.headings for chunk in found} == {("Names",)}
    (owner,) = (chunk for chunk in found if "n1234" in chunk.anchors)
    assert "name 1234\n" in owner.text
    assert "n1999" in found[-1].anchors


def chunks(html, limits=None, url="page.html"):
    content = read_html_page(html.encode())
    page = Page(url=url, title=content.title)
    return make_chunks(page, content.blocks, *([limits] if limits else []))


def texts(html):
    return [block.text for block in read_html_page(html.encode()).blocks]


def test_main_content_is_found_and_noise_left_out():
    html = """<title>T</title><body><nav>menu</nav><header>banner</header>{}<footer>foot</footer></body>"""
    for content in (
        "<main><p>text</p></main>",
        "<div role=main><p>text</p></div>",
        "<article><p>text</p></article>",
        "<div class=document><div class=body><p>text</p></div><div class=sphinxsidebar>s</div></div>",
        "<p>text</p><div role=navigation>r</div><script>var x</script><style>p{}</style>",
    ):
        assert texts(html.format(content)) == ["text"]


def test_inline_text_joins_and_blocks_do_not():
    assert texts("<p>a<b>b</b> <i>c</i>\n d<br>e</p>f<div>g</div><span>h</span>i") == [
        "ab c d\ne",
        "f",
        "g",
        "hi",
    ]


def test_lists_definitions_tables_and_code_stay_readable():
    html = """<main><ul><li>one<li><p>two</p></ul><dl><dt>term</dt><dd>meaning</dd></dl>
    <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><p>2</p></td></tr></table>
    <pre>def f():\n    return <b>1</b>\n</pre></main>"""
    assert texts(html) == ["- one", "- two", "term", "meaning", "a | b", "1 | 2", "def f():\n    return 1"]
    text = chunks(html)[0].text
    assert "- one\n- two" in text
    assert "term\nmeaning" in text
    assert "a | b\n1 | 2" in text


def test_a_table_for_layout_is_read_as_blocks():
    assert texts("<table><tr><td><h2>Head</h2><p>a</p></td><td>b</td></tr></table>") == ["Head", "a", "b"]


def test_sections_follow_nested_headings():
    found = chunks("<h1>T</h1><p>t</p><h2>A</h2><p>a</p><h4>B</h4><p>b</p><h2>C</h2><p>c</p>")
    assert [chunk.headings for chunk in found] == [("T",), ("T", "A"), ("T", "A", "B"), ("T", "C")]
    assert found[2].text == "T > A > B\n\nb"
    assert [chunk.parent for chunk in found] == [None, "", found[1].section, ""]
    assert [chunk.index for chunk in found] == [0, 1, 2, 3]
    assert [chunk.next for chunk in found] == [*(chunk.section for chunk in found[1:]), None]
    assert [chunk.previous for chunk in found] == [None, *(chunk.section for chunk in found[:-1])]
    assert len({chunk.section for chunk in found}) == 4


def test_the_title_of_a_box_heads_no_section():
    box = '<div class="note"><h3 class="title">Note</h3><p>Mind this.</p></div>'
    found = chunks(f"<h1>T</h1><h2 id=a>A</h2>{box}<p>a</p>")
    assert found[-1].headings == ("T", "A")
    assert found[-1].text.endswith("Note\n\nMind this.\n\na")
    headed = chunks('<h1>T</h1><p>t</p><div class="note"><p>b</p><h2>A</h2><p>a</p></div>')
    assert [chunk.headings for chunk in headed] == [("T",), ("T", "A")]


def test_what_a_heading_without_text_owns_goes_to_its_first_subsection():
    found = chunks("<h1 id=t>T</h1><p>t</p><h2 id=a>A</h2><h3 id=b>B</h3><p>b</p><h2 id=c>C</h2>")
    assert [chunk.anchors for chunk in found] == [("t",), ("a", "b", "c")]
    assert [chunk.fragment for chunk in found] == [None, "b"]
    assert found[1].text == "T > A > B\n\nb\nC"


def test_a_heading_without_text_is_a_line_of_the_next_section():
    found = chunks("<h1 id=t>T</h1><p>t</p><h2 id=a>A</h2><h2 id=b>B</h2><p>b</p>")
    assert [(chunk.text, chunk.anchors) for chunk in found] == [
        ("T\n\nt", ("t",)),
        ("T > B\n\nA\n\nb", ("b", "a")),
    ]


def test_the_entries_of_a_reference_are_named():
    entry = (
        '<div class="refentry"><a name="{0}"></a><h2>Name</h2><p>{0} \u2014 {1}.</p><h2>Description</h2>'
        "<p>Returns {1}.</p></div>"
    )
    page = "".join(entry.format(*one) for one in (("ST_Area", "the area"), ("ST_Length", "the length")))
    found = chunks(f"<h1>Manual</h1>{page}<h1>End</h1><p>e</p>")
    assert [(chunk.text, chunk.fragment) for chunk in found] == [
        ("Manual > ST_Area > Name\n\nST_Area \u2014 the area.", None),
        ("Manual > ST_Area > Description\n\nReturns the area.", None),
        ("Manual > ST_Length > Name\n\nST_Length \u2014 the length.", "ST_Length"),
        ("Manual > ST_Length > Description\n\nReturns the length.", None),
        ("Manual > End\n\ne", None),
    ]
    assert [chunk.anchors for chunk in found] == [("ST_Area",), (), ("ST_Length",), (), ()]


def test_what_goes_on_to_define_a_term_says_which():
    html = f"<h1>T</h1><p>t</p><h2>F</h2><dl><dt id=f>f(x)</dt><dd>{'<p>Told of it. </p>' * 40}</dd></dl>"
    found = chunks(html, ChunkLimits(longest=200, shortest=50))
    assert len(found) > 2
    assert all(chunk.text.startswith("T > F\n\nf(x)\n") for chunk in found[1:])


@pytest.mark.parametrize(
    ("heading", "fragment"),
    [
        ('<h2 id="x">H</h2>', "x"),
        ('<section id="x"><h2>H</h2>', "x"),
        ('<a name="x"></a><h2>H</h2>', "x"),
        ('<h2><a name="x">H</a></h2>', "x"),
        (
            '<span id="w"></span><section id="x"><span id="y"></span>'
            '<h2>H<a class="headerlink" href="#x">¶</a></h2>',
            "x",
        ),
        ('<a name="x"><h2>H</h2></a>', "x"),
        ("<h2>H</h2>", None),
    ],
)
def test_anchors_before_a_heading_lead_to_its_section(heading, fragment):
    found = chunks(f"<h1>T</h1><p>before</p>{heading}<p>text</p>")
    assert found[1].fragment == fragment
    assert found[1].headings == ("T", "H")
    assert (fragment is None) == (found[1].anchors == ())
    assert found[0].anchors == ()


def test_every_anchor_is_owned_once_and_duplicates_by_the_first_place_too():
    found = chunks(
        "<h1 id=a>T</h1><p id=b>x <a name=c id=d>y</a></p><h2 id=e>S</h2><p><i id=a>z</i></p><i id=end></i>"
    )
    assert [chunk.anchors for chunk in found] == [("a", "b", "d", "c"), ("e", "a", "end")]


def test_hyperlinks_keep_href_and_anchor_text_without_noise():
    html = """<main><h1>T <a class="headerlink" href="#t">¶</a></h1>
    <h2><a class="toc-backref" href="#id1">S</a></h2>
    <p>See <a href="a.html#x">the <b>A</b>\npage</a> <a href="b.html"><img src=i></a>
    <a role="doc-backlink" href="#id2">[1]</a></p><nav><a href="n.html">n</a></nav></main>"""
    found = [(link.href, link.label) for chunk in chunks(html) for link in chunk.hyperlinks]
    assert found == [("a.html#x", "the A page"), ("b.html", "")]


def test_a_term_stays_with_what_defines_it():
    terms = "".join(f"<dt><a id=t{n}>term {n}</a></dt><dd>{'said of it ' * 9}</dd>" for n in range(4))
    found = chunks(f"<h1>Terms</h1><dl>{terms}</dl>", ChunkLimits(longest=150, shortest=120))
    for n in range(4):
        owner = next(chunk for chunk in found if f"t{n}" in chunk.anchors)
        assert f"term {n}\nsaid of it" in owner.text
    assert all(len(chunk.text) <= 150 + len("Terms\n\n") for chunk in found)


def test_a_long_section_is_divided_where_its_anchors_stand():
    questions = "".join(
        f'<a name="q{n}"></a><p><b>({n}) Question?</b></p><p>{"Answer. " * 40}<a href="a{n}.html">{n}</a></p>'
        for n in range(1, 9)
    )
    found = chunks(f"<h1>FAQ</h1><p>Intro</p>{questions}")
    by_anchor = {chunk.anchors: [link.href for link in chunk.hyperlinks] for chunk in found}
    assert by_anchor == {(f"q{n}",): [f"a{n}.html"] for n in range(1, 9)}
    assert [chunk.fragment for chunk in found[1:]] == [f"q{n}" for n in range(2, 9)]
    assert all(chunk.text.startswith("FAQ\n\n") for chunk in found)


def test_no_chunk_is_longer_than_allowed_and_no_word_is_lost():
    words = [f"word{n}" for n in range(2000)]
    limits = ChunkLimits(longest=500, shortest=50)
    found = chunks(f"<h1>T</h1><p>{' '.join(words)}</p><p>end</p>", limits)
    bodies = [chunk.text.removeprefix("T\n\n") for chunk in found]
    assert max(map(len, bodies)) <= 500
    assert " ".join(bodies).split() == [*words, "end"]
    assert len({chunk.section for chunk in found}) == len(found)


@pytest.mark.parametrize("piece", ["東京都は日本の首都である。", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo", "a "])
def test_a_long_text_takes_time_with_its_length_with_and_without_spaces(piece):
    def read(length):
        return chunks(f"<p>{piece * (length // len(piece))}")

    assert grows_with_length(read, 20_000)


def test_a_long_text_without_spaces_is_divided_at_sentences_or_where_it_must_be():
    limits = ChunkLimits(longest=100, shortest=10)
    sentence = "東京都は日本の首都である。"
    found = [chunk.text for chunk in chunks(f"<p>{sentence * 40}</p>", limits)]
    assert "".join(found) == sentence * 40
    assert max(map(len, found)) <= 100
    assert all(text.endswith("。") for text in found)
    found = [chunk.text for chunk in chunks(f"<p>{'x' * 250} y</p>", limits)]
    assert "".join("".join(found).split()) == "x" * 250 + "y"
    assert max(map(len, found)) <= 100


def test_links_of_a_long_block_go_where_their_words_are():
    filler = "filler " * 100
    limits = ChunkLimits(longest=300, shortest=50)
    found = chunks(f"<p>{filler}<a href=a>alpha</a> {filler}<a href=b>omega</a></p>", limits)
    for href, label in (("a", "alpha"), ("b", "omega")):
        owner = next(chunk for chunk in found if any(link.href == href for link in chunk.hyperlinks))
        assert label in owner.text


def test_a_short_text_before_the_first_heading_belongs_below_it():
    assert [chunk.text for chunk in chunks("<p>Skip me not.</p><h1>T</h1><p>x</p>")] == [
        "T\n\nSkip me not.\n\nx"
    ]
    assert len(chunks(f"<p>{'Preface. ' * 40}</p><h1>T</h1><p>x</p>")) == 2


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>Intro - Docs</title><h1>Docs</h1><h1>Intro</h1><p>x", "Intro"),
        ("<title>Intro</title><h2>Sub</h2><p>x", "Intro"),
        ("<h2>Sub</h2><p>x", ""),
        ("<p>x</p><h1>Part</h1><p>y</p><h1>Other part</h1><p>z", ""),
        ("<p>x", ""),
    ],
)
def test_the_title_is_the_main_heading(html, title):
    assert read_html_page(html.encode()).title == title


def test_encodings_are_honoured():
    text = "<p>naïve ü</p>"
    for content in (
        text.encode(),
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        b'<meta charset="windows-1252">' + text.encode("cp1252"),
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">' + text.encode("cp1252"),
    ):
        assert read_html_page(content).blocks[0].text == "naïve ü"
    assert read_html_page(text.encode("cp1252"), encoding="cp1252").blocks[0].text == "naïve ü"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"<meta charset=utf-8>" + "<p>Привет, мир</p>".encode("koi8-r"), "bad encoding"),
        (b'<meta charset="utf-8"><p>\xff\xfe\xfa</p>', "bad encoding"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "binary"),
        (b"<html><head><title>T</title></head><body></body></html>", "no text"),
        (b"<html><body><nav>only</nav></body></html>", "no text"),
        (b"<html><frameset><frame src=a.html></frameset></html>", "no body"),
    ],
)
def test_a_broken_page_is_refused_with_its_reason(content, reason):
    with pytest.raises(UnreadablePageError, match=reason):
        read_html_page(content)


def test_elements_nested_too_deep_are_still_read():
    assert "deep" in " ".join(texts("<div>" * 500 + "deep" + "</div>" * 500))
    assert "deep" in " ".join(texts("<b>" * 500 + "deep"))
    with pytest.raises(UnreadablePageError, match="deep in each other: more than 512"):
        texts("<div>" * 3000 + "deep")


def test_markdown_headings_get_the_ids_github_gives_them():
    content = read_markdown_page(
        b"# A `b` c!\n\ntext\n\n## Same\n\nx\n\n## Same\n\ny\n\n## Own {#mine}\n\nz\n"
    )
    found = [(block.text, block.fragment) for block in content.blocks if block.level]
    assert found == [("A b c!", "a-b-c"), ("Same", "same"), ("Same", "same-1"), ("Own", "mine")]
    assert slug("Über uns: 2-3_x") == "über-uns-2-3_x"
    assert slug("हिन्दी (भाषा)।") == "हिन्दी-भाषा"
    assert slug("İstanbul") == "i\u0307stanbul"


def test_markdown_keeps_links_tables_and_code():
    source = (
        b"---\ntitle: 'Named'\n---\n# H\n\nSee [a *b*](x.md#y).\n\n"
        b"| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n  code\n```\n"
    )
    content = read_markdown_page(source)
    assert content.title == "H"
    assert [block.text for block in content.blocks] == ["H", "See a b.", "a | b", "1 | 2", "  code"]
    assert content.blocks[1].links[0].href == "x.md#y"
    assert content.blocks[1].links[0].label == "a b"


@settings(max_examples=150)
@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_give_chunks_or_a_reason(content):
    for read in (read_html_page, read_markdown_page):
        try:
            found = read(content)
        except UnreadablePageError:
            continue
        made = make_chunks(Page(url="p.html", title=found.title), found.blocks)
        assert made
        assert all(chunk.text for chunk in made)


FRONT = (
    "---\ntype: guide\nstatus: deprecated\naliases: [Old]\nadded: 2026-01-02\n---\n# A\n\nText of a page.\n"
)


@pytest.mark.parametrize("source", [FolderSource, VaultSource])
def test_front_matter_is_metadata_whatever_the_source_is_called(tmp_path, source):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.md").write_text(FRONT)
    (tmp_path / "site" / "b.md").write_text(FRONT.replace("deprecated", "current"))
    with LinkStore.open(":memory:") as store:
        index(store, source(tmp_path / "site"))
        hits = store.search("text of a page", filter={"status": {"$ne": "deprecated"}, "type": "guide"})
        (document,) = hits.documents()
    assert document.metadata["page"] == "b.md"
    assert (document.metadata["added"], document.metadata["aliases"]) == ("2026-01-02", ["Old"])


def test_front_matter_that_cannot_be_read_is_reported_and_the_page_is_stored(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.md").write_text("---\n[a, b]\n---\n# A\n\nText.\n")
    with LinkStore.open(":memory:") as store:
        summary = index(store, FolderSource(tmp_path / "site"))
    assert (summary.pages.added, list(summary.skipped)) == (1, ["a.md (front matter)"])
