"""What ``[[…]]`` names, by MediaWiki's rules."""

from __future__ import annotations

import pytest
from internals import LinkRole, Namespace, Site, SiteInfo
from wikis import ENGLISH, titles, wiki


def href(written, names=ENGLISH):
    target = names.resolve(written)
    return None if target is None else target.href


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("space needle", "/wiki/Space_needle"),
        ("  Space__needle_ ", "/wiki/Space_needle"),
        ("élan", "/wiki/%C3%89lan"),
        ("ßtraße", "/wiki/%C3%9Ftra%C3%9Fe"),
        ("AT&amp;T", "/wiki/AT&T"),
        ("Caf&eacute;", "/wiki/Caf%C3%A9"),
        ("Cafe\u0301", "/wiki/Caf%C3%A9"),
        ("Caf%C3%A9", "/wiki/Caf%C3%A9"),
        ("100% wool", "/wiki/100%25_wool"),
        ("What?", "/wiki/What%3F"),
        ("AC/DC", "/wiki/AC/DC"),
        ("C++", "/wiki/C++"),
        ("Foo (bar)", "/wiki/Foo_(bar)"),
        ("A\u200eb", "/wiki/Ab"),
        ("Needle#The deck", "/wiki/Needle#The_deck"),
        ("Needle#The_deck ", "/wiki/Needle#The_deck"),
        ("Needle#100% é", "/wiki/Needle#100%25_é"),
        ("#The deck", "#The_deck"),
        ("Alien: Covenant", "/wiki/Alien:_Covenant"),
        (":Space Needle", "/wiki/Space_Needle"),
        ("portal : art", "/wiki/Portal:Art"),
        ("PROJECT:about", "/wiki/Wikipedia:About"),
        ("WP:about", "/wiki/Wikipedia:About"),
        (":Category:towers", "/wiki/Category:Towers"),
        (":Image:needle.jpg", "/wiki/File:Needle.jpg"),
        ("Media:needle.ogg", "/wiki/File:Needle.ogg"),
        (":fr:Tour", "https://fr.wikipedia.org/wiki/Tour"),
        ("wikt:tower", "https://en.wiktionary.org/wiki/tower"),
        ("commons:Category:Towers", "https://commons.wikimedia.org/wiki/Category:Towers"),
        ("doi:10.1000/182", "https://doi.org/10.1000/182"),
        (":en:space needle", "/wiki/Space_needle"),
    ],
)
def test_a_link_leads_to_the_page_that_the_wiki_shows(written, expected):
    assert href(written) == expected


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "#",
        ":",
        "a<b",
        "a[b",
        "a{b",
        "a\x01b",
        "..",
        "./a",
        "a/../b",
        "~~~~",
        "x" * 256,
        "Talk:",
        "é" * 128,
    ],
)
def test_what_can_be_no_title_names_nothing(written):
    assert ENGLISH.resolve(written) is None


@pytest.mark.parametrize(
    ("written", "role", "title"),
    [
        ("Category:towers of Seattle", LinkRole.CATEGORY, "Towers of Seattle"),
        ("category: Towers", LinkRole.CATEGORY, "Towers"),
        ("File:a.jpg", LinkRole.FILE, "A.jpg"),
        ("Image:a.jpg", LinkRole.FILE, "A.jpg"),
        ("fr:Tour", LinkRole.LANGUAGE, ""),
        ("zh-min-nan:Tour", LinkRole.LANGUAGE, ""),
        ("Special:Random", LinkRole.NONE, "Random"),
    ],
)
def test_some_links_are_no_links_to_follow(written, role, title):
    target = ENGLISH.resolve(written)
    assert (target.role, target.title) == (role, title)


def test_namespaces_have_local_names_and_aliases():
    german = wiki(
        base="https://de.wikipedia.org/wiki/Wikipedia:Hauptseite",
        language="de",
        namespaces={
            number: Namespace(number=number, name=name)
            for number, name in {0: "", 6: "Datei", 14: "Kategorie"}.items()
        },
    )
    names = titles(german)
    assert names.resolve("Kategorie:Turm").role is LinkRole.CATEGORY
    assert names.resolve("Category:Turm").role is LinkRole.CATEGORY
    assert {names.resolve(f"{name}:a").role for name in ("Datei", "Bild", "File", "Image")} == {LinkRole.FILE}
    assert href(":Bild:a.jpg", names) == "/wiki/Datei:A.jpg"
    assert href("wikt:Turm", names) == "https://de.wiktionary.org/wiki/Turm"


def test_a_namespace_may_keep_the_case_of_titles():
    cased = wiki(first_letter=False, namespaces={0: Namespace(number=0, name="", first_letter=False)})
    assert href("eBay", titles(cased)) == "/wiki/eBay"
    assert href("project:about", titles(cased)) == "/wiki/Project:about"


def test_language_codes_are_prefixes_on_wikipedia_only():
    assert href("It: a film", titles(wiki(base="https://wiki.example/wiki/Home"))) == "/wiki/It:_a_film"
    assert href("C: drive", titles(wiki(base="https://wiki.example/wiki/Home"))) == "/wiki/C:_drive"
    assert ENGLISH.resolve("It: a film").role is LinkRole.LANGUAGE


def test_settings_add_interwiki_prefixes():
    assert (
        href("docs:Start here", titles(docs="https://docs.example/$1")) == "https://docs.example/Start_here"
    )


def test_subpages_are_relative_where_there_are_any():
    assert ENGLISH.at("User:Ann", 2)("/Notes").href == "/wiki/User:Ann/Notes"
    assert ENGLISH.at("User:Ann/a/b", 2)("../").href == "/wiki/User:Ann/a"
    assert ENGLISH.at("User:Ann/a/b", 2)("../../c").href == "/wiki/User:Ann/c"
    assert ENGLISH.at("User:Ann/a/b", 2)("../c#d").href == "/wiki/User:Ann/a/c#d"
    assert ENGLISH.at("Here", 0)("/Notes").href == "/wiki//Notes"


@pytest.mark.parametrize(
    ("base", "folder"),
    [
        ("https://en.wikipedia.org/wiki/Main_Page", "https://en.wikipedia.org/wiki/"),
        ("https://wiki.example/index.php/Main_Page", "https://wiki.example/index.php/"),
        ("https://wiki.example/w/index.php?title=Main_Page", "https://wiki.example/w/index.php/"),
        ("https://wiki.example", "https://wiki.example/"),
        ("", None),
    ],
)
def test_titles_are_put_behind_the_folder_of_the_main_page(base, folder):
    assert SiteInfo(base=base).folder == folder


@pytest.mark.parametrize(
    "title", ["Alien: Covenant", "AC/DC", "Café", "What?", "100%", 'The "x"', "A&B", "C++", "A;b"]
)
def test_a_page_and_links_to_it_have_the_same_tag(title):
    site = Site(bases=("https://en.wikipedia.org/wiki/",))
    tag = site.page_tag(ENGLISH.path(title))
    assert tag is not None
    assert tag == site.tag(ENGLISH.resolve(title).href, page="Other/page")
    assert tag == site.tag(f"https://en.wikipedia.org{ENGLISH.resolve(title).href}")
