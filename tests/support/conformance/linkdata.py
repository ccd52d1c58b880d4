"""G-8, M-11, T-6: the data of links, and filters on them."""

from __future__ import annotations

import pytest

from conformance.base import Cases
from conformance.groups import make_entry
from conformance.probe import Probe, find_refs, link_both, link_in, link_out, make_record
from conformance.traversal import format_hits
from linkstore.core.filters import Filter, parse_filter
from linkstore.core.plans import Groups, Memberships, Plan, Side
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.contract import Report
from linkstore.strategies.all_paths import AllPaths
from linkstore.strategies.base import Strategy
from linkstore.strategies.eager import Eager
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.pagerank import PageRank

SINCE: Filter = {"year": {"$gte": 2020}}
ANY_JSON = {"n": [1, 2.0, True, None], "o": {"": {"a": "é 🜁"}}, "\u0000": "\u0000", '"data":': -(2**63)}


class LinkDataCases(Cases):
    """Data are stored, come back, and decide which links are followed."""

    def test_data_come_back_as_written(self, probe: Probe) -> None:
        """[D-1, S-5, L-4] Keep any JSON object, on links of every direction."""
        links = (
            link_out("x", data=ANY_JSON),
            link_in("x", data={"a": 1}),
            link_both("y", data={"a": 1.0}),
            link_out("z"),
        )
        probe.put(make_record("a", 0.5, *links))
        (found,) = probe.do(probe.backend.scan(None, 5))
        assert [link.to_dict() for link in found.links] == [link.to_dict() for link in links]
        assert probe.stored("a")[0].metadata["links"] == [link.to_dict() for link in links]

    @pytest.mark.parametrize(
        ("links", "tags"),
        [
            (SINCE, ["new"]),
            ({"year": {"$lt": 2020}}, ["old"]),
            ({"year": {"$exists": False}}, ["bare", "other"]),
            ({"source": "b"}, ["other"]),
            ({"$or": [{"source": "b"}, {"year": 2021}]}, ["new", "other"]),
            ({"year": 1}, []),
            ({}, ["bare", "new", "old", "other"]),
        ],
        ids=str,
    )
    def test_only_links_that_pass_make_entries(self, probe: Probe, links: Filter, tags: list[str]) -> None:
        """[G-8] Treat a link without data as one with an empty object."""
        probe.put(
            make_record(
                "a",
                0.5,
                link_out("old", data={"year": 2019}),
                link_out("new", data={"year": 2021}),
                link_out("other", data={"source": "b"}),
                link_out("bare"),
            )
        )
        assert probe.lying(["a"], "out", links=links) == [make_entry("a", tag) for tag in tags]
        assert probe.lying(["a"], "in", links=links) == []

    @pytest.mark.parametrize(("side", "weight"), [("out", 0.5), ("in", 0.25)])
    def test_the_weight_is_that_of_the_links_that_pass(self, probe: Probe, side: Side, weight: float) -> None:
        """[G-8, M-11] Count only the links of that side that pass, of several to one group."""
        probe.put(
            make_record(
                "a",
                0.5,
                link_out("x", weight=0.75, data={"year": 2019}),
                link_in("x", weight=0.25, data={"year": 2022}),
                link_both("x", weight=0.5, data={"year": 2021 if side == "out" else 2000}),
            )
        )
        assert probe.lying(["a"], side, links=SINCE) == [make_entry("a", "x", weight)]
        assert probe.met(["x"], side, links=SINCE).weights == {("x", "a"): weight}
        assert probe.lying(["a"], side) == [make_entry("a", "x", {"out": 0.75, "in": 0.5}[side])]

    def test_entries_left_out_are_counted(self, probe: Probe) -> None:
        """[G-8] Count omitted entries of the requested kinds and side."""
        probe.put(
            make_record(
                "a",
                0.5,
                link_out("x"),
                link_out("y", data={"year": 2021}),
                link_out("z", kind="other"),
                link_in("in"),
            ),
            make_record("b", 0.5, link_out("x")),
        )

        def plan(kinds: frozenset[str] | None) -> Plan[int]:
            refs = yield from find_refs("a", "b")
            answer: Memberships = yield Groups(refs=refs, side="out", kinds=kinds, links=parse_filter(SINCE))
            return answer.filtered

        assert probe.plan(plan(None)) == 3
        assert probe.plan(plan(frozenset({"k"}))) == 2

    def test_only_members_whose_links_pass_are_given(self, probe: Probe) -> None:
        """[M-11] Count the others, which take no place among ``take`` members."""
        probe.put(
            make_record("a", 0.9, link_in("x", data={"year": 2019})),
            make_record("b", 0.8, link_in("x")),
            make_record("c", 0.7, link_in("x", data={"year": 2020})),
            make_record("d", 0.6, link_in("x", data={"year": 2021}), link_in("y")),
            make_record("e", 0.5, link_in("x", data={"year": 2022}), link_in("y", data={"year": 2020})),
        )
        met = probe.met(["x", "y"], links=SINCE, take=2)
        assert (met.of, met.raw.filtered_links) == ({"x": ["c", "d"], "y": ["e"]}, 3)
        assert met.sizes == {"x": 5, "y": 2}

    def test_hubs_are_counted_before_the_links_are_filtered(self, probe: Probe) -> None:
        """[M-3, M-11] Keep a hub a hub, however few members pass, and count none of its links."""
        probe.put(*(make_record(f"{n}", 0.5, link_in("x", data={"year": 2017 + n})) for n in range(4)))
        hub = probe.met(["x"], links=SINCE, cap=3)
        assert (hub.of, hub.sizes, hub.raw.filtered_links) == ({"x": []}, {"x": 4}, 0)
        met = probe.met(["x"], links=SINCE, cap=4)
        assert (met.of, met.sizes, met.raw.filtered_links) == ({"x": ["3"]}, {"x": 4}, 3)

    def test_filters_on_documents_and_on_links_hold_together(self, probe: Probe) -> None:
        """[M-6, M-11] Do not count the links of documents that a filter omits."""
        probe.put(
            make_record("a", 0.9, link_in("x", data={"year": 2021}), lang="en"),
            make_record("b", 0.8, link_in("x", data={"year": 2021}), lang="de"),
            make_record("c", 0.7, link_in("x"), lang="en"),
            make_record("d", 0.6, link_in("x"), lang="de"),
        )
        met = probe.met(["x"], links=SINCE, filter={"lang": "en"})
        assert (met.of, met.filtered, met.raw.filtered_links) == ({"x": ["a"]}, 2, 1)

    def test_data_follow_updates(self, probe: Probe) -> None:
        """[W-2, W-3, C-2] Treat other data as a change, even if only the type of a number differs."""
        probe.put(
            make_record("a", 0.5, link_in("x", data={"year": 2019})), make_record("b", 0.4, link_in("x"))
        )
        assert probe.met(["x"], links=SINCE).of == {"x": []}
        assert probe.put(make_record("a", 0.5, link_in("x", data={"year": 2021}))).updated == 1
        assert probe.met(["x"], links=SINCE).of == {"x": ["a"]}
        assert probe.put(make_record("a", 0.5, link_in("x", data={"year": 2021}))).unchanged == 1
        assert probe.put(make_record("a", 0.5, link_in("x", data={"year": 2021.0}))).updated == 1
        probe.remove("a")
        assert probe.met(["x"], links=SINCE).of == {"x": []}

    def test_relink_replaces_data(self, probe: Probe) -> None:
        """[W-11] Keep data of other kinds, and treat other data alone as a change."""
        probe.put(
            make_record(
                "a", 0.5, link_in("x", data={"year": 2019}), link_in("o", kind="other", data={"n": 1})
            )
        )

        def relink(data: dict[str, object]) -> int:
            links = {"a": [link_in("x", data=data)]}
            return probe.do(probe.backend.relink({"k"}, links)).updated

        assert relink({"year": 2019}) == 1  # in another order
        assert relink({"year": 2019}) == 0
        assert relink({"year": 2021}) == 1
        assert relink({"year": 2021.0}) == 1
        assert probe.met(["x"], links=SINCE).of == {"x": ["a"]}
        assert probe.met(["o"], kind="other", links={"n": 1}).of == {"o": ["a"]}
        assert probe.do(probe.backend.verify()) == Report()

    def test_fields_of_data_are_known(self, probe: Probe) -> None:
        """[S-8, S-9] Know fields from any write, but not kinds, metadata fields or nested keys."""
        probe.put(make_record("a", 0.5, link_out("x", data={"since": {"k": 1}, "tag": 1}), lang="since"))
        probe.do(probe.backend.relink({"w"}, {"a": [link_out("y", kind="w", data={"é": 1})]}))
        asked = Vocabulary(link_fields=frozenset({"since", "tag", "é", "k", "lang", "kind", "links"}))
        known = frozenset({"since", "tag", "é"})
        assert probe.do(probe.backend.vocabulary(asked)) == Vocabulary(link_fields=known)
        assert probe.do(probe.backend.vocabulary(None)) == Vocabulary(
            kinds=frozenset({"k", "w"}), fields=frozenset({"lang", "links"}), link_fields=known
        )

    @pytest.mark.parametrize(
        "strategy",
        [Eager(start_k=1, depth=2), Mmr(fetch_k=1, k=9), PageRank(start_k=1), AllPaths(start_k=1)],
        ids=lambda strategy: type(strategy).__name__,
    )
    def test_strategies_follow_links_that_pass(self, probe: Probe, strategy: Strategy) -> None:
        """[T-6] Test only the link that points, not the link that it points at."""
        probe.put(
            make_record(
                "seed",
                0.9,
                link_out("old", data={"year": 2019}),
                link_out("new", data={"year": 2021}),
                role="seed",
            ),
            make_record("old", 0.1, link_in("old", data={"year": 2021})),
            make_record("new", 0.1, link_in("new")),
        )
        seeds = parse_filter({"role": "seed"})
        everything = {hit.document.id for hit in probe.search(strategy, seed_filter=seeds)}
        assert everything == {"seed", "old", "new"}
        hits = probe.search(strategy, seed_filter=seeds, link_filter=parse_filter(SINCE))
        assert {hit.document.id for hit in hits} == {"seed", "new"}
        assert ("filter", 1) in [(cut.reason, cut.count) for cut in hits.cuts]

    def test_the_link_that_points_decides_backward_too(self, probe: Probe) -> None:
        """[T-6] Test the pointing link in either direction, and show its data in paths."""
        probe.put(
            make_record("old", 0.2, link_out("x", data={"year": 2019})),
            make_record("new", 0.1, link_out("x", data={"year": 2021})),
            make_record("seed", 0.9, link_in("x", data={"year": 1900})),
        )
        strategy = Eager(start_k=1, direction="backward")
        hits = probe.search(strategy, link_filter=parse_filter(SINCE))
        assert format_hits(hits) == ["0 seed", '1 seed —[k x {"year":2021}]→ new']
        assert [step.data for step in hits[1].path] == [None, {"year": 2021}]

    def test_chains_show_data(self, probe: Probe) -> None:
        """[T-5, T-6] Show the data of the link that points, whichever way it was followed."""
        probe.put(
            make_record("a", 0.9, link_out("b", data={"year": 2021}), link_in("a")),
            make_record("b", 0.2, link_in("b", data={"year": 1})),
            make_record("c", 0.1, link_out("a", data={"year": 2022})),
        )
        hits = probe.search(AllPaths(start_k=1, direction="both"), link_filter=parse_filter(SINCE))
        chains = {hit.document.id: [triple.data for chain in hit.chains for triple in chain] for hit in hits}
        assert chains == {"a": [], "b": [{"year": 2021}], "c": [{"year": 2022}]}
