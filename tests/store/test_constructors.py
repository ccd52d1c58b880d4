"""Stores made of documents, folders, vaults and websites: their links, and what is warned of."""

from __future__ import annotations

import warnings
from importlib import import_module

import pytest
from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links, get_links
from linkstore.errors import (
    ArgumentError,
    ExtractionError,
    ForbiddenUrlError,
    LinkStoreWarning,
    SourceNotFoundError,
)
from linkstore.ingest import NothingIndexedError
from linkstore.strategies import Eager, Similarity


def led_to(store: LinkStore, id: str) -> set[str]:
    return {end for ways in store.links.neighbours(id).outgoing for end in ways.ids}


def make(id: str, text: str, **metadata: str) -> Document:
    return Document(id=id, page_content=text, metadata=metadata)


@pytest.mark.parametrize(
    "text",
    [
        "See [the market](market.md#stalls).",
        "See [the market][1].\n\n[1]: market.md",
        'See <a href="market.md">the market</a>.',
        "<!doctype html><title>Tower</title><p>See <a href='./market.md'>the market</a> there.",
    ],
)
def test_links_in_markdown_and_html_lead_to_the_document_of_that_source(text):
    documents = [
        make("tower", text, source="docs/tower.md"),
        make("market", "It closes at six.", source="docs/market.md"),
        make("rest", "It opens at nine.", source="docs/market.md"),
    ]
    before = [document.model_copy(deep=True) for document in documents]
    with LinkStore.from_documents(documents) as store:
        assert led_to(store, "tower") == {"market"}, "the first chunk of a source answers to links to it"
        labels = {link.label for link in get_links(store.get_by_ids(["tower"])[0]) if link.leads_out}
        assert "the market" in labels
    assert documents == before


def test_urls_and_paths_of_loaders_are_origins_alike():
    documents = [
        make("a", "[b](/x%20y/b.md)", file_path="/x y/a.md"),
        make("b", "[c](https://example.org/c)", file_path="/x y/b.md"),
        make("c", "[a](javascript:alert(1)) [d](C:/d.md)", url="https://example.org/c"),
    ]
    with LinkStore.from_documents(documents) as store:
        assert [led_to(store, id) for id in "abc"] == [{"b"}, {"c"}, set()]


def test_titles_that_others_mention_are_links():
    documents = [
        make("needle", "A tower, the landmark of Seattle.", title="Space Needle"),
        make("uptown", "# Uptown\n\nBars and theatres below the Space Needle."),
        make("train", "It runs from Uptown to the market."),
    ]
    with LinkStore.from_documents(documents) as store:
        assert led_to(store, "uptown") == {"needle"}
        assert led_to(store, "train") == {"uptown"}
        assert store.get_by_ids(["uptown"])[0].metadata.keys() == {"links"}, "no title is made up"


def test_links_of_their_own_stay_alone_unless_extractors_are_named():
    own = make("tower", "See [it](market.md) and Market Hall.", source="tower.md")
    add_links(own, Link.outgoing(kind="about", tag="x"))
    market = make("market", "It closes at six.", source="market.md", title="Market Hall")
    with LinkStore.from_documents([own, market]) as store:
        assert {link.kind for document in store.scan() for link in get_links(document)} == {"about"}
    with LinkStore.from_documents([own, market], links=["mention"]) as store:
        kinds = {link.kind for document in store.scan() for link in get_links(document)}
        assert kinds == {"about", "mention"}
    with warnings.catch_warnings(action="error"):
        LinkStore.from_documents([make("a", "a"), make("b", "b")], links=()).close()


@pytest.mark.parametrize(
    ("links", "error", "message"),
    [
        ("all", ExtractionError, "links must be 'auto'"),
        (["nosuch"], ExtractionError, "no extractor named 'nosuch'"),
        (["section"], ExtractionError, "does not read documents"),
        (None, ArgumentError, "links must be a list of extractors"),
        ([None], ExtractionError, "None"),
    ],
)
def test_other_extractors_are_refused_by_name(links, error, message):
    with pytest.raises(error, match=message):
        LinkStore.from_documents([make("a", "a")], links=links)


@pytest.mark.parametrize(
    "text", ["](" * 50_000, "<a href=" * 20_000, "<div>" * 100_000 + "<a href=x>", "# " * 9]
)
def test_texts_that_are_no_markup_or_too_deep_are_stored_without_links(text):
    with pytest.warns(LinkStoreWarning), LinkStore.from_documents([make("a", text, source="a")]) as store:
        assert store.get_by_ids(["a"])[0].page_content == text


