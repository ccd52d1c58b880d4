"""The graph of a search as data, Mermaid and GraphML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hostile_texts import hostile_texts

from linkstore.core.hit_graph import GraphEdge, GraphNode, HitGraph
from linkstore.strategies import AllPaths, Eager

SVG = "{http://www.w3.org/2000/svg}"
XMLNS = "{http://graphml.graphdrawing.org/xmlns}"


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


def test_graphml_is_read_back_with_every_node_and_link(hits):
    graph = hits.graph()
    root = ET.fromstring(hits.to_graphml())
    assert [node.get("id") for node in root.iter(f"{XMLNS}node")] == [node.id for node in graph.nodes]
    links = [(edge.get("source"), edge.get("target")) for edge in root.iter(f"{XMLNS}edge")]
    assert links == [(edge.source, edge.target) for edge in graph.edges]


def test_a_picture_has_a_column_for_each_depth_and_no_two_documents_at_one_place(hits):
    graph = hits.graph()
    root = ET.fromstring(graph.to_svg())
    boxes = [(float(one.get("x")), float(one.get("y"))) for one in root.iter(f"{SVG}rect") if one.get("x")]
    columns = {depth: at for at, depth in enumerate(sorted({node.depth for node in graph.nodes}))}
    order = sorted({x for x, _ in boxes})
    assert [order.index(x) for x, _ in boxes] == [columns[node.depth] for node in graph.nodes]
    assert len(set(boxes)) == len(graph.nodes)
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 < x < width and 0 < y < height for x, y in boxes)
    labels = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "label"]
    assert labels == [edge.label for edge in graph.edges if edge.followed]
    assert len(list(root.iter(f"{SVG}path"))) == len(graph.edges) + 1  # and the head of an arrow


def test_a_notebook_shows_the_graph_of_nothing_too():
    graph = HitGraph(nodes=(), edges=())
    assert ET.fromstring(graph._repr_svg_()).tag == f"{SVG}svg"
    assert graph.to_mermaid() == "flowchart LR\n"


def test_hostile_texts_stay_texts_in_a_picture_in_graphml_and_in_mermaid():
    for text in hostile_texts():
        node = GraphNode(id=text, title=text, url=text, role="hit", depth=0, score=0.5)
        edge = GraphEdge(source=text, target=text, kind=text, label=text, followed=True)
        graph = HitGraph(nodes=(node,), edges=(edge,))
        picture = ET.fromstring(graph.to_svg())
        assert {child.tag.removeprefix(SVG) for child in picture.iter()} <= {
            "svg", "style", "defs", "marker", "rect", "path", "title", "text"
        }  # fmt: skip
        root = ET.fromstring(graph.to_graphml())
        (found,) = root.iter(f"{XMLNS}node")
        assert {child.tag for child in root.iter()} == {
            f"{XMLNS}{name}" for name in ("graphml", "key", "graph", "node", "edge", "data")
        }
        assert found.get("id") == re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "\ufffd", text)
        head, drawn, link, _ = graph.to_mermaid().split("\n")
        assert head == "flowchart LR"
        assert re.fullmatch(r'  n0\["[^"<>&`]*<br/>0\.500"\]', drawn), drawn
        assert re.fullmatch(r'  n0 -->\|"[^"<>&`]*"\| n0', link), link
