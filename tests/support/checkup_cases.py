"""What observers and a checkup owe on every engine; a subclass gives the store."""

from __future__ import annotations

import asyncio

import drugs
import pytest
from langchain_core.documents import Document

from linkstore import Link, LinkRetriever, add_links
from linkstore.context import ContextCompiler
from linkstore.errors import UnknownNameError
from linkstore.evaluate import examine
from linkstore.ingest import DocumentsSource, index
from linkstore.store import Schema
from linkstore.store.base import observe_searches
from linkstore.strategies import Eager
from linkstore.strategies.observers import CompletedSearch

NOTHING = {"type": "nothing"}
CITES = Eager(kinds={"CITES"}, k=9, depth=1)


def node(id: str, of: str, *links: Link) -> Document:
    made = Document(id=id, page_content=f"about {id}", metadata={"type": of})
    add_links(made, *links)
    return made


class Listening:
    """An observer that appends each search when it ends."""

    def __init__(self, ended: list[CompletedSearch]) -> None:
        self.ended = ended

    def search_begins(self, question, strategy):
        def end(search: CompletedSearch) -> None:
            assert (search.question, search.strategy) == (question, strategy)
            self.ended.append(search)

        return end


class CheckupCases:
    """Needs the fixture ``store``, empty, with the embedding of ``stores.embedding``."""

    @pytest.fixture
    def graph(self, store):
        store.add_documents(list(drugs.documents()))
        return store

    def test_every_way_to_search_is_seen_sync_and_async(self, graph):
        ended = []
        end = observe_searches(graph, Listening(ended))
        graph.search("a")
        graph.similarity_search("b")
        graph.traversal_search("c")
        graph.search("d", "similarity")
        graph.as_retriever().invoke("e")
        LinkRetriever(store=graph).invoke("f")
        ContextCompiler(graph, budget=200).compile("g")

        async def searches():
            await asyncio.gather(*(graph.asearch(f"h{n}") for n in range(8)))
            await LinkRetriever(store=graph).ainvoke("i")
            graph.search("inside a running loop")

        asyncio.run(searches())
        end()
        end()
        graph.search("not seen")
        asked = {search.question for search in ended}
        assert asked == {*"abcdefgi", *(f"h{n}" for n in range(8)), "inside a running loop"}
        assert all(search.hits for search in ended)

    @pytest.mark.parametrize("at_the_end", [False, True])
    def test_an_observer_that_raises_fails_no_search_and_is_logged_once(self, graph, caplog, at_the_end):
        class Broken:
            def search_begins(self, question, strategy):
                if at_the_end:
                    return self.fail
                raise RuntimeError("broken")

            def fail(self, searched):
                raise RuntimeError("broken")

        expected = [hit.document.id for hit in graph.search("a")]
        before, after = [], []
        ends = [observe_searches(graph, each) for each in (Listening(before), Broken(), Listening(after))]
        found = graph.search("a")
        asyncio.run(graph.asearch("a"))
        with pytest.raises(UnknownNameError):
            graph.search("what?", strategy=Eager(kinds={"GOVERND_BY"}))
        for end in ends:
            end()
        assert [hit.document.id for hit in found] == expected
        assert len(before) == len(after) == 3
        assert "GOVERNED_BY" in str(before[-1].error)
        logged = [one for one in caplog.records if one.name == "linkstore"]
        assert len(logged) == 1
        assert "Broken" in logged[0].getMessage()
        assert "RuntimeError: broken" in logged[0].exc_text

    def test_a_clean_store_has_nothing_to_report(self, graph):
        without = examine(graph)
        assert without.findings == ()
        assert without.documents == len(list(drugs.documents()))
        graph.schema.set(Schema.infer(graph))
        clean = examine(graph)
        assert clean.findings == ()
        assert clean.healthy
        assert clean.types["regulation"].reached == drugs.REGULATIONS
        assert clean.types["drug"].leading == drugs.DRUGS

    @pytest.mark.parametrize("with_schema", [False, True])
    def test_a_new_type_that_no_traversal_reaches_is_reported(self, graph, with_schema):
        if with_schema:
            graph.schema.set(Schema.infer(graph), "warn")
        graph.add_documents([node(f"advisory/{n}", "advisory") for n in range(7)])
        drifted = [one for one in examine(graph).alarms if one.check == "drift"]
        assert [one.count for one in drifted] == [7]
        assert "advisory" in drifted[0].text

    def test_a_new_type_that_only_leads_on_is_reported_where_the_schema_does_not_start_from_it(self, graph):
        drafted = Schema.infer(graph)
        graph.schema.set(drafted, "warn")
        rule = Link.outgoing(kind="CITES", tag="regulation/1")
        graph.add_documents([node(f"notice/{n}", "notice", rule) for n in range(3)])
        checkup = examine(graph)
        assert {(one.check, one.count) for one in checkup.alarms} == {("schema", 3), ("drift", 3)}

    def test_pages_that_changed_since_they_were_indexed_are_reported(self, store):
        pages = [Document(id=f"p{n}", page_content=f"page {n}") for n in range(6)]
        index(store, DocumentsSource(pages, name="pages"))

        def findings(now: list[Document]) -> set[tuple[str, int, tuple[str, ...]]]:
            found = examine(store, sources={"pages": DocumentsSource(now, name="pages")})
            return {(one.severity, one.count, one.examples) for one in found.findings}

        assert findings(pages) == set()
        changed = [Document(id="p0", page_content="page 0, revised"), *pages[2:]]
        added = Document(id="p9", page_content="page 9")
        assert findings([*changed, added]) == {
            ("alarm", 1, ("p0",)),
            ("alarm", 1, ("p9",)),
            ("alarm", 1, ("p1",)),
        }
        index(store, DocumentsSource([*changed, added], name="pages"))
        assert findings([*changed, added]) == set()

    def test_a_page_that_lost_documents_is_stale_without_its_source(self, store):
        pages = [Document(id=f"p{n}", page_content=f"page {n}") for n in range(3)]
        index(store, DocumentsSource(pages, name="pages"))
        assert examine(store).skipped["stale"] == "these sources were not compared: pages"
        store.delete(["p1"])
        assert [(one.check, one.examples) for one in examine(store).alarms] == [("stale", ("p1",))]

    def test_links_that_lead_nowhere_are_noted(self, graph):
        graph.add_documents(
            [
                node(
                    "lost",
                    "comment",
                    Link.outgoing(kind="CITES", tag="regulation/999"),
                    Link.outgoing(kind="hyperlink", tag="https://example.com/elsewhere"),
                )
            ]
        )
        checkup = examine(graph)
        assert checkup.dangling == {"CITES": 1}
        (finding,) = checkup.findings
        assert (finding.check, finding.severity, finding.examples) == (
            "dangling",
            "hint",
            ("regulation/999",),
        )

    def test_names_that_do_not_meet_are_reported(self, store):
        names = {"a": "Compound Alpha", "b": "compound-alpha", "c": "Compund Alpha", "d": "Beta"}
        store.add_documents(
            [node(id, "memo", Link.bidir(kind="entity", tag=name)) for id, name in names.items()]
            + [
                node(id, "memo", Link.bidir(kind="entity", tag=id.title(), data={"confidence": confidence}))
                for id, confidence in {"gamma": 0.59, "delta": 0.6, "omega": 0.97}.items()
            ]
        )
        found = {(one.check, one.severity): one for one in examine(store).findings}
        assert found.keys() == {("names", "alarm"), ("confidence", "hint")}
        assert found["names", "alarm"].examples == ("'Compound Alpha' = 'compound-alpha'",)
        assert found["confidence", "hint"].examples == ("Gamma in gamma",)
        assert "33.3 %" in found["confidence", "hint"].text
