"""D and C: what was stored, and which documents pass a filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformance.base import Cases
from conformance.probe import Probe, find_refs, link_in, make_record, make_vector
from linkstore.core.arrays import Bools, Floats
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.plans import Ids, Matching, Plan, Vectors

METADATA: dict[str, Any] = {
    "int": 1,
    "float": 1.0,
    "bool": True,
    "string": "1",
    "null": None,
    "list": [1, 1.0, True, None, "x", [], {}],
    "dict": {"a": {"b": [1]}, "": 0},
    "": "an empty key",
    "$dollar": 1,
    "a.b": 2,
    "é": "ü",
}


class DocumentsCases(Cases):
    """Text, metadata, ids and vectors, as they were written."""

    def test_metadata_comes_back_as_written(self, probe: Probe) -> None:
        """[D-1] Keep the type of each value and the spelling of each key."""
        probe.put(make_record("a", text="body", **METADATA))
        stored = probe.stored("a")[0]
        assert (stored.id, stored.text, stored.metadata) == ("a", "body", METADATA)
        assert _name_types(stored.metadata) == _name_types(METADATA)

    @pytest.mark.parametrize(
        "metadata",
        [
            {},
            {"links": None},
            {"links": []},
            {"links": [{"kind": "k", "tag": "t", "direction": "in", "label": "l", "weight": 0.5}]},
            {"links": [{"kind": "k", "tag": "t", "direction": "in"}] * 2, "z": 1},
        ],
        ids=["empty", "null links", "no links", "one link", "a link twice"],
    )
    def test_links_come_back_as_written(self, probe: Probe, metadata: dict[str, Any]) -> None:
        """[D-1] Keep ``links`` as its author wrote it, with duplicates, or absent."""
        probe.put(make_record("a", **metadata))
        assert probe.stored("a")[0].metadata == metadata

    def test_in_the_order_asked(self, probe: Probe) -> None:
        """[D-1, D-3] Answer in the requested order, not in that of writing, of ids or of refs."""
        probe.put(*(make_record(id) for id in "cabd"))
        for asked in ("abcd", "dcba", "bd"):
            assert [stored.id for stored in probe.stored(*asked)] == list(asked)
            assert probe.plan(_fetch_ids(*asked)) == list(asked)

    def test_metadata_is_the_receivers_own(self, probe: Probe) -> None:
        """[D-2] Allow changes to metadata at any depth without changing the store."""
        probe.put(make_record("a", tags=["x"], deep={"er": [1]}))
        for _ in range(2):
            metadata = probe.stored("a")[0].metadata
            assert metadata == {"tags": ["x"], "deep": {"er": [1]}}
            metadata["tags"].append("y")
            metadata["deep"]["er"].clear()
            metadata["new"] = 1
        assert probe.near(1, {"tags": ["x"]}) == ["a"]

    def test_vectors_are_bit_for_bit(self, probe: Probe) -> None:
        """[D-4] Return vectors in the requested order, as float32 of shape (n, d)."""
        records = [
            make_record(f"{n}", cosine) for n, cosine in enumerate(np.linspace(-0.99, 0.97, 9).tolist())
        ]
        probe.put(*records)

        def plan() -> Plan[Floats]:
            refs = yield from find_refs(*(r.id for r in reversed(records)))
            vectors: Floats = yield Vectors(refs=refs)
            return vectors

        expected = np.stack([r.vector for r in reversed(records)])
        vectors = probe.plan(plan())
        assert vectors.shape == expected.shape
        assert vectors.tobytes() == expected.tobytes()

    def test_vectors_follow_updates(self, probe: Probe) -> None:
        """[D-4] Return the vector of the last write."""
        probe.put(make_record("a", 0.5))
        probe.put(make_record("a", -0.5))

        def plan() -> Plan[Floats]:
            vectors: Floats = yield Vectors(refs=(yield from find_refs("a")))
            return vectors

        assert probe.plan(plan()).tobytes() == make_vector(-0.5).tobytes()

    def test_matching_answers_in_the_order_asked(self, probe: Probe) -> None:
        """[D-5] Return one verdict for each document."""
        probe.put(*(make_record(f"{n}", n=n) for n in range(5)))
        assert probe.plan(_match_documents(["4", "0", "2", "1"], {"n": {"$gte": 2}})) == [
            True,
            False,
            True,
            False,
        ]


FILTERED: dict[str, dict[str, Any]] = {
    "int": {"v": 1},
    "float": {"v": 1.5},
    "whole": {"v": 1.0},
    "true": {"v": True},
    "false": {"v": False},
    "zero": {"v": 0},
    "string": {"v": "1"},
    "word": {"v": "été"},
    "null": {"v": None},
    "list": {"v": [1, "a"]},
    "dict": {"v": {"a": 1}},
    "big": {"v": 2**53 + 1},
    "missing": {"w": 1},
    "two": {"v": 1, "w": 2},
}
FILTERS: tuple[Filter, ...] = (
    {"v": 1},
    {"v": 1.0},
    {"v": True},
    {"v": 0},
    {"v": "1"},
    {"v": None},
    {"v": [1, "a"]},
    {"v": {"a": 1}},
    {"v": 2**53},
    {"v": 2**53 + 1},
    {"v": "ete"},
    {"v": {"$ne": 1}},
    {"v": {"$ne": None}},
    {"v": {"$gt": 0}},
    {"v": {"$gte": 1, "$lt": 1.5}},
    {"v": {"$lte": "z"}},
    {"v": {"$gt": 2**53}},
    {"v": {"$in": [1, "été", None]}},
    {"v": {"$in": []}},
    {"v": {"$nin": [1, True]}},
    {"v": {"$nin": []}},
    {"v": {"$exists": True}},
    {"v": {"$exists": False}},
    {"v": {"$not": {"$gt": 0}}},
    {"$not": {"v": 1}},
    {"$and": [{"v": 1}, {"w": 2}]},
    {"$or": [{"v": "1"}, {"w": {"$exists": True}}]},
    {"v": 1, "w": 2},
    {"unknown": {"$ne": 3}},
    {"v": "a"},
    {"v": {"$contains": 1}},
    {"v": {"$all": ["a", 1.0]}},
    {"v": {"$size": 2}},
)


class ConditionCases(Cases):
    """One language of filters, wherever a fetch has one."""

    @pytest.mark.parametrize("filter", FILTERS, ids=str)
    def test_every_fetch_agrees_with_the_filter_module(self, probe: Probe, filter: Filter) -> None:
        """[C-1, N-3, F-3, M-6, D-5] Pass the same documents in Nearest, Find, Members and Matching."""
        probe.put(*(make_record(id, 0.5, link_in("x"), **metadata) for id, metadata in FILTERED.items()))
        condition = parse_filter(filter)
        passing = sorted(id for id, metadata in FILTERED.items() if condition.matches(metadata))
        assert probe.near(50, filter) == passing
        assert sorted(id for id, _ in probe.found(FILTERED, filter)) == passing
        assert probe.met(["x"], filter=filter).of == {"x": passing}
        verdicts = probe.plan(_match_documents(list(FILTERED), filter))
        assert [id for id, passes in sorted(zip(FILTERED, verdicts, strict=True)) if passes] == passing

    def test_conditions_joined_hold_together(self, probe: Probe) -> None:
        """[C-1] Accept the conjunction of two conditions as a condition."""
        probe.put(*(make_record(f"{n}", 0.5, n=n, odd=n % 2 == 1) for n in range(6)))
        both = parse_filter({"odd": True}) & parse_filter({"n": {"$gt": 1}})

        def plan() -> Plan[list[bool]]:
            verdicts: Bools = yield Matching(refs=(yield from find_refs(*"012345")), filter=both)
            return list(map(bool, verdicts))

        assert probe.plan(plan()) == [False, False, False, True, False, True]

    def test_a_condition_holds_for_what_is_stored_now(self, probe: Probe) -> None:
        """[C-2] Judge updated and new documents anew."""
        english: Filter = {"lang": "en"}
        probe.put(
            make_record("a", 0.5, link_in("x"), lang="en"), make_record("b", 0.5, link_in("x"), lang="de")
        )
        assert probe.near(5, english) == ["a"]
        probe.put(
            make_record("a", 0.5, link_in("x"), lang="de"), make_record("b", 0.5, link_in("x"), lang="en")
        )
        assert probe.near(5, english) == probe.met(["x"], filter=english).of["x"] == ["b"]
        probe.remove("b")
        probe.put(
            make_record("c", 0.5, link_in("x"), lang="de"), make_record("d", 0.5, link_in("x"), lang="en")
        )
        assert probe.near(5, english) == probe.met(["x"], filter=english).of["x"] == ["d"]
        assert probe.found(["a", "b", "c", "d"], english) == [("d", 0.5)]
        assert probe.plan(_match_documents(["a", "c", "d"], english)) == [False, False, True]


def _fetch_ids(*ids: str) -> Plan[list[str]]:
    found: list[str] = yield Ids(refs=(yield from find_refs(*ids)))
    return found


def _match_documents(ids: list[str], filter: Filter) -> Plan[list[bool]]:
    verdicts: Bools = yield Matching(refs=(yield from find_refs(*ids)), filter=parse_filter(filter))
    return list(map(bool, verdicts))


def _name_types(value: Any) -> Any:
    """Replace the scalars of a JSON value by the names of their types, at all levels."""
    if isinstance(value, dict):
        return {key: _name_types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_name_types(item) for item in value]
    return type(value).__name__
