"""Wikitext becomes text that reads well, and the links in it."""

from __future__ import annotations

import pytest
from internals import REFERENCE, read_reference
from wikis import article, lines, links


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[Space Needle]]", ("/wiki/Space_Needle", "Space Needle")),
        ("[[Space Needle|the tower]]", ("/wiki/Space_Needle", "the tower")),
        ("[[Space Needle|the ''tall'' tower]]", ("/wiki/Space_Needle", "the tall tower")),
        ("[[dog]]s bark", ("/wiki/Dog", "dogs")),
        ("[[dog|hound]]s bark", ("/wiki/Dog", "hounds")),
        ("[[Needle (tower)|]] here", ("/wiki/Needle_(tower)", "Needle")),
        ("[[Needle#Deck|deck]]", ("/wiki/Needle#Deck", "deck")),
        ("[[A|b|c]]", ("/wiki/A", "b|c")),
        ("[[A|{{nowrap|b c}}]]", ("/wiki/A", "b c")),
        ("[[A|{{lang|fr|b}} c]]d", ("/wiki/A", "b cd")),
        ("[[:Category:Towers]]", ("/wiki/Category:Towers", "Category:Towers")),
        ("[https://a.example/x?a=1&amp;b=2 a ''place'']", ("https://a.example/x?a=1&b=2", "a place")),
        ("[//a.example/x place]", ("//a.example/x", "place")),
        ("see https://a.example/x.", ("https://a.example/x", "")),
        ("{{main|History of towers}}", ("/wiki/History_of_towers", "History of towers")),
        ("{{see also|Towers#Steel}}", ("/wiki/Towers#Steel", "Towers § Steel")),
        ("{{url|a.example|home}}", ("https://a.example", "home")),
        ("* {{sortname|Ann|Lee}}", ("/wiki/Ann_Lee", "Ann Lee")),
    ],
)
def test_a_link_has_an_address_and_a_label(text, expected):
    assert links(f"{text} word") == [expected]


