"""A dump becomes documents with links: streamed, resumable, and kept as far as it can be read."""

from __future__ import annotations

import bz2
import tracemalloc

import pytest
from internals import (
    MOST_WITH_SECTIONS,
    Alias,
    BadInput,
    DumpArticles,
    DumpCutShortError,
    Link,
    RedirectTable,
    find_redirect_target,
    get_links,
    is_redirect,
    read_pages,
    read_siteinfo,
)
from memory_store import MemoryStore
from wikis import BASE, HEAD, Written, dump_text, write_dump

from linkstore.errors import LinkStoreError, SourceNotFoundError
from linkstore.ingest import WikiDumpSource, index

NEEDLE = Written(
    "Space Needle",
    "The '''Space Needle''' is a [[tower]] in [[Seattle]]. "
    + "It was built for a fair, and people come to look down at the city. " * 3
    + "\n\n== Deck ==\nUp there is [[Loupe (bar)|a bar]]."
    "<ref>{{cite journal|title=On observation towers|doi=10.1000/182}}</ref>\n\n[[Category:Towers]]",
)
LOUPE = Written("Loupe (bar)", "A bar on the [[Space Needle#Deck|deck]] of the [[Needle, Seattle|Needle]].")
ALIAS = Written("Needle, Seattle", "#REDIRECT [[Space Needle]]", redirect="Space Needle")
DECK = Written("Needle deck", "#REDIRECT [[Space Needle#Deck]]", redirect="Space Needle")
TALK = Written("Talk:Space Needle", "Is it tall?", namespace=1)


@pytest.fixture
def store():
    return MemoryStore()


def offered(path, **options):
    """What a dump offers: pages by URL, and what is bad."""
    found = list(DumpArticles(WikiDumpSource(path, **options)).pages({}))
    pages = {page.url: page for page in found if not isinstance(page, BadInput)}
    return pages, [bad for bad in found if isinstance(bad, BadInput)]


def stored(store):
    return {document.id: document for document in store.scan()}


def tags(document, kind, direction):
    return {link.tag for link in get_links(document) if (link.kind, link.direction) == (kind, direction)}


@pytest.mark.parametrize("name", ["dump.xml", "dump.xml.bz2"])
def test_articles_become_documents_with_links(store, tmp_path, name):
    path = write_dump(tmp_path / name, NEEDLE, ALIAS, DECK, LOUPE, TALK)
    summary = index(store, WikiDumpSource(path))
    documents = stored(store)

    assert summary.pages.added == 2
    assert not summary.skipped
    assert set(documents) == {"Space_Needle", "Space_Needle#Deck", "Loupe_(bar)"}
    first, deck, bar = (documents[name] for name in ("Space_Needle", "Space_Needle#Deck", "Loupe_(bar)"))
    assert first.page_content.startswith("Space Needle\n\nThe Space Needle is a tower in Seattle. It was")
    assert deck.page_content.startswith("Space Needle > Deck\n\nUp there is a bar.")
    assert tags(first, "hyperlink", "out") == {"/Tower", "/Seattle"}
    assert tags(first, "hyperlink", "in") == {"/Space_Needle", "/Needle,_Seattle"}
    assert tags(deck, "hyperlink", "out") == {"/Loupe_(bar)"}
    assert tags(deck, "hyperlink", "in") == {"/Space_Needle#Deck", "/Needle,_Seattle#Deck", "/Needle_deck"}
    assert tags(bar, "hyperlink", "out") == {"/Space_Needle#Deck", "/Needle,_Seattle"}
    assert Link.bidir(kind="category", tag="Towers") in get_links(first)
    assert tags(deck, "citation", "out") == {"doi:10.1000/182"}
    assert first.metadata["aliases"] == ["Needle deck", "Needle, Seattle"]
    assert "aliases" not in bar.metadata


