"""A search that names a kind, a field or a value which no document has is told so."""

from __future__ import annotations

import asyncio
import pickle

import pytest
from internals import parse_filter
from langchain_core.documents import Document
from stores import embedding

from linkstore import Link, LinkRetriever, LinkStore, add_links
from linkstore.errors import LinkStoreError, UnknownNameError
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity


def drug(name: str, **metadata: object) -> Document:
    made = Document(id=name, page_content=f"about {name}", metadata=metadata)
    add_links(made, Link.outgoing(kind="GOVERNED_BY", tag="r1"), Link.incoming(kind="BELONGS_TO", tag=name))
    return made


@pytest.fixture
def store():
    with LinkStore(embedding()) as made:
        made.add_documents([drug("a", lang="en", tenant="one"), drug("b", year=2020, tenant="one")])
        yield made


@pytest.mark.parametrize(
    "strategy",
    [
        Eager(kinds={"GOVERND_BY"}),
        Eager(kinds={"GOVERND_BY": 0.0, "BELONGS_TO": 1.0}),
        Mmr(kinds=["governed-by"]),
        PageRank(kinds={"GOVERNED BY": 0.5}),
    ],
)
def test_an_unknown_kind_is_an_error_that_names_the_nearest(store, strategy):
    with pytest.raises(UnknownNameError, match=r"link kind .*; did you mean 'GOVERNED_BY'\?") as caught:
        store.search("a", strategy=strategy)
    assert caught.value.nearest[0] == "GOVERNED_BY"
    assert caught.value.known == ("BELONGS_TO", "GOVERNED_BY")
    assert isinstance(caught.value, LinkStoreError | ValueError)


@pytest.mark.parametrize("strategy", [Eager(), PageRank(), Similarity(), Mmr(), AllPaths()], ids=str)
@pytest.mark.parametrize("stage", ["filter", "seed_filter", "result_filter"])
def test_a_filter_on_an_unknown_field_finds_nothing_and_says_why(store, stage, strategy):
    hits = store.search("a", strategy=strategy, **{stage: {"lnag": "en"}})
    assert not hits
    assert hits.reason.endswith("; no document has the metadata field 'lnag'; did you mean 'lang'?")
    assert "pass" in hits.reason


def test_an_unknown_field_is_an_error_where_hits_would_hide_it(store):
    with pytest.raises(UnknownNameError, match=r"metadata field 'lnag'; did you mean 'lang'"):
        store.search("a", strategy=Eager(), hop_filter={"lnag": "en"})


def test_an_unknown_field_in_one_of_several_alternatives_hides_no_document(store):
    assert len(store.search("a", filter={"$or": [{"lnag": "en"}, {"tenant": "one"}]})) == 2


@pytest.mark.parametrize("stage", ["seed_filter", "result_filter"])
@pytest.mark.parametrize(
    ("filter", "told"),
    [
        ({"tenant": "onne"}, "no document has 'onne' in 'tenant'; did you mean 'one'?"),
        ({"lang": {"$in": ["zulu", "xhosa"]}}, "no document has 'zulu' or 'xhosa' in 'lang'; there are 'en'"),
        ({"tags": {"$contains": "hoem"}}, "no document has 'hoem' in 'tags'; did you mean 'home'?"),
        (
            {"lang": "en", "tenant": "onne"},
            "no document that passes the other conditions has 'onne' in 'tenant'; did you mean 'one'?",
        ),
    ],
)
def test_a_misspelled_value_is_said_with_the_values_that_there_are(store, stage, filter, told):
    store.add_documents([drug("c", lang="en", tenant="one", tags=["home", "garden"])])
    assert store.search("a", **{stage: filter}).reason.endswith(f"; {told}")


def test_a_value_that_is_there_is_not_called_misspelled(store):
    hits = store.search("a", strategy=Similarity(k=1), result_filter={"year": 2020}, initial_roots=[])
    assert hits.reason is None or "year" not in hits.reason


def test_no_value_is_told_of_documents_that_the_filter_hides(store):
    store.add_documents([drug("h", tenant="two", state="secret")])
    for asked in ({"tenant": "tow"}, {"tenant": "one", "state": "secrte"}):
        assert "two" not in store.search("a", filter=asked).reason
        reason = store.search("a", filter={"tenant": "one"}, seed_filter=asked).reason
        assert "two" not in reason
        assert "secret" not in reason


@pytest.mark.parametrize(
    ("filter", "needed"),
    [
        ({"x": 1}, {"x"}),
        ({"x": {"$gt": 1}, "y": {"$in": [1]}}, {"x", "y"}),
        ({"x": {"$ne": 1}}, set()),
        ({"x": {"$nin": [1]}}, set()),
        ({"x": {"$exists": False}}, set()),
        ({"x": {"$exists": True}}, {"x"}),
        ({"x": {"$ne": 1, "$gt": 0}}, {"x"}),
        ({"x": {"$not": {"$gt": 1}}}, set()),
        ({"x": {"$not": {"$ne": 1}}}, {"x"}),
        ({"$not": {"x": 1}}, set()),
        ({"$not": {"x": {"$ne": 1}}}, {"x"}),
        ({"$not": {"$not": {"x": 1}}}, {"x"}),
        ({"$or": [{"x": 1}, {"$and": [{"y": 2}, {"z": {"$ne": 3}}]}]}, {"x", "y"}),
        ({"x": {"a": 1}}, {"x"}),
        ({"x": {}}, {"x"}),
        ({}, set()),
        (None, set()),
    ],
)
def test_a_filter_knows_the_fields_without_which_a_part_of_it_cannot_hold(filter, needed):
    condition = parse_filter(filter)
    assert condition.needed == needed
    assert (condition & parse_filter({"w": 1})).needed == needed | {"w"}