def test_links_stand_in_order_and_with_their_block():
    page = article("One [[a]] two [[b]].\n\n== Three ==\n[[c]]\n* [[d]]\n* [https://e.example e]")
    assert [[link.href for link in block.links] for block in page.blocks] == [
        ["/wiki/A", "/wiki/B"],
        [],
        ["/wiki/C"],
        ["/wiki/D"],
        ["https://e.example"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'''Bold''' and ''italic'' &amp; &ndash; dash", ["Bold and italic & \u2013 dash"]),
        ("one\ntwo\n\nthree", ["one two", "three"]),
        ("a<br>b<br />c", ["a\nb\nc"]),
        ("x<ref>note</ref> y<ref name=a /> z", ["x y z"]),
        ("a <!-- [[b]] --> c", ["a c"]),
        ("* one\n<!-- gone -->\n* two", ["- one", "- two"]),
        ("<nowiki>[[a]] ''b'' * c</nowiki>", ["[[a]] ''b'' * c"]),
        ("<math>f''(x) | y</math>", ["f''(x) | y"]),
        ("<pre>\n a\n  b</pre>", [" a\n  b"]),
        (
            "<syntaxhighlight lang=c>if (a &amp;&amp; b)\n  [[c]];</syntaxhighlight>",
            ["if (a &amp;&amp; b)\n  [[c]];"],
        ),
        ("<poem>\none\ntwo\n</poem>", ["one\ntwo"]),
        ("H<sub>2</sub>O, 5 <small>km</small>", ["H2O, 5 km"]),
        ("a < b and <unknown>", ["a < b and <unknown>"]),
        ("__NOTOC__\na __init__", ["a __init__"]),
        ("# one\n## two\n: three\n; four", ["- one", "- two", "three", "four"]),
        ("a\n----\nb", ["a", "b"]),
        ("== One ==\n=== ''Two'' ===\n= Three =", ["==One", "===Two", "=Three"]),
        ("== a = b ==\nx == y", ["==a = b", "x == y"]),
        ("<h2>One</h2>two", ["==One", "two"]),
        ("{{Infobox|name=X|at=[[Y]]}}\nText", ["Text"]),
        (
            "X ({{IPAc-en|x}}; {{unknown|y}}, born 1950) {{citation needed|date=May 2014}}.",
            ["X (born 1950)."],
        ),
        ("Sum {{#expr:1+1}} , {{cite web}}.", ["Sum,."]),
        ("{{convert|5|km|mi}} or {{convert|5|to|6|ft}}", ["5 km or 5 to 6 ft"]),
        ("{{lang|fr|tour}}, {{lang-de|Turm}}, {{nowrap|a b}}", ["tour, Turm, a b"]),
        ("{{quote|One.\n\nTwo.}}", ["One.", "Two."]),
        ("{{plainlist|\n* one\n* two\n}}", ["- one", "- two"]),
        ("{{ubl|one|two}}", ["- one", "- two"]),
        ("Born {{birth date|1950|1|2}}; {{frac|1|2}}; {{circa|1900}}", ["Born 1950-01-02; 1/2; c. 1900"]),
        ("{{ISBN|0-13-110362-8}} {{doi|10.1000/182}}", ["ISBN 0-13-110362-8 doi:10.1000/182"]),
        ("{{{1|default}}} {{formatnum:1234}} {{PAGENAME}}", ["default 1234 Here"]),
        ("[[fr:Ici]]text[[Category:X]]", ["text"]),
        ("[[File:a.jpg|thumb|left|200px|alt=b|The [[deck]]]]Text", ["The deck", "Text"]),
        ("A [[File:flag.svg|20px|link=]] flag", ["A flag"]),
        ("<gallery>\nFile:a.jpg|One [[x]]\nb.jpg|alt=c|Two\n</gallery>", ["One x", "Two"]),
        ("<timeline>bars</timeline>text", ["text"]),
        ("See [http://a.example] now", ["See now"]),
    ],
)
def test_text_reads_as_on_the_page(text, expected):
    assert lines(text) == expected


def test_tables_become_a_line_for_each_row():
    table = """Before
{| class="wikitable" id="heights"
|+ Heights of [[tower]]s
! Name !! style="x" | Height
|-
| {{flag icon|US}} || [[Space Needle|Needle]] || 184 m || &nbsp;
|- style="y"
| colspan=2 | Two
lines
* three
|
{|
| inner
|}
|}
After [[all]]"""
    assert lines(table) == [
        "Before",
        "Heights of towers",
        "Name | Height",
        "Needle | 184 m",
        "Two lines three",
        "inner",
        "After all",
    ]
    blocks = article(table).blocks
    assert [link.href for block in blocks for link in block.links] == [
        "/wiki/Tower",
        "/wiki/Space_Needle",
        "/wiki/All",
    ]
    assert blocks[1].anchors == ("heights",)


def test_a_table_that_is_never_closed_ends_at_the_next_heading():
    assert lines("{|\n| a\n== B ==\nc | d") == ["a", "==B", "c | d"]


def test_headings_have_the_anchors_that_mediawiki_gives_them():
    page = article("== A b ==\nx\n== a B ==\nx\n== A b ==\nx\n== Ä (c) ==\nx\n== ''D'' [[e|f]] ==\nx")
    assert [block.anchors for block in page.blocks if block.level] == [
        ("A_b",),
        ("a_B_2",),
        ("A_b_3",),
        ("Ä_(c)", ".C3.84_.28c.29"),
        ("D_f",),
    ]
    assert [block.fragment for block in page.blocks if block.level][3] == "Ä_(c)"


def test_anchors_of_templates_and_elements_belong_to_the_text_behind_them():
    page = article(
        '{{anchor|one|two}}\nText\n\nMore <span id="three">here</span>\n== {{Anchor|four}} Five =='
    )
    assert [block.anchors for block in page.blocks] == [("one", "two"), ("three",), ("Five", "four")]
    assert [block.starts for block in page.blocks[:2]] == [True, False]


