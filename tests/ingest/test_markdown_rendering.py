"""Markdown as HTML: compared with another parser, bounded, and with the marks of notes."""

from __future__ import annotations

import random

import pytest
from growing import grows_with_length
from internals import (
    NoteIndex,
    UnreadablePageError,
    parse_page,
    read_markdown_page,
    read_page_content,
    render_markdown,
    render_note,
)
from markdown_it import MarkdownIt

NOTES = NoteIndex(("N.md",), {})
WORDS = ("one", "*two*", "**th ree**", "`co*de`", "a_b_c", "&amp;", "\\*", "<b>x</b>", "~~no~~", "1 < 2")
LINKS = (
    "[a *b*](u.md#c)",
    "[r]",
    "<http://e.org/x>",
    "![alt](i.png)",
    '[t](<a b.md> "T")',
    "[r][R]",
    "[x][y]",
)
BLOCKS = (
    "# {0}\n",
    "{0}\n{1}\n",
    "{0}\n===\n",
    "- {0}\n- {1}\n",
    "1. {0}\n\n   {1}\n2. {1}\n",
    "- {0}\n  - {1}\n",
    "> {0}\n> - {1}\n",
    "| {0} | b |\n|---|:-:|\n| {1} | d |\n",
    "```py\n{0}\n```\n",
    "    {0}\n",
    "<div>\n{0}\n</div>\n",
    "---\n",
    "{0}\\\n{1}\n",
)


@pytest.mark.parametrize("seed", range(40))
def test_another_parser_finds_the_same_texts_and_links(seed):
    source = _document(random.Random(seed))
    other = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    expected = read_page_content(parse_page(f"<main>{other}</main>")).blocks
    found = read_markdown_page(source.encode()).blocks
    assert [(one.text, one.links, one.level) for one in found] == [
        (one.text, one.links, one.level) for one in expected
    ], source


def _document(chance: random.Random) -> str:
    def line() -> str:
        return " ".join(chance.choices(WORDS, k=4) + chance.choices(LINKS, k=2))

    blocks = [chance.choice(BLOCKS).format(line(), line()) for _ in range(12)]
    return "\n".join(["First.\n", *blocks, "[r]: /ref.md 'of r'\n"])


DENSE = (
    "- a\n",
    "[a](b) ",
    "# a\n",
    "| a | b |\n|---|---|\n| c | d |\n\n",
    "**a** ",
    "`a` ",
    "#a ",
    "a\n",
    "> - ",
    "[[N]] ",
    "<!--",
)


@pytest.mark.parametrize("piece", DENSE)
def test_dense_markup_takes_time_with_its_length_and_no_more(piece):
    assert grows_with_length(
        lambda length: render_note(piece * (length // len(piece)), "x.md", NOTES), 20_000, times=8
    )


def test_a_large_page_is_read_whole():
    item = "- Fix the *reading* of `names` by [@user](https://e.org/user) in [#12](https://e.org/12), #13.\n"
    assert render_markdown(f"# Changes\n\n{item * 10_000}").count("<a ") == 20_000


def test_what_lies_too_deep_is_refused():
    with pytest.raises(UnreadablePageError, match="deep"):
        read_markdown_page(b"> " * 20_000 + b"deep [x](y.md)")
    assert read_markdown_page(b"> " * 200 + b"deep [x](y.md)").blocks[0].text == "deep x"


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("\\#a #b", '#a <a href="x-linkstore-tag:b">#b</a>'),
        ("*#a* x", "<em>#a</em> x"),
        ("&#35;a #b_c/d", '#a <a href="x-linkstore-tag:b_c/d">#b_c/d</a>'),
        ("x\n#a", 'x\n<a href="x-linkstore-tag:a">#a</a>'),
        ("%%a%% b %%c", "b %%c"),
        ("%%[[N]]%% [[N]]", '<a href="N.md">N</a>'),
        ("[[N|the *label*]]", '<a href="N.md">the <em>label</em></a>'),
        ('[n](N "T")', '<a href="N.md" title="T">n</a>'),
        ("<a@b.org>", '<a href="mailto:a@b.org">a@b.org</a>'),
        ("![a [b](c) `d`](e.png)", '<img src="e.png" alt="a b d" />'),
        ("*a*^b", "<em>a</em>^b"),
    ],
)
def test_marks_of_notes(markdown, html):
    assert render_note(markdown, "x.md", NOTES) == f"<p>{html}</p>\n"


def test_a_heading_keeps_its_own_id_and_that_of_its_block():
    assert render_note("## A B ^c\n", "x.md", NOTES) == '<h2 id="a-b"><a id="^c"></a>A B</h2>\n'


def test_a_comment_in_a_quotation_hides_its_lines():
    assert "hidden" not in render_note("> a\n> %%\n> hidden [[N]]\n> %%\n", "x.md", NOTES)


def test_a_comment_that_is_not_closed_hides_nothing():
    assert "shown" in render_note("a\n\n%%\nshown\n", "x.md", NOTES)