@pytest.mark.parametrize(
    "condition", [{"old": {"$ne": True}}, {"old": {"$exists": False}}, {"$not": {"old": True}}]
)
def test_what_holds_without_the_field_is_no_error(store, condition):
    assert len(store.search("a", filter=condition)) == 2


def test_an_empty_store_may_lack_every_name():
    with LinkStore(embedding()) as empty:
        assert not empty.search("a", strategy=Eager(kinds=["x"]), filter={"y": 1})
        empty.add_documents([drug("a")])
        empty.delete(["a"])
        assert not empty.search("a", strategy=Eager(kinds=["x"]), filter={"y": 1})


def test_names_are_known_as_soon_as_a_document_has_them(store):
    for _ in range(2):
        assert "'new'" in store.search("a", filter={"new": 1}).reason
    store.add_documents([drug("c", new=1)])
    assert [hit.document.id for hit in store.search("a", filter={"new": 1})] == ["c"]
    store.links.replace({"CITES"}, {"c": [Link.outgoing(kind="CITES", tag="x")]})
    store.search("a", strategy=Eager(kinds=["CITES"]))


def test_every_search_method_checks_kinds(store):
    typo = PageRank(kinds=["GOVERND_BY"])
    searches = [
        lambda: store.traversal_search("a", kinds=["GOVERND_BY"]),
        lambda: store.mmr_traversal_search("a", kinds=["GOVERND_BY"]),
        lambda: LinkRetriever(store=store, strategy=typo).invoke("a"),
        lambda: asyncio.run(store.asearch("a", strategy=typo)),
    ]
    for search in searches:
        with pytest.raises(UnknownNameError):
            search()


def test_no_search_method_raises_for_a_field_that_no_document_has_yet(store):
    typo = {"lnag": "en"}
    assert store.similarity_search("a", filter=typo) == []
    assert store.similarity_search_with_score("a", filter=typo) == []
    assert store.max_marginal_relevance_search("a", filter=typo) == []
    assert store.as_retriever(search_kwargs={"filter": typo}).invoke("a") == []
    assert asyncio.run(store.asimilarity_search("a", filter=typo)) == []


def test_a_search_that_names_nothing_asks_nothing(store, monkeypatch):
    """Nor does one whose names were wrong before they were asked for."""

    def refuse(asked=None):
        raise AssertionError("asked for names")

    monkeypatch.setattr(store.backend, "vocabulary", refuse)
    store.search("a")
    store.search("a", strategy=Eager(depth=3))
    store.search("a", strategy=Similarity(), result_filter={"lang": {"$ne": "en"}})


def test_nobody_is_told_names_of_documents_that_a_filter_hides(store):
    """The suggestions come from documents that pass; the filter is an access rule."""
    hidden = drug("h", tenant="two", salary=1)
    add_links(hidden, Link.outgoing(kind="SUED_BY", tag="x"))
    store.add_documents([hidden])
    own = {"tenant": "one"}
    asks = [
        {"filter": own, "hop_filter": {"salry": 1}},
        {"filter": own, "strategy": Eager(kinds=["SUED_BYE"])},
    ]
    for condition in (
        {**own, "salry": 1},
        {"$and": [own, {"salry": 1}]},
        parse_filter({**own, "salry": 1}),
    ):
        reason = store.search("a", filter=condition).reason
        assert "'salry'" in reason
        assert "salary" not in reason
        assert "SUED_BY" not in reason
    for ask in asks:
        with pytest.raises(UnknownNameError) as caught:
            store.search("a", **ask)
        told = {*caught.value.known, *caught.value.nearest}
        assert not told & {"salary", "SUED_BY"}
    assert "salary" in store.search("a", filter={"salry": 1}).reason
    assert "tenant" in store.search("a", filter={"tennant": "one"}).reason


def test_hostile_names_are_quoted_and_cost_little(store):
    for name in ("a\nb", "\x1b[31m", "x" * 100_000, "\ud800", "$.lang", "lang%", '"'):
        if name.startswith("x"):
            store.search("a", strategy=Eager(kinds=[name]))  # too long to be recorded, so nothing is said
            continue
        with pytest.raises(UnknownNameError) as caught:
            store.search("a", strategy=Eager(kinds=[name]))
        assert "\n" not in str(caught.value)
        assert "\x1b" not in str(caught.value)
    with pytest.raises(UnknownNameError) as caught:
        store.search("a", strategy=Eager(kinds=["y" * 8000]))
    assert len(str(caught.value)) < 400


def test_the_error_can_be_pickled():
    error = UnknownNameError("metadata field", "a", ["b"], ["b", "c"], "A B")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.name, again.nearest, again.known) == (str(error), "a", ("b",), ("b", "c"))
    assert "A B is a relation, no field: write (x)-[:`A B`]->" in str(again)
