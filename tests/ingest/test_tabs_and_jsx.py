"""Links in the tabs and boxes of MkDocs, and in components of MDX."""

from __future__ import annotations

import re

import pytest
from growing import grows_with_length
from internals import NoteIndex, read_markdown_page, render_note


def links(markdown, path="a.md"):
    return re.findall(r'<a href="([^"]*)">', render_note(markdown, path, NoteIndex((path,), {})))


@pytest.mark.parametrize(
    "markdown",
    [
        '# T\n\n=== "Tab"\n\n    See [x](y.html).\n',
        '=== "Tab"\n    See [x](y.html).\n',
        '===+ "Tab"\n\n    === "Inner"\n\n        * [x](y.html)\n\n    more\n\nend\n',
        '!!! note "Title"\n    [x](y.html)\n',
        "??? tip inline end\n\n\t[x](y.html)\n",
        '1. One\n\n    === "Tab"\n\n        [x](y.html)\n',
    ],
)
def test_links_in_tabs_are_found(markdown):
    assert links(markdown) == ["y.html"]


def test_what_is_code_in_a_tab_stays_code():
    html = render_note(
        '=== "Tab"\n\n    ```py\n    === "x"\n\n        [x](y)\n    ```\n\n        [a](b)\n\nend [c](https://d.e/)\n',
        "a.md",
        NoteIndex(("a.md",), {}),
    )
    assert re.findall('href="([^"]*)"', html) == ["https://d.e/"]
    assert html.startswith("<p>Tab</p>")
    unclosed = '=== "A"\n\n    ```\n    x\n\n[a](b.html)\n'
    assert links(unclosed) == ["b.html"]
    assert links('=== "A"\n\nText [a](b.html)\n\n    [c](d)\n') == ["b.html"]


@pytest.mark.parametrize("path", ["a.md", "a.mdx"])
@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ('<Card title="Start" href="/start">\n  Read **on**.\n</Card>\n', ["/start"]),
        (
            '<Cards>\n  <Card\n    title="S"\n    href="/s"\n  />\n\n    <Card href="/t">T</Card></Cards>\n',
            ["/s", "/t"],
        ),
        ('<Tabs>\n<Tab title="x">\n[y](z.html)\n</Tab>\n</Tabs>\n', ["z.html"]),
        ("See <Link to={'/docs'}>docs</Link> and <a href={`/x`}>x</a>.\n", ["/docs", "/x"]),
        ('<Box>\n    <a href="/in">in</a>\n\n    [more](m.html)\n</Box>\n', ["/in", "m.html"]),
        ('`<Card href="/no">` <Card href="/yes" />\n\n```jsx\n<Card href="/no" />\n```\n', ["/yes"]),
        ("<Card href={url(`x`)} onClick={() => go()} /> [a](b.html)\n", ["b.html"]),
    ],
)
def test_links_of_components_are_found(markdown, found, path):
    assert links(markdown, path) == found


def test_a_page_of_a_folder_is_read_so_too():
    found = read_markdown_page(b'# T\n\n=== "Tab"\n\n    [x](y.html)\n\n<Card title="C" href="/c" />\n')
    assert [link.href for block in found.blocks for link in block.links] == ["y.html", "/c"]
    assert [block.text for block in found.blocks] == ["T", "Tab", "x", "C"]


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        (":::tip[Good *idea*]\n\nSee [x](y.html).\n\n:::\n", "Good <em>idea</em>"),
        ("Before.\n:::note\nSee [x](y.html).\n:::\nAfter.\n", "Note"),
        ("::: warning Beware {#id}\nSee [x](y.html).\n:::\n", "Beware"),
        ("- one\n\n  :::info\n\n  See [x](y.html).\n\n  :::\n\n- two\n", "Info"),
    ],
)
def test_the_boxes_of_docusaurus_are_paragraphs_below_their_titles(markdown, title):
    html = render_note(markdown, "a.md", NoteIndex(("a.md",), {}))
    assert ":::" not in html
    assert f"<p>{title}</p>" in html
    assert html.count("<li>") == markdown.count("- ")


def test_colons_that_are_no_box_stay():
    html = render_note(":::module\n\n```\n:::tip\n:::\n```\n", "a.md", NoteIndex(("a.md",), {}))
    assert html == "<p>:::module</p>\n<pre><code>:::tip\n:::\n</code></pre>\n"


def test_ordinary_markdown_stays_as_it_is():
    assert links("    [x](y.html)\n\nA List<String> of <B>bold</B> a < b [z](z.html)\n") == ["z.html"]


@pytest.mark.parametrize(
    "piece",
    [
        "<A ",
        '<Card a="',
        "<Card a={",
        "<Card a b ",
        '=== "x"\n    ',
        "    !!! n\n",
        "```\n",
        ":::a\n",
        "`",
        "```a\n",
        "<Aa/><Bb>",
        "</Bb>",
    ],
)
def test_time_grows_with_length(piece):
    notes = NoteIndex(("a.mdx",), {})
    assert grows_with_length(lambda n: render_note(piece * (n // len(piece)), "a.mdx", notes), 4_000)
