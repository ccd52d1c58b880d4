"""Finding extractors by name, those of third parties included."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints, entry_points

import pytest
from internals import ENTRY_POINT_GROUP, Link
from langchain_core.documents import Document

from linkstore.errors import ArgumentError, ExtractionError
from linkstore.extract import CorpusExtractor, LinkExtractor, extractor_names, load_extractor


class Nicknames:
    """What a third party might register."""

    def __init__(self, *, kind: str = "nickname") -> None:
        self.kind = kind

    def extract(self, source: str) -> tuple[Link, ...]:
        return tuple(Link.outgoing(kind=self.kind, tag=word) for word in source.split())


def no_extractor() -> object:
    return object()


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three more entry points beside the installed ones."""
    installed = entry_points
    ours = [
        EntryPoint("nickname", f"{__name__}:Nicknames", ENTRY_POINT_GROUP),
        EntryPoint("nothing", f"{__name__}:no_extractor", ENTRY_POINT_GROUP),
        EntryPoint("citation", "linkstore_extractors.citations:CitationExtractor", ENTRY_POINT_GROUP),
        EntryPoint("keyword", "linkstore_extractors.keywords:KeywordExtractor", ENTRY_POINT_GROUP),
    ]

    def found(*, group: str) -> EntryPoints:
        return EntryPoints([*installed(group=group), *(point for point in ours if point.group == group)])

    monkeypatch.setattr("linkstore.extract.protocol.entry_points", found)


def test_a_third_party_extractor_is_found_by_its_entry_point_and_gets_the_options() -> None:
    extractor = load_extractor("nickname", kind="person")
    assert extractor.extract("Ada") == (Link.outgoing(kind="person", tag="Ada"),)


def test_installed_packages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    load_extractor("nickname")
    monkeypatch.setattr("linkstore.extract.protocol.entry_points", lambda **_: pytest.fail("looked again"))
    load_extractor("nickname")


def test_an_unknown_name_lists_the_installed_ones() -> None:
    with pytest.raises(ExtractionError, match=r"no extractor named 'keywrd' .*citation.*keyword.*nickname"):
        load_extractor("keywrd")


def test_a_factory_that_makes_no_extractor_is_refused() -> None:
    with pytest.raises(ExtractionError, match=r"'nothing' makes a object, which has no extract\(\) method"):
        load_extractor("nothing")


def test_an_option_the_factory_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="knd"):
        load_extractor("nickname", knd="person")


def test_names_are_sorted_and_each_stands_once() -> None:
    names = extractor_names()
    assert list(names) == sorted(set(names))
    assert {"citation", "keyword", "nickname"} <= set(names)


@pytest.mark.parametrize("name", ["citation", "keyword"])
def test_the_extractors_that_need_no_extra_load_by_name(name: str) -> None:
    extractor = load_extractor(name)
    assert isinstance(extractor, LinkExtractor)
    if isinstance(extractor, CorpusExtractor):
        extractor.observe(["Other words."])
    assert extractor.extract("Plain words.") == ()


@pytest.mark.parametrize("name", ["html", "hyperlink", "section"])
def test_an_extractor_of_pages_says_what_it_takes(name):
    """LangChain's documents have no place on a page."""
    document = Document(page_content='<a href="/b">b</a>', metadata={"source": "https://host/a"})
    with pytest.raises(ArgumentError, match=r"source must be .*LinkStore\.from_documents"):
        load_extractor(name).extract(document)