def test_documents_meet_those_of_a_mirror_of_the_same_wiki(store, tmp_path):
    source = DumpArticles(WikiDumpSource(write_dump(tmp_path / "dump.xml", NEEDLE)))
    assert source.site.page_tag("https://en.wikipedia.org/wiki/Space_Needle") == "/Space_Needle"
    assert source.site.bases == ("https://en.wikipedia.org/wiki/",)


def test_a_second_run_parses_nothing_and_a_change_only_its_page(store, tmp_path):
    path = tmp_path / "dump.xml"
    index(store, WikiDumpSource(write_dump(path, NEEDLE, LOUPE)))
    assert index(store, WikiDumpSource(path)).pages.unchanged == 2
    assert len(store.puts) == 1

    changed = Written("Loupe (bar)", "It closed.")
    summary = index(store, WikiDumpSource(write_dump(path, NEEDLE, changed)))
    assert (summary.pages.updated, summary.pages.unchanged) == (1, 1)
    summary = index(store, WikiDumpSource(write_dump(path, NEEDLE, changed, ALIAS)))
    assert (summary.pages.updated, summary.pages.unchanged) == (1, 1)
    summary = index(store, WikiDumpSource(write_dump(path, NEEDLE)))
    assert (summary.pages.removed, summary.pages.updated) == (1, 1)


def test_a_change_of_settings_reads_all_again(store, tmp_path):
    path = write_dump(tmp_path / "dump.xml", NEEDLE, LOUPE)
    index(store, WikiDumpSource(path))
    assert index(store, WikiDumpSource(path, interwiki={"x": "https://x.example/$1"})).pages.updated == 2
    assert index(store, WikiDumpSource(path, cite=False), links=("hyperlink",)).pages.updated == 2
    assert not any(tags(document, "citation", "out") for document in stored(store).values())


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(store, tmp_path):
    path = write_dump(tmp_path / "dump.xml", *(Written(f"P{n}", f"Text {n}") for n in range(20)))

    def interrupt(done, total, page):
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(store, WikiDumpSource(path), progress=interrupt)
    # Pages wait for each other to be embedded together, so the first run may have written none or some.
    before = len(store.stored)
    summary = index(store, WikiDumpSource(path))
    assert (summary.pages.unchanged, summary.pages.added) == (before, 20 - before)


def test_namespaces_are_chosen(store, tmp_path):
    category = Written("Category:Towers", "Tall.\n[[Category:Buildings]]", namespace=14)
    path = write_dump(tmp_path / "dump.xml", NEEDLE, TALK, category)
    index(store, WikiDumpSource(path, namespaces=(1, 14)))
    documents = stored(store)
    assert set(documents) == {"Talk%3ASpace_Needle", "Category%3ATowers"}
    assert tags(documents["Category%3ATowers"], "hyperlink", "in") == {"/Category:Towers"}
    assert tags(documents["Category%3ATowers"], "category", "bidir") == {"Towers", "Buildings"}


def test_progress_knows_how_many_articles_there_are(store, tmp_path):
    seen = []
    path = write_dump(tmp_path / "dump.xml", NEEDLE, ALIAS, TALK, LOUPE)
    index(store, WikiDumpSource(path), progress=lambda done, total, page: seen.append((done, total, page)))
    assert seen == [(1, 2, "Space_Needle"), (2, 2, "Loupe_(bar)")]


def test_two_wikis_lie_side_by_side_below_prefixes(store, tmp_path):
    path = write_dump(tmp_path / "dump.xml", NEEDLE, ALIAS, DECK)
    index(store, WikiDumpSource(path, prefix="en"))
    documents = stored(store)
    assert set(documents) == {"en/Space_Needle", "en/Space_Needle#Deck"}
    assert tags(documents["en/Space_Needle"], "hyperlink", "out") == {"/en/Tower", "/en/Seattle"}
    assert "/en/Needle_deck" in tags(documents["en/Space_Needle#Deck"], "hyperlink", "in")


# Bad input


