"""LangChain's indexing API, for test modules that have a fixture ``store`` which gives an empty one."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from stores import document

from linkstore.strategies import Eager

OPTIONS = {"source_id_key": "source", "key_encoder": "sha256"}


def pages(version: int, *numbers: int) -> list[Document]:
    """Documents without ids, ten to a source."""
    made = [document(n, version) for n in numbers]
    for one in made:
        one.metadata["source"] = f"page{one.metadata['n'] // 10}"
        one.id = None
    return made


def texts(store) -> list[str]:
    return sorted(one.page_content for one in store.scan())


class IndexingCases:
    """`langchain_core.indexing.index`, with documents that have links."""

    @pytest.fixture
    def manager(self):
        manager = InMemoryRecordManager("linkstore")
        manager.create_schema()
        return manager

    @staticmethod
    def run(store, manager, docs, cleanup):
        done = index(docs, manager, store, cleanup=cleanup, **OPTIONS)
        return {name.removeprefix("num_"): count for name, count in done.items() if count}

    def test_incremental(self, store, manager) -> None:
        assert self.run(store, manager, pages(0, *range(20)), "incremental") == {"added": 20}
        assert self.run(store, manager, pages(0, *range(20)), "incremental") == {"skipped": 20}
        changed = [*pages(0, *range(1, 10)), *pages(1, 0)]
        assert self.run(store, manager, changed, "incremental") == {"added": 1, "skipped": 9, "deleted": 1}
        assert texts(store) == sorted([*(f"doc {n} v0" for n in range(1, 20)), "doc 0 v1"])

    def test_full_and_the_links_that_are_left(self, store, manager) -> None:
        self.run(store, manager, pages(0, *range(20)), "full")
        assert self.run(store, manager, pages(0, *range(5)), "full") == {"skipped": 5, "deleted": 15}
        assert texts(store) == [f"doc {n} v0" for n in range(5)]
        assert store.survey().links == {"hyperlink": 10, "keyword": 5}
        assert store.verify().sound

    def test_links_are_followed_afterwards(self, store, manager) -> None:
        self.run(store, manager, pages(0, *range(40)), "full")
        hits = store.search("doc 1 v0", strategy=Eager(start_k=1, depth=1))
        assert hits[0].document.page_content == "doc 1 v0"
        assert {"doc 7 v0", "doc 18 v0", "doc 35 v0"} <= {hit.document.page_content for hit in hits}

    async def test_async(self, store) -> None:
        manager = InMemoryRecordManager("linkstore")
        await manager.acreate_schema()
        done = await aindex(pages(0, *range(20)), manager, store, cleanup="full", **OPTIONS)
        assert done["num_added"] == 20
        assert store.survey().documents == 20
        done = await aindex(pages(0, *range(3)), manager, store, cleanup="full", **OPTIONS)
        assert done["num_deleted"] == 17
        assert store.survey().documents == 3
