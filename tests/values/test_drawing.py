"""Pictures show what was found, where it was found, and the one path that is marked."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from langchain_core.documents import Document

from linkstore import Hit, Hits, Link, LinkStore, LinkStoreError, Path, Step, add_links
from linkstore.cli.demo import DEMO_ANSWER, QUESTION, site
from linkstore.ingest import FolderSource, index
from linkstore.strategies import Eager, draw

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def hits():
    with LinkStore.open(":memory:") as store, site() as folder:
        index(store, FolderSource(folder))
        return store.search(QUESTION, strategy=Eager(start_k=3, depth=2, kinds={"hyperlink": 1.0}))


def parsed(drawing):
    """The picture as XML, by a parser that knows nothing of how it was made."""
    return ET.fromstring(drawing.svg)


def boxes(root):
    """The rectangles of documents: class, x, y, width."""
    return [
        (rect.get("class"), float(rect.get("x")), float(rect.get("y")), float(rect.get("width")))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("class")
    ]


def texts(root, kind):
    return [text.text for text in root.iter(f"{SVG}text") if text.get("class") == kind]


def test_each_hit_has_a_box_in_the_column_of_its_depth(hits):
    found = boxes(parsed(draw(hits, most=len(hits))))

    by_depth = [sum(hit.depth == depth for hit in hits) for depth in sorted({hit.depth for hit in hits})]
    columns = sorted({x for _, x, _, _ in found})
    assert [sum(x == column for _, x, _, _ in found) for column in columns] == by_depth


def test_boxes_do_not_overlap_and_lie_in_the_picture(hits):
    root = parsed(draw(hits, QUESTION, most=len(hits)))
    width, height = float(root.get("width")), float(root.get("height"))
    found = boxes(root)

    for at, (_, x, y, wide) in enumerate(found):
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= height
        for _, other_x, other_y, _ in found[at + 1 :]:
            assert abs(other_x - x) > wide or abs(other_y - y) > 46


def test_the_path_to_the_answer_is_marked_with_the_words_of_its_links(hits):
    root = parsed(draw(hits, QUESTION, to=DEMO_ANSWER))
    answer = next(hit for hit in hits if hit.document.id == DEMO_ANSWER)

    assert " ".join(texts(root, "label")) == " ".join(step.label for step in answer.path[1:])
    assert len([box for box in boxes(root) if box[0] == "box path"]) == len(answer.path)
    marked = [path for path in root.iter(f"{SVG}path") if path.get("class") == "line marked"]
    assert len(marked) == len(answer.path)  # its links, and the line from the question


def test_without_a_wish_the_best_that_only_links_found_is_marked(hits):
    best = next(hit for hit in hits if hit.depth)

    assert draw(hits).svg == draw(hits, to=best.document.id).svg


def test_links_among_hits_are_drawn_though_no_path_takes_them():
    one, two = Document(id="one", page_content="tower"), Document(id="two", page_content="tower hill")
    add_links(one, Link.bidir(kind="keyword", tag="tower"))
    add_links(two, Link.bidir(kind="keyword", tag="tower"))
    with LinkStore.open(":memory:") as store:
        store.add_documents([one, two])
        root = parsed(draw(store.search("tower", strategy=Eager(start_k=2, depth=0))))

    assert len([path for path in root.iter(f"{SVG}path") if "line" in (path.get("class") or "")]) == 2


def test_only_the_best_and_those_on_the_way_to_them_are_drawn(hits):
    deepest = max(hits, key=lambda hit: hit.depth)

    shown = boxes(parsed(draw(hits, to=deepest.document.id, most=1)))
    assert len(shown) == len({step.id for hit in (hits[0], deepest) for step in hit.path})


def test_hostile_text_stays_text():
    hostile = Document(
        id="</svg><script>",
        page_content="x",
        metadata={"title": "<b>&\x00\x1b\ud83d]]>", "headings": ["\uffff"]},
    )
    found = Hit(document=hostile, score=1.0, similarity=1.0, depth=0, path=Path((Step(id=hostile.id),)))

    drawing = draw(Hits(hits=(found,)), "<script>\x07 ?")
    drawing.svg.encode()
    assert not list(parsed(drawing).iter(f"{SVG}script"))
    assert "<b>&" in "".join(texts(parsed(drawing), "title"))


def test_a_notebook_shows_it_and_a_file_keeps_it(hits, tmp_path):
    drawing = draw(hits)
    drawing.save(tmp_path / "found.svg")

    assert drawing._repr_svg_() == drawing.svg == (tmp_path / "found.svg").read_text()
    assert len(repr(drawing)) < 100


def test_nothing_can_be_drawn_of_nothing(hits):
    with pytest.raises(LinkStoreError, match="no hit to draw"):
        draw(Hits(hits=()))
    with pytest.raises(LinkStoreError, match="no hit 'nobody'"):
        draw(hits, to="nobody")


def test_the_same_hits_give_the_same_picture(hits):
    assert draw(hits, QUESTION) == draw(hits, QUESTION)
