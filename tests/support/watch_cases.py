"""What a watch and a checkup owe on every engine; a subclass gives the store."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

import drugs
import pytest
from langchain_core.documents import Document

from linkstore import Link, LinkRetriever, LinkStore, add_links
from linkstore.context import ContextCompiler
from linkstore.errors import UnknownNameError
from linkstore.evaluate import Limits, Watch, aexamine, examine
from linkstore.ingest import DocumentsSource, index
from linkstore.store import Schema
from linkstore.strategies import Eager, Similarity

NOTHING = {"type": "nothing"}
CITES = Eager(kinds={"CITES"}, k=9, depth=1)


def node(id: str, of: str, *links: Link) -> Document:
    made = Document(id=id, page_content=f"about {id}", metadata={"type": of})
    add_links(made, *links)
    return made


def search(store: LinkStore, found: int, empty: int) -> None:
    for number in range(found + empty):
        store.search(
            f"question {number}", strategy=Similarity(k=1), filter=NOTHING if number < empty else None
        )


class WatchCases:
    """Needs the fixture ``store``, empty, with the embedding of ``stores.embedding``."""

    @pytest.fixture
    def graph(self, store):
        store.add_documents(list(drugs.documents()))
        return store

    @pytest.mark.parametrize(("empty", "alarmed"), [(9, False), (10, False), (11, True)])
    def test_more_than_a_tenth_of_searches_without_a_result_is_an_alarm(self, graph, empty, alarmed):
        with Watch(graph, window=100) as watch:
            search(graph, 100 - empty, empty)
            assert watch.vitals().empty == empty
            assert [alarm.name for alarm in watch.alarms()] == (["empty"] if alarmed else [])
            assert [one.question for one in watch.list_unanswered()] == [
                f"question {n}" for n in range(empty)
            ]
            assert all(one.reason for one in watch.list_unanswered())

    def test_the_window_slides_and_the_alarm_is_logged_each_time_it_begins(self, graph, caplog):
        caplog.set_level(logging.WARNING, "linkstore.watch")
        with Watch(graph, window=20, limits=Limits(least=20)) as watch:
            search(graph, 17, 3)
            assert [alarm.name for alarm in watch.alarms()] == ["empty"]
            search(graph, 20, 0)
            assert watch.alarms() == ()
            assert watch.vitals().searches == 20
            search(graph, 17, 3)
            search(graph, 0, 1)
        assert [record.message for record in caplog.records] == [
            "15.0 % of the last 20 searches found nothing; the limit is 10 %"
        ] * 2

    def test_every_way_to_search_is_seen_sync_and_async(self, graph):
        asked, ended = [], []

        class Listening:
            def search_begins(self, question, strategy):
                asked.append(question)
                return ended.append

        end, seen = graph.observe(Listening()), Watch(graph)
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
        seen.close()
        seen.close()
        end()
        graph.search("not seen")
        assert {*asked} == {*"abcdefgi", *(f"h{n}" for n in range(8)), "inside a running loop"}
        assert sorted(asked) == sorted(search.question for search in ended)
        assert seen.vitals().searches == len(asked)
        assert seen.vitals().empty == 0

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
        with Watch(graph) as before:
            end = graph.observe(Broken())
            with Watch(graph) as after:
                found = graph.search("a")
                asyncio.run(graph.asearch("a"))
                with pytest.raises(UnknownNameError):
                    graph.search("what?", strategy=Eager(kinds={"GOVERND_BY"}))
            end()
        assert [hit.document.id for hit in found] == expected
        assert before.vitals().searches == after.vitals().searches == 3
        logged = [one for one in caplog.records if one.name == "linkstore"]
        assert len(logged) == 1
        assert "Broken" in logged[0].getMessage()
        assert "RuntimeError: broken" in logged[0].exc_text

    def test_what_is_kept_is_bounded_and_many_threads_may_search(self, graph):
        with Watch(graph, window=30, kept=10) as watch, ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: search(graph, 3, 2), range(16)))
            assert watch.vitals().searches == 30
            assert len(watch.list_unanswered()) == 10

    def test_a_search_that_fails_has_found_nothing_and_its_message_is_kept(self, graph):
        with Watch(graph, limits=Limits(least=1)) as watch:
            with pytest.raises(UnknownNameError):
                graph.search("what?", strategy=Eager(kinds={"GOVERND_BY"}))
            (failed,) = watch.list_unanswered()
            assert failed.failed
            assert "GOVERNED_BY" in failed.reason
            assert [alarm.name for alarm in watch.alarms()] == ["empty"]

    def test_the_alarms_of_a_watch_are_findings(self, graph):
        with Watch(graph, limits=Limits(least=2)) as watch:
            search(graph, 0, 1)
            assert examine(graph, watch=watch).findings == ()
            search(graph, 0, 1)
            (found,) = examine(graph, watch=watch).findings
            assert (found.check, found.severity, found.count) == ("searches", "alarm", 2)

    def test_a_clean_store_has_nothing_to_report(self, graph):
        without = examine(graph)
        assert without.findings == ()
        assert without.documents == len(list(drugs.documents()))
        graph.schema.set(Schema.infer(graph))
        clean = examine(graph)
        assert clean.findings == ()
        assert clean.healthy
        assert asyncio.run(aexamine(graph)) == clean
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
            "note",
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
        assert found.keys() == {("names", "alarm"), ("confidence", "note")}
        assert found["names", "alarm"].examples == ("'Compound Alpha' = 'compound-alpha'",)
        assert found["confidence", "note"].examples == ("Gamma in gamma",)
        assert "33.3 %" in found["confidence", "note"].text
