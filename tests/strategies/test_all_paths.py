"""``AllPaths``: every chain to a document, and documents where chains meet."""

from __future__ import annotations

import drugs
import pytest
from conformance.probe import link_both, link_in, link_out, make_record
from internals import MAX_CHAINS, Chain, Triple, parse_filter
from langchain_core.documents import Document
from searching import cuts, ids, store

from linkstore import LinkStore
from linkstore.errors import StrategyError
from linkstore.strategies import AllPaths


@pytest.fixture(scope="module")
def pharmacy():
    with LinkStore() as made:
        made.add_documents(list(drugs.documents()))
        yield made


def arms(drug: drugs.Drug) -> list[list[tuple[str, str, str]]]:
    """Both chains from a drug to its regulation."""
    name, regulation = f"drug/{drug.name}", f"regulation/{drug.regulation}"
    group, approval, place = f"class/{drug.class_}", f"approval/{drug.name}", f"place/{drug.place}"
    return [
        [(name, "BELONGS_TO", group), (group, "GOVERNED_BY", regulation)],
        [
            (name, "HAS_APPROVAL", approval),
            (approval, "IN_JURISDICTION", place),
            (place, "ENFORCES", regulation),
        ],
    ]


def told(chain: Chain) -> list[tuple[str, str, str]]:
    return [(triple.subject, triple.kind, triple.object) for triple in chain]


def test_the_regulation_where_both_arms_meet_comes_first(pharmacy):
    """For each of 200 drugs, among 712 documents, without being told which kinds matter."""
    for drug in drugs.drugs():
        hits = pharmacy.search(drugs.question(drug), strategy=AllPaths())
        assert hits[0].document.id == f"regulation/{drug.regulation}"
        assert [told(chain) for chain in hits[0].chains if chain.independent] == arms(drug)
        assert {chain[0].label for chain in hits[0].chains[:2]} == {"belongs_to", "has_approval"}


def test_the_arms_are_found_from_a_root_alone(pharmacy):
    for drug in drugs.drugs()[::40]:
        root = [f"drug/{drug.name}"]
        hits = pharmacy.search("anything", strategy=AllPaths(start_k=0), initial_roots=root)
        assert hits[0].document.id == f"regulation/{drug.regulation}"
        assert [told(chain) for chain in hits[0].chains] == arms(drug)
        assert hits[1].contributions.get("meeting") is None


def test_two_hops_find_one_arm(pharmacy):
    drug = drugs.drugs()[0]
    root = [f"drug/{drug.name}"]
    hits = pharmacy.search("x", strategy=AllPaths(start_k=0, depth=2, k=50), initial_roots=root)
    found = {hit.document.id: hit for hit in hits}[f"regulation/{drug.regulation}"]
    assert [told(chain) for chain in found.chains] == arms(drug)[:1]


def test_kinds_that_are_not_followed_end_an_arm(pharmacy):
    drug = drugs.drugs()[0]
    kinds = ["BELONGS_TO", "GOVERNED_BY", "HAS_APPROVAL", "IN_JURISDICTION"]
    hits = pharmacy.search("x", strategy=AllPaths(kinds=kinds), initial_roots=[f"drug/{drug.name}"])
    assert all("meeting" not in hit.contributions for hit in hits)


def test_chains_are_in_metadata_and_in_the_explanation(pharmacy):
    drug = drugs.drugs()[3]
    hits = pharmacy.search(drugs.question(drug), strategy=AllPaths(k=1))
    found = hits.documents()[0].metadata["linkstore"]
    assert found["chains"][0][0] == {
        "subject": f"drug/{drug.name}",
        "kind": "BELONGS_TO",
        "object": f"class/{drug.class_}",
        "label": "belongs_to",
    }
    assert "chains" not in pharmacy.search("which rules apply").documents()[0].metadata["linkstore"]
    told = hits.explain()
    assert f'—[HAS_APPROVAL "has_approval"]→ approval/{drug.name} —[IN_JURISDICTION' in told
    assert f'—[BELONGS_TO "belongs_to"]→ class/{drug.class_}' in told
    assert sum(hits[0].contributions.values()) == pytest.approx(hits[0].score)


