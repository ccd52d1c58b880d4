"""G: on which link groups documents lie."""

from __future__ import annotations

import pytest

from conformance.base import Cases
from conformance.probe import (
    QUERY_VECTOR,
    GroupEntry,
    Probe,
    find_refs,
    link_both,
    link_in,
    link_out,
    make_record,
)
from linkstore.core.plans import Groups, Ids, Memberships, Nearest, Plan, Resolve, Side, Tags


def make_entry(id: str, tag: str, weight: float = 1.0, kind: str = "k") -> GroupEntry:
    """Make the expected entry of a document."""
    return GroupEntry(id=id, kind=kind, tag=tag, weight=weight)


class GroupsCases(Cases):
    """From documents to link groups and their tags."""

    @pytest.mark.parametrize(("side", "tags"), [("out", ["both", "out"]), ("in", ["both", "in"])])
    def test_each_direction_lies_on_its_sides(self, probe: Probe, side: Side, tags: list[str]) -> None:
        """[G-1] Put out and bidir links on the out side, in and bidir links on the in side."""
        probe.put(
            make_record("a", 0.5, link_out("out"), link_in("in"), link_both("both")), make_record("b", 0.5)
        )
        assert probe.lying(["a", "b"], side) == [make_entry("a", tag) for tag in tags]

    def test_each_document_has_its_own_entries(self, probe: Probe) -> None:
        """[G-1] Return an entry for each of two documents on one link group."""
        probe.put(
            make_record("a", 0.5, link_out("x")),
            make_record("b", 0.5, link_out("x"), link_out("y")),
            make_record("c", 0.5, link_in("x")),
        )
        expected = [make_entry("a", "x"), make_entry("b", "x"), make_entry("b", "y")]
        assert probe.lying(["a", "b", "c"], "out") == expected
        assert probe.lying(["c", "b", "a"], "out") == expected
        assert probe.lying(["a"], "out") == [make_entry("a", "x")]

    @pytest.mark.parametrize(("side", "weight"), [("out", 0.75), ("in", 0.5)])
    def test_several_links_to_one_group_are_one_entry(self, probe: Probe, side: Side, weight: float) -> None:
        """[G-2] Return the highest weight of the links on that side, not of all."""
        probe.put(
            make_record(
                "a", 0.5, link_out("x", weight=0.75), link_in("x", weight=0.25), link_both("x", weight=0.5)
            ),
        )
        assert probe.lying(["a"], side) == [make_entry("a", "x", weight)]

    def test_weights_are_kept(self, probe: Probe) -> None:
        """[G-2] Keep weights down to 0, as float32."""
        probe.put(
            make_record(
                "a", 0.5, link_out("x", weight=0.0), link_out("y", weight=0.25), link_out("z", weight=1)
            )
        )
        assert [entry.weight for entry in probe.lying(["a"], "out")] == [0.0, 0.25, 1.0]

    @pytest.mark.parametrize(
        ("kinds", "tags"),
        [(None, ["1", "2", "3"]), ({"p"}, ["1"]), ({"p", "r", "?"}, ["1", "3"]), (set(), []), ({"?"}, [])],
        ids=["all", "one", "two", "none", "unknown"],
    )
    def test_only_the_kinds_asked_for(self, probe: Probe, kinds: set[str] | None, tags: list[str]) -> None:
        """[G-3] Treat None as all kinds, and an empty set as none."""
        probe.put(
            make_record("a", 0.5, link_out("1", kind="p"), link_out("2", kind="q"), link_out("3", kind="r"))
        )
        wanted = None if kinds is None else frozenset(kinds)
        assert [entry.tag for entry in probe.lying(["a"], "out", wanted)] == tags

    def test_positions_point_into_refs_and_kinds(self, probe: Probe) -> None:
        """[G-4] Index the fetch by ``document``, and the answer's kinds by ``kind``."""
        probe.put(
            make_record("a", 0.5, link_out("1", kind="p")),
            make_record("b", 0.5),
            make_record("c", 0.5, link_out("2", kind="q"), link_out("3", kind="p")),
        )

        def plan() -> Plan[set[tuple[int, str, str]]]:
            refs = yield from find_refs("c", "b", "a")
            answer: Memberships = yield Groups(refs=refs, side="out")
            tags: list[tuple[str, str]] = yield Tags(groups=answer.group)
            kinds = [answer.kinds[kind] for kind in answer.kind.tolist()]
            rows = zip(answer.document.tolist(), kinds, tags, strict=True)
            return {(document, kind, tag) for document, kind, (_, tag) in rows}

        assert probe.plan(plan()) == {(0, "q", "2"), (0, "p", "3"), (2, "p", "1")}

    def test_resolve_answers_in_the_order_asked(self, probe: Probe) -> None:
        """[G-5] Return -1 for unknown tags, and for a known tag under another kind."""
        probe.put(make_record("a", 0.5, link_out("x"), link_in("y")))
        asked = (("k", "y"), ("k", "?"), ("k", "x"), ("other", "x"), ("k", "y"))
        refs = probe.ask(Resolve(tags=asked)).tolist()
        assert [ref == -1 for ref in refs] == [False, True, False, True, False]
        assert refs[0] == refs[4] != refs[2]

    def test_a_tag_that_nobody_has_any_more_leads_nowhere(self, probe: Probe) -> None:
        """[G-5] Return -1, or a link group without members."""
        probe.put(make_record("a", 0.5, link_both("x")))
        probe.remove("a")
        if probe.ask(Resolve(tags=(("k", "x"),))).tolist() != [-1]:
            met = probe.met(["x"])
            assert (met.sizes, met.of) == ({"x": 0}, {"x": []})

    def test_tags_answer_in_the_order_asked(self, probe: Probe) -> None:
        """[G-6] Return the (kind, tag) that Resolve was asked for."""
        probe.put(make_record("a", 0.5, link_out("x"), link_in("y"), link_both("z", kind="other")))
        asked = (("other", "z"), ("k", "x"), ("k", "y"))

        def plan() -> Plan[list[tuple[str, str]]]:
            tags: list[tuple[str, str]] = yield Tags(groups=(yield Resolve(tags=asked)))
            return [(kind, tag) for kind, tag in tags]

        assert probe.plan(plan()) == list(asked)

    def test_one_tag_under_two_kinds_is_two_groups(self, probe: Probe) -> None:
        """[G-7] Identify a link group by kind and tag, which never run together."""
        probe.put(
            make_record("a", 0.5, link_in("x", kind="p")),
            make_record("b", 0.5, link_in("x", kind="q")),
            make_record("c", 0.5, link_in("c", kind="a b")),
            make_record("d", 0.5, link_in("b c", kind="a")),
        )
        assert probe.met(["x"], kind="p").of == {"x": ["a"]}
        assert probe.met(["x"], kind="q").of == {"x": ["b"]}
        assert probe.met(["c"], kind="a b").of == {"c": ["c"]}
        assert probe.met(["b c"], kind="a").of == {"b c": ["d"]}

    def test_groups_of_documents_found_by_similarity(self, probe: Probe) -> None:
        """[G-1] Accept refs from Nearest as well as refs from Find."""
        probe.put(make_record("a", 0.9, link_out("x")), make_record("b", 0.1, link_out("y")))

        def plan() -> Plan[list[tuple[str, str]]]:
            near = yield Nearest(vector=QUERY_VECTOR, k=2)
            ids: list[str] = yield Ids(refs=near.refs)
            answer: Memberships = yield Groups(refs=near.refs, side="out")
            tags: list[tuple[str, str]] = yield Tags(groups=answer.group)
            return sorted((ids[d], tag) for d, (_, tag) in zip(answer.document.tolist(), tags, strict=True))

        assert probe.plan(plan()) == [("a", "x"), ("b", "y")]
