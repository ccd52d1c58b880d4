"""R and O: readers, refs, order and scores."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from conformance.base import Cases
from conformance.probe import QUERY_VECTOR, Probe, link_both, link_in, link_out, make_record, make_vector
from linkstore.core.arrays import Bools, Ints, cosine_similarities
from linkstore.core.filters import parse_filter
from linkstore.core.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Matching,
    Members,
    Memberships,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    StoredDocument,
    Tags,
    Vectors,
)
from linkstore.engines.contract import WriteBatch

NONE: Ints = np.empty(0, dtype=np.int64)
WAIT_SECONDS = 10


class ReadingCases(Cases):
    """One consistent state, and numbers that mean something only within it."""

    def test_a_plan_sees_each_document_in_one_state(self, probe: Probe) -> None:
        """[R-1] Do not let writes between two fetches of a plan change its answers."""
        probe.put(make_record("a", 0.9, link_both("x"), colour="red"), make_record("b", 0.8, link_both("x")))

        def plan() -> Plan[tuple[list[str], list[str], list[float], list[str], list[bool]]]:
            before: Candidates = yield Nearest(vector=QUERY_VECTOR, k=5)
            _write_elsewhere(
                probe,
                WriteBatch(
                    put=[
                        make_record("a", 0.1, link_both("y"), colour="blue"),
                        make_record("c", 1.0, link_in("x")),
                    ],
                    remove=["b"],
                ),
            )
            lying: Memberships = yield Groups(refs=before.refs, side="out")
            tags: list[tuple[str, str]] = yield Tags(groups=lying.group)
            stored: list[StoredDocument] = yield Documents(refs=before.refs)
            found: Candidates = yield Find(ids=("a",), vector=QUERY_VECTOR)
            red: Bools = yield Matching(refs=before.refs, filter=parse_filter({"colour": "red"}))
            ids = [one.id for one in stored if one.metadata.get("colour") != "blue"]
            return ids, [tag for _, tag in tags], found.similarity.tolist(), [stored[0].text], red.tolist()

        ids, tags, similarity, texts, red = probe.plan(plan())
        assert (ids, tags, texts, red) == (["a", "b"], ["x", "x"], ["text of a"], [True, False])
        assert similarity == pytest.approx([0.9])
        assert probe.near(5) == ["c", "a"]

    def test_a_named_document_is_ranked_and_filtered_in_the_state_that_was_shown(self, probe: Probe) -> None:
        """[R-1] Order it by its vector, and judge it by its metadata, of the answer that named it."""
        probe.put(make_record("a", 0.9, colour="red"), make_record("b", 0.8, colour="red"))

        def plan() -> Plan[tuple[list[str], list[str]]]:
            yield Nearest(vector=QUERY_VECTOR, k=5)
            change = WriteBatch(
                put=[make_record("a", 0.1, colour="blue"), make_record("b", 0.95, colour="red")]
            )
            _write_elsewhere(probe, change)
            again: Candidates = yield Nearest(vector=QUERY_VECTOR, k=5)
            blue: Candidates = yield Nearest(
                vector=QUERY_VECTOR, k=5, filter=parse_filter({"colour": "blue"})
            )
            ids: list[str] = yield Ids(refs=again.refs)
            return ids, (yield Ids(refs=blue.refs))

        assert probe.plan(plan()) == (["a", "b"], [])

    def test_a_plan_sees_what_was_written_before_it(self, probe: Probe) -> None:
        """[R-2] Show every acknowledged write to the next plan."""
        for number in range(5):
            probe.put(make_record(f"{number}", 0.1 * number, link_in("x")))
            assert len(probe.near(10)) == number + 1
            assert probe.met(["x"]).sizes == {"x": number + 1}

    def test_a_document_and_a_link_group_have_one_ref_in_a_plan(self, probe: Probe) -> None:
        """[R-3] Use one ref in Nearest, Find and Members, and in Groups and Resolve."""
        probe.put(make_record("a", 0.9, link_both("x")), make_record("b", 0.8, link_both("x")))

        def plan() -> Plan[None]:
            near: Candidates = yield Nearest(vector=QUERY_VECTOR, k=2)
            found: Candidates = yield Find(ids=("a", "b"), vector=QUERY_VECTOR)
            lying: Memberships = yield Groups(refs=found.refs, side="out")
            groups: Ints = yield Resolve(tags=(("k", "x"),))
            reached: ReachedMembers = yield _make_members_fetch(groups)
            assert near.refs.tolist() == found.refs.tolist() == reached.refs.tolist()
            assert set(lying.group.tolist()) == set(groups.tolist())
            assert len(set(near.refs.tolist())) == 2
            assert min(near.refs.tolist() + groups.tolist()) >= 0

        probe.plan(plan())

    @pytest.mark.parametrize("filled", [False, True], ids=["empty", "filled"])
    def test_an_empty_question_has_an_empty_answer(self, probe: Probe, filled: bool) -> None:
        """[R-4] Return nothing for nothing, in a store with documents or without."""
        if filled:
            probe.put(make_record("a", 0.9, link_both("x")))
        assert len(probe.ask(Find(ids=(), vector=QUERY_VECTOR)).refs) == 0
        assert len(probe.ask(Groups(refs=NONE, side="out")).document) == 0
        assert len(probe.ask(Resolve(tags=()))) == 0
        reached = probe.ask(_make_members_fetch(NONE))
        assert len(reached.refs) == len(reached.sizes) == reached.filtered == 0
        assert len(probe.ask(Matching(refs=NONE, filter=parse_filter({"a": 1})))) == 0
        assert len(probe.ask(Vectors(refs=NONE))) == 0
        assert probe.ask(Ids(refs=NONE)) == []
        assert probe.ask(Tags(groups=NONE)) == []
        assert probe.ask(Documents(refs=NONE)) == []

    @pytest.mark.parametrize("asked", ["something", "nothing"])
    def test_answers_have_the_types_of_the_contract(self, probe: Probe, asked: str) -> None:
        """[R-5] Return int64, float32, bool, also if empty, all but vectors in 1-D."""
        probe.put(make_record("a", 0.9, link_both("x")), make_record("b", 0.8, link_out("y")))
        ids = ("a", "b") if asked == "something" else ()

        def plan() -> Plan[list[tuple[str, int]]]:
            found: Candidates = yield Find(ids=ids, vector=QUERY_VECTOR)
            near: Candidates = yield Nearest(vector=QUERY_VECTOR, k=len(ids))
            lying: Memberships = yield Groups(refs=found.refs, side="out")
            groups: Ints = yield Resolve(tags=tuple(("k", tag) for tag in ("x", "y")[: len(ids)]))
            reached: ReachedMembers = yield _make_members_fetch(groups)
            passes = yield Matching(refs=found.refs, filter=parse_filter({"a": 1}))
            vectors = yield Vectors(refs=found.refs)
            ints = [found.refs, near.refs, lying.document, lying.group, lying.kind, groups]
            ints += [reached.group, reached.refs, reached.sizes]
            floats = [found.similarity, near.similarity, lying.weight, reached.similarity, reached.weight]
            return [(str(array.dtype), array.ndim) for array in (*ints, *floats, passes, vectors)]

        expected = [("int64", 1)] * 9 + [("float32", 1)] * 5 + [("bool", 1), ("float32", 2)]
        assert probe.plan(plan()) == expected

    def test_a_plan_that_fails_leaves_the_backend_at_work(self, probe: Probe) -> None:
        """[R-6] Raise the plan's own error, close the plan, and answer the next plan."""
        probe.put(make_record("a"))
        closed: list[bool] = []

        def plan() -> Plan[None]:
            try:
                yield Nearest(vector=QUERY_VECTOR, k=1)
                raise LookupError("the plan's own")
            finally:
                closed.append(True)

        for _ in range(20):
            with pytest.raises(LookupError, match="the plan's own"):
                probe.plan(plan())
        assert closed == [True] * 20
        assert probe.near(1) == ["a"]
        assert probe.put(make_record("b")).added == 1