def test_a_parameter_keeps_the_references_in_its_name():
    assert links("{{{<ref name=a/>|b [[C]]|<ref name=d/>}}} [[E]]") == [("/wiki/C", "C"), ("/wiki/E", "E")]
    assert links("{{{<ref name=a/>}}} [[Needle tower]]") == [("/wiki/Needle_tower", "Needle tower")]


def test_categories_are_named_once_and_without_sort_keys():
    assert article("[[Category:b]][[Category:A|key]] [[category:B]] x").categories == {"B": None, "A": None}


def test_references_are_kept_aside_and_stand_where_they_are_cited():
    page = article(
        "One<ref name=x>{{cite book|title=T}}</ref>.\n\nTwo<ref name=x/><ref>[[Ann]] wrote</ref>.\n"
        "<references><ref name=y>late</ref></references>\n\nThree<ref name=y/>."
    )
    cited = [
        [link.href.removeprefix(REFERENCE) for link in block.links if link.href.startswith(REFERENCE)]
        for block in page.blocks
    ]
    assert cited[0] == ["x"]
    assert cited[1][0] == "x"
    assert page.references[cited[1][1]] == "[[Ann]] wrote"
    assert cited[2] == ["y"]
    assert page.references["y"] == "late"
    assert links("Two<ref>[[Ann]] wrote</ref>") == [("/wiki/Ann", "Ann")]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            "{{cite journal|last=Lee|first=Ann|last2=Ray|title=On ''towers''"
            "|journal=Heights|year=2009|doi=10.1000/182}}",
            'Lee, Ann; Ray (2009). "On towers". Heights. doi:10.1000/182',
        ),
        (
            "{{Cite book|author=A. Lee|title=T|isbn=0131103628|date=May 1988}}",
            'A. Lee (1988). "T". ISBN 0131103628',
        ),
        ("{{Literatur|Autor=A|Titel=T|DOI=10.1000/1|PMID=12}}", 'A "T". doi:10.1000/1 PMID 12'),
        ("Lee, ''Towers'', {{arXiv|1706.03762}}", "Lee, Towers, arXiv:1706.03762"),
    ],
)
def test_a_citation_reads_as_a_reference(template, expected):
    assert read_reference(template, title="", resolve=lambda _: None).text == expected


def test_a_citation_links_to_its_url():
    reference = read_reference(
        "{{cite web|url=https://a.example/x|title=T}}, [https://b.example B]",
        title="",
        resolve=lambda _: None,
    )
    assert [(link.href, link.label) for link in reference.links] == [
        ("https://a.example/x", "T"),
        ("https://b.example", "B"),
    ]


@pytest.mark.parametrize(
    ("text", "shown", "found"),
    [
        ("[[a", "[[a", []),
        ("[[a|b {{c", "[[a|b {{c", []),
        ("a]] b}} c|d", "a]] b}} c|d", []),
        ("{{a|[[b]] c", "{{a|b c", ["/wiki/B"]),
        ("[[a|b [[c]] d]]", "[[a|b c d]]", ["/wiki/C"]),
        ("[[a{{b}}|c]]", "c", ["/wiki/A"]),
        ("<ref>a [[b]] never closed", "a b never closed", ["/wiki/B"]),
        ("<nowiki>a [[b]]", "<nowiki>a b", ["/wiki/B"]),
        ("{{x|[[a}} b [[c]]", "b c", ["/wiki/C"]),
        ("[[[a]]]", "[a]", ["/wiki/A"]),
        ("<!-- a", None, []),
        ("[[http://a.example b]]", "[b]", ["http://a.example"]),
    ],
)
def test_what_is_not_closed_is_text(text, shown, found):
    assert lines(text) == ([shown] if shown else [])
    assert [href for href, _ in links(f"{text}\n\nend")] == found