def test_pages_that_cannot_be_read_are_named_and_the_rest_is_kept(store, tmp_path):
    path = write_dump(
        tmp_path / "dump.xml",
        Written("Empty"),
        Written("Script", "x = 1", model="javascript"),
        Written("Long", "x" * 5000),
        Written("Only: a template", "{{Infobox}}"),
        LOUPE,
    )
    summary = index(store, WikiDumpSource(path, longest=4000))
    assert summary.pages.added == 1
    assert summary.skipped == {
        "Empty": "it has no text",
        "Script": "it is javascript, not wikitext",
        "Long": "it has more than the 4,000 characters allowed",
        "Only%3A_a_template": "it has no text",
    }


@pytest.mark.parametrize("compressed", [False, True])
def test_a_dump_that_is_cut_short_is_named_and_nothing_is_removed(store, tmp_path, compressed):
    pages = [Written(f"P{n}", f"Text {n} " * 200) for n in range(60)]
    path = tmp_path / ("dump.xml.bz2" if compressed else "dump.xml")
    index(store, WikiDumpSource(write_dump(path, *pages)))
    assert len(store.stored) == 60

    content = dump_text(pages).encode()
    # Two streams, as in the multistream dumps: the first one whole, the second one cut.
    half = len(content) // 2
    whole = (
        bz2.compress(content[:half]) + bz2.compress(content[half:])[:-10] if compressed else content[:half]
    )
    path.write_bytes(whole)
    summary = index(store, WikiDumpSource(path))
    assert summary.pages.removed == 0
    assert summary.pages.unchanged > 10
    assert list(summary.skipped) == [path.name]
    assert "cannot be read beyond" in summary.skipped[path.name]
    assert len(store.stored) == 60


def test_broken_xml_keeps_the_pages_before_it(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(dump_text([NEEDLE, LOUPE]).replace("<title>Loupe", "<title><Loupe"))
    pages, bad = offered(path)
    assert list(pages) == ["Space_Needle"]
    assert len(bad) == 1
    assert bad[0].hides == ("",)
    assert "line" in bad[0].reason


@pytest.mark.parametrize(
    "content",
    [b"", b"plain text", b"<html><body/></html>", b"BZh9 not really", b"7z\xbc\xaf\x27\x1c", b"\x00\xff\xfe"],
)
def test_what_is_no_dump_is_no_source(tmp_path, content):
    path = tmp_path / "dump.xml"
    path.write_bytes(content)
    with pytest.raises(SourceNotFoundError, match=r"not a MediaWiki XML dump|7z"):
        DumpArticles(WikiDumpSource(path))


def test_a_dump_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceNotFoundError, match=r"nothing\.xml"):
        DumpArticles(WikiDumpSource(tmp_path / "nothing.xml"))


def test_entities_are_never_expanded(tmp_path):
    bomb = '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
    path = tmp_path / "dump.xml"
    path.write_text(bomb + dump_text([NEEDLE]))
    with pytest.raises(SourceNotFoundError, match="document type"):
        DumpArticles(WikiDumpSource(path))
    path.write_text(
        dump_text([NEEDLE]).replace("</mediawiki>", "<page><title>&b;</title></page></mediawiki>")
    )
    pages, bad = offered(path)
    assert list(pages) == ["Space_Needle"]
    assert bad[0].hides == ("",)


# What a dump says


