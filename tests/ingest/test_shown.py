"""What a reader gets to see of a page: formulas, pictures, text without scripts; not what is hidden."""

from __future__ import annotations

import pytest
from growing import grows_with_length
from internals import read_html_page

TEX = '<annotation encoding="application/x-tex">E=mc^2</annotation>'
MATH = f"<math><semantics><mrow><mi>E</mi><mo>=</mo><mi>m</mi></mrow>{TEX}</semantics></math>"
DRAWN = '<span class="katex-html" aria-hidden="true"><span>E</span><span>mc2</span></span>'


def texts(body):
    found = read_html_page(f"<h1>T</h1><p>Before.</p>{body}".encode())
    return [block.text for block in found.blocks][2:]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"<p>So {MATH}.</p>", "So E=mc^2."),
        (f'<p>So <span><span class="k">{MATH}</span>{DRAWN}</span>.</p>', "So E=mc^2."),
        (f"<p>So <span>{DRAWN}</span>.</p>", "So Emc2."),
        (f'<p>So <span><span style="display: none">{MATH}</span><img alt="E=mc^2"></span>.', "So E=mc^2."),
        (
            "<p>So <mjx-container><mjx-math aria-hidden=true>Q</mjx-math><mjx-assistive-mml><math><mi>E</mi>"
            "</math></mjx-assistive-mml></mjx-container>.",
            "So E.",
        ),
        ('<p>So <math alttext="{\\displaystyle x^{2}}"><mi>x</mi></math>.', "So x^{2}."),
        (
            "<p>So <math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>.",
            "So (a+b)/2.",
        ),
        (
            "<p>So <math><mi>x</mi><math><mi>y</mi></math><mi>z</mi></math>.",
            "So xyz.",
        ),
        (
            "<p>So <math><msup><mi>x</mi><mn>2</mn></msup><annotation-xml>no</annotation-xml></math>.",
            "So x^2.",
        ),
    ],
)
def test_a_formula_is_read_once(body, said):
    assert texts(body) == [said]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<p>The integral <img alt="$\\int_0^1 x$"> is finite.', ["The integral $\\int_0^1 x$ is finite."]),
        (
            '<p><img alt="Pages flow from the reader to the store">',
            ["Pages flow from the reader to the store"],
        ),
        (
            '<p>See <svg role=img aria-label="Recall by depth"><text>x</text></svg>.',
            ["See Recall by depth ."],
        ),
        ("<p>See <svg><title>Flow of data</title></svg>", ["See Flow of data"]),
        ("<table><tr><td>a<td><img alt=yes><tr><td>b<td><img alt=yes></table>", ["a | yes", "b | yes"]),
        (
            '<p>A<img alt=""><img alt="icon"><img alt="img_1.png"><img alt="300x200"><img alt="[Note]">b',
            ["Ab"],
        ),
        ('<ul><li><a href="i.html#x" title=Permalink><img alt=Permalink></a></ul><p>b', ["b"]),
        ('<p>A<img alt="&lt;graphic&gt;"><img alt="(Figure 3)">b', ["Ab"]),
        ('<p>A<img alt="data:image/png;base64,AAAA"><img width=1 alt="Counter of visits">b', ["Ab"]),
        ('<p>A<img role=presentation alt="A wave"><img aria-hidden=true alt="A wave">b', ["Ab"]),
        (
            '<figure><img alt="The tower"><figcaption>Fig. 1: the tower</figcaption></figure>',
            ["Fig. 1: the tower"],
        ),
        ('<h2 id=a>Head <a href="#a"><img alt="Link to this place"></a></h2><p>x', ["Head", "x"]),
    ],
)
def test_pictures_that_say_something_are_read(body, said):
    assert texts(body) == said


def test_a_picture_labels_its_link():
    found = read_html_page(b'<h1>T</h1><p>To <a href="/y"><img alt="the other page"></a>.')
    assert [(link.href, link.label) for link in found.blocks[1].links] == [("/y", "the other page")]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<noscript><p>For readers without scripts.</p></noscript>", ["For readers without scripts."]),
        ("<noscript>Please enable JavaScript to see this page.</noscript><p>x", ["x"]),
        ("<p>x<noscript><img src=p.gif width=1 height=1 alt=visit></noscript>", ["x"]),
        ('<p><img data-src=a alt="A tower"><noscript><img src=a alt="A tower"></noscript>', ["A tower"]),
    ],
)
def test_readers_without_scripts_see_more(body, said):
    assert texts(body) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<textarea readonly>&lt;b&gt;\n  x</textarea>", ["<b>\n  x"]),
        ("<p>Copy <textarea>a b</textarea> now.", ["Copy\na b\nnow."]),
        ("<form>Comment <textarea name=c>\n</textarea></form>", ["Comment"]),
    ],
)
def test_what_a_field_is_filled_with_is_read(body, said):
    assert texts(body) == said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<div hidden><p>secret</p></div><p>x", ["x"]),
        ('<p>x <span style="color: red; DISPLAY:none">secret</span></p>', ["x"]),
        ('<div style="visibility: hidden">secret</div><p>x', ["x"]),
        ('<p><i aria-hidden="true">info_outline</i> Note this.</p>', ["Note this."]),
        ("<template><p>secret</p></template><p>x", ["x"]),
        ('<div role="tabpanel" hidden>second tab</div>', ["second tab"]),
        ("<details><summary>More</summary><div hidden>inside</div></details>", ["More", "inside"]),
        ('<div hidden="until-found">found by search</div>', ["found by search"]),
        ('<button aria-controls="z">show</button><div id="z" style="display:none">shown</div>', ["shown"]),
        ('<p><a href="#z">Show</a></p><div id="z" hidden>shown</div>', ["Show", "shown"]),
        (
            "<div onclick=\"toggle('z')\">Graph</div><div id=z style=display:none>shown</div>",
            ["Graph", "shown"],
        ),
        ('<p>Why?</p><div class="answer" style="display:none">Because.</div>', ["Why?", "Because."]),
        (
            '<div aria-hidden="true"><p>A slide that is not shown now.</p></div>',
            ["A slide that is not shown now."],
        ),
    ],
)
def test_what_is_hidden_is_left_out_unless_a_click_shows_it(body, said):
    assert texts(body) == said


def test_hidden_letters_are_counted_once_and_anchors_stay():
    found = read_html_page(b"<h1>T</h1><p>x</p><div id=a hidden><p hidden>secret</p></div><p>y</p>")
    assert found.left_out == {"hidden text": len("secret")}
    assert "a" in {anchor for block in found.blocks for anchor in block.anchors}


@pytest.mark.parametrize(
    "piece",
    [
        "<i aria-hidden=true>a</i>b",
        "<img alt='A long text'>",
        "<div hidden>a</div>",
        "<span><math><mi>x</mi></math></span>",
        "<math><title/>",
        "<img alt=i><option><h2>",
        "<noscript>a</noscript>",
    ],
)
def test_time_grows_with_length(piece):
    def read(length):
        return read_html_page(f"<p>x</p><div>{piece * (length // len(piece))}</div>".encode())

    assert grows_with_length(read, 20_000)
