"""Hyperlinks of whole HTML pages."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import HtmlInput, HtmlLinkExtractor, UrlPolicy

from linkstore.errors import ExtractionError
from linkstore.extract import LinkExtractor

URL = "https://docs.example.org/guide/index.html"
PAGE = """<!DOCTYPE html><html><head><title>Guide</title>
<link rel="stylesheet canonical" href="https://docs.example.org/en/guide/"></head>
<body><header><a href="/home">Home</a></header>
<nav><a href="/nav">Nav</a></nav>
<div class="sphinxsidebar"><a href="/side">Side</a></div><div role="navigation"><a href="/role">R</a></div>
<main id="main"><header><h1 id="guide">Guide<a class="headerlink" href="#guide">¶</a></h1></header>
<a name="old"></a><p id="caf&eacute;">See <a href="setup.html#first">the <b>setup</b>
 page</a>, <a href="setup.html#first">again</a>, <a href="#usage">usage</a>, <a href="mailto:x@y">mail</a>
<a href="javascript:x()">js</a> <a>no href</a> <a href="https://other.org/">other</a></p>
<aside class="footnote"><a href="https://note.org/n">note</a></aside>
<aside><a href="/aside">Aside</a></aside></main>
<footer><a href="/foot">Foot</a></footer></body></html>"""


def links(content=PAGE, url=URL, **options):
    return HtmlLinkExtractor(**options).extract(HtmlInput(content=content, base_url=url))


def outgoing(found):
    return {link.tag: link.label for link in found if link.direction == "out"}


def incoming(found):
    return [link.tag for link in found if link.direction == "in"]


def test_outgoing_links_are_absolute_with_the_first_anchor_text():
    assert outgoing(links()) == {
        "https://docs.example.org/guide/setup.html#first": "the setup page",
        "https://docs.example.org/guide/#usage": "usage",
        "https://other.org/": "other",
        "https://note.org/n": "note",
    }


def test_the_page_answers_to_its_url_its_canonical_url_and_every_fragment():
    here, there = "https://docs.example.org/guide/", "https://docs.example.org/en/guide/"
    anchors = ("main", "guide", "old", "café")
    expected = [here, there, *(f"{name}#{anchor}" for anchor in anchors for name in (here, there))]
    assert incoming(links()) == expected


def test_link_noise_is_kept_on_request():
    kept = set(outgoing(links(noise=True)))
    for path in ("home", "nav", "side", "role", "aside", "foot"):
        assert f"https://docs.example.org/{path}" in kept
        assert f"https://docs.example.org/{path}" not in outgoing(links())


def test_base_href_counts():
    found = links('<base href="/other/"><p><a href="x">x</a>')
    assert outgoing(found) == {"https://docs.example.org/other/x": "x"}


def test_the_policy_applies_to_both_directions():
    found = links(policy=UrlPolicy(fragment="drop", trailing_slash="strip"))
    assert incoming(found) == ["https://docs.example.org/guide", "https://docs.example.org/en/guide"]
    assert "https://docs.example.org/guide/setup.html" in outgoing(found)


def test_the_kind_can_be_chosen():
    assert {link.kind for link in links(kind="see")} == {"see"}


def test_bytes_are_read_in_their_declared_encoding():
    content = '<meta charset="iso-8859-1"><p><a href="/x">café</a>'.encode("latin-1")
    assert outgoing(links(content)) == {"https://docs.example.org/x": "café"}
    marked = '<p><a href="/x">naïve</a>'.encode("utf-16")
    assert outgoing(links(marked)) == {"https://docs.example.org/x": "naïve"}


def test_undecodable_bytes_do_not_fail():
    assert outgoing(links(b'<a href="/x">\xff</a>')) == {"https://docs.example.org/x": "ÿ"}
    declared = b'<meta charset="utf-8"><a href="/x">\xff</a>'
    assert outgoing(links(declared)) == {"https://docs.example.org/x": "\ufffd"}


def test_a_soup_gives_the_same_links_as_its_html():
    bs4 = pytest.importorskip("bs4")
    assert links(bs4.BeautifulSoup(PAGE, "html.parser")) == links()


def test_whatever_has_content_and_base_url_is_a_source():
    @dataclass
    class Input:
        content: str
        base_url: str

    assert HtmlLinkExtractor().extract(Input(PAGE, URL)) == links()


def test_nothing_that_langchain_community_finds_in_the_content_is_missed():
    pytest.importorskip("langchain_community")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.graph_vectorstores.extractors import HtmlInput
        from langchain_community.graph_vectorstores.extractors import HtmlLinkExtractor as Peer

        source = HtmlInput(PAGE, URL)
        theirs = {link.tag for link in Peer().extract_one(source) if link.direction == "out"}
    ours = {tag.partition("#")[0] for tag in outgoing(HtmlLinkExtractor(noise=True).extract(source))}
    assert theirs <= ours


def test_errors_say_what_was_wrong():
    with pytest.raises(ExtractionError, match="not absolute"):
        links(url="guide/index.html")
    with pytest.raises(ExtractionError, match="content is a int"):
        links(content=1)


def test_it_is_a_link_extractor():
    assert isinstance(HtmlLinkExtractor(), LinkExtractor)


@settings(max_examples=200)
@given(st.one_of(st.text(), st.binary()))
def test_no_content_fails_and_the_same_gives_the_same(content):
    found = links(content)
    assert found == links(content)
    assert incoming(found)[0] == "https://docs.example.org/guide/"


def incoming_of(head: str, **options) -> set[str]:
    source = HtmlInput(content=f"<head>{head}</head><p id=x>x", base_url="https://x.org/blog/post-17")
    found = HtmlLinkExtractor(**options).extract(source)
    return {link.tag.partition("#")[0] for link in found if link.leads_in}


@pytest.mark.parametrize("base", ["/", "https://other.example/docs/", "https://x.org/", "other/", ""])
@pytest.mark.parametrize("canonical", ["", '<link rel=canonical href="">'])
def test_a_base_never_says_what_the_page_is(base, canonical):
    assert incoming_of(f'<base href="{base}">{canonical}') == {"https://x.org/blog/post-17"}


@pytest.mark.parametrize(
    "head",
    [
        '<link rel=canonical href="https://bank.example/login">',
        '<link rel=canonical href="//bank.example/login">',
        '<base href="https://bank.example/"><link rel=canonical href="login">',
    ],
)
def test_a_canonical_url_of_another_site_is_believed_only_if_the_user_says_so(head):
    assert incoming_of(head) == {"https://x.org/blog/post-17"}
    trusted = incoming_of(head, claims="any")
    assert trusted == {"https://x.org/blog/post-17", "https://bank.example/login"}


def test_a_canonical_url_of_the_same_site_is_believed():
    head = '<base href="/"><link rel=canonical href="http://x.org/posts/17">'
    assert incoming_of(head) == {"https://x.org/blog/post-17", "http://x.org/posts/17"}


def test_another_policy_for_claims_is_refused():
    with pytest.raises(ExtractionError, match="'own' or 'any'"):
        HtmlLinkExtractor(claims="none")


def test_code_for_langchain_community_runs_with_its_own_classes():
    """Its input, its soup, its way to take links; only the extractor and the store are ours."""
    pytest.importorskip("langchain_community")
    bs4 = pytest.importorskip("bs4")
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from linkstore import LinkStore

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.graph_vectorstores.extractors import HtmlInput
        from langchain_community.graph_vectorstores.links import add_links

    pages = {
        "https://host/a": '<p>One leads to <a href="/b">the other</a>.</p>',
        "https://host/b": "<p>The other.</p>",
    }
    inputs = [HtmlInput(bs4.BeautifulSoup(html, "html.parser"), url) for url, html in pages.items()]
    extractor = HtmlLinkExtractor()
    one = extractor.extract_one(inputs[0])
    assert isinstance(one, set)
    assert list(extractor.extract_many(inputs)) == [one, extractor.extract_one(inputs[1])]
    documents = [
        Document(page_content=html, metadata={"content_id": url, "source": url})
        for url, html in pages.items()
    ]
    for document, links in zip(documents, extractor.extract_many(inputs), strict=True):
        add_links(document, links)
    with LinkStore(DeterministicFakeEmbedding(size=8)) as store:
        assert store.add_documents(documents) == list(pages)
        assert store.links.neighbours("https://host/a").outgoing[0].ids == ("https://host/b",)
        found = store.traversal_search(next(iter(pages.values())), k=1, depth=1)
        assert [document.id for document in found] == list(pages)


def test_the_id_is_the_documents_own_before_that_in_its_metadata():
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding

    from linkstore import LinkStore
    from linkstore.errors import DocumentError

    meta = {"content_id": "c"}
    with LinkStore(DeterministicFakeEmbedding(size=8)) as store:
        given = [
            Document(page_content="x", id="own", metadata=meta),
            Document(page_content="y", metadata=meta),
        ]
        assert store.add_documents(given) == ["own", "c"]
        assert store.add_documents(given[1:], ids=["given"]) == ["given"]
        assert store.add_texts(["z"], [meta]) == ["c"]
        with pytest.raises(DocumentError, match="7"):
            store.add_texts(["z"], [{"content_id": 7}])
