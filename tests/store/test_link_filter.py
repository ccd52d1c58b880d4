"""Relations are followed selectively, by the data of their links."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree as ET

import drugs
import pytest
from documented import linkstore
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkStore, add_links, get_links
from linkstore.errors import FilterError, StrategyError, UnknownNameError
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity

SINCE = {"year": {"$gte": 2020}}
STRATEGIES = [Eager(start_k=0), Mmr(fetch_k=0, k=20), AllPaths(start_k=0, depth=1), PageRank(k=50)]


@pytest.fixture(scope="module")
def pharmacy():
    with LinkStore() as made:
        made.add_documents(list(drugs.documents(dated=True)))
        yield made


def followed(store: LinkStore, strategy, **options) -> set[str]:
    """The drugs whose approvals links led to, from all drugs by id."""
    roots = [f"drug/{drug.name}" for drug in drugs.drugs()[:20]]
    hits = store.search(
        "approval", strategy=strategy.with_k(500), initial_roots=roots, filter=None, **options
    )
    led = {str(hit.document.id) for hit in hits if hit.depth == 1}
    return {id.removeprefix("approval/") for id in led if id.startswith("approval/")}


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
def test_approvals_since_2020_are_followed_and_earlier_ones_are_not(pharmacy, strategy):
    some = drugs.drugs()[:20]
    late = {drug.name for drug in some if drug.approved >= 2020}
    assert 0 < len(late) < 20
    assert followed(pharmacy, strategy) >= {drug.name for drug in some}
    assert followed(pharmacy, strategy, link_filter=SINCE) & {drug.name for drug in some} == late


def test_both_arms_meet_only_over_approvals_that_pass(pharmacy):
    """Of two drugs of one class and place, the chain over the approval is there for the later one alone."""
    strategy = AllPaths(k=40, start_k=0)
    for drug in drugs.drugs()[:32:3]:
        known = {"year": {"$not": {"$lt": 2020}}}  # links without a year pass
        (hit,) = (
            hit
            for hit in pharmacy.search(
                "rules", strategy=strategy, initial_roots=[f"drug/{drug.name}"], link_filter=known
            )
            if hit.document.id == f"regulation/{drug.regulation}"
        )
        lengths = [len(chain) for chain in hit.chains if chain.independent]
        assert lengths == ([2, 3] if drug.approved >= 2020 else [])
        years = [triple.data for chain in hit.chains for triple in chain if triple.kind == "HAS_APPROVAL"]
        assert years == [{"year": drug.approved}] * (drug.approved >= 2020)


def test_a_path_shows_the_data_of_its_links(pharmacy):
    drug = next(drug for drug in drugs.drugs() if drug.approved == 2020)
    hits = pharmacy.search(
        drug.name, strategy=Eager(start_k=0), initial_roots=[f"drug/{drug.name}"], link_filter=SINCE
    )
    (reached,) = (hit for hit in hits if hit.depth)
    assert reached.path[-1].data == {"year": 2020}
    assert '{"year":2020}' in hits.explain()
    assert reached.to_document().metadata["linkstore"]["path"][-1]["data"] == {"year": 2020}
    assert any(cut.detail == "links that link_filter excludes" and cut.count == 3 for cut in hits.cuts)


@pytest.mark.parametrize(
    "condition", [{"yaer": 2020}, {"$or": [{"year": 2020}, {"yaer": {"$gt": 1}}]}], ids=str
)
def test_a_field_that_no_link_has_is_an_error_that_names_the_nearest(pharmacy, condition):
    with pytest.raises(UnknownNameError, match=r"field of link data 'yaer'; did you mean 'year'\?"):
        pharmacy.search("x", strategy=Eager(), link_filter=condition)
    with pytest.raises(UnknownNameError, match=r"field of link data 'type'"):  # one of metadata
        pharmacy.search("x", strategy=Eager(), link_filter={"type": "drug"})
    with pytest.raises(UnknownNameError, match=r"metadata field 'year'"):
        pharmacy.search("x", strategy=Eager(), hop_filter={"year": 2020})
    assert pharmacy.search("x", strategy=Eager(), link_filter={"yaer": {"$ne": 1}})


def test_suggestions_come_from_documents_that_the_caller_may_see():
    with LinkStore(embedding()) as store:
        for id, field in (("mine", "since"), ("theirs", "sinse")):
            made = Document(id=id, page_content=id, metadata={"tenant": id})
            add_links(made, Link.outgoing(kind="k", tag="t", data={field: 1}))
            store.add_documents([made])
        with pytest.raises(UnknownNameError) as caught:
            store.search("x", filter={"tenant": "mine"}, link_filter={"sincee": 1})
        assert caught.value.known == ("since",)


def test_an_invalid_filter_is_an_error_before_anything_is_asked(pharmacy):
    with pytest.raises(FilterError, match=r"unknown operator '\$since'"):
        pharmacy.search("x", strategy=Eager(), link_filter={"year": {"$since": 2020}})
    with pytest.raises(FilterError, match="a filter must be a dict"):
        pharmacy.search("x", strategy=Eager(), link_filter="year")


def test_sync_and_async_and_many_at_once_give_the_same(pharmacy):
    """Verdicts are shared by all searches of a process."""
    filters = [{"year": {"$gte": year}} for year in range(2010, 2026)]

    def found(condition) -> list[str]:
        hits = pharmacy.search(
            "approval", strategy=Eager(start_k=20, direction="both"), link_filter=condition
        )
        return [str(hit.path) for hit in hits]

    async def searched() -> list[list[str]]:
        strategy = Eager(start_k=20, direction="both")
        tasks = (pharmacy.asearch("approval", strategy=strategy, link_filter=one) for one in filters)
        return [[str(hit.path) for hit in hits] for hits in await asyncio.gather(*tasks)]

    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(found, filters * 3))
    once = [found(condition) for condition in filters]
    assert at_once == once * 3
    assert asyncio.run(searched()) == once


def test_verdicts_follow_what_is_written_and_packed():
    """Through updates, relinking, removals and a compaction, which numbers all entries anew."""
    with LinkStore(embedding()) as store:

        def put(number: int, year: int) -> None:
            made = Document(id=f"{number}", page_content=f"text {number}", metadata={})
            add_links(made, Link.outgoing(kind="k", tag="hub", data={"year": year}))
            store.add_documents([made])

        def late() -> set[str]:
            hits = store.search(
                "x",
                strategy=Eager(start_k=0, direction="backward", adjacent_k=99, k=99),
                initial_roots=["centre"],
                link_filter=SINCE,
            )
            return {str(hit.document.id) for hit in hits} - {"centre"}

        centre = Document(id="centre", page_content="centre", metadata={})
        add_links(centre, Link.incoming(kind="k", tag="hub"))
        store.add_documents([centre])
        for number in range(20):
            put(number, 2010 + number)
        assert late() == {f"{number}" for number in range(10, 20)}
        put(3, 2030)
        put(12, 2000)
        assert late() == {"3", "10", "11", *(f"{number}" for number in range(13, 20))}
        store.delete(["3", "13"])
        store.compact()
        assert late() == {"10", "11", *(f"{number}" for number in range(14, 20))}
        links = {"10": [Link.outgoing(kind="k", tag="hub", data={"year": 1})]}
        assert store.links.replace(["k"], links).updated == 1
        assert late() == {"11", *(f"{number}" for number in range(14, 20))}
        assert store.verify().sound


def test_what_was_linked_before_data_existed_is_searched_and_kept(pharmacy):
    """Links without data have those of an empty object."""
    with LinkStore(embedding()) as store:
        store.add_documents(list(drugs.documents()))
        assert store.search("drug", strategy=Eager(start_k=20), link_filter={"year": {"$ne": 1}})
        with pytest.raises(UnknownNameError, match="check its spelling"):
            store.search("drug", link_filter=SINCE)


def test_initial_links_are_not_tested_but_the_links_that_they_meet(pharmacy):
    drug = next(drug for drug in drugs.drugs() if drug.approved < 2020)
    tag = f"approval/{drug.name}"
    outgoing, incoming = (make(kind="HAS_APPROVAL", tag=tag) for make in (Link.outgoing, Link.incoming))
    forward = pharmacy.search(
        "x", strategy=Eager(start_k=0, depth=0), initial_links=[outgoing], link_filter=SINCE
    )
    assert [hit.document.id for hit in forward] == [tag]
    backward = Eager(start_k=0, depth=0, direction="backward")
    assert pharmacy.search("x", strategy=backward, initial_links=[incoming])
    assert not pharmacy.search("x", strategy=backward, initial_links=[incoming], link_filter=SINCE)


def test_langchain_methods_and_retrievers_take_it(pharmacy):
    root = f"drug/{next(drug for drug in drugs.drugs() if drug.approved < 2020).name}"
    common = {"initial_roots": [root], "link_filter": {"year": {"$not": {"$lt": 2020}}}}
    for found in (
        pharmacy.traversal_search("x", k=0, depth=1, **common),
        pharmacy.mmr_traversal_search("x", fetch_k=0, k=9, depth=1, **common),
        pharmacy.as_retriever(search_type="traversal", search_kwargs={"k": 0, **common}).invoke("x"),
    ):
        ids = {document.id for document in found}
        assert root in ids
        assert not any(id.startswith("approval/") for id in ids)
    with pytest.raises(StrategyError):
        pharmacy.search("x", strategy=Similarity(), **common)


def test_data_survive_export_and_import(tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents(list(drugs.documents(dated=True))[:9])
    place, lines, graph = (str(tmp_path / name) for name in ("kb", "out.jsonl", "out.graphml"))
    assert linkstore("export", "--store", place, "-o", lines)[0] == 0
    copy = str(tmp_path / "copy")
    assert linkstore("index", lines, "--store", copy, "--trust-claims")[0] == 0
    assert linkstore("export", "--store", place, "--format", "graphml", "-o", graph)[0] == 0
    space = "{http://graphml.graphdrawing.org/xmlns}"
    told = [one.text for one in ET.parse(graph).iter(f"{space}data") if one.get("key") == "data"]
    assert [json.loads(text) for text in told] == [{"year": 2010}, {"year": 2011}, {"year": 2012}]
    kept = []
    for one in (place, copy):
        with LinkStore.open(one) as store:
            links = {document.id: get_links(document) for document in store.scan()}
        kept.append({id: [(link.tag, link.data) for link in own] for id, own in links.items()})
    assert kept[0] == kept[1]


def test_the_command_line_filters_links_and_shows_their_data(tmp_path):
    place = str(tmp_path / "kb")
    drug, other = drugs.drugs()[9], drugs.drugs()[10]
    with LinkStore.open(place) as store:
        store.add_documents(list(drugs.documents(dated=True)))
    options = ["--store", place, "--strategy", "eager", "--start-k", "1", "--chunks"]
    shown = {}
    for one in (drug, other):
        code, out, _ = linkstore(
            "query", f"{one.name} is a drug.", *options, "--link-filter", json.dumps(SINCE)
        )
        shown[one.name] = out
        assert code == 0
    assert "HAS_APPROVAL" not in shown[drug.name]
    assert f'HAS_APPROVAL “has_approval” {{"year":{other.approved}}}' in shown[other.name]
    code, out, _ = linkstore("links", f"drug/{drug.name}", "--store", place)
    assert f'HAS_APPROVAL approval/{drug.name} “has_approval” {{"year":{drug.approved}}}' in out
    code, out, _ = linkstore("links", f"drug/{drug.name}", "--store", place, "--json")
    (told,) = (row["data"] for row in json.loads(out)[0]["outgoing"] if "data" in row)
    assert told == {"year": drug.approved}
    for wrong in ("{", "[]", '{"yaer": 1}'):
        code, _, err = linkstore("query", "x", *options, "--link-filter", wrong)
        assert code == 2 or "did you mean" in err