class OrderCases(Cases):
    """One order and one score, whatever the engine."""

    IDS = ("b", "a", "é", "Z", "10", "9", "\U0001f600", "\uffee", "a\u0301", "á")

    def test_ties_are_in_the_order_of_code_points(self, probe: Probe) -> None:
        """[O-1] Order ties by id, not by insertion, locale or UTF-16 unit."""
        probe.put(*(make_record(id, 0.5, link_in("x")) for id in self.IDS))
        assert probe.near(20) == sorted(self.IDS)
        assert probe.met(["x"]).of["x"] == sorted(self.IDS)

    def test_an_update_keeps_a_document_in_its_place_among_ties(self, probe: Probe) -> None:
        """[O-1] Order ties independently of what was written last."""
        probe.put(*(make_record(id, 0.5, link_in("x")) for id in self.IDS))
        probe.put(
            make_record("9", 0.5, link_in("x"), updated=True),
            make_record("a", 0.5, link_in("x"), updated=True),
        )
        assert probe.near(20) == sorted(self.IDS)
        assert probe.met(["x"]).of["x"] == sorted(self.IDS)

    def test_better_comes_first(self, probe: Probe) -> None:
        """[O-1] Order by descending similarity before ascending ids."""
        probe.put(
            *(
                make_record(id, cosine, link_in("x"))
                for id, cosine in zip("abcd", (-1.0, 0.2, 0.9, 0.2), strict=True)
            )
        )
        assert probe.near(9) == probe.met(["x"]).of["x"] == ["c", "b", "d", "a"]

    def test_similarities_are_those_of_the_shared_function(self, probe: Probe) -> None:
        """[O-2] Compute similarities alike, bit for bit, in every fetch, within [-1, 1]."""
        cosines = np.linspace(-1, 1, 23).tolist()
        records = [make_record(f"{n:02}", cosine, link_in("x")) for n, cosine in enumerate(cosines)]
        probe.put(*records)
        asked = make_vector(0.3, axis=2)
        expected = {r.id: cosine_similarities(r.vector[None], asked)[0] for r in records}

        def plan() -> Plan[list[dict[str, np.float32]]]:
            groups: Ints = yield Resolve(tags=(("k", "x"),))
            answers = [
                (yield Nearest(vector=asked, k=30)),
                (yield Find(ids=tuple(expected), vector=asked)),
                (yield _make_members_fetch(groups, asked)),
            ]
            scored = []
            for answer in answers:
                ids: list[str] = yield Ids(refs=answer.refs)
                scored.append(dict(zip(ids, answer.similarity, strict=True)))
            return scored

        for scored in probe.plan(plan()):
            assert scored == expected
            assert all(-1 <= score <= 1 for score in scored.values())


def _make_members_fetch(groups: Ints, vector: object = None) -> Members:
    asked = QUERY_VECTOR if vector is None else np.asarray(vector, dtype=np.float32)
    return Members(groups=groups, side="in", vector=asked, take=100, cap=100, exclude=NONE)


def _write_elsewhere(probe: Probe, change: WriteBatch) -> None:
    """Write from another thread, as another user of the store would, while a plan is under way."""
    failures: list[BaseException] = []

    def write() -> None:
        try:
            probe.backend.run(probe.backend.write(change))
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive(), "a write waits for a plan that only reads"
    assert not failures
