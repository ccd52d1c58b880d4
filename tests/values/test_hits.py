"""Hits as values: their pages."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document

from linkstore.hits import Hit, Hits, Path, Step, page_of


def hit(name: str, score: float = 0.5, **metadata: Any) -> Hit:
    document = Document(id=name, page_content=f"text of {name}", metadata=metadata)
    return Hit(document=document, score=score, similarity=score, depth=0, path=Path((Step(id=name),)))


def test_pages_come_once_in_the_order_of_their_best_hits():
    hits = Hits(
        hits=(
            hit("b1", 0.9, page="/b"),
            hit("a1", 0.8, url="/a#one"),
            hit("b2", 0.7, page="/b"),
            hit("c", 0.6),
            hit("a2", 0.5, url="/a"),
        )
    )
    pages = [(page.page, page.score, [hit.document.id for hit in page.hits]) for page in hits.by_page()]
    assert pages == [("/b", 0.9, ["b1", "b2"]), ("/a", 0.8, ["a1", "a2"]), ("c", 0.6, ["c"])]
    assert Hits(hits=()).by_page() == ()


def test_the_page_of_a_document_is_said_or_read_from_its_url():
    assert page_of(Document(page_content="", id="i", metadata={"page": "p", "url": "u"})) == "p"
    assert page_of(Document(page_content="", id="i", metadata={"page": 3, "url": "u#f"})) == "u"
    assert page_of(Document(page_content="", id="i", metadata={"url": "#f"})) == "#f"
    assert page_of(Document(page_content="", id="i", metadata={"url": ""})) == "i"
