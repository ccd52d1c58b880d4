"""A server that is killed under write load has all that it acknowledged when it is started again.

And what its disk goes through in better days, flushes and compactions, changes no answer.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from cassandra_server import DURABLE, create_keyspace
from cassandra_tables import split_early
from differential import DIMENSION, RandomGraph, compare_hits
from internals import Manifest
from langchain_core.documents import Document
from oracle import OracleBackend
from stores import embedding, times

from linkstore import Link, LinkStore, add_links
from linkstore.errors import StoreUnavailableError
from linkstore.strategies import Eager, Mmr, Similarity

WRITERS = 3
BATCH = 4
BATCHES = 40
"""So many must have been acknowledged before the server is killed."""
State = dict[str, Document | None]
"""Documents by id; None for one that was deleted, or never there."""
EVERYTHING = Eager(start_k=0, depth=1, adjacent_k=1000, hub_cap=10_000, k=1000, kinds=["page"])
SEARCHES = (
    Similarity(k=20),
    Eager(start_k=4, depth=2, direction="both"),
    Eager(start_k=4, depth=2, direction="backward"),
    Mmr(k=10, depth=2),
)


def tag(writer: int, version: int) -> str:
    return f"writer {writer} version {version}"


def page(writer: int, number: int, version: int = 0) -> Document:
    """A page that the root links to, by a link of its version, and that has a keyword."""
    made = Document(
        id=f"{writer}/{number}", page_content=f"{writer} {number} v{version}", metadata={"v": version}
    )
    add_links(
        made,
        Link.incoming(kind="page", tag=tag(writer, version)),
        Link.bidir(kind="keyword", tag=f"{number % 29}"),
    )
    return made


def root() -> Document:
    """Links to all pages of all versions."""
    made = Document(id="root", page_content="where all begins")
    add_links(made, [Link.outgoing(kind="page", tag=tag(w, v)) for w in range(WRITERS) for v in (0, 1)])
    return made


class Writer:
    """Adds, replaces and deletes pages until the server is gone, and knows what was acknowledged."""

    def __init__(self, store: LinkStore, number: int) -> None:
        self._store = store
        self._number = number
        self.acknowledged: State = {}
        self.pending: State = {}
        self.batches = 0
        self.interrupted = False

    def write(self, stop: threading.Event) -> None:
        """Returns when the store says that the server is gone, or when told to stop."""
        for change in self._changes():
            self.pending = change
            put = [document for document in change.values() if document]
            try:
                if put:
                    self._store.add_documents(put)
                else:
                    self._store.delete(list(change))
            except StoreUnavailableError:
                self.interrupted = True
                return
            self.acknowledged |= change
            self.batches += 1
            if stop.is_set():
                return

    def _changes(self) -> Iterator[State]:
        """Pages are added; of each three batches one is relinked later, and one deleted."""
        for batch in itertools.count():
            numbers = range(batch * BATCH, (batch + 1) * BATCH)
            yield {(made := page(self._number, n)).id: made for n in numbers}
            if batch % 3 == 1:
                yield {(made := page(self._number, n - BATCH, 1)).id: made for n in numbers}
            if batch % 3 == 2:
                yield {page(self._number, n - BATCH).id: None for n in numbers}


def written_until_killed(store: LinkStore, server) -> list[Writer]:
    """The writers, as they were interrupted by the death of the server."""
    writers = [Writer(store, number) for number in range(WRITERS)]
    stop = threading.Event()
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(writer.write, stop) for writer in writers]
        try:
            until = time.monotonic() + 60
            while sum(writer.batches for writer in writers) < BATCHES and time.monotonic() < until:
                time.sleep(0.01)
            server.kill()
        finally:
            stop.set()
        for one in running:
            one.result(timeout=60)
    return writers


def stored_after(store: LinkStore, writers: list[Writer]) -> State:
    """What is there; what was acknowledged is there, and what was under way may be."""
    found = {document.id: document for document in store.scan()}
    for writer in writers:
        for name in writer.acknowledged.keys() | writer.pending.keys():
            allowed = [state.get(name) for state in (writer.acknowledged, writer.pending)]
            assert found.get(name) in (allowed if name in writer.pending else allowed[:1]), name
    known = {name for writer in writers for name in writer.acknowledged | writer.pending}
    assert found.keys() <= known | {"root"}
    return {**found}


def assert_right(store: LinkStore, there: State, *, repaired: bool) -> None:
    """Every page is found by its link, and every search answers as an oracle of the same documents.

    What a search left out is counted with documents that are not there, until the store is repaired.
    """
    reached = store.search("pages", strategy=EVERYTHING, initial_roots=["root"])
    assert {hit.document.id: hit.document for hit in reached} == there
    assert {hit.depth for hit in reached} == {0, 1}
    oracle = LinkStore(embedding(), backend=OracleBackend())
    oracle.add_documents(list(filter(None, there.values())))
    for strategy, query in itertools.product(SEARCHES, ("0 1 v0", "1 3 v1", "elsewhere")):
        found, expected = (one.search(query, strategy=strategy) for one in (store, oracle))
        if not repaired:
            found, expected = replace(found, cuts=()), replace(expected, cuts=())
        assert compare_hits(found, expected) == [], f"{strategy} about {query!r}"


@pytest.mark.parametrize("splitting", [False, True])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed_under_load(
    own_cassandra, splitting, monkeypatch
) -> None:
    """It is there whole, with its links; what was under way is there as it was or as it was to be."""
    from internals import CassandraSettings, make_url_backend

    if splitting:
        split_early(monkeypatch)
    server = own_cassandra(settings=DURABLE)
    with server.connect() as session:
        create_keyspace(session, "crash")
    settings = CassandraSettings(timeout=1.5, deadline=2)
    url = server.endpoint.store_url("crash", "t")
    with LinkStore(embedding(), backend=make_url_backend(url, settings=settings)) as store:
        store.add_documents([root()])
        writers = written_until_killed(store, server)
        assert sum(writer.batches for writer in writers) >= BATCHES
        assert any(writer.interrupted for writer in writers)
        server.start()
        nothing_under_way = CassandraSettings(settle=1e-6)
        with LinkStore(embedding(), backend=make_url_backend(url, settings=nothing_under_way)) as again:
            there = stored_after(again, writers)
            assert_right(again, there, repaired=False)
            problems = {finding.problem.split(" ")[0] for finding in again.verify().findings}
            assert problems <= {"members", "words"}, "no link is missing, and no word"
            again.verify(repair=True)
            assert again.verify().sound
            assert_right(again, there, repaired=True)
        assert_right(store, there, repaired=True)


class TestDisk:
    """Before and after what is in memory is written out, and what is on disk is merged."""

    @pytest.mark.parametrize("seed", range(times(1, 5)))
    def test_flushes_and_compactions_change_no_answer(
        self, cassandra, cassandra_session, keyspace, seed
    ) -> None:
        """Through changes that relink, delete and put back: after each, flushed, and at times compacted."""
        from internals import CassandraBackend

        graph, oracle = RandomGraph(seed, documents=60), OracleBackend()
        backend = CassandraBackend(cassandra_session, keyspace, "t")
        for one in (backend, oracle):
            one.run(one.claim(Manifest(embedding="disk", dimension=DIMENSION)))
        treatments = ((), ("flush",), ("flush",), ("flush", "compact"), ("flush", "compact"))
        for change, treatment in zip(graph.changes(), treatments, strict=True):
            searches = graph.searches(25)
            written = [one.run(one.write(change)) for one in (backend, oracle)]
            assert written[0] == written[1]
            assert self.unlike(backend, oracle, searches) == []
            for command in treatment:
                cassandra.nodetool(command, keyspace)
                assert self.unlike(backend, oracle, searches) == [], f"after {command}, seed {seed}"
        assert backend.run(backend.verify()).sound

    def unlike(self, backend, oracle, searches) -> list[str]:
        """In what two backends differ."""
        differ = []
        for search in searches:
            hits = [search.on(one) for one in (backend, oracle)]
            differ += compare_hits(*hits)
        surveys = [one.run(one.survey()) for one in (backend, oracle)]
        return differ if surveys[0] == surveys[1] else [*differ, str(surveys)]
