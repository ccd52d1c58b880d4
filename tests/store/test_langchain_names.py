"""Hits have LangChain's names for a document, so that its retrievers take them for documents."""

from __future__ import annotations

from langchain_core.documents import Document

from linkstore import LinkStore


def test_a_hit_is_read_like_its_document() -> None:
    with LinkStore() as store:
        store.add_documents([Document("A dog barks.", id="d", metadata={"kind": "animal"})])
        [hit] = store.search("dogs", "similarity", k=1)
        assert (hit.id, hit.page_content, hit.metadata) == ("d", "A dog barks.", {"kind": "animal"})
