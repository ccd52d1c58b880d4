"""What the page's script decides without a browser: where things are drawn, and what is said in words."""

from __future__ import annotations

import json
from itertools import combinations
from random import Random

import pytest
from scripts import evaluate

WIDTH, HEIGHT = 640, 420


def cross(one, other):
    return (
        one["left"] < other["right"]
        and other["left"] < one["right"]
        and one["top"] < other["bottom"]
        and other["top"] < one["bottom"]
    )


@pytest.mark.parametrize(("size", "deep"), [(1, False), (2, True), (9, True), (14, False), (31, False)])
def test_no_label_of_a_picture_covers_a_node_or_another_label(sources, size, deep):
    """Whatever the links, with labels of all lengths; and the heaviest node has its label."""
    random = Random(size)
    boxes = [
        {
            "id": str(at),
            "radius": random.choice([5, 8, 12]),
            "width": random.randrange(20, 170),
            "height": random.choice([15, 30]),
            "weight": 1 - at / size,
            "depth": random.randrange(3) if deep and at else 0,
        }
        for at in range(size)
    ]
    edges = [[str(random.randrange(size)), str(random.randrange(size))] for _ in range(2 * size)]
    call = f"[...layOut({json.dumps(boxes)}, {json.dumps(edges)}, {WIDTH}, {HEIGHT}).values()]"
    first, second = evaluate(sources, "layout", f"[{call}, {call}]")
    assert first == second
    assert not first[0]["bare"]
    bounds = evaluate(
        sources,
        "layout",
        f"{json.dumps([*zip(boxes, first, strict=True)])}.map(([box, place]) => bound(box, place))",
    )
    for (at, one), (other_at, other) in combinations(enumerate(bounds), 2):
        if not first[at]["bare"] or not first[other_at]["bare"]:
            assert not cross(one, other), (at, other_at)
    for one in bounds:
        assert one["left"] >= -3
        assert one["right"] <= WIDTH + 3
        assert one["top"] >= -3
        assert one["bottom"] <= HEIGHT + 3


def test_names_on_the_map_cover_no_other_and_the_first_ones_come_first(sources):
    random = Random(3)
    labels = [
        {
            "text": str(at),
            "bold": False,
            "x": random.randrange(WIDTH),
            "y": random.randrange(HEIGHT),
            "radius": 6,
            "width": random.randrange(30, 220),
        }
        for at in range(200)
    ]
    labels[0] |= {"x": 300, "y": 200}
    written = evaluate(sources, "labels", f"placeLabels({json.dumps(labels)}, {WIDTH}, {HEIGHT})")
    assert written[0]["label"]["text"] == "0"
    assert len(written) > 5
    areas = [
        {
            "left": one["left"],
            "right": one["left"] + one["label"]["width"],
            "top": one["baseline"] - 12,
            "bottom": one["baseline"] + 3,
        }
        for one in written
    ]
    assert not any(cross(one, other) for one, other in combinations(areas, 2))
    assert all(area["left"] >= 0 and area["right"] <= WIDTH for area in areas)


@pytest.mark.parametrize(
    ("similarities", "depths", "least", "doubt", "grades"),
    [
        ([0.8, 0.7, 0.45, 0.3, 0.2], [0, 0, 0, 1, 0], 0.4, None, "strong strong good linked weak"),
        ([0.3, 0.2], [0, 1], 0.4, None, "weak linked"),
        ([0.3, 0.2], [0, 1], 0.4, "no document has the words", "weak weak"),
        ([0.9, 0.3, -0.1], [0, 1, 1], None, None, "strong good linked"),
        ([0.9, 0.3], [0, 1], -1, None, "strong good"),
    ],
)
def test_a_hit_is_graded_by_the_threshold_of_the_store_and_the_best_hit(
    sources, similarities, depths, least, doubt, grades
):
    hits = [{"similarity": value, "depth": depth} for value, depth in zip(similarities, depths, strict=True)]
    answer = json.dumps({"hits": hits, "least_similarity": least, "doubt": doubt})
    call = f"((answer) => answer.hits.map((hit) => gradeHit(hit, answer)))({answer})"
    assert " ".join(evaluate(sources, "names", call)) == grades


def test_questions_are_made_of_the_titles_of_central_pages_of_different_groups(sources):
    titles = [
        "Hubs | Docs",
        "How do I start? | Docs",
        "Links | Docs",
        "Groups | Docs",
        "{x} | Docs",
        "Low | Docs",
    ]
    nodes = [{"id": str(at), "title": title, "rank": 1 / (at + 1)} for at, title in enumerate(titles)]
    corpus = json.dumps({"nodes": nodes, "edges": [[2, 3, 1], [0, 2, 1], [5, 2, 4]]})
    groups = ["a", "a", "b", "b", "c", "d"]
    asked = evaluate(sources, "names", f"makeQuestions({corpus}, {json.dumps(groups)})")
    assert asked == [
        "What should I know about Hubs?",
        "How are Links and Groups related?",
        "What should I know about Low?",
    ]
    alone = json.dumps({"nodes": nodes[1:2], "edges": []})
    assert evaluate(sources, "names", f"makeQuestions({alone}, ['a'])") == ["How do I start? | Docs?"]
    assert evaluate(sources, "names", "makeQuestions({nodes: [], edges: []}, [])") == []


def test_a_store_is_described_in_sentences(sources):
    nodes = [
        {"id": str(at), "title": f"Page {at}", "degree": degree} for at, degree in enumerate([3, 1, 0, 2, 1])
    ]
    corpus = {
        "noun": "page",
        "pages": 5,
        "links": 4,
        "nodes": nodes,
        "edges": [],
        "hubs": [{"kind": "keyword", "tag": "seed", "pages": 40}],
        "orphans": {"count": 1, "first": []},
        "degrees": [1, 2, 2],
    }
    call = f"describeCorpus({json.dumps(corpus)}, ['0', '0', '0', '3', '3'])"
    assert evaluate(sources, "report", call) == [
        "The store has 5 pages and 4 links between them.",
        "They fall into 2 groups that link each other more than the rest."
        " The largest, around “Page 0”, has 3 pages.",
        "Half of them have at most 1 link.",
        "1 page is linked with no other, so it is found by its words alone.",
        "The keyword “seed” is shared by 40 pages; such links say little, and are not drawn.",
    ]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"degree": 2}, "Half of them have at most 2 links."),
        ({"pages": 6, "degrees": [0, 1, 5]}, "Half of them have at most 3 links."),  # one is not drawn
        (
            {"links": 0, "orphans": {"count": 5, "first": []}},
            "No page is linked with another, so each is found by",
        ),
    ],
)
def test_sentences_about_a_store_say_no_more_than_is_known(sources, changed, says):
    degree = changed.pop("degree", 1)
    nodes = [{"id": str(at), "title": f"Page {at}", "degree": degree} for at in range(5)]
    known = {"noun": "page", "pages": 5, "links": 5, "nodes": nodes, "edges": [], "hubs": []}
    corpus = {**known, "orphans": {"count": 0, "first": []}, "degrees": [0, 1, 4], **changed}
    groups = json.dumps([str(at) for at in range(5)])
    assert says in " ".join(evaluate(sources, "report", f"describeCorpus({json.dumps(corpus)}, {groups})"))
