"""X: the scope, outside which no document exists."""

from __future__ import annotations

import pytest
from differential import find_scope_differences
from oracle import OracleBackend

from conformance.base import Cases
from conformance.probe import Probe, link_both, link_in, link_out, make_record
from linkstore.core.filters import Filter
from linkstore.core.plans import Ids, Lexical, LexicalMatches, Plan

PUBLIC = {"access": "all"}
SEEDS = range(3)


class ScopeCases(Cases):
    """Whatever else is stored, answers are those of a store that holds the scope alone."""

    def test_what_is_outside_is_not_found(self, probe: Probe) -> None:
        """[X-1] Find no document outside, by similarity or by id, and count none."""
        probe.put(
            make_record("a", 0.9, access="staff"), make_record("b", 0.5, access="all"), make_record("c", 0.4)
        )
        public = probe.within(PUBLIC)
        assert public.near(5) == ["b"]
        assert [id for id, _ in public.found(["a", "c", "b", "?"])] == ["b"]
        assert public.near(5, {"access": "staff"}) == []

    def test_what_is_outside_is_no_member(self, probe: Probe) -> None:
        """[X-2] Return and count no document outside, and let none make a hub."""
        probe.put(*(make_record(f"s{n:03}", 0.9, link_both("x"), access="staff") for n in range(150)))
        probe.put(*(make_record(f"p{n}", 0.1 * n, link_both("x"), access="all", odd=n % 2) for n in range(4)))
        met = probe.within(PUBLIC).met(["x", "y"], cap=4)
        assert (met.of["x"], met.sizes["x"], met.filtered) == (["p3", "p2", "p1", "p0"], 4, 0)
        assert probe.within(PUBLIC).met(["x"], cap=3).sizes == {"x": 4}
        odd = probe.within(PUBLIC).met(["x"], cap=4, filter={"odd": 1})
        assert (odd.of["x"], odd.sizes["x"], odd.filtered) == (["p3", "p1"], 4, 2)
        assert probe.met(["x"], cap=100).sizes == {"x": 101}

    def test_links_of_what_is_outside_are_not_there(self, probe: Probe) -> None:
        """[X-3] Return no members of a link group that has only documents outside."""
        probe.put(
            make_record("a", 0.9, link_out("x"), access="all"),
            make_record("b", 0.8, link_in("x"), link_out("y"), access="staff"),
            make_record("c", 0.7, link_in("z"), access="staff"),
        )
        public = probe.within(PUBLIC)
        assert [entry.tag for entry in public.lying(["a"], "out")] == ["x"]
        assert public.met(["x", "y", "z"], "in").of == {"x": [], "y": [], "z": []}
        assert public.met(["x", "y", "z"], "out").sizes == {"x": 1, "y": 0, "z": 0}

    def test_a_scope_holds_for_what_is_stored_now(self, probe: Probe) -> None:
        """[X-5] Let an update move a document into a scope and out of it."""
        probe.put(
            make_record("a", 0.9, link_both("x"), access="all"),
            make_record("b", 0.8, link_both("x"), access="staff"),
        )
        public = probe.within(PUBLIC)
        assert (public.near(5), public.met(["x"]).of["x"]) == (["a"], ["a"])
        probe.put(
            make_record("a", 0.9, link_both("x"), access="staff"),
            make_record("b", 0.8, link_both("x"), access="all"),
        )
        assert (public.near(5), public.met(["x"]).of["x"]) == (["b"], ["b"])
        probe.remove("b")
        assert (public.near(5), public.met(["x"]).sizes["x"]) == ([], 0)

    @pytest.mark.parametrize("scope", [{"links": {"$exists": True}}, {"links": {"$ne": []}, "access": "all"}])
    def test_a_scope_may_be_of_links(self, probe: Probe, scope: Filter) -> None:
        """[X-1] [C-1] Find the documents whose links pass, in link groups as by similarity."""
        probe.put(
            make_record("a", 0.9, link_both("x"), access="all"),
            make_record("b", 0.8, link_both("x"), access="all"),
            make_record("c", 0.7, link_both("x"), access="all"),
            make_record("d", 0.6, access="staff"),
        )
        within, without = probe.within(scope), probe.within({"links": {"$exists": False}})
        assert within.near(3) == within.met(["x"]).of["x"] == ["a", "b", "c"]
        met = within.met(["x"], take=1)
        assert (met.of["x"], met.sizes["x"]) == (["a"], 3)
        assert (without.near(5), without.met(["x"], take=1).sizes["x"]) == (["d"], 0)

    @pytest.mark.parametrize("seed", SEEDS)
    def test_random_graphs_show_nothing_of_what_is_outside(self, unclaimed: Probe, seed: int) -> None:
        """[X-6] Return all that a store of the scope alone returns."""
        found = find_scope_differences(unclaimed.backend, OracleBackend(), seed, documents=40, searches=15)
        assert found == []


class LexicalScopeCases(Cases):
    """The same, of backends that can search by words."""

    def test_words_of_what_is_outside_do_not_count(self, probe: Probe) -> None:
        """[X-4] Ignore documents outside in frequencies, number of documents and lengths."""
        records = [
            make_record("a", text="needle in hay", access="all"),
            make_record("b", text="hay and hay and straw", access="all"),
            make_record("c", text="straw", access="all"),
        ]
        probe.put(*records)
        alone = probe.plan(_score_documents("hay", "needle"))
        probe.put(*(make_record(f"s{n}", text="needle " * n, access="staff") for n in range(1, 20)))
        assert probe.within(PUBLIC).plan(_score_documents("hay", "needle")) == alone
        assert probe.plan(_score_documents("hay", "needle")) != alone

    @pytest.mark.parametrize("seed", SEEDS)
    def test_words_of_random_graphs_show_nothing_outside(self, unclaimed: Probe, seed: int) -> None:
        """[X-4, X-6] Hide documents outside from word searches and names in the query, too."""
        found = find_scope_differences(
            unclaimed.backend, OracleBackend(), seed, documents=40, searches=15, words=True
        )
        assert found == []


def _score_documents(*words: str) -> Plan[list[tuple[str, float]]]:
    found: LexicalMatches = yield Lexical(terms=words, k=50)
    ids: list[str] = yield Ids(refs=found.refs)
    return list(zip(ids, found.score.tolist(), strict=True))
