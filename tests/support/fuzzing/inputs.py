"""Inputs to readers, each told by its number: pieces of a format in disorder, over and over, and damaged."""

from __future__ import annotations

import random
from collections.abc import Callable

LONGEST = 200_000

# White space in a piece is written as an underscore.
HTML = """
    <p> </p> <b> </b> <a_href=x> </a> <a_name=y> <div> </div> <table> <tr> <td> </table> <ul> <li> </ul>
    <dl> <dt> <dd> <svg> <path/> </svg> <math> <mi> </math> <select> <option> </select> <script>
    </script> <style> </style> <title> </title> <title/> <!-- --> <![CDATA[ ]]> <h1_id=z> </h1> <h2>
    </h2> <pre> </pre> <font_size=2> </font> <form> </form> <button> </button> <template> </template>
    <object> </object> <textarea> </textarea> <base_href=/x/> <noscript> </noscript>
    <meta_charset=utf-16> <meta_charset=punycode> <main> </main> <nav> </nav> <article> </article>
    <span_id=q> </span> <br> <img_alt=i> <area_href=w> <iframe> <xmp> <plaintext> <ruby> <rt> </ruby>
    <details> <summary> &amp; &#x0; &#55555; &notit; < > " ' = word ¶
"""
MARKDOWN = """
    # ## --- === *a* **b** _c_ [x](y) [x][y] [y]:_/z ![[ [[ ]] [[N]] [[N|x]] #tag ^id %% $$ $ ``` ` |
    |-|-| > -_x 1._y <div> </div> <!-- --> \\ & &lt; ~~ ::: === "t" {#i} {:.c} [^1] [^1]: http://a/b
    word \u202e
"""
FRONT_MATTER = """
    title: aliases: tags: permalink: redirect_from: a: b "key": ? ?_ - -_ --_ |- >+ | > [ ] { } , : [[N]]
    "[[N|x]]" &a *a &b [*a,*a] << <<: !!set !!binary !!python/object:os.system !!timestamp !!int !!float
    !!bool !!null !!str !!omap !!pairs !!seq !!map !x %YAML --- ... ~ null yes .inf .nan 0x1F 1e400
    2001-13-45 2001-01-01 12:30:45 2001-01-01T25:00:00Z 1_000 # #_c " ' \\ "\\x00" "\\ud800" \t = word é
    東京 \u0085 \u2028 \u202e \ufeff
"""
WIKITEXT = """
    [[ ]] [[A]] [[A|b]] [ ] [http://a_b] http://a/b {{ }} {{a|b}} {{{ }}} {| |} |- |+ ! || | = == === *
    # : ; ---- '' ''' <ref> </ref> <ref_name=a/> <nowiki> </nowiki> <math> </math> <pre> </pre>
    <gallery> </gallery> <!-- --> <br> <div_id=x> </div> [[File:a.jpg|thumb|c]] [[Category:X]] [[../]]
    [[/s]] {{main|B}} {{cite_web|url=http://a|title=t}} __TOC__ ( , ) &nbsp; &#160; ~~~~ #REDIRECT word
"""
XML = """
    <urlset> </urlset> <url> </url> <loc> </loc> <sitemapindex> <sitemap> </sitemap> <mediawiki>
    </mediawiki> <siteinfo> </siteinfo> <namespace_key="1"> </namespace> <page> </page> <title> </title>
    <ns>0</ns> <revision> </revision> <text> </text> <redirect_title="x"/> <!-- --> <![CDATA[ ]]> <?x ?>
    <!DOCTYPE_x> &amp; &a; &#0; http://a/b a="b" word
"""
URL = """
    http:// https:// // / \\ ? # @ : . .. %2e %2E%2e %00 %zz %C3%A9 é ß 東京 xn-- [::1] 1.2.3.4 ; = & + a
    b.c index.html mailto: javascript: file: data: \u200b \u202e ex.org :80 :99999 user:p@ ~ | ^ { }
"""


def drawn(pieces: str, number: int) -> str:
    """The input of a number, made of these pieces, which are parted by spaces."""
    source = random.Random(number)
    text = source.choice((_disorder, _over_and_over, _nested, _damaged))(
        source, [_spelt(one) for one in pieces.split()]
    )
    return text[:LONGEST]


def _spelt(piece: str) -> str:
    return piece.replace("_", " ")


def _disorder(source: random.Random, pieces: list[str]) -> str:
    chosen = source.sample(pieces, source.randint(1, min(12, len(pieces))))
    gaps = source.choice((("",), ("", " "), ("", " ", "\n"), ("\n\n", "")))
    return "".join(source.choice(chosen) + source.choice(gaps) for _ in range(source.randint(1, 400)))


def _over_and_over(source: random.Random, pieces: list[str]) -> str:
    """What takes quadratic time is mostly like this."""
    unit = "".join(source.choice((*pieces, " ", "\n", "x")) for _ in range(source.randint(1, 5)))
    times = source.choice((100, 1000, LONGEST // len(unit)))
    return source.choice(("", "word ")) + unit * times + source.choice(("", "a", source.choice(pieces)))


def _nested(source: random.Random, pieces: list[str]) -> str:
    opening, closing = source.choice(pieces), source.choice(pieces)
    times = source.choice((20, 200, 2000))
    return opening * times + "x" + closing * times + _disorder(source, pieces)


def _damaged(source: random.Random, pieces: list[str]) -> str:
    text = list(_disorder(source, pieces))
    for _ in range(source.randint(1, 30)):
        at = source.randrange(len(text)) if text else 0
        change: Callable[[], str] = source.choice(
            (lambda: "", lambda: chr(source.randrange(1, 0x2FFF)), lambda: "<")
        )
        text[at : at + source.randint(0, 3)] = change()
    return "".join(text)
