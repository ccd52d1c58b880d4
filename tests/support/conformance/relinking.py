"""W: links are replaced in documents that are stored, whatever else is written meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from conformance.base import Cases
from conformance.probe import Probe, link_both, link_in, link_out, make_record
from linkstore.core.links import Link
from linkstore.core.plans import EngineOperation, Side
from linkstore.engines.contract import Record, WriteBatch, WriteCounts

T = TypeVar("T")
MOST_REQUESTS = 50
"""No operation on one document waits more often."""


class RelinkCases(Cases):
    """Links change; documents stay what they are."""

    def test_links_of_the_kinds_named_are_replaced(self, probe: Probe) -> None:
        """[W-11] Replace these links on both sides, and keep links of other kinds."""
        probe.put(
            make_record("a", 0.9, link_out("old"), link_in("old"), link_both("kept", kind="other")),
            make_record("b", 0.5, link_in("new")),
        )
        new = (link_out("new", weight=0.5, label="label"), link_both("newer"))
        assert self._relink(probe, a=new) == WriteCounts(updated=1)
        sides: tuple[tuple[Side, str], ...] = (("out", "a"), ("in", "b"))
        for side, id in sides:
            met = probe.met(["old", "new", "newer"], side)
            assert met.of == {"old": [], "new": [id], "newer": ["a"]}
            assert met.sizes == {"old": 0, "new": 1, "newer": 1}
            assert probe.met(["kept"], side, kind="other").of == {"kept": ["a"]}
        assert probe.met(["new"], "out").weights == {("new", "a"): 0.5}
        assert {entry.tag for entry in probe.lying(["a"], "out")} == {"kept", "new", "newer"}

    def test_all_else_of_the_document_stays(self, probe: Probe) -> None:
        """[W-11] Keep text, metadata and vector to the bit, and the form of other links."""
        written = [
            {"kind": "k", "tag": "gone", "direction": "out"},
            {"direction": "in", "tag": "x", "kind": "other", "weight": 1.0, "label": None},
        ]
        before = make_record("a", 0.3, text="text", n=1.0, deep={"x": [1, None]})
        before = replace(
            before,
            metadata={**before.metadata, "links": written},
            links=(link_out("gone"), link_in("x", kind="other")),
        )
        probe.put(before, make_record("b", 0.2))
        self._relink(probe, a=(link_out("new"),))
        (after,) = (one for one in probe.do(probe.backend.scan(None, 9)) if one.id == "a")
        assert (after.text, after.vector.tobytes()) == ("text", before.vector.tobytes())
        assert repr(after.metadata["n"]) == "1.0"
        assert after.metadata == {**before.metadata, "links": [written[1], link_out("new").to_dict()]}
        assert probe.near(5) == ["a", "b"]
        assert probe.near(5, {"n": 1}) == ["a"]

    def test_documents_that_are_not_there_are_left_out(self, probe: Probe) -> None:
        """[W-11] Omit unknown documents from all counts, and count unchanged links as such."""
        probe.put(make_record("a", 0.5, link_out("x")), make_record("b", 0.5), make_record("gone", 0.5))
        probe.remove("gone")
        links = (link_out("x"),)
        assert self._relink(probe, a=links, b=links, gone=links, never=links) == WriteCounts(
            updated=1, unchanged=1
        )
        assert self._relink(probe, a=links, b=links, gone=links) == WriteCounts(unchanged=2)
        assert probe.ids() == ["a", "b"]
        assert probe.met(["x"], "out").of == {"x": ["a", "b"]}

    def test_all_links_may_be_taken(self, probe: Probe) -> None:
        """[W-11] Leave an empty list in ``links``, or no ``links`` where it was missing."""
        probe.put(make_record("a", 0.5, link_both("x"), n=1), make_record("b", 0.5, n=1))
        assert self._relink(probe, a=(), b=()) == WriteCounts(updated=1, unchanged=1)
        assert [one.metadata for one in probe.stored("a", "b")] == [{"n": 1, "links": []}, {"n": 1}]
        assert probe.met(["x"]).sizes == {"x": 0}

    def test_many_documents_are_relinked_at_once(self, probe: Probe) -> None:
        """[W-11, L-5] Relink as many as can be put."""
        ids = [f"{n:04}" for n in range(1500)]
        probe.put(*(make_record(id, 0.5, link_both(f"g{int(id) % 50}")) for id in ids))
        links = {id: (link_both(f"g{int(id) % 30}"),) for id in ids}
        assert probe.do(probe.backend.relink({"k"}, links)).updated == sum(
            int(id) % 30 != int(id) % 50 for id in ids
        )
        assert probe.met(["g0", "g29", "g30", "g49"]).sizes == {"g0": 50, "g29": 50, "g30": 0, "g49": 0}

    def test_nothing_is_relinked_before_any_claim(self, unclaimed: Probe) -> None:
        """[W-11] Relink nothing in a store that never had a document."""
        assert self._relink(unclaimed, a=(link_out("x"),)) == WriteCounts()

    def test_an_update_that_was_acknowledged_meanwhile_stays(self, probe: Probe) -> None:
        """[W-12] Keep the update's text and metadata, and the links of either."""
        for id, moment in _list_moments():
            probe.put(make_record(id, 0.5, link_out("old"), text="public", access="public"))
            new = make_record(
                id, 0.6, link_out("old"), link_in("theirs", kind="other"), text="secret", access="secret"
            )
            acted = self._relink_while(probe, id, moment, WriteBatch(put=[new]))
            (after,) = probe.stored(id)
            assert (after.text, after.metadata["access"]) == ("secret", "secret")
            theirs, both = (
                [link.to_dict() for link in new.links],
                [new.metadata["links"][1], link_out("new").to_dict()],
            )
            assert after.metadata["links"] in (theirs, both)
            self._is_sound(probe, id)
            if not acted:
                return
        pytest.fail("the operation never ended")

    def test_a_document_that_was_removed_meanwhile_stays_removed(self, probe: Probe) -> None:
        """[W-12] Find the document nowhere, and in no link group."""
        for id, moment in _list_moments():
            probe.put(make_record(id, 0.5, link_out("old")))
            acted = self._relink_while(probe, id, moment, WriteBatch(remove=[id]))
            assert probe.ids() == probe.near(5) == []
            assert probe.met(["old", "new"], "out").sizes == {"old": 0, "new": 0}
            self._is_sound(probe)
            if not acted:
                return
        pytest.fail("the operation never ended")

    def test_links_that_were_replaced_meanwhile(self, probe: Probe) -> None:
        """[W-12] Keep the links of the later call, or of both calls if the kinds differ."""
        for id, moment in _list_moments():
            probe.put(make_record(id, 0.5, link_out("old"), link_out("old", kind="other")))
            theirs = probe.backend.relink({"other"}, {id: (link_out("theirs", kind="other"),)})
            acted = self._relink_while(probe, id, moment, theirs)
            tags = {link["tag"] for link in probe.stored(id)[0].metadata["links"]}
            assert tags == {"new", "theirs"}
            self._is_sound(probe, id)
            if not acted:
                return
        pytest.fail("the operation never ended")

    def _relink_while(
        self, probe: Probe, id: str, moment: int, meanwhile: WriteBatch | EngineOperation[Any]
    ) -> bool:
        """Replace the links of a document, and do ``meanwhile`` before its request of this number.

        Returns:
            Whether there was such a request; else ``meanwhile`` is done afterwards.
        """
        other = probe.backend.write(meanwhile) if isinstance(meanwhile, WriteBatch) else meanwhile
        done: list[object] = []

        def act() -> None:
            done.append(probe.backend.run(other))

        relinking = probe.backend.relink({"k"}, {id: (link_out("new"),)})
        probe.do(_interrupt_operation(relinking, moment, act))
        if done:
            return True
        act()
        return False

    def _relink(self, probe: Probe, **links: Sequence[Link]) -> WriteCounts:
        return probe.do(probe.backend.relink({"k"}, links))

    def _is_sound(self, probe: Probe, *ids: str) -> None:
        """Check that these documents alone are stored, and are exactly on the groups of their links."""
        assert probe.do(probe.backend.verify()).findings == ()
        records: list[Record] = probe.do(probe.backend.scan(None, 100))
        for one in records:
            lying = {(entry.kind, entry.tag) for entry in probe.lying([one.id], "out")}
            assert lying == {(link.kind, link.tag) for link in one.links if link.leads_out}
        assert {one.id for one in records} == set(ids)
        probe.remove(*ids)


def _list_moments() -> list[tuple[str, int]]:
    return [(f"at {moment}", moment) for moment in range(MOST_REQUESTS)]


def _interrupt_operation(
    operation: EngineOperation[T], moment: int, act: Callable[[], None]
) -> EngineOperation[T]:
    """Drive an operation, and call ``act`` before its request of this number is carried out."""
    asked = 0
    try:
        request = next(operation)
        while True:
            if asked == moment:
                act()
            asked += 1
            try:
                reply = yield request
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
