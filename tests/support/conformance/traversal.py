"""T: what the strategies give on a backend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from differential import assert_congruent
from oracle import OracleBackend

from conformance.base import Cases
from conformance.probe import Probe, link_in, link_out, make_record
from linkstore.core.hits import Hits, Triple
from linkstore.strategies.all_paths import AllPaths
from linkstore.strategies.base import Strategy
from linkstore.strategies.eager import Eager
from linkstore.strategies.first_stage import Similarity
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.pagerank import PageRank

SEEDS = range(3)


def format_hits(hits: Hits) -> list[str]:
    """Format each hit's depth and path."""
    return [f"{hit.depth} {hit.path}" for hit in hits]


class TraversalCases(Cases):
    """Every strategy, on graphs small enough to follow by hand."""

    def test_plain_search(self, probe: Probe) -> None:
        """[T-1] Search by Similarity, and by Eager at depth 0, as Nearest with its similarities."""
        probe.put(
            make_record("a", 0.25, link_out("c")),
            make_record("b", 0.75, link_out("c")),
            make_record("c", -0.5, link_in("c")),
        )
        for strategy in (Similarity(k=2), Eager(start_k=2, depth=0), Mmr(k=2, depth=0, lambda_mult=1.0)):
            hits = probe.search(strategy)
            assert format_hits(hits) == ["0 b", "0 a"]
            assert [(hit.score, hit.similarity) for hit in hits] == [(0.75, 0.75), (0.25, 0.25)]

    def test_eager_follows_links_and_ranks_all(self, probe: Probe) -> None:
        """[T-1] Rank a better neighbour above its seed, and say how each hop was made."""
        probe.put(
            make_record("seed", 0.75, link_out("b", label="see b")),
            make_record("b", 0.5, link_in("b"), link_out("c")),
            make_record("c", 0.625, link_in("c")),
            make_record("other", 0.7),
        )
        hits = probe.search(Eager(start_k=1, depth=2))
        assert format_hits(hits) == [
            "0 seed",
            '2 seed —[k b "see b"]→ b —[k c]→ c',
            '1 seed —[k b "see b"]→ b',
        ]

    def test_weights_damp(self, probe: Probe) -> None:
        """[T-1] Score (1 + similarity) * weight - 1, with the product of weights on the best path."""
        probe.put(
            make_record("seed", 0.75, link_out("x", weight=0.5), link_out("y", weight=0.25)),
            make_record("a", 0.5, link_in("x", weight=0.5), link_in("y", weight=0.5)),
        )
        hit = probe.search(Eager(start_k=1, depth=1))[1]
        assert (hit.score, hit.similarity) == (1.5 * 0.25 - 1, 0.5)
        assert str(hit.path) == "seed —[k x]→ a"

    @pytest.mark.parametrize(
        ("direction", "ids"), [("forward", ["m", "after"]), ("backward", ["m", "before"])]
    )
    def test_direction(self, probe: Probe, direction: str, ids: list[str]) -> None:
        """[T-1] Follow links forward as they point, and find backward who points here."""
        probe.put(
            make_record("before", 0.3, link_out("m")),
            make_record("m", 0.9, link_in("m"), link_out("z")),
            make_record("after", 0.1, link_in("z")),
        )
        hits = probe.search(Eager(start_k=1, depth=1, direction=direction))  # type: ignore[arg-type]
        assert [hit.document.id for hit in hits] == ids
        both = probe.search(Eager(start_k=1, depth=1, direction="both"))
        assert [hit.document.id for hit in both] == ["m", "before", "after"]

    def test_roots_and_links_start_a_search(self, probe: Probe) -> None:
        """[T-1] Start beside, or instead of, what is similar."""
        probe.put(
            make_record("near", 0.9), make_record("root", 0.1), make_record("linked", 0.2, link_in("x"))
        )
        starts = {"roots": ("root",), "links": (link_out("x", label="named"),)}
        assert format_hits(probe.search(Eager(start_k=1, depth=0), **starts)) == [
            "0 near",
            '0 —[k x "named"]→ linked',
            "0 root",
        ]
        assert len(probe.search(Eager(start_k=0, depth=0), **starts)) == 2

    def test_hubs_are_not_followed_but_named(self, probe: Probe) -> None:
        """[T-1, M-3] Name hubs in a cut."""
        probe.put(
            make_record("seed", 0.9, link_out("hub"), link_out("x")), make_record("a", 0.1, link_in("x"))
        )
        probe.put(*(make_record(f"{n}", 0.5, link_in("hub")) for n in range(4)))
        hits = probe.search(Eager(start_k=1, depth=1, hub_cap=3))
        assert format_hits(hits) == ["0 seed", "1 seed —[k x]→ a"]
        assert [(cut.reason, cut.count, "k hub" in cut.detail) for cut in hits.cuts] == [("hub", 1, True)]

    def test_cycles_end(self, probe: Probe) -> None:
        """[T-2] Reach each document once, by its shortest path, at any depth."""
        probe.put(
            make_record("a", 0.9, link_in("a"), link_out("b"), link_out("a")),
            make_record("b", 0.8, link_in("b"), link_out("c")),
            make_record("c", 0.7, link_in("c"), link_out("a"), link_out("b")),
        )
        assert format_hits(probe.search(Eager(start_k=1, depth=9))) == [
            "0 a",
            "1 a —[k b]→ b",
            "2 a —[k b]→ b —[k c]→ c",
        ]

    def test_a_filter_holds_at_every_hop(self, probe: Probe) -> None:
        """[T-3] Do not reach documents through one that does not pass."""
        probe.put(
            make_record("open", 0.9, link_out("secret"), lang="en"),
            make_record("secret", 0.8, link_in("secret"), link_out("behind"), lang="xx"),
            make_record("behind", 0.7, link_in("behind"), lang="en"),
        )
        for strategy in (
            Eager(start_k=1, depth=3),
            Mmr(k=3, depth=3, fetch_k=1),
        ):
            hits = probe.within({"lang": "en"}).search(strategy)
            assert [hit.document.id for hit in hits] == ["open"]
            assert hits.cuts == ()
            assert len(probe.search(strategy)) == 3

    def test_mmr_picks_what_differs(self, probe: Probe) -> None:
        """[T-1] Pick one of two equal documents, then one elsewhere, reached by a link."""
        probe.put(
            make_record("a", 0.9, link_out("b")),
            make_record("a again", 0.9),
            make_record("b", -0.2, link_in("b")),
        )
        hits = probe.search(Mmr(k=2, depth=1, fetch_k=2, lambda_mult=0.3))
        assert format_hits(hits) == ["0 a", "1 a —[k b]→ b"]
        assert hits[0].score > hits[1].score

    @pytest.mark.parametrize(
        "strategy",
        [
            Similarity(),
            Eager(start_k=9, depth=0),
            Mmr(depth=0, lambda_mult=1.0),
            PageRank(depth=0, lexical=0.0),
        ],
        ids=lambda strategy: type(strategy).__name__,
    )
    def test_per_page(self, probe: Probe, strategy: Strategy) -> None:
        """[T-1] Return the best of each page, which incoming ``section`` links identify."""
        for page, similarities in {"/a": (0.9, 0.8, 0.7), "/b": (0.85, 0.4)}.items():
            probe.put(
                *(
                    make_record(f"{page}{n}", value, link_in(f"{page}#{n}", kind="section"))
                    for n, value in enumerate(similarities)
                )
            )
        probe.put(
            make_record("of no page", 0.6),
            make_record("of none either", 0.5, link_out("/a#0", kind="section")),
        )
        found = {
            per_page: probe.search(replace(strategy, k=4, per_page=per_page)) for per_page in (None, 2, 1)
        }
        ids = {per_page: [str(hit.document.id) for hit in hits] for per_page, hits in found.items()}
        assert ids[1] == ["/a0", "/b0", "of no page", "of none either"]
        assert sorted(ids[2]) == ["/a0", "/a1", "/b0", "of no page"]
        assert sorted(ids[None]) == ["/a0", "/a1", "/a2", "/b0"]
        reasons = {per_page: {cut.reason for cut in hits.cuts} for per_page, hits in found.items()}
        assert "per_page" in reasons[1] & reasons[2]
        assert "per_page" not in reasons[None]

    def test_no_hit_has_a_reason(self, probe: Probe) -> None:
        """[T-1] Explain an empty store, and a filter or a floor that none passes."""
        strategies = (Similarity(), Eager(), Mmr(), PageRank())
        assert {probe.search(strategy).reason for strategy in strategies} == {"the store is empty"}
        probe.put(make_record("a", 0.5))
        unpassed = probe.within({"lang": "en"})
        reasons = {unpassed.search(strategy).reason for strategy in strategies}
        assert reasons == {"no document passes the filter"}
        for strategy in (Eager(min_similarity=0.9), Mmr(min_similarity=0.9), PageRank(min_similarity=0.9)):
            assert "min_similarity 0.9" in (probe.search(strategy).reason or "")

    def test_chains_that_meet_come_first(self, probe: Probe) -> None:
        """[T-5] Rank documents where chains meet first, as triples with direction and label."""
        kinds = ("class", "governs", "approved", "place", "enforces")
        in_class, governs, approved, place, enforces = kinds
        probe.put(
            make_record(
                "drug", 0.9, link_out("c", kind=in_class, label="is a"), link_out("a", kind=approved)
            ),
            make_record(
                "class",
                0.0,
                link_in("c", kind=in_class),
                link_out("one", kind=governs),
                link_out("both", kind=governs),
            ),
            make_record("approval", 0.1, link_in("a", kind=approved), link_out("p", kind=place)),
            make_record(
                "place",
                0.2,
                link_in("p", kind=place),
                link_out("both", kind=enforces),
                link_out("other", kind=enforces),
            ),
            make_record("one", 0.8, link_in("one", kind=governs)),
            make_record("both", -0.5, link_in("both", kind=governs), link_in("both", kind=enforces)),
            make_record("other", 0.85, link_in("other", kind=enforces)),
        )
        hits = probe.search(AllPaths(start_k=1, k=9))
        assert hits[0].document.id == "both"
        assert [(str(chain), chain.independent) for chain in hits[0].chains] == [
            ('drug —[class "is a"]→ class —[governs]→ both', True),
            ("drug —[approved]→ approval —[place]→ place —[enforces]→ both", True),
        ]
        assert hits[0].chains[0][0] == Triple(subject="drug", kind="class", object="class", label="is a")
        assert format_hits(hits)[0] == '2 drug —[class c "is a"]→ class —[governs both]→ both'
        assert {hit.document.id: len(hit.chains) for hit in hits[1:]} == {
            "drug": 0,
            "class": 1,
            "approval": 1,
            "place": 1,
            "one": 1,
            "other": 1,
        }
        assert sum(hits[0].contributions.values()) == pytest.approx(hits[0].score)

    def test_chains_that_share_a_document_or_their_kinds_do_not_meet(self, probe: Probe) -> None:
        """[T-5] Show such chains, none of them as independent."""
        probe.put(
            make_record("s", 0.9, link_out("a"), link_out("b"), link_out("c", kind="x")),
            make_record("a", 0.1, link_in("a"), link_out("end")),
            make_record("b", 0.1, link_in("b"), link_out("end"), link_out("c", kind="y")),
            make_record("c", 0.1, link_in("c", kind="x"), link_in("c", kind="y"), link_out("last")),
            make_record("end", 0.1, link_in("end")),
            make_record("last", 0.1, link_in("last")),
        )
        found = {hit.document.id: hit for hit in probe.search(AllPaths(start_k=1))}
        assert [(str(chain), chain.independent) for chain in found["end"].chains] == [
            ("s —[k]→ a —[k]→ end", False),
            ("s —[k]→ b —[k]→ end", False),
        ]
        assert [(str(chain), chain.independent) for chain in found["last"].chains] == [
            ("s —[x]→ c —[k]→ last", False),
            ("s —[k]→ b —[y]→ c —[k]→ last", False),
        ]
        assert [chain.independent for chain in found["c"].chains] == [True, True]
        assert {id for id, hit in found.items() if "meeting" in hit.contributions} == {"c"}

    def test_chains_are_ordered_counted_and_never_circular(self, probe: Probe) -> None:
        """[T-5] Order chains by strength, length and ids, also against links' direction."""
        middles = [f"m{n}" for n in range(6)]
        probe.put(
            make_record(
                "s",
                0.9,
                *(link_out(name, weight=0.5 if name == "m0" else 1.0) for name in middles),
                link_in("s"),
            ),
            *(make_record(name, 0.1, link_in(name), link_out("end"), link_out("s")) for name in middles),
            make_record("end", 0.1, link_in("end"), link_out("s")),
        )
        hits = probe.search(AllPaths(start_k=1, chains=4))
        chains = {hit.document.id: [str(chain) for chain in hit.chains] for hit in hits}
        assert chains["end"] == [f"s —[k]→ m{n} —[k]→ end" for n in (1, 2, 3, 4)]
        assert chains["s"] == []
        backward = probe.search(AllPaths(start_k=0, depth=1, direction="backward"), roots=("m1",))
        ((chain,),) = [hit.chains for hit in backward if hit.chains]
        assert (str(chain), tuple(chain)) == ("m1 ←[k]— s", (Triple(subject="s", kind="k", object="m1"),))

    @pytest.mark.parametrize("seed", SEEDS)
    def test_random_graphs_answer_as_the_oracle_does(self, unclaimed: Probe, seed: int) -> None:
        """[T-1, T-4] Agree through relinking updates and deletes, with the seed in messages."""
        assert_congruent(unclaimed.backend, OracleBackend(), seed)
