"""The link model: values, what is refused, merging, and links in metadata."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import warnings
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    DIRECTIONS,
    LINKS_KEY,
    MAX_TAG_BYTES,
    Link,
    add_links,
    as_link,
    copy_with_links,
    get_links,
    merge_links,
    parse_links,
    strip_links,
)
from langchain_core.documents import Document

from linkstore.errors import LinkError, LinkStoreError

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6)
LINKS = st.builds(
    Link,
    kind=NAMES,
    tag=NAMES,
    direction=st.sampled_from(sorted(DIRECTIONS)),
    label=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    weight=st.floats(0, 1) | st.sampled_from([0, 1]),
)
FEW_LINKS = st.builds(
    Link,
    kind=st.sampled_from("kl"),
    tag=st.sampled_from("xy"),
    direction=st.sampled_from(sorted(DIRECTIONS)),
    label=st.sampled_from([None, "", "one", "two"]),
    weight=st.sampled_from([0.0, 0.5, 1.0]),
)


def whole(link: Link) -> tuple[Any, ...]:
    """Everything a link holds, also what is no part of equality."""
    return link.kind, link.tag, link.direction, link.label, link.weight


class TestALink:
    def test_takes_keywords_only(self) -> None:
        with pytest.raises(TypeError):
            Link("k", "t", "in")  # type: ignore[misc]

    def test_is_frozen_and_slotted(self) -> None:
        link = Link.outgoing(kind="k", tag="t")
        with pytest.raises(FrozenInstanceError):
            link.tag = "u"  # type: ignore[misc]
        assert not hasattr(link, "__dict__")

    @pytest.mark.parametrize(
        ("make", "direction", "leads_out", "leads_in"),
        [
            (Link.incoming, "in", False, True),
            (Link.outgoing, "out", True, False),
            (Link.bidir, "bidir", True, True),
        ],
    )
    def test_has_a_constructor_for_each_direction(self, make, direction, leads_out, leads_in) -> None:
        link = make(kind="k", tag="t", label="words", weight=0.25)
        assert whole(link) == ("k", "t", direction, "words", 0.25)
        assert (link.leads_out, link.leads_in) == (leads_out, leads_in)
        assert whole(make(kind="k", tag="t")) == ("k", "t", direction, None, 1.0)

    @pytest.mark.parametrize("direction", sorted(DIRECTIONS))
    def test_leads_where_its_direction_says_also_if_that_was_read_from_a_file(self, direction: str) -> None:
        link = Link.from_dict(json.loads(json.dumps({**GOOD, "direction": direction, "label": "x"})))
        assert (link.leads_out, link.leads_in) == (direction != "in", direction != "out")

    def test_is_equal_by_kind_tag_and_direction_alone(self) -> None:
        link = Link.outgoing(kind="k", tag="t", label="a", weight=0.5)
        assert link == Link.outgoing(kind="k", tag="t", label="b", weight=1)
        assert hash(link) == hash(Link.outgoing(kind="k", tag="t"))
        for other in (
            Link.incoming(kind="k", tag="t"),
            Link.outgoing(kind="k", tag="u"),
            Link.outgoing(kind="l", tag="t"),
        ):
            assert link != other

    @given(st.lists(LINKS))
    def test_is_ordered_by_kind_tag_and_direction(self, links: list[Link]) -> None:
        assert sorted(links) == sorted(links, key=lambda link: (link.kind, link.tag, link.direction))

    @given(LINKS)
    def test_survives_json_copy_and_pickle(self, link: Link) -> None:
        for again in (
            Link.from_dict(json.loads(json.dumps(link.to_dict()))),
            as_link(link.to_dict()),
            copy.deepcopy(link),
            pickle.loads(pickle.dumps(link)),
        ):
            assert whole(again) == whole(link)

    def test_a_plain_link_is_made_once_unless_its_tag_is_long(self) -> None:
        """Popular tags come again and again; long ones hardly do."""
        for length, again in ((1, True), (100, True), (101, False)):
            link = {"kind": "k", "tag": "t" * length, "direction": "in"}
            assert (Link.from_dict(link) is Link.from_dict(dict(link))) == again
            labelled = {**link, "label": "words"}
            assert Link.from_dict(labelled) is not Link.from_dict(labelled)
            assert whole(Link.from_dict(labelled)) == ("k", "t" * length, "in", "words", 1.0)

    def test_leaves_defaults_out_of_its_dict(self) -> None:
        plain = {"kind": "k", "tag": "t", "direction": "in"}
        assert Link.incoming(kind="k", tag="t").to_dict() == plain
        full = {**plain, "label": "words", "weight": 0.5}
        assert Link.incoming(kind="k", tag="t", label="words", weight=0.5).to_dict() == full


GOOD: dict[str, Any] = {"kind": "k", "tag": "t", "direction": "out"}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": ""}, "kind must be a non-empty string"),
    ({"tag": ""}, "tag must be a non-empty string"),
    ({"kind": None}, "kind must be a non-empty string"),
    ({"tag": 7}, "tag must be a non-empty string"),
    ({"tag": b"t"}, "tag must be a non-empty string"),
    ({"direction": "sideways"}, "direction must be 'in', 'out' or 'bidir'"),
    ({"direction": None}, "direction must be"),
    ({"direction": []}, "direction must be|unhashable"),
    ({"tag": "a\0b"}, "tag contains a NUL"),
    ({"kind": "\0"}, "kind contains a NUL"),
    ({"kind": "é\0"}, "kind contains a NUL"),
    ({"tag": "t" * (MAX_TAG_BYTES + 1)}, "tag is 8193 bytes long; at most 8192"),
    ({"kind": "k" * (MAX_TAG_BYTES + 1)}, "kind is 8193 bytes long"),
    ({"tag": "é" * 4097}, "tag is 8194 bytes long"),
    ({"tag": "\U0001f600" * 2049}, "tag is 8196 bytes long"),
    ({"tag": "\ud800"}, "tag is not valid Unicode .*lone surrogate"),
    ({"kind": "a\udfff"}, "kind is not valid Unicode"),
    ({"label": "\ud800"}, "label is not valid Unicode"),
    ({"label": "x" * 5000 + "\ud800"}, "label is not valid Unicode"),
    ({"label": 7}, "label must be a string or None"),
    ({"weight": -0.1}, "weight must be a number from 0 to 1"),
    ({"weight": 1.1}, "weight must be"),
    ({"weight": float("nan")}, "weight must be"),
    ({"weight": True}, "weight must be"),
    ({"weight": "1"}, "weight must be"),
    ({"weight": None}, "weight must be"),
]


class TestAnInvalidLink:
    @pytest.mark.parametrize(("fields", "words"), BAD, ids=lambda value: str(value)[:40])
    def test_is_refused_however_it_comes(self, fields: dict[str, Any], words: str) -> None:
        values = {**GOOD, **fields}
        for make in (lambda: Link(**values), lambda: Link.from_dict(values), lambda: as_link(values)):
            with pytest.raises(LinkError, match=words):
                make()

    @pytest.mark.parametrize(("fields", "words"), BAD, ids=lambda value: str(value)[:40])
    def test_is_named_with_its_document(self, fields: dict[str, Any], words: str) -> None:
        document = Document(id="doc 7", page_content="", metadata={"links": [GOOD, {**GOOD, **fields}]})
        with pytest.raises(LinkError, match=words) as caught:
            get_links(document)
        assert str(caught.value).startswith("document 'doc 7': invalid link ")
        assert len(str(caught.value)) < 500
        assert isinstance(caught.value, LinkStoreError)

    @pytest.mark.parametrize(
        "fields",
        [
            {"kind": "k", "tag": "t"},
            {"kind": "k", "direction": "in"},
            {**GOOD, "colour": "red"},
            {**GOOD, 1: 2},
            {},
        ],
        ids=["no direction", "no tag", "unknown field", "unnamed field", "nothing"],
    )
    def test_is_one_with_other_fields(self, fields: dict[Any, Any]) -> None:
        with pytest.raises(LinkError, match="invalid link"):
            Link.from_dict(fields)

    @pytest.mark.parametrize("value", ["text", 7, None, ["k", "t", "in"], object], ids=str)
    def test_is_whatever_is_no_link(self, value: Any) -> None:
        with pytest.raises(LinkError, match="expected a Link or a dict"):
            as_link(value)

    @pytest.mark.parametrize("value", ["t" * MAX_TAG_BYTES, "é" * 4096, "\U0001f600" * 2048])
    def test_is_not_one_of_exactly_8_kib(self, value: str) -> None:
        link = Link.outgoing(kind=value, tag=value, label="words" * 10_000)
        assert link.tag == value
        assert whole(as_link(link.to_dict())) == whole(link)


class TestMerging:
    def test_takes_the_highest_weight_and_the_first_label(self) -> None:
        merged = merge_links(
            [
                Link.outgoing(kind="k", tag="t", weight=0.25),
                {**GOOD, "label": "first", "weight": 0.75},
                Link.outgoing(kind="k", tag="t", label="second", weight=0.5),
            ]
        )
        assert [whole(link) for link in merged] == [("k", "t", "out", "first", 0.75)]

    def test_keeps_the_order_of_first_appearance(self) -> None:
        links = [Link.outgoing(kind="k", tag=tag) for tag in "bacab"]
        assert [link.tag for link in merge_links(links)] == ["b", "a", "c"]

    def test_tells_directions_apart(self) -> None:
        links = [Link(kind="k", tag="t", direction=direction) for direction in ("in", "out", "bidir")]
        assert len(merge_links(links)) == 3

    @given(st.lists(FEW_LINKS, max_size=8))
    def test_follows_its_rules(self, links: list[Link]) -> None:
        merged = merge_links(links)
        assert list(merged) == list(dict.fromkeys(links))
        for link in merged:
            same = [one for one in links if one == link]
            assert link.weight == max(one.weight for one in same)
            assert link.label == next((one.label for one in same if one.label is not None), None)

    @given(st.lists(FEW_LINKS, max_size=8))
    def test_merging_twice_changes_nothing(self, links: list[Link]) -> None:
        once = merge_links(links)
        assert list(map(whole, merge_links(once))) == list(map(whole, once))
        again = merge_links(link.to_dict() for link in once)
        assert list(map(whole, again)) == list(map(whole, once))


class TestLinksOfADocument:
    def test_are_kept_as_plain_json(self) -> None:
        document = Document(id="d", page_content="", metadata={"title": "x"})
        add_links(document, Link.outgoing(kind="k", tag="t"), [Link.incoming(kind="k", tag="u", weight=0.5)])
        assert document.metadata == {
            "title": "x",
            "links": [
                {"kind": "k", "tag": "t", "direction": "out"},
                {"kind": "k", "tag": "u", "direction": "in", "weight": 0.5},
            ],
        }
        assert json.loads(json.dumps(document.metadata)) == document.metadata

    def test_are_read_in_every_form(self) -> None:
        forms = [Link.outgoing(kind="k", tag="a"), {**GOOD, "tag": "b"}, Similar("k", "c", "in")]
        document = Document(page_content="", metadata={LINKS_KEY: forms})
        assert [(link.tag, link.direction) for link in get_links(document)] == [
            ("a", "out"),
            ("b", "out"),
            ("c", "in"),
        ]
        assert document.metadata[LINKS_KEY] == forms

    def test_are_none_without_the_key(self) -> None:
        assert get_links(Document(page_content="")) == ()
        assert parse_links({"links": []}) == parse_links({"links": None}) == ()

    @pytest.mark.parametrize("value", ["text", {"kind": "k"}, 7, 1.5], ids=str)
    def test_are_refused_when_they_are_no_list(self, value: Any) -> None:
        with pytest.raises(LinkError, match=r"document 'd': metadata\['links'\] is a .*expected a list"):
            get_links(Document(id="d", page_content="", metadata={"links": value}))

    def test_are_added_to_what_is_there_and_merged(self) -> None:
        document = Document(page_content="", metadata={"links": [{**GOOD, "weight": 0.5}]})
        add_links(document, {**GOOD, "label": "words"}, Link.bidir(kind="k", tag="t"))
        assert document.metadata["links"] == [
            {**GOOD, "label": "words"},
            {"kind": "k", "tag": "t", "direction": "bidir"},
        ]

    def test_may_come_from_anything_iterable(self) -> None:
        document = Document(page_content="")
        add_links(document, (Link.outgoing(kind="k", tag=tag) for tag in "ab"), {**GOOD, "tag": "c"}, [])
        assert [link.tag for link in get_links(document)] == ["a", "b", "c"]

    @pytest.mark.parametrize(
        "bad", [{**GOOD, "tag": ""}, [{**GOOD, "kind": "\0"}], "text", 7, [None]], ids=str
    )
    def test_stay_as_they_were_when_one_is_refused(self, bad: Any) -> None:
        document = Document(id="d", page_content="", metadata={"links": [GOOD]})
        with pytest.raises(LinkError, match=r"^document 'd': invalid link"):
            add_links(document, Link.outgoing(kind="k", tag="fine"), bad)
        assert document.metadata == {"links": [GOOD]}

    def test_of_a_copy_leave_the_original_alone(self) -> None:
        document = Document(id="d", page_content="text", metadata={"links": [GOOD], "n": 1})
        copied = copy_with_links(document, Link.incoming(kind="k", tag="t"))
        assert document.metadata == {"links": [GOOD], "n": 1}
        assert (copied.id, copied.page_content, copied.metadata["n"]) == ("d", "text", 1)
        assert get_links(copied) == (Link.outgoing(kind="k", tag="t"), Link.incoming(kind="k", tag="t"))

    def test_are_stripped_from_a_copy(self) -> None:
        key = "".join(["li", "nks"])  # another string than the constant, as one that was read from a file
        document = Document(id="d", page_content="text", metadata={key: [GOOD], "n": 1})
        stripped = strip_links(document)
        assert (stripped.id, stripped.page_content, stripped.metadata) == ("d", "text", {"n": 1})
        assert document.metadata == {"links": [GOOD], "n": 1}
        assert strip_links(stripped) is stripped

    def test_in_a_set_come_in_one_order_in_every_process(self) -> None:
        """A set's own order follows the process's hash seed."""
        program = (
            "from linkstore.core.links import Link, parse_links;"
            "links = {Link.outgoing(kind='k', tag=tag) for tag in 'hgfedcba'};"
            "print([link.tag for link in parse_links({'links': links})])"
        )
        outputs = {
            subprocess.run(
                [sys.executable, "-c", program],
                env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                capture_output=True,
                check=True,
            ).stdout
            for seed in "12"
        }
        assert outputs == {b"['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']\n"}


@dataclass(frozen=True)
class Similar:
    """Anything with kind, tag and direction is read as a link."""

    kind: str
    tag: str
    direction: str


class TestCommunityLinks:
    """Links made by the deprecated class of langchain-community, the real one."""

    @pytest.fixture
    def community(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pytest.importorskip("langchain_community.graph_vectorstores.links")

    @pytest.fixture
    def make(self, community):
        def link(way: str, kind: str, tag: str):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(community.Link, way)(kind=kind, tag=tag)

        return link

    @pytest.mark.parametrize(
        ("way", "direction"), [("incoming", "in"), ("outgoing", "out"), ("bidir", "bidir")]
    )
    def test_are_accepted_as_they_are(self, make, way: str, direction: str) -> None:
        link = as_link(make(way, "hyperlink", "https://example.org/"))
        assert type(link) is Link
        assert whole(link) == ("hyperlink", "https://example.org/", direction, None, 1.0)

    def test_meet_ours(self, make) -> None:
        ours = Link.outgoing(kind="k", tag="t", label="words", weight=0.5)
        merged = merge_links([ours, make("outgoing", "k", "t")])
        assert [whole(link) for link in merged] == [("k", "t", "out", "words", 1.0)]

    def test_are_read_from_where_community_code_puts_them(self, community, make) -> None:
        document = Document(page_content="", metadata={})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            community.add_links(document, make("outgoing", "k", "b"), make("incoming", "k", "a"))
        assert set(get_links(document)) == {
            Link.incoming(kind="k", tag="a"),
            Link.outgoing(kind="k", tag="b"),
        }

    def test_are_added_beside_ours_and_become_json(self, community, make) -> None:
        document = Document(page_content="", metadata={})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            community.add_links(document, make("bidir", "k", "t"))
        add_links(document, [make("outgoing", "k", "u")], make("incoming", "k", "v"))
        assert document.metadata["links"] == [
            {"kind": "k", "tag": "t", "direction": "bidir"},
            {"kind": "k", "tag": "u", "direction": "out"},
            {"kind": "k", "tag": "v", "direction": "in"},
        ]

    def test_are_refused_when_invalid_with_their_document(self, make) -> None:
        document = Document(id="d", page_content="", metadata={"links": {make("outgoing", "", "t")}})
        with pytest.raises(LinkError, match=r"document 'd': .*kind must be a non-empty string"):
            get_links(document)
