"""M: who lies on a link group."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.base import Cases
from conformance.probe import (
    QUERY_VECTOR,
    Probe,
    find_refs,
    link_both,
    link_in,
    link_out,
    make_record,
)
from linkstore.core.plans import Members, Plan, ReachedMembers, Resolve, Side


class MembersCases(Cases):
    """The documents on one side of link groups."""

    @pytest.mark.parametrize(("side", "ids"), [("in", ["b", "c"]), ("out", ["a", "c"])])
    def test_only_the_side_asked_for(self, probe: Probe, side: Side, ids: list[str]) -> None:
        """[M-1] Return in and bidir links on the in side, out and bidir links on the out side."""
        probe.put(
            make_record("a", 0.9, link_out("x")),
            make_record("b", 0.8, link_in("x")),
            make_record("c", 0.7, link_both("x")),
        )
        met = probe.met(["x"], side)
        assert (met.of, met.sizes) == ({"x": ids}, {"x": 2})

    def test_only_the_groups_asked_for(self, probe: Probe) -> None:
        """[M-1] Omit members of other link groups."""
        probe.put(
            make_record("a", 0.9, link_in("x")), make_record("b", 0.8, link_in("y")), make_record("c", 0.7)
        )
        assert probe.met(["y"]).of == {"y": ["b"]}

    def test_by_group_as_asked_then_by_similarity(self, probe: Probe) -> None:
        """[M-2] Order groups as the caller does, and members by similarity."""
        probe.put(
            make_record("a", 0.1, link_in("x"), link_in("y")),
            make_record("b", 0.5, link_in("x")),
            make_record("c", 0.9, link_in("y"), link_in("z")),
        )
        for tags in (["x", "y", "z"], ["z", "x", "y"], ["y", "z", "x"]):
            met = probe.met(tags)
            assert met.of == {"x": ["b", "a"], "y": ["c", "a"], "z": ["c"]}
            assert [tags[position] for position in met.raw.group.tolist()] == [
                tag for tag in tags for _ in met.of[tag]
            ]

    def test_at_most_take_of_each_group(self, probe: Probe) -> None:
        """[M-2] Return the most similar of each, and at the cut prefer the smallest ids."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x")) for n in reversed(range(9))))
        probe.put(
            make_record("best", 0.9, link_in("x"), link_in("y")),
            make_record("worst", 0.1, link_in("x"), link_in("y")),
        )
        met = probe.met(["x", "y"], take=3)
        assert met.of == {"x": ["best", "0", "1"], "y": ["best", "worst"]}
        assert met.sizes == {"x": 11, "y": 2}
        assert probe.met(["x", "y"], take=1).of == {"x": ["best"], "y": ["best"]}

    @pytest.mark.parametrize("take", [2, 3, 9])
    def test_without_a_vector_by_id(self, probe: Probe, take: int) -> None:
        """[M-2, M-7] Take the smallest ids, with similarity 0 and their own weights."""
        weights = {"b": 0.5, "a": 0.25, "d": 1.0, "c": 0.75}
        probe.put(
            *(
                make_record(id, 0.9 - at / 8, link_in("x", weight=weight), n=at)
                for at, (id, weight) in enumerate(weights.items())
            ),
            make_record("e", 0.1, link_in("y")),
        )
        met = probe.met(["y", "x"], vector=None, take=take)
        assert met.of == {"y": ["e"], "x": sorted(weights)[:take]}
        assert met.weights == {("y", "e"): 1.0} | {("x", id): weights[id] for id in met.of["x"]}
        assert met.raw.similarity.tolist() == [0.0] * len(met.weights)
        assert probe.met(["x"], vector=None, take=take, filter={"n": {"$gte": 2}}).of == {"x": ["c", "d"]}

    @pytest.mark.parametrize(
        ("cap", "size", "given"), [(0, 1, 0), (2, 3, 0), (3, 4, 0), (4, 4, 4), (5, 4, 4)]
    )
    def test_a_hub_gives_none(self, probe: Probe, cap: int, size: int, given: int) -> None:
        """[M-3, M-4] Return no members and size cap + 1 if members exceed cap. Cap members are no hub."""
        probe.put(
            *(make_record(f"{n}", 0.5, link_in("x")) for n in range(4)),
            make_record("other", 0.5, link_in("y")),
        )
        met = probe.met(["x"], cap=cap)
        assert (len(met.of["x"]), met.sizes["x"]) == (given, size)

    def test_a_hub_does_not_hide_other_groups(self, probe: Probe) -> None:
        """[M-3] Return the members of other requested groups, whatever precedes them."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x")) for n in range(4)))
        probe.put(make_record("a", 0.5, link_in("y"), link_in("x")), make_record("b", 0.5, link_in("z")))
        met = probe.met(["y", "x", "z"], cap=3)
        assert met.of == {"y": ["a"], "x": [], "z": ["b"]}
        assert met.sizes == {"y": 1, "x": 4, "z": 1}

    def test_a_hub_on_one_side_may_be_none_on_the_other(self, probe: Probe) -> None:
        """[M-3] Count only the side that is reached."""
        probe.put(
            *(make_record(f"{n}", 0.5, link_out("x")) for n in range(9)), make_record("a", 0.5, link_in("x"))
        )
        assert probe.met(["x"], "in", cap=3).of == {"x": ["a"]}
        assert probe.met(["x"], "out", cap=3).of == {"x": []}
        assert probe.met(["x"], "out", cap=3).sizes == {"x": 4}

    def test_size_is_counted_before_the_filter(self, probe: Probe) -> None:
        """[M-4] Keep a hub a hub, even if only one member passes."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x"), n=n) for n in range(5)))
        met = probe.met(["x"], cap=4, filter={"n": 0})
        assert (met.of, met.sizes) == ({"x": []}, {"x": 5})
        met = probe.met(["x"], cap=5, filter={"n": 0})
        assert (met.of, met.sizes) == ({"x": ["0"]}, {"x": 5})

    def test_size_is_counted_before_exclusion(self, probe: Probe) -> None:
        """[M-4] Keep a hub a hub, even if only one member is wanted."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x")) for n in range(5)))
        met = probe.met(["x"], cap=4, exclude=["1", "2", "3", "4"])
        assert (met.of, met.sizes) == ({"x": []}, {"x": 5})

    def test_size_counts_documents_not_links(self, probe: Probe) -> None:
        """[M-4] Count a document with two links to the group as one member."""
        probe.put(
            make_record("a", 0.9, link_in("x"), link_both("x"), link_out("x")),
            make_record("b", 0.5, link_in("x")),
        )
        met = probe.met(["x"], cap=2)
        assert (met.of, met.sizes) == ({"x": ["a", "b"]}, {"x": 2})
        assert probe.met(["x"], "out", cap=2).of == {"x": ["a"]}

    def test_size_follows_updates_and_deletes(self, probe: Probe) -> None:
        """[M-4] Stop treating a shrunken group as a hub, and count an updated member once."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x")) for n in range(5)))
        for turn in range(3):
            probe.put(make_record("0", 0.5, link_in("x"), turn=turn))
        assert probe.met(["x"], cap=5).sizes == {"x": 5}
        probe.remove("4")
        probe.put(make_record("3", 0.5))
        met = probe.met(["x"], cap=3)
        assert (met.of, met.sizes) == ({"x": ["0", "1", "2"]}, {"x": 3})

    def test_excluded_documents_take_no_place(self, probe: Probe) -> None:
        """[M-5] Return the next best members, whatever the order of the exclusion."""
        probe.put(*(make_record(f"{n}", 0.9 - n / 10, link_in("x")) for n in range(6)))
        for exclude in (["0", "2"], ["2", "0"]):
            met = probe.met(["x"], take=2, exclude=exclude)
            assert (met.of, met.sizes) == ({"x": ["1", "3"]}, {"x": 6})

    def test_excluded_documents_are_not_filtered(self, probe: Probe) -> None:
        """[M-5] Do not count excluded documents as filtered, whether or not they would pass."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x"), n=n) for n in range(4)))
        met = probe.met(["x"], filter={"n": {"$gte": 2}}, exclude=["0", "3"])
        assert (met.of, met.filtered) == ({"x": ["2"]}, 1)

    def test_excluding_documents_that_are_no_members_does_nothing(self, probe: Probe) -> None:
        """[M-5] Return everything else."""
        probe.put(
            make_record("a", 0.5, link_in("x")), make_record("b", 0.6), make_record("c", 0.7, link_out("x"))
        )
        assert probe.met(["x"], exclude=["b", "c"]).of == {"x": ["a"]}

    def test_the_filter_holds_for_members(self, probe: Probe) -> None:
        """[M-6] Omit members that do not pass, which take no place."""
        probe.put(*(make_record(f"{n}", 0.9 - n / 10, link_in("x"), odd=n % 2 == 1) for n in range(8)))
        met = probe.met(["x"], take=3, filter={"odd": True})
        assert (met.of, met.sizes) == ({"x": ["1", "3", "5"]}, {"x": 8})

    def test_filtered_counts_different_documents(self, probe: Probe) -> None:
        """[M-6] Count a document of two groups once, and the documents of hubs not at all."""
        probe.put(
            make_record("a", 0.5, link_in("x"), link_in("y"), ok=False),
            make_record("b", 0.5, link_in("x"), ok=True),
            make_record("c", 0.5, link_in("y"), ok=False),
            *(make_record(f"{n}", 0.5, link_in("hub"), ok=False) for n in range(5)),
        )
        assert probe.met(["x", "y", "hub"], cap=4, filter={"ok": True}).filtered == 2
        assert probe.met(["x", "y", "hub"], cap=4).filtered == 0

    @pytest.mark.parametrize(("side", "weight"), [("in", 0.5), ("out", 0.75)])
    def test_weight_is_the_highest_on_that_side(self, probe: Probe, side: Side, weight: float) -> None:
        """[M-7] Ignore the weight of a link on the other side."""
        probe.put(
            make_record(
                "a", 0.5, link_in("x", weight=0.25), link_both("x", weight=0.5), link_out("x", weight=0.75)
            )
        )
        assert probe.met(["x"], side).weights == {("x", "a"): weight}

    def test_weights_belong_to_member_and_group(self, probe: Probe) -> None:
        """[M-7] Match weights to members even if similarity orders members differently."""
        probe.put(
            make_record("a", 0.1, link_in("x", weight=1.0), link_in("y", weight=0.5)),
            make_record("b", 0.9, link_in("x", weight=0.25), link_in("y", weight=0.125)),
        )
        weights = {("x", "a"): 1.0, ("x", "b"): 0.25, ("y", "a"): 0.5, ("y", "b"): 0.125}
        assert probe.met(["x", "y"]).weights == weights

    def test_a_member_of_several_groups_is_given_in_each(self, probe: Probe) -> None:
        """[M-8] Return the member with its similarity in each group."""
        probe.put(make_record("a", 0.5, link_in("x"), link_in("y"), link_in("z")))
        met = probe.met(["z", "x", "y"])
        assert met.of == {"x": ["a"], "y": ["a"], "z": ["a"]}
        assert met.raw.similarity.tolist() == [0.5] * 3

    def test_a_group_that_nobody_answers_is_empty(self, probe: Probe) -> None:
        """[M-9] Return size 0 and no member, beside groups that have some."""
        probe.put(make_record("a", 0.5, link_out("dangling"), link_in("x")))
        met = probe.met(["dangling", "x"])
        assert (met.of, met.sizes) == ({"dangling": [], "x": ["a"]}, {"dangling": 0, "x": 1})

    def test_from_a_ref_that_groups_gave(self, probe: Probe) -> None:
        """[M-1] Use the same refs in Groups and in Resolve."""
        probe.put(make_record("a", 0.5, link_out("x")), make_record("b", 0.5, link_in("x")))

        def plan() -> Plan[bool]:
            known = yield from find_refs("b")
            groups = yield Resolve(tags=(("k", "x"),))
            answer: ReachedMembers = yield Members(
                groups=groups, side="in", vector=QUERY_VECTOR, take=5, cap=5, exclude=known[:0]
            )
            return np.array_equal(answer.refs, known)

        assert probe.plan(plan())

    def test_the_members_taken_are_the_most_similar(self, probe: Probe) -> None:
        """[M-10] Take nearly all of the most similar, and rank those taken exactly."""
        similarities = np.random.default_rng(7).uniform(-1, 1, 190).astype(np.float32)
        groups = {f"g{n}": [f"{n:02}-{m:02}" for m in range(19)] for n in range(10)}
        ids = [id for members in groups.values() for id in members]
        scores = dict(zip(ids, similarities.tolist(), strict=True))
        probe.put(*(make_record(id, scores[id], link_in(f"g{int(id[:2])}")) for id in ids))
        met = probe.met(list(groups), take=10)
        best = {
            tag: sorted(members, key=lambda id: (-scores[id], id))[:10] for tag, members in groups.items()
        }
        kept = sum(len(set(met.of[tag]) & set(best[tag])) for tag in groups)
        assert kept >= 0.98 * 100
        for tag, members in met.of.items():
            assert members == sorted(members, key=lambda id: (-scores[id], id)), tag
