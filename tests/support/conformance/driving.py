"""A, E and U: callers, the end, and what outlives it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.base import Cases
from conformance.probe import CLAIM, QUERY_VECTOR, Drive, Probe, link_both, link_in, link_out, make_record
from linkstore.core.hits import Hits
from linkstore.core.plans import EngineOperation, Nearest, Plan
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, PageEntry, WriteBatch
from linkstore.errors import StoreClosedError
from linkstore.strategies.base import Question
from linkstore.strategies.eager import Eager
from linkstore.strategies.first_stage import Similarity
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.pagerank import PageRank

Reopen = Callable[[], Backend] | None
STRATEGIES = (
    Similarity(k=9),
    Eager(start_k=3, depth=2),
    Mmr(k=5, depth=2, fetch_k=6),
    PageRank(start_k=5),
)


def _fill_store(probe: Probe) -> None:
    probe.put(
        *(
            make_record(f"{n:02}", n / 30, link_out(f"{n * 7 % 30}"), link_in(f"{n}"), link_both(f"h{n % 5}"))
            for n in range(30)
        )
    )


def _run_searches() -> list[Plan[Hits]]:
    return [strategy.plan(Question(vector=QUERY_VECTOR)) for strategy in STRATEGIES]


class DrivingCases(Cases):
    """Synchronous and asynchronous callers, one or many."""

    def test_run_and_arun_answer_alike(self, probe: Probe) -> None:
        """[A-1] Return the same hits, paths and cuts."""
        _fill_store(probe)
        backend = probe.backend
        expected = [backend.run(backend.answer(plan)) for plan in _run_searches()]
        assert all(len(hits) for hits in expected)

        async def ask() -> list[Hits]:
            return [await backend.arun(backend.answer(plan)) for plan in _run_searches()]

        assert asyncio.run(ask()) == expected

    def test_run_works_inside_a_running_loop(self, probe: Probe) -> None:
        """[A-2] Write and search synchronously from a coroutine, as in a notebook."""
        backend = probe.backend

        async def cell() -> list[Hits]:
            backend.run(backend.write(WriteBatch(put=[make_record("new", 0.9)])))
            return [backend.run(backend.answer(plan)) for plan in _run_searches()]

        assert [[hit.document.id for hit in hits] for hits in asyncio.run(cell())] == [["new"]] * len(
            STRATEGIES
        )

    def test_many_threads_ask_at_once(self, probe: Probe) -> None:
        """[A-3] Answer from whole states while another thread writes."""
        _fill_store(probe)
        backend = probe.backend
        with ThreadPoolExecutor(5) as pool:
            writes = pool.submit(self._rewrite, backend)
            found = list(pool.map(lambda _: probe.met(["h0", "h1"]).sizes, range(40)))
            writes.result()
        assert all(sizes == {"h0": 6, "h1": 6} for sizes in found)
        assert len(probe.ids()) == 30

    def test_many_tasks_ask_at_once(self, probe: Probe) -> None:
        """[A-3] Answer concurrent tasks of one loop."""
        _fill_store(probe)
        backend = probe.backend
        expected = [backend.run(backend.answer(plan)) for plan in _run_searches()] * 5

        async def ask() -> list[Hits]:
            plans = [plan for _ in range(5) for plan in _run_searches()]
            return await asyncio.gather(*(backend.arun(backend.answer(plan)) for plan in plans))

        assert asyncio.run(ask()) == expected

    @staticmethod
    def _rewrite(backend: Backend) -> None:
        """Replace three documents over and over by others on the same link groups."""
        for turn in range(30):
            n = turn % 3
            put = make_record(
                f"{n:02}",
                n / 40,
                link_out(f"{n * 7 % 30}"),
                link_in(f"{n}"),
                link_both(f"h{n % 5}"),
                turn=turn,
            )
            backend.run(backend.write(WriteBatch(put=[put])))


class LifecycleCases(Cases):
    """Closing, and opening again."""

    OPERATIONS: tuple[Callable[[Backend], EngineOperation[Any]], ...] = (
        lambda backend: backend.answer(_ask_nearest()),
        lambda backend: backend.write(WriteBatch(put=[make_record("b")])),
        lambda backend: backend.relink({"k"}, {"a": ()}),
        lambda backend: backend.touch({}),
        lambda backend: backend.accessed([]),
        lambda backend: backend.claim(Manifest(embedding="e", dimension=4)),
        lambda backend: backend.manifest(),
        lambda backend: backend.pages(None),
        lambda backend: backend.scan(None, 5),
        lambda backend: backend.survey(),
        lambda backend: backend.vocabulary(Vocabulary()),
        lambda backend: backend.note("a"),
        lambda backend: backend.set_note("a", "b", None),
        lambda backend: backend.flush(),
        lambda backend: backend.compact(),
        lambda backend: backend.verify(),
        lambda backend: backend.repair(),
    )
    NAMES = (
        "answer",
        "write",
        "relink",
        "touch",
        "accessed",
        "claim",
        "manifest",
        "pages",
        "scan",
        "survey",
        "vocabulary",
        "note",
        "set_note",
        "flush",
        "compact",
        "verify",
        "repair",
    )

    @pytest.mark.parametrize("operation", OPERATIONS, ids=NAMES)
    def test_a_closed_backend_says_so(
        self, probe: Probe, operation: Callable[[Backend], EngineOperation[Any]]
    ) -> None:
        """[E-1] Raise an error in every operation, reading or writing."""
        probe.put(make_record("a"))
        probe.backend.close()
        with pytest.raises(StoreClosedError):
            probe.do(operation(probe.backend))

    def test_closing_twice_is_fine(self, probe: Probe) -> None:
        """[E-2] Allow a second close with documents in the store, and without."""
        probe.put(make_record("a"))
        probe.backend.close()
        probe.backend.close()
        with pytest.raises(StoreClosedError):
            probe.near(1)

    def test_what_was_written_is_there_again(self, probe: Probe, drive: Drive, reopen: Reopen) -> None:
        """[U-1] Keep documents, links and vectors, with the same answers."""
        opener = _require_durable(reopen)
        _fill_store(probe)
        before = [probe.search(strategy) for strategy in STRATEGIES]
        probe.backend.close()
        again = Probe(opener(), drive)
        try:
            assert [again.search(strategy) for strategy in STRATEGIES] == before
            assert again.put(make_record("new", 0.99)).added == 1
            assert again.near(1) == ["new"]
            assert again.do(again.backend.verify()).sound
        finally:
            again.backend.close()

    def test_manifest_and_pages_are_there_again(self, probe: Probe, drive: Drive, reopen: Reopen) -> None:
        """[U-2] Keep manifest and pages as they were recorded."""
        opener = _require_durable(reopen)
        page = PageEntry(source="s", url="u", digest="d", ids=("b", "a"))
        probe.write(put_pages=[page])
        probe.backend.close()
        again = Probe(opener(), drive)
        try:
            assert again.do(again.backend.manifest()) == CLAIM
            assert again.do(again.backend.pages("s")) == [page]
        finally:
            again.backend.close()

    def test_what_was_removed_stays_removed(self, probe: Probe, drive: Drive, reopen: Reopen) -> None:
        """[U-3] Keep dangling links, which still wait for an answer."""
        opener = _require_durable(reopen)
        probe.put(
            make_record("a", 0.9, link_out("b"), link_in("a")),
            make_record("b", 0.5, link_in("b")),
            make_record("c", 0.4, link_out("a")),
        )
        probe.remove("b")
        probe.put(make_record("c", 0.4))
        probe.backend.close()
        again = Probe(opener(), drive)
        try:
            assert again.ids() == ["a", "c"]
            assert again.met(["a", "b"], "out").of == {"a": [], "b": ["a"]}
            again.put(make_record("late", 0.1, link_in("b")))
            assert again.met(["b"]).of == {"b": ["late"]}
        finally:
            again.backend.close()


def _ask_nearest() -> Plan[Any]:
    return (yield Nearest(vector=QUERY_VECTOR, k=1))


def _require_durable(reopen: Reopen) -> Callable[[], Backend]:
    if reopen is None:
        pytest.skip("not a durable backend: it gives no 'reopen'")
    return reopen
