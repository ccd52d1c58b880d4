"""``max_depth``: how many links in a row any search of a store may follow."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import searching
from conformance.probe import link_in, link_out, make_record
from differential import DIMENSION, RandomGraph, compare_hits
from internals import Groups, Hits, Manifest, Members, Nearest, Plan, limit_depth
from langchain_core.documents import Document
from oracle import OracleBackend
from stores import embedding

from linkstore import Link, LinkStore, add_links
from linkstore.errors import StrategyError
from linkstore.strategies import Eager, Mmr, PageRank, Question, Similarity, Strategy, Words


def chain(length: int) -> Iterator[Document]:
    """Documents that each link to the next."""
    for n in range(length):
        made = Document(id=f"{n}", page_content=f"document {n}")
        add_links(made, Link.incoming(kind="next", tag=f"{n}"), Link.outgoing(kind="next", tag=f"{n + 1}"))
        yield made


@pytest.fixture
def store():
    with LinkStore(embedding(), max_depth=3) as made:
        made.add_documents(list(chain(8)))
        yield made


def test_asking_for_more_is_an_error_that_names_the_ceiling(store):
    assert store.search_settings.max_depth == 3
    for strategy in (Eager(depth=4), Mmr(depth=9)):
        with pytest.raises(StrategyError, match=r"up to [49] links.*max_depth=3.*at most 3"):
            store.search("document 0", strategy=strategy)
    for walk in (store.traversal_search, store.mmr_traversal_search):
        with pytest.raises(StrategyError, match="max_depth=3"):
            walk("document 0", depth=4)
    with pytest.raises(StrategyError, match="max_depth=3"):
        store.as_retriever(search_type="traversal", search_kwargs={"depth": 4}).invoke("document 0")


def test_what_is_within_it_is_as_without_it(store):
    found = store.search("x", strategy=Eager(start_k=0, depth=3), initial_roots=["0"])
    assert sorted(hit.document.id for hit in found) == ["0", "1", "2", "3"]
    for strategy in (PageRank(), Similarity(), Words(), Mmr(depth=3)):
        store.search("document 0", strategy=strategy)


def test_a_ceiling_of_none_follows_no_link():
    with LinkStore(embedding(), max_depth=0) as store:
        store.add_documents(list(chain(3)))
        for strategy in (Similarity(), Words(), Eager(depth=0)):
            assert all(not hit.depth for hit in store.search("document 0", strategy=strategy))
        with pytest.raises(StrategyError, match="max_depth=0"):
            store.search("document 0")  # PageRank follows one


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "3", 2**40])
def test_a_ceiling_that_makes_no_sense_is_refused(wrong, tmp_path):
    for make in (
        lambda: LinkStore(embedding(), max_depth=wrong),
        lambda: LinkStore.open(tmp_path / "kb", embedding(), max_depth=wrong),
    ):
        with pytest.raises(StrategyError, match="max_depth"):
            make()


def test_it_outlives_pickling(tmp_path):
    with LinkStore.open(tmp_path / "kb", embedding(), max_depth=2) as store:
        again = pickle.loads(pickle.dumps(store))
        assert again.search_settings.max_depth == 2
        again.close()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Runaway(Strategy):
    """Says that it follows no link, and follows them as long as there are any."""

    def plan(self, question: Question) -> Plan[Hits]:
        refs = (yield Nearest(vector=question.vector, k=1)).refs
        for _ in range(100):
            groups = np.unique((yield Groups(refs=refs, side="out")).group)
            reached = yield Members(
                groups=groups, side="in", vector=question.vector, take=9, cap=9, exclude=refs
            )
            refs = reached.refs
        return Hits(hits=())


def test_a_strategy_that_does_not_keep_its_word_is_stopped(store):
    with pytest.raises(StrategyError, match=r"Runaway\(\).*4 links.*max_depth=3"):
        store.search("document 0", strategy=Runaway())
    with LinkStore(backend=store.backend, embedding=embedding()) as unlimited:
        unlimited.search("document 0", strategy=Runaway())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Guessing(Strategy):
    """Starts from link groups whose numbers it has from elsewhere."""

    groups: tuple[int, ...] = ()

    def plan(self, question: Question) -> Plan[Hits]:
        groups = np.array(self.groups)
        for side in ("in", "in"):
            reached = yield Members(groups=groups, side=side, vector=question.vector, take=9, cap=9)
            groups = np.unique((yield Groups(refs=reached.refs, side="out")).group)
        return Hits(hits=())


def test_documents_of_a_group_that_no_search_led_to_are_starts():
    """Then one link is followed."""
    search = searching.store(
        make_record("a", 0.5, link_in("1"), link_out("2")),
        make_record("b", 0.5, link_in("2"), link_out("3")),
        make_record("c", 0.5, link_in("3")),
    )
    strategy = Guessing(groups=tuple(range(3)))
    assert not search(Limited(inner=strategy, most=1))
    with pytest.raises(StrategyError, match=r"1 link .*max_depth=0"):
        search(Limited(inner=strategy, most=0))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Limited(Strategy):
    """Follows no more links than a store allows."""

    inner: Strategy
    most: int

    def plan(self, question: Question) -> Plan[Hits]:
        return (yield from limit_depth(self.inner.plan(question), self.inner, self.most))


@pytest.mark.parametrize("seed", range(3))
def test_plans_within_the_ceiling_are_not_disturbed(seed):
    """Random searches answer alike with a ceiling at the depth that they declare."""
    backend, graph = OracleBackend(), RandomGraph(seed, words=True)
    backend.run(backend.claim(Manifest(embedding="random", dimension=DIMENSION)))
    for change in graph.changes():
        backend.run(backend.write(change))
    for search in graph.searches(60):
        plan = limit_depth(search.strategy.plan(search.question), search.strategy, search.strategy.hops)
        held = backend.run(backend.answer(plan, search.scope))
        assert compare_hits(held, search.on(backend), 0.0) == []