def test_duplicates_blanks_and_documents_without_links_are_warned_of_once_with_what_to_do():
    documents = [make("a", "one"), make("a", "two"), Document(page_content="three"), make("b", " ")]
    with LinkStore() as store, pytest.warns(LinkStoreWarning) as caught:
        store.add_documents([*documents, Document(page_content="three")])
    messages = [str(warning.message) for warning in caught]
    assert [warning.filename for warning in caught] == [__file__] * 4
    for message, about, advice in zip(
        messages,
        ("have the id a", "the same text and no id, and each will be found: 'three'", "a link", "no text: b"),
        ("an id of its own", "leave the others out", "LinkStore.from_documents()", "strict=True"),
        strict=True,
    ):
        assert about in message
        assert advice in message


def test_a_store_with_links_takes_documents_without_any():
    linked = make("a", "one")
    add_links(linked, Link.outgoing(kind="about", tag="x"))
    with LinkStore() as store, warnings.catch_warnings(action="error"):
        store.add_documents([linked])
        store.add_documents([make("b", "two"), make("c", "three")])
        store.add_documents([make("d", "four")])


def test_a_folder_is_a_store_in_one_call_and_a_later_call_reads_what_changed(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.html").write_text("<title>A</title><p>See <a href='b.html'>the other</a> page.")
    (pages / "b.html").write_text("<title>B</title><p>It is the other page.")
    with LinkStore.from_folder(pages, path=tmp_path / "kb") as store:
        assert led_to(store, "a.html") == {"b.html"}
        assert {hit.document.id for hit in store.search("the other page")} == {"a.html", "b.html"}
    (pages / "c.html").write_text("<title>C</title><p>A third page.")
    with LinkStore.from_folder(str(pages), path=tmp_path / "kb", links=["hyperlink"]) as store:
        assert store.survey().documents == 3


def test_a_page_that_cannot_be_read_is_warned_of(tmp_path):
    (tmp_path / "a.html").write_text("<p>A page.")
    (tmp_path / "b.html").write_text("<p>" + "A long page. " * 50)
    with pytest.warns(LinkStoreWarning, match=r"not indexed: b\.html: .*index\(\) returns") as caught:
        LinkStore.from_folder(tmp_path, max_bytes=100).close()
    assert caught[0].filename == __file__


def test_a_vault_keeps_its_wikilinks(tmp_path):
    (tmp_path / "a.md").write_text("# Alpha\n\nSee [[b]].\n")
    (tmp_path / "b.md").write_text("# Beta\n\nAn end.\n")
    with LinkStore.from_vault(tmp_path, prefix="notes") as store:
        ends = {end for document in store.scan() for end in led_to(store, document.id or "")}
        assert any("b" in end for end in ends)


def test_a_website_that_may_not_be_asked_makes_no_store(tmp_path):
    with pytest.raises(ForbiddenUrlError):
        LinkStore.from_website("http://127.0.0.1:9/", path=tmp_path / "kb")
    with pytest.raises(ForbiddenUrlError):
        LinkStore.from_website("file:///etc/passwd")


def test_wrong_places_and_arguments_are_named(tmp_path):
    with pytest.raises(SourceNotFoundError, match="nowhere"):
        LinkStore.from_folder(tmp_path / "nowhere")
    with pytest.raises(NothingIndexedError):
        LinkStore.from_folder(tmp_path)
    with pytest.raises(TypeError, match=r"'max_page'.*max_pages"):
        LinkStore.from_website("https://example.org", max_page=3)
    with pytest.raises(TypeError, match="'rate'"):
        LinkStore.from_folder(tmp_path, rate=3)
    with pytest.raises(ArgumentError):
        LinkStore.from_folder(3)  # type: ignore[arg-type]


def test_every_source_can_be_imported_from_one_package():
    names = set(dir(import_module("linkstore.ingest")))
    kinds = ("Documents", "Folder", "JsonLines", "LlmsTxt", "Page", "Vault", "Website", "WikiDump", "Zim")
    assert {f"{kind}Source" for kind in kinds} <= names


def test_hits_brought_by_links_are_those_that_no_first_stage_found():
    near = make("needle", "The Space Needle is a tower. See [below](uptown.md).", source="needle.md")
    far = make("uptown", "Bars and theatres fill its streets.", source="uptown.md")
    with LinkStore.from_documents([near, far]) as store:
        hits = store.search("the Space Needle", strategy=Eager(start_k=1, depth=1))
        assert [hit.document.id for hit in hits.brought_by_links] == ["uptown"]
        assert store.search("the Space Needle", strategy=Similarity(k=2)).brought_by_links == ()


def test_a_warning_names_the_documents_that_lose_their_links():
    link = {"kind": "hyperlink", "tag": "b", "direction": "out"}
    with LinkStore() as store:
        store.add_documents([Document(id=id, page_content=id, metadata={"links": [link]}) for id in "abc"])
        bare = Document(id="a", page_content="A new text.")
        with pytest.warns(LinkStoreWarning, match="documents a has no metadata") as caught:
            store.add_documents([bare])
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            store.add_documents([bare, Document(id="d", page_content="It is new.")])
            store.add_documents([Document(id="b", page_content="b", metadata={"links": []})])
            store.add_texts(["c"], ids=["c"])