def test_the_last_revision_counts_and_further_slots_do_not(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(
        HEAD.format(base=BASE, namespaces="")
        + """<page><title> A </title><ns>0</ns><revision><text>old</text></revision>
        <revision><model>wikitext</model><text bytes="3">new &lt;b&gt;</text>
        <content><role>side</role><model>json</model><text>{}</text></content></revision></page>
        <page><title>B</title><revision><text deleted="deleted" /></revision></page></mediawiki>"""
    )
    first, second = read_pages(path, limit=100)
    assert (first.title, first.text, first.model) == ("A", "new <b>", "wikitext")
    assert second.text == ""


def test_siteinfo_is_read_from_the_first_lines(tmp_path):
    site = read_siteinfo(write_dump(tmp_path / "dump.xml", NEEDLE))
    assert (site.name, site.database, site.language) == ("Wikipedia", "enwiki", "en")
    assert site.namespaces[14].name == "Category"


def test_a_dump_without_siteinfo_has_the_namespaces_that_every_wiki_has(store, tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(f"<mediawiki>{Written('A', '[[b]] [[category:c]] d').xml()}</mediawiki>")
    index(store, WikiDumpSource(path))
    document = stored(store)["A"]
    assert tags(document, "hyperlink", "out") == {"/B"}
    assert tags(document, "category", "bidir") == {"C"}


def test_a_number_that_is_none_ends_the_dump(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(dump_text([LOUPE, NEEDLE]).replace("<ns>0</ns>", "<ns>x</ns>"))
    with pytest.raises(DumpCutShortError, match="number of a namespace"):
        list(read_pages(path, limit=100))
    assert issubclass(DumpCutShortError, LinkStoreError)


# Redirects


def test_redirects_are_followed_through_others_and_around_circles():
    table = RedirectTable(
        [
            ("B", "A", ""),
            ("C", "B", ""),
            ("D", "A", "Deck"),
            ("E", "D", "Other"),
            ("F", "G", ""),
            ("G", "F", ""),
            ("H", "H", ""),
            ("A2", "Nowhere", ""),
        ]
    )
    assert table.aliases("A") == (Alias("B"), Alias("C"), Alias("D", "Deck"), Alias("E", "Deck"))
    assert table.aliases("G") == (Alias("F"),)
    assert table.aliases("H") == ()
    assert table.aliases("Z") == ()
    table.close()


def test_a_text_says_where_it_redirects():
    assert find_redirect_target("#REDIRECT [[space_needle#The deck|x]] {{R}}") == ("space needle", "The_deck")
    assert find_redirect_target("#redirect nothing") == ("", "")
    assert is_redirect("#REDIRECT [[a]]")
    assert is_redirect(" #Weiterleitung: [[a]]")
    assert not is_redirect("# See [[a]]")
    assert not is_redirect("text")


def test_old_dumps_say_that_a_page_redirects_in_its_text_alone(store, tmp_path):
    path = write_dump(
        tmp_path / "dump.xml",
        NEEDLE,
        Written("Old", "#REDIRECT [[Space_Needle]]"),
        Written("Older", "x", redirect=""),
    )
    index(store, WikiDumpSource(path))
    assert "/Old" in tags(stored(store)["Space_Needle"], "hyperlink", "in")
    assert set(stored(store)) == {"Space_Needle", "Space_Needle#Deck"}


def test_of_many_redirects_all_lead_to_the_page_and_some_to_its_sections(store, tmp_path):
    many = [Written(f"R{n:03}", "#REDIRECT [[Space Needle]]", redirect="Space Needle") for n in range(100)]
    index(store, WikiDumpSource(write_dump(tmp_path / "dump.xml", NEEDLE, *many)))
    documents = stored(store)
    assert len(tags(documents["Space_Needle"], "hyperlink", "in")) == 101
    assert len(tags(documents["Space_Needle#Deck"], "hyperlink", "in")) == 1 + MOST_WITH_SECTIONS
    assert len(documents["Space_Needle"].metadata["aliases"]) == 64


# Memory


def test_memory_does_not_grow_with_the_dump(tmp_path):
    def peak(count):
        path = tmp_path / "dump.xml"
        with path.open("w") as file:
            head, _, _ = dump_text([]).partition("</mediawiki>")
            file.write(head)
            for n in range(count):
                file.write(Written(f"Page {n}", f"Text {n} of [[Page {n % 97}]]. " * 8).xml())
                file.write(Written(f"Old {n}", f"#REDIRECT [[Page {n}]]", redirect=f"Page {n}").xml())
            file.write("</mediawiki>")
        source = DumpArticles(WikiDumpSource(path))
        tracemalloc.start()
        for number, page in enumerate(source.pages({})):
            if number % 20 == 0:
                page.read()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # fills caches
    assert peak(1200) < 1.5 * peak(300)