def test_a_chain_reads_as_it_was_followed():
    chain = Chain(
        "a", (Triple(subject="b", kind="k", object="a", label="l"), Triple(subject="b", kind="j", object="c"))
    )
    assert str(chain) == 'a ←[k "l"]— b —[j]→ c'
    assert repr(chain) == '<Chain a ←[k "l"]— b —[j]→ c>'
    assert (len(chain), chain[1].kind, [triple.kind for triple in chain], chain[:1]) == (
        2,
        "j",
        ["k", "j"],
        (chain[0],),
    )
    assert str(chain[0]) == 'b —[k "l"]→ a'


def test_weights_decide_which_chain_is_shown():
    search = store(
        make_record("s", 0.9, link_out("a", weight=0.5), link_out("b"), link_out("c", weight=0.25)),
        *(make_record(name, 0.1, link_in(name), link_out("end")) for name in "abc"),
        make_record("end", 0.1, link_in("end")),
    )
    (end,) = [hit for hit in search(AllPaths(start_k=1, chains=2)) if hit.document.id == "end"]
    assert [chain[0].object for chain in end.chains] == ["b", "a"]


def test_a_link_without_weight_leads_to_a_chain_without_strength():
    search = store(make_record("s", 0.9, link_out("a", weight=0.0)), make_record("a", 0.1, link_in("a")))
    hit = search(AllPaths(start_k=1))[1]
    assert [str(chain) for chain in hit.chains] == ["s —[k]→ a"]
    assert "start" not in hit.contributions


def test_filters_hold_on_the_way():
    search = store(
        make_record("s", 0.9, link_out("a"), link_out("b", kind="j")),
        make_record("a", 0.1, link_in("a"), link_out("end"), hidden=True),
        make_record("b", 0.1, link_in("b", kind="j"), link_out("end", kind="j")),
        make_record("end", 0.1, link_in("end"), link_in("end", kind="j")),
    )
    assert search(AllPaths(start_k=1))[0].document.id == "end"
    for stage in ("filter", "hop_filter"):
        hits = search(AllPaths(start_k=1), **{stage: parse_filter({"hidden": {"$exists": False}})})
        assert ids(hits) == ["s", "b", "end"]
        assert [len(hit.chains) for hit in hits] == [0, 1, 1]


@pytest.mark.parametrize("depth", [3, 6])
def test_a_dense_graph_makes_no_more_chains_than_the_ceiling(depth):
    """A hundred documents that all link to each other have a hundred million chains of four links."""
    names = [f"{n:03}" for n in range(100)]
    search = store(
        *(
            make_record(name, 0.5, link_both("all"), link_both(f"{n % 7}", kind="j"))
            for n, name in enumerate(names)
        )
    )
    hits = search(AllPaths(start_k=4, depth=depth, adjacent_k=100, beam=100, k=100))
    assert len(hits) == 100
    assert all(len(hit.chains) <= 8 for hit in hits)
    assert "paths" in {reason for reason, _, _ in cuts(hits)}
    assert any(f"more than {MAX_CHAINS:,} chains" in cut.detail for cut in hits.cuts)


def test_a_document_that_is_its_own_neighbour_has_no_chain():
    search = store(
        make_record("a", 0.9, link_both("x"), link_out("a"), link_in("a")),
        make_record("b", 0.1, link_both("x")),
    )
    hits = search(AllPaths(start_k=1, direction="both", depth=9))
    assert [[str(chain) for chain in hit.chains] for hit in hits] == [[], ["a —[k]→ b"]]


