"""The data of a link: a JSON object of its own, which comes back as it was given."""

from __future__ import annotations

import datetime as dt
import functools
import json
import uuid
from pathlib import PurePosixPath

import pytest
from internals import (
    SHOWN_DATA,
    PathStep,
    Triple,
    collect_weights,
    convert_link_data,
    merge_links,
    parse_filter,
    replace_kinds,
)
from langchain_core.documents import Document

from linkstore import Link, add_links, copy_with_links, get_links
from linkstore.errors import LinkError


def test_data_survive_dict_and_json():
    data = {"since": 2020, "share": 0.5, "by": ["A", None], "é": {"": True}}
    link = Link.outgoing(kind="k", tag="t", label="l", weight=0.5, data=data)
    again = Link.from_dict(json.loads(json.dumps(link.to_dict())))
    assert (again, again.data, again.label, again.weight) == (link, data, "l", 0.5)


def test_a_link_without_data_is_written_as_before():
    for data in (None, {}):
        link = Link(kind="k", tag="t", direction="in", data=data)
        assert link.data is None
        assert link.to_dict() == {"kind": "k", "tag": "t", "direction": "in"}
    assert Link.from_dict({"kind": "k", "tag": "t", "direction": "in", "data": None}).data is None


def test_data_are_the_links_own():
    """What the caller changes later, in what was given or in what came back, changes no link."""
    data = {"list": [1]}
    link = Link.bidir(kind="k", tag="t", data=data)
    data["list"].append(2)
    link.to_dict()["data"]["list"].append(3)
    assert link.data == {"list": [1]}


def test_usual_values_are_written_as_in_metadata():
    day = dt.date(2022, 11, 30)
    number = uuid.UUID(int=7)
    link = Link.incoming(
        kind="k", tag="t", data={"day": day, "id": number, "of": {3, 1}, "at": PurePosixPath("a/b")}
    )
    assert link.data == {"day": "2022-11-30", "id": str(number), "of": [1, 3], "at": "a/b"}
    (written,) = convert_link_data([{**link.to_dict(), "data": {"day": day}}])
    assert written["data"] == {"day": "2022-11-30"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (["since", 2020], "data must be a dict"),
        ("since", "data must be a dict"),
        ({1: 2}, r"data\[1\] has a key that is not a string"),
        ({"a": ...}, r"data\['a'\] is not plain JSON"),
        ({"a": float("nan")}, r"data\['a'\] is not plain JSON"),
        ({"a": 2**70}, r"data\['a'\] is not plain JSON"),
        ({"a": "\ud800"}, r"data\['a'\] is not plain JSON"),
        ({"\ud800": 1}, "is not plain JSON"),
    ],
    ids=ascii,
)
def test_what_is_no_json_object_is_refused(data, message):
    document = Document(id="d", page_content="", metadata={})
    with pytest.raises(LinkError, match=message):
        Link.outgoing(kind="k", tag="t", data=data)
    with pytest.raises(LinkError, match="document 'd'"):
        add_links(document, {"kind": "k", "tag": "t", "direction": "out", "data": data})
    assert document.metadata == {}


def test_data_have_at_most_100_levels():
    """Any deeper, Python could neither copy nor show them."""
    deepest = functools.reduce(lambda one, _: [one], range(98), 1)
    link = Link.outgoing(kind="k", tag="t", data={"a": deepest, "when": dt.date(2020, 1, 1)})
    assert Link.from_dict(link.to_dict()).data == {"a": deepest, "when": "2020-01-01"}
    document = Document(id="d", page_content="")
    for levels in (100, 250, 2_000, 100_000):
        deeper = {"a": functools.reduce(lambda one, _: {"b": one}, range(levels), 1)}
        with pytest.raises(LinkError, match=r"data\['a'\] has more than 100 levels"):
            Link.outgoing(kind="k", tag="t", data=deeper)
        with pytest.raises(LinkError, match="document 'd'"):
            add_links(document, {"kind": "k", "tag": "t", "direction": "out", "data": deeper})


def test_equal_links_keep_the_first_data_whole():
    """Fields are not mixed: nobody stated the mixture."""
    one, two = ({"kind": "k", "tag": "t", "direction": "out", "data": data} for data in ({"a": 1}, {"b": 2}))
    bare = {"kind": "k", "tag": "t", "direction": "out", "weight": 0.5}
    assert [link.data for link in merge_links([bare, one, two])] == [{"a": 1}]
    assert [link.data for link in merge_links([two, one])] == [{"b": 2}]
    other = {**one, "direction": "in", "data": {"c": 3}}
    assert [link.data for link in merge_links([one, other])] == [{"a": 1}, {"c": 3}]


def test_documents_keep_data():
    document = Document(id="d", page_content="", metadata={})
    add_links(document, Link.outgoing(kind="k", tag="t", data={"a": 1}))
    copy = copy_with_links(document, Link.outgoing(kind="k", tag="u", data={"b": 2}))
    assert [link.data for link in get_links(document)] == [{"a": 1}]
    assert [link.data for link in get_links(copy)] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize(("before", "after"), [(1, 1.0), (1, True), (0, False), (1, 2), (None, "None")])
def test_other_data_are_other_links_also_where_python_calls_them_equal(before, after):
    def links(value: object) -> list[Link]:
        return [Link.outgoing(kind="k", tag="t", data={"a": value})]

    metadata = {"links": [link.to_dict() for link in links(before)]}
    assert replace_kinds(metadata, {"k"}, links(before)) is None
    assert replace_kinds(metadata, {"k"}, links(after)) == [link.to_dict() for link in links(after)]


def test_the_weight_is_the_highest_of_those_that_pass():
    links = [
        Link.outgoing(kind="k", tag="t", weight=0.75, data={"year": 2019}),
        Link.bidir(kind="k", tag="t", weight=0.5, data={"year": 2021}),
        Link.incoming(kind="k", tag="t", weight=0.25, data={"year": 2022}),
        Link.outgoing(kind="k", tag="bare"),
    ]
    since = parse_filter({"year": {"$gte": 2020}})
    assert collect_weights(links, "out", since) == {("k", "t"): 0.5}
    assert collect_weights(links, "in", since) == {("k", "t"): 0.5}
    assert collect_weights(links, "out", parse_filter({"year": {"$exists": False}})) == {("k", "bare"): 1.0}


def test_steps_and_triples_show_data_and_can_be_hashed():
    step = PathStep(id="b", kind="k", tag="t", label="l", data={"a": 1})
    triple = Triple(subject="a", kind="k", object="b", data={"a": 1})
    assert (str(step), str(triple)) == ('—[k t "l" {"a":1}]→ b', 'a —[k {"a":1}]→ b')
    assert len({step, PathStep(id="b", kind="k", tag="t", label="l")}) == 2
    assert len({triple, Triple(subject="a", kind="k", object="b")}) == 2
    assert (step.to_dict()["data"], triple.to_dict()["data"]) == ({"a": 1}, {"a": 1})
    assert "data" not in PathStep(id="b").to_dict()
    assert "data" not in Triple(subject="a", kind="k", object="b").to_dict()
    long = str(PathStep(id="b", kind="k", tag="t", data={"text": "x" * 10_000}))
    assert len(long) < SHOWN_DATA + 30
