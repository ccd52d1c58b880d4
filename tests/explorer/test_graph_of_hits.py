"""The graph of a search as data and as a Mermaid flowchart."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hostile_texts import hostile_texts
from internals import GraphEdge, GraphNode, HitGraph

from linkstore.strategies import AllPaths, Eager


@pytest.fixture
def hits(store):
    return store.search("How do I install the program?", strategy=Eager(start_k=1, depth=2, k=3))


def test_every_hit_and_every_link_that_led_to_one_is_in_the_graph(hits):
    graph = hits.graph()
    assert [node.id for node in graph.nodes] == [hit.document.id for hit in hits]
    followed = {(edge.source, edge.target): edge.label for edge in graph.edges if edge.followed}
    for hit in hits:
        steps = hit.path.steps
        for before, after in pairwise(steps):
            assert followed[before.id, after.id] == f"see {after.id}"
    roles = {node.id: node.role for node in graph.nodes}
    assert roles == {hit.document.id: "hit" if hit.depth else "start" for hit in hits}


def test_links_among_hits_that_were_not_followed_are_in_the_graph_once(hits):
    graph = hits.graph()
    followed = {frozenset((edge.source, edge.target)) for edge in graph.edges if edge.followed}
    others = [(edge.source, edge.target) for edge in graph.edges if not edge.followed]
    assert set(others) == {("install", "faq")} - {tuple(pair) for pair in followed} or others == []
    assert len(set(others)) == len(others)


def test_documents_that_are_only_on_the_way_are_nodes_too(store):
    found = store.search(
        "first release", strategy=AllPaths(start_k=4, depth=2, k=4), result_filter={"title": "Questions"}
    )
    graph = found.graph()
    named = {id for edge in graph.edges for id in (edge.source, edge.target)}
    assert named <= {node.id for node in graph.nodes}


def test_a_flowchart_has_every_document_and_every_link(hits):
    graph = hits.graph()
    _, *lines = hits.to_mermaid().splitlines()
    assert len(lines) == len(graph.nodes) + len(graph.edges)
    assert graph._repr_markdown_() == f"```mermaid\n{hits.to_mermaid()}```"


def test_the_flowchart_of_nothing_is_one_too():
    assert HitGraph(nodes=(), edges=()).to_mermaid() == "flowchart LR\n"


def test_hostile_texts_stay_texts_in_a_flowchart():
    for text in hostile_texts():
        node = GraphNode(id=text, title=text, url=text, role="hit", depth=0, score=0.5)
        edge = GraphEdge(source=text, target=text, kind=text, label=text, followed=True)
        head, drawn, link, _ = HitGraph(nodes=(node,), edges=(edge,)).to_mermaid().split("\n")
        assert head == "flowchart LR"
        assert re.fullmatch(r'  n0\["[^"<>&`]*<br/>0\.500"\]', drawn), drawn
        assert re.fullmatch(r'  n0 -->\|"[^"<>&`]*"\| n0', link), link
