"""The shortest paths between two documents: those of networkx, by length."""

from __future__ import annotations

import itertools
import random

import pytest
from langchain_core.documents import Document
from stores import times

from linkstore import Link, LinkStore, add_links
from linkstore.errors import QueryError, StrategyError

networkx = pytest.importorskip("networkx")
K = 4


def make_network(seed: int, size: int, links: int) -> tuple[list[Document], networkx.Graph]:
    """Make documents with random links of random weights, and the same as a graph of networkx."""
    rng = random.Random(seed)
    graph = networkx.Graph()
    documents = []
    weights = {(a, b): rng.uniform(0.1, 1) for a, b in (rng.sample(range(size), 2) for _ in range(links))}
    for number in range(size):
        document = Document(id=f"d{number}", page_content=f"Document {number}.", metadata={"n": number})
        add_links(document, Link.incoming(kind="R", tag=f"d{number}"))
        for (source, target), weight in weights.items():
            if source == number:
                add_links(document, Link.outgoing(kind="R", tag=f"d{target}", weight=weight))
        documents.append(document)
        graph.add_node(f"d{number}")
    for (source, target), weight in weights.items():
        here, there = f"d{source}", f"d{target}"
        length = 1 / weight
        if graph.has_edge(here, there):
            length = min(length, graph[here][there]["length"])
        graph.add_edge(here, there, length=length)
    return documents, graph


@pytest.mark.parametrize("seed", range(times(4, 40)))
def test_the_paths_are_the_shortest_ones(seed: int) -> None:
    size = 40
    documents, graph = make_network(seed, size, links=(50, 80, 120, 300)[seed % 4])
    rng = random.Random(seed)
    with LinkStore() as store:
        store.add_documents(documents)
        for _ in range(times(25, 250)):
            start, end = (f"d{n}" for n in rng.sample(range(size), 2))
            paths = store.links.paths(start, end, K)
            wanted: list[list[str]] = []
            if networkx.has_path(graph, start, end):
                simple = networkx.shortest_simple_paths(graph, start, end, weight="length")
                wanted = list(itertools.islice(simple, K))
            measured = [networkx.path_weight(graph, path, "length") for path in wanted]
            assert paths.lengths == pytest.approx(measured, rel=1e-5)
            assert [list(chain.documents) for chain in paths] == wanted
            assert not paths.limits


async def test_async_paths_are_the_same() -> None:
    documents, _ = make_network(7, 30, links=60)
    with LinkStore() as store:
        store.add_documents(documents)
        assert await store.links.apaths("d1", "d2") == store.links.paths("d1", "d2")


def test_paths_pass_only_what_the_filter_allows() -> None:
    documents = [
        Document(id=id, page_content=id, metadata={"open": id != "short"})
        for id in ("a", "b", "short", "x", "y")
    ]
    for start, end in (("a", "short"), ("short", "b"), ("a", "x"), ("x", "y"), ("y", "b")):
        add_links(next(d for d in documents if d.id == start), Link.outgoing(kind="R", tag=end))
    for document in documents:
        add_links(document, Link.incoming(kind="R", tag=document.id or ""))
    with LinkStore() as store:
        store.add_documents(documents)
        assert [chain.documents for chain in store.links.paths("a", "b")] == [
            ("a", "short", "b"),
            ("a", "x", "y", "b"),
        ]
        (hidden,) = store.links.paths("a", "b", filter={"open": True})
        assert str(hidden) == "a —[R]→ x —[R]→ y —[R]→ b"
        (back,) = store.links.paths("b", "a", 1)
        assert str(back) == "b ←[R]— short ←[R]— a"


def test_limits_of_paths_are_said_and_wrong_arguments_are_errors() -> None:
    documents, _ = make_network(3, 40, links=120)
    with LinkStore(max_depth=1) as store:
        store.add_documents(documents)
        assert "max_depth=1" in store.links.paths("d0", "d1", 2).limits[0]
    with LinkStore() as store:
        store.add_documents(documents)
        assert "max_nodes=3" in store.links.paths("d0", "d39", max_nodes=3).limits[0]
        assert "hub_cap=1" in store.links.paths("d0", "d39", hub_cap=1).limits[-1]
        with pytest.raises(QueryError, match="same document"):
            store.links.paths("d0", "[d0]")
        with pytest.raises(QueryError, match="no document has the id or name"):
            store.links.paths("d0", "zzzz")
        with pytest.raises(StrategyError, match="k must be"):
            store.links.paths("d0", "d1", 0)