def test_a_search_that_ends_at_once_has_its_reason():
    assert store()(AllPaths()).reason == "the store is empty"
    search = store(make_record("a", 0.5, text="word"))
    assert "min_similarity 0.9" in str(search(AllPaths(min_similarity=0.9)).reason)
    assert "start_k is 0" in str(search(AllPaths(start_k=0)).reason)
    assert ids(search(AllPaths(depth=0))) == ["a"]
    assert ids(search(AllPaths(depth=2**31 - 1))) == ["a"]


@pytest.mark.parametrize(
    "wrong", [{"chains": 0}, {"depth": -1}, {"pool": 0}, {"lexical": -1}, {"start_k": 1.5}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(StrategyError, match=next(iter(wrong))):
        AllPaths(**wrong)


def test_words_find_a_start_that_meaning_does_not():
    search = store(
        *(make_record(f"n{n}", 0.8, text="tower") for n in range(5)),
        make_record("s", 0.1, link_out("end"), text="zalamidine"),
        make_record("end", 0.0, link_in("end")),
    )
    assert search(AllPaths(), text="zalamidine")[0].document.id == "s"
    assert "end" in ids(search(AllPaths(), text="zalamidine"))
    assert "end" not in ids(search(AllPaths(lexical=0), text="zalamidine"))


def test_pages_share_the_result():
    search = store(
        make_record("s", 0.9, link_out("a"), link_out("b")),
        *(make_record(n, 0.5, link_in(n), link_in("page", kind="section")) for n in "ab"),
    )
    assert ids(search(AllPaths(start_k=1, per_page=1))) == ["s", "a"]


def test_documents_are_those_of_the_store(pharmacy):
    (hit,) = pharmacy.search(drugs.question(drugs.drugs()[9]), strategy=AllPaths(k=1))
    assert isinstance(hit.document, Document)
    assert hit.document.metadata["type"] == "regulation"


def test_two_chains_come_before_one_also_where_a_filter_keeps_better_documents_from_being_starts():
    """The one that a single chain leads to is five times as similar as the only start."""
    search = store(
        make_record(
            "seed",
            0.2,
            link_out("1", kind="a"),
            link_out("2", kind="a"),
            link_out("3", kind="b"),
            role="seed",
        ),
        make_record("middle", 0.0, link_in("3", kind="b"), link_out("4", kind="c")),
        make_record("two chains", 0.0, link_in("1", kind="a"), link_in("4", kind="c")),
        make_record("one chain", 1.0, link_in("2", kind="a")),
    )
    hits = search(AllPaths(lexical=0), seed_filter=parse_filter({"role": "seed"}))
    assert ids(hits)[:2] == ["two chains", "one chain"]
    assert hits[1].score == 1


def test_two_chains_come_before_one_also_where_nothing_else_speaks_for_them():
    """Scores are equal here: 1 for the second chain, and 1 for a perfect start and a perfect match."""
    search = store(
        make_record("a perfect one", 1.0, link_in("2", kind="a")),
        make_record("seed", 1.0, link_out("2", kind="a")),
        make_record("unlike", -0.5, link_out("1", kind="a"), link_out("3", kind="b")),
        make_record("where two meet", -0.6, link_in("1", kind="a"), link_in("3", kind="b")),
    )
    hits = search(AllPaths(lexical=0, depth=1, start_k=3))
    assert [hit.score for hit in hits][:2] == [1, 1]
    assert ids(hits)[:2] == ["where two meet", "a perfect one"]


def test_chains_that_share_a_document_on_the_way_are_not_independent():
    search = store(
        make_record("s", 0.9, link_out("1", kind="a"), link_out("2", kind="b")),
        make_record(
            "middle",
            0.1,
            link_in("1", kind="a"),
            link_in("2", kind="b"),
            link_out("3", kind="c"),
            link_out("4", kind="d"),
        ),
        make_record("end", 0.1, link_in("3", kind="c"), link_in("4", kind="d")),
    )
    hits = {hit.document.id: hit for hit in search(AllPaths(start_k=1, lexical=0))}
    assert hits["middle"].contributions["meeting"] == 1
    assert "meeting" not in hits["end"].contributions
    assert not any(chain.independent for chain in hits["end"].chains)


@pytest.mark.parametrize("tags", ["xy", "yx"])
def test_of_links_of_a_kind_between_two_documents_the_one_that_weighs_most_counts(tags):
    light, heavy = tags
    search = store(
        make_record(
            "s", 1.0, link_out(light, weight=0.5, label="light"), link_out(heavy, weight=0.75, label="heavy")
        ),
        make_record("a", 0.0, link_in(light), link_in(heavy)),
    )
    (hit,) = search(AllPaths(start_k=1, lexical=0))[1:]
    assert [chain[0].label for chain in hit.chains] == ["heavy"]
    assert hit.contributions["start"] == pytest.approx(0.75 / 2)


@pytest.mark.parametrize("tags", ["xy", "yx"])
def test_of_links_of_one_weight_one_that_leads_forward_counts_and_then_the_first_tag(tags):
    back, forth = tags
    search = store(
        make_record("s", 1.0, link_in(back), link_out(forth, label="forth"), link_out("z", label="last")),
        make_record("a", 0.0, link_out(back), link_in(forth), link_in("z")),
    )
    (hit,) = search(AllPaths(start_k=1, direction="both"))[1:]
    assert [(str(chain), chain[0].label) for chain in hit.chains] == [('s —[k "forth"]→ a', "forth")]


def test_what_does_not_fit_leads_to_no_chain():
    """The one that is left out is at the end of a link that counts twice as much as the other."""
    search = store(
        make_record("s", 1.0, link_out("near", weight=0.5), link_out("far", kind="j")),
        make_record("near", 0.5, link_in("near")),
        make_record("far", -1.0, link_in("far", kind="j")),
    )
    hits = search(AllPaths(start_k=1, lexical=0, max_nodes=2))
    assert [(hit.document.id, len(hit.chains)) for hit in hits] == [("s", 0), ("near", 1)]
    assert hits[1].contributions["start"] == pytest.approx(0.5 / 2)
    assert cuts(hits) == [("max_nodes", 1, 1)]


def test_starts_that_do_not_fit_are_cut_at_depth_0():
    search = store(*(make_record(name, 0.5) for name in "abcd"))
    hits = search(AllPaths(start_k=4, max_nodes=3))
    assert (ids(hits), cuts(hits)) == (["a", "b", "c"], [("max_nodes", 1, 0)])


def test_where_the_question_names_documents_the_search_starts_from_them_alone():
    search = store(
        *(make_record(f"n{n}", 0.9, title=f"Ward {n} north") for n in range(6)), make_record("like it", 1.0)
    )
    assert ids(search(AllPaths(depth=0), text="Ward 3 north")) == ["n3"]
    assert ids(search(AllPaths(depth=0, start_k=1), text="wards")) == ["like it"]
    every = " ".join(f"Ward {n} north," for n in range(6))
    assert ids(search(AllPaths(depth=0), text=every)) == ["n0", "n1", "n2", "n3", "n4"]


@pytest.mark.parametrize("kind", ["hyperlink", "mention"])
def test_references_are_followed_unless_told_otherwise(kind):
    search = store(
        make_record("s", 0.9, link_out("a", kind=kind)), make_record("a", 0.1, link_in("a", kind=kind))
    )
    assert ids(search(AllPaths(start_k=1))) == ["s", "a"]
    assert ids(search(AllPaths(start_k=1, references=False))) == ["s"]


def test_a_question_about_something_else_is_doubted():
    search = store(*(make_record(f"{n}", 0.1, text="how the pump is cleaned") for n in range(4)))
    hits = search(AllPaths(pool=3), text="sourdough without yeast", least_similarity=0.3)
    assert (len(ids(hits)) > 0, hits.doubt is not None) == (True, True)
