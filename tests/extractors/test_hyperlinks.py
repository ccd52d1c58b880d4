"""Hyperlinks of chunks: each owns the fragments that lie in it."""

from __future__ import annotations

from internals import HyperlinkExtractor, Site

from linkstore.extract import Chunk, Hyperlink, LinkExtractor, Page

SITE = Site(bases=("https://docs.example.org/",))
PAGE = Page(url="guide/index.html", aliases=("https://docs.example.org/guide/", "https://old.org/g"))


def tags(chunk, direction):
    return [link.tag for link in HyperlinkExtractor(SITE).extract(chunk) if link.direction == direction]


def test_the_first_chunk_answers_to_the_bare_page_under_all_its_urls():
    assert tags(Chunk(page=PAGE, text="x"), "in") == ["/guide", "https://old.org/g"]


def test_a_later_chunk_answers_to_its_fragments_only():
    chunk = Chunk(page=Page(url="guide/index.html"), text="x", index=2, anchors=("a b", "café", "a b"))
    assert tags(chunk, "in") == ["/guide#a%20b", "/guide#café"]


def test_an_anchor_that_is_percent_encoded_itself_is_found_as_it_is_written_and_decoded():
    chunk = Chunk(page=Page(url="a.html"), text="x", index=1, anchors=("impl-From%3CT%3E", "100%", "a%20b"))
    site = Site()
    written = ("#impl-From%3CT%3E", "#impl-From<T>", "#impl-From%253CT%253E", "#100%", "#100%25", "#a%20b")
    own = {link.tag for link in HyperlinkExtractor(site).extract(chunk)}
    assert {site.tag(fragment, page="a.html") for fragment in written} <= own


def test_outgoing_links_lead_to_pages_of_the_site_and_elsewhere():
    hrefs = (
        "../api/#f",
        "https://docs.example.org/api/index.html",
        "https://other.org",
        "mailto:x@y",
        "#own",
    )
    chunk = Chunk(page=PAGE, text="x", hyperlinks=tuple(Hyperlink(href=href) for href in hrefs))
    assert tags(chunk, "out") == ["/api#f", "/api", "https://other.org/", "/guide#own"]


def test_links_to_one_place_merge_and_keep_their_different_words():
    said = [("/a", ""), ("/a/", "The tower"), ("/a", "Needle"), ("/a", "the tower"), ("/b", ""), ("/c", "C")]
    said += [("/c", f"C{number}") for number in range(9)]
    links = tuple(Hyperlink(href=href, label=label) for href, label in said)
    found = HyperlinkExtractor(SITE).extract(Chunk(page=PAGE, text="x", index=1, hyperlinks=links))
    assert [(link.tag, link.label) for link in found] == [
        ("/a", "The tower; Needle"),
        ("/b", None),
        ("/c", "C; C0; C1; C2; C3"),
    ]


def test_base_href_counts():
    page = Page(url="guide/index.html", base="/api/")
    assert tags(Chunk(page=page, text="x", hyperlinks=(Hyperlink(href="f.html"),)), "out") == ["/api/f.html"]


def test_an_anchor_too_long_for_a_tag_is_left_out():
    assert tags(Chunk(page=PAGE, text="x", index=1, anchors=("y" * 9000,)), "in") == []


def test_it_is_a_link_extractor_of_chunks():
    assert isinstance(HyperlinkExtractor(), LinkExtractor)
    assert HyperlinkExtractor.source is Chunk
