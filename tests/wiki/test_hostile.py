"""Any text is wikitext, and takes time in proportion to its length."""

from __future__ import annotations

import pytest
from growing import grows_with_length
from hypothesis import example, given
from hypothesis import strategies as st
from internals import read_reference
from wikis import ENGLISH, article

PIECES = [
    *(
        "[[",
        "]]",
        "[",
        "]",
        "{{",
        "}}",
        "{",
        "}",
        "{{{",
        "}}}",
        "|",
        "||",
        "=",
        "==",
        "\n",
        "\n\n",
        " ",
        "''",
        "'''",
    ),
    *(
        "{|",
        "|}",
        "|-",
        "|+",
        "!",
        "!!",
        "*",
        "#",
        ":",
        ";",
        "----",
        "<!--",
        "-->",
        "<ref>",
        "</ref>",
        "<ref name=a/>",
    ),
    *(
        "<nowiki>",
        "</nowiki>",
        "<math>",
        "</math>",
        "<pre>",
        "</pre>",
        "<gallery>",
        "</gallery>",
        "<poem>",
        "</poem>",
    ),
    *(
        "<references>",
        "</references>",
        "<h2>",
        "</h2>",
        "<br>",
        "<span id=x>",
        "<li>",
        "File:",
        "Category:",
        "thumb|",
    ),
    *(
        "http://a.example",
        "://",
        "&amp;",
        "&",
        "%C3",
        "\x01",
        "\x02",
        "\x0e",
        "\ud800",
        "é",
        "anchor|",
        "lang|",
        "main|",
    ),
    *(
        "cite web|url=http://a.example",
        "a",
        "word",
        "__TOC__",
        "fr:",
        "#",
        "/",
        "~~~",
        "\xa0",
        "\u200e",
        "1=",
    ),
]
LITERAL = {
    "<!--",
    "<nowiki>",
    "<math>",
    "<pre>",
    "<ref>",
    "[http",
    "http://a.example",
    "cite web|url=http://a.example",
}
WIKITEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60).map("".join)


@given(WIKITEXT)
@example("=\ud800=")
@example("\r")
def test_any_text_is_read(text):
    page = article(text)
    for block in page.blocks:
        assert block.text.strip()
        assert not set("\x01\x02\x03\x04\x06\x07\x08\x0e") & set(block.text)
    for key in page.references.values():
        read_reference(key, title="", resolve=ENGLISH.resolve)


@given(WIKITEXT)
def test_each_link_that_is_found_stands_in_one_block(text):
    """With a paragraph at the end, so that none is left without one."""
    from internals import Scanner

    scanned = Scanner(ENGLISH.resolve, "Here").scan(f"{text}-->\n\nend")
    blocks = article(f"{text}-->\n\nend").blocks
    placed = [link for block in blocks for link in block.links]
    assert scanned.text.count("\x01") == len(scanned.links)
    assert scanned.text.count("\x02") == len(scanned.anchors)
    if blocks:
        assert placed == scanned.links


@given(
    st.lists(st.sampled_from([piece for piece in PIECES if piece not in LITERAL]), max_size=60).map("".join)
)
def test_nothing_but_comments_and_literal_text_hides_a_link_behind_it(text):
    """Whatever is open before it."""
    page = article(f"{text}\n\n== End ==\n[[Needle tower]]")
    assert "/wiki/Needle_tower" in [link.href for block in page.blocks for link in block.links]


REPEATED = [
    *(
        "[[",
        "[[a|",
        "[[a]] ",
        "]]",
        "{{",
        "{{a|",
        "{",
        "}",
        "{{{{",
        "}}}}",
        "{{a|{{nowrap|",
        "[",
        "[http://a.example ",
        "]",
    ),
    *(
        "<ref>",
        "<ref>a</ref>",
        "</ref>",
        "<ref name=a>",
        "<!--",
        "<!-- -->",
        "<nowiki>",
        "<math>",
        "<pre>",
        "<",
        "<a ",
    ),
    *(
        "{|\n",
        "{|\n|a\n",
        "|}\n",
        "|-\n",
        "{|\n|\n{|\n",
        "| a || b\n",
        "== a ==\n",
        "=",
        "'",
        "''",
        "*",
        "* a\n",
        ":{|\n",
    ),
    *(
        "<gallery>",
        "<gallery>a|b</gallery>",
        "<poem>a",
        "&amp;",
        "&",
        "%",
        "__",
        "__A",
        "http://",
        "://",
        "(",
        "( ,",
        " ",
    ),
    *(
        "[[File:a.jpg|thumb|",
        "[[File:a.jpg|thumb|b]]",
        "{{cite web|title=",
        "{{cite web|title=a}}",
        "{{anchor|a}}",
        "|",
    ),
    *(
        "<span id=a>",
        "<li>",
        "\n",
        "\n\n",
        "a",
        "a ",
        "<references>",
        "<ref name=a/>",
        "[[a{{b|",
        "{{a|[[",
        "=a=\n",
        "~~~",
    ),
]


BEHIND = [
    *(
        ("{|\n|", "||", ""),
        ("{|\n|", "||a", ""),
        ("{|\n|a", "\nb", ""),
        ("{{a|", "b=c|", ""),
        ("{{main|", "a|", ""),
    ),
    *(
        ("{{cite web|", "b=c|", "}}"),
        ("{{main|", "a|", "}}"),
        ("[[File:a|thumb|", "b|", "]]"),
        ("{{ubl|", "a|", "}}"),
    ),
    *(("<ref", " a", ">"), ("<ref>", "[a", "</ref>"), ("<ref>", "a/", "")),
]
TEXTS = [*(("", piece, "") for piece in REPEATED), *BEHIND]


@pytest.mark.parametrize(("before", "piece", "after"), TEXTS, ids=repr)
def test_time_grows_with_length_alone(before, piece, after):
    assert grows_with_length(lambda length: article(before + piece * (length // len(piece)) + after), 5_000)


def test_a_line_of_a_million_characters_is_read():
    page = article("word [[link]] {{nowrap|x}} " * 40_000)
    assert sum(len(block.links) for block in page.blocks) == 40_000
