"""Queries about typed links: equal to an oracle in plain Python, with limits and reasons that are said."""

from __future__ import annotations

import asyncio
import json

import pytest
from graph_cases import SCHEMA, check_queries
from harbour import harbour
from internals import Branch, GraphQuery, Step
from langchain_core.documents import Document
from stores import times

from linkstore import Link, LinkStore, add_links
from linkstore.core.graph_query import make_json_schema
from linkstore.errors import FilterError, LinkStoreError, QueryError, StrategyError, UnknownNameError
from linkstore.store import Relation, Schema
from linkstore.strategies import matching

SHIPS = Schema(
    types={"Ship", "Flag", "Permit"},
    relations=[Relation("FLIES", "Ship", "Flag"), Relation("HOLDS", "Ship", "Permit")],
)


@pytest.fixture
def ships() -> LinkStore:
    store = LinkStore()
    store.schema.set(SHIPS)
    make = SHIPS.document
    store.add_documents(
        [
            make("Flag", "f1", "Malvania.", metadata={"title": "Malvania"}),
            make("Permit", "p1", "One.", metadata={"status": "ACTIVE", "fee": 3}),
            make("Permit", "p2", "Two.", metadata={"status": "WITHDRAWN", "fee": 1}),
            make(
                "Ship",
                "s1",
                "A tanker.",
                [("FLIES", "f1"), ("HOLDS", "p1"), ("HOLDS", "p2")],
                metadata={"name": "MV Aurora"},
            ),
            make("Ship", "s2", "A ferry.", [("FLIES", "f1")], metadata={"name": "MV Boreas"}),
            make("Ship", "s3", "A tug.", metadata={"name": "MV Aurora"}),
        ]
    )
    return store


@pytest.mark.parametrize("seed", range(times(12, 200)))
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["without a schema", "with one"])
def test_answers_are_those_of_an_oracle(seed: int, schema: Schema | None) -> None:
    with LinkStore() as store:
        if schema:
            store.schema.set(schema, "warn")
        check_queries(store, seed, 20, store.match)


@pytest.mark.parametrize("seed", range(100, 103))
def test_async_answers_are_those_of_an_oracle(seed: int) -> None:
    with LinkStore() as store:
        check_queries(store, seed, 20, lambda query, **rest: asyncio.run(store.amatch(query, **rest)))


def test_an_empty_result_says_which_step_became_empty_and_what_there_is(ships: LinkStore) -> None:
    step = Step("HOLDS", where={"status": "approved"})
    answer = ships.match(GraphQuery(Branch("s1", path=step)))
    assert answer.total == 0
    assert "step 1 'HOLDS'" in (answer.reason or "")
    assert "2 documents, 0 with status 'approved'" in (answer.reason or "")
    assert "'ACTIVE', 'WITHDRAWN'" in (answer.reason or "")
    answer = ships.match(GraphQuery(Branch("s3", path="FLIES")))
    assert "1 document before, 0 after" in (answer.reason or "")
    answer = ships.match(GraphQuery(Branch("f1", path=("HOLDS", "FLIES"))))
    assert "links here: <FLIES" in (answer.reason or "")
    both = (Branch("s1", path="HOLDS"), Branch("s2", path="FLIES"))
    assert "no document is in all of them" in (ships.match(GraphQuery(both)).reason or "")
    answer = ships.match(GraphQuery(Branch(start_type="Permit", where={"fee": {"$gt": 9}})))
    assert "2 documents of type Permit, 0 with fee > 9" in (answer.reason or "")


def test_a_step_may_name_branches_that_lead_there_too_or_do_not(ships: LinkStore) -> None:
    """Which permits has the ship under the flag of s2 that is no s2, and which of them are of no s1?"""
    under = Branch("f1", path="<FLIES")
    held = Branch(start_type="Ship", path=(Step("FLIES", also=Branch("s2", path="FLIES")), "<FLIES", "HOLDS"))
    assert ships.match(GraphQuery(held)).ids == ("p1", "p2")
    some = Branch(
        "f1", path=(Step("FLIES", backward=True, but_not=Branch(start_type="Permit", path="<HOLDS")), "FLIES")
    )
    assert ships.match(GraphQuery(some)).reason == (
        "branch 1 (f1 <FLIES FLIES), step 2 'FLIES': 1 document before, 0 after; links here: FLIES"
    )
    none = Branch(start_type="Ship", path=(Step("HOLDS", also=under), "<HOLDS"))
    reason = ships.match(GraphQuery(none)).reason or ""
    assert "step 1 'HOLDS': 2 documents, none of which f1 <FLIES leads to" in reason
    gone = Branch(start_type="Ship", path=Step("FLIES", also=Branch("p1", path="FLIES")))
    assert "none of which p1 FLIES leads to (branch 1" in (ships.match(GraphQuery(gone)).reason or "")


def test_documents_are_ordered_by_how_many_a_link_leads_to(ships: LinkStore) -> None:
    every = Branch(start_type="Ship")
    most = GraphQuery(every, order_by=">HOLDS", descending=True, limit=1)
    assert ships.match(most).ids == ("s1",)
    least = GraphQuery(every, order_by=">HOLDS", limit=1, ties=True)
    answer = ships.match(least)
    assert (answer.ids, answer.total) == (("s2", "s3"), 3)
    with pytest.raises(UnknownNameError):
        ships.match(GraphQuery(every, order_by="<OWNS"))


def test_a_reason_tells_nothing_of_what_the_filter_hides(ships: LinkStore) -> None:
    query = GraphQuery(Branch("s1", path=Step("HOLDS", where={"status": "approved"})))
    answer = ships.match(query, filter={"$or": [{"type": "Ship"}, {"status": "ACTIVE"}]})
    assert "1 document, 0 with status" in (answer.reason or "")
    assert "WITHDRAWN" not in (answer.reason or "")


def test_counts_values_and_groups_are_of_all_results(ships: LinkStore) -> None:
    permits = Branch("s1", path="HOLDS")
    assert ships.match(GraphQuery(permits, returns="count")).total == 2
    values = ships.match(GraphQuery(permits, returns="values", field="fee", limit=1, descending=True))
    assert (values.values, values.distinct, values.total) == ((3,), 2, 2)
    groups = ships.match(GraphQuery(Branch(start_type="Ship"), returns="groups", field="name"))
    assert groups.groups == (("MV Aurora", 2), ("MV Boreas", 1))


def test_a_name_of_several_documents_is_asked_about(ships: LinkStore) -> None:
    with pytest.raises(QueryError, match=r"\[s1\] MV Aurora \(Ship\), \[s3\] MV Aurora \(Ship\)"):
        ships.match(GraphQuery(Branch("aurora", path="FLIES")))
    with pytest.raises(QueryError, match=r"of type Permit, but there are \[f1\] Malvania \(Flag\)"):
        ships.match(GraphQuery(Branch("Malvania", "Permit")))
    with pytest.raises(QueryError, match="no document has the id or name 'Zanzibar'"):
        ships.match(GraphQuery(Branch("Zanzibar")))
    answer = ships.match(GraphQuery(Branch("boreas", path=("FLIES", "<FLIES"))))
    assert answer.starts == {"boreas": "s2"}
    assert answer.ids == ("s1",)  # not the ship itself


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (GraphQuery(Branch("s1", path="FLYS")), UnknownNameError),
        (GraphQuery(Branch("s1", path="FLIES"), result_type="Boat"), UnknownNameError),
        (GraphQuery(Branch("s1", path="FLIES"), where={"colour": "red"}), UnknownNameError),
        (GraphQuery(Branch("s1", path="FLIES"), order_by="colour"), UnknownNameError),
        ({"branches": [{"start": "s1", "walk": []}]}, QueryError),
    ],
)
def test_what_the_store_does_not_have_is_an_error(ships: LinkStore, query, error) -> None:
    with pytest.raises(error):
        ships.match(query)


@pytest.mark.parametrize("field", ["HOLDS", "holds"])
def test_a_relation_in_the_place_of_a_field_is_written_as_it_should_be(ships: LinkStore, field: str) -> None:
    with pytest.raises(UnknownNameError, match=r"HOLDS is a relation, no field: write \(x\)-\[:HOLDS\]->"):
        ships.match(f"MATCH (x:Ship) WHERE x.{field} = 'One' RETURN x")


def test_a_limit_on_nodes_is_said() -> None:
    with LinkStore() as store:
        hub = Document(id="hub", page_content="hub", metadata={"n": 0})
        add_links(hub, *(Link.outgoing(kind="HAS", tag=f"t{n}") for n in range(9)))
        leaves = [Document(id=f"t{n}", page_content=f"leaf {n}", metadata={"n": n}) for n in range(9)]
        for leaf in leaves:
            add_links(leaf, Link.incoming(kind="HAS", tag=leaf.id or ""))
        store.add_documents([hub, *leaves])
        query = GraphQuery(Branch("hub", path="HAS"))
        assert store.match(query).complete
        answer = store.match(query, max_nodes=4)
        assert answer.total == 4
        assert "max_nodes=4" in answer.limits[0]
        late = store.match(query, seconds=0)
        assert (late.total, late.complete) == (0, False)
        assert "time was up" in late.limits[0]
        with pytest.raises(QueryError, match="max_nodes=4"):
            store.match(GraphQuery(Branch("hub"), but_not=Branch("hub", path="HAS")), max_nodes=4)
        assert store.match(GraphQuery(Branch()), max_nodes=5).total == 5


@pytest.mark.parametrize(("most", "total"), [(3, 3), (4, 4), (5, 5), (8, 8), (9, 9), (99, 9)])
def test_all_documents_of_a_type_are_starts_up_to_the_limit(monkeypatch, most: int, total: int) -> None:
    monkeypatch.setattr(matching, "_FEW_STARTS", 4)
    with LinkStore() as store:
        documents = [Document(id=f"d{n}", page_content=f"{n}", metadata={"type": "A"}) for n in range(9)]
        store.add_documents([*documents, Document(id="b", page_content="b", metadata={"type": "B"})])
        answer = store.match(GraphQuery(Branch(start_type="A")), max_nodes=most)
        assert (answer.total, answer.complete) == (total, most >= len(documents))


def test_a_query_follows_no_more_links_than_the_store_allows() -> None:
    with LinkStore(max_depth=2) as store:
        store.add_documents(harbour())
        with pytest.raises(StrategyError, match="up to 3 links in a row, and 2 are allowed"):
            store.match(GraphQuery(Branch("r1", path="GOVERNS{1,3}")))


@pytest.mark.parametrize(
    "text", ["FLIES", "<OWNED_BY", "OWNS|LEASES", "PART_OF{1,3}", "<A|B{2}", "has part", "R{0,2}"]
)
def test_the_short_form_of_a_step_is_lossless(text: str) -> None:
    assert Step.parse(text).text == text
    assert Step.from_dict(Step.parse(text).to_dict()) == Step.parse(text)


def test_the_json_form_of_a_query_is_lossless() -> None:
    odd = Step("a|b{1}", True, (0, 4), "T", {"n": {"$in": [1, 2]}}, Branch("z", path="R"), (Branch("y"),))
    query = GraphQuery(
        (Branch("x", "T", ("R", odd)), Branch(start_type="U", where={"a": None})),
        combine="any",
        but_not=(Branch("y", path="<R"),),
        result_type="T",
        where={"$or": [{"a": 1}, {"b": 2}]},
        as_of="2024-05-01",
        returns="groups",
        field="a",
        limit=7,
        ties=True,
    )
    assert GraphQuery.from_dict(json.loads(json.dumps(query.to_dict()))) == query
    assert hash(query) == hash(GraphQuery.from_dict(query.to_dict()))


def make_deep_query(depth: int) -> dict[str, object]:
    branch: dict[str, object] = {"start": "a"}
    for _ in range(depth):
        branch = {"start": "a", "path": [{"step": "R", "also": [branch]}]}
    return {"branches": [branch]}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Step.parse("A{3,1}"), "repeat must be"),
        (lambda: Step.parse("A{0}"), "repeat must be"),
        (lambda: Step.parse("<"), "is no step"),
        (lambda: Step.parse("A||B"), "is no step"),
        (lambda: Step(()), "at least one relation"),
        (lambda: Step("A", where=3), "where must be a filter"),
        (lambda: Step("A", repeat=(1, 99)), "up to 20"),
        (lambda: Step("A", backward=1), "true or false"),
        (lambda: Branch(""), "start of a branch"),
        (lambda: Branch("a", path=3), "path must be a list"),
        (lambda: GraphQuery(()), "at least one branch"),
        (lambda: GraphQuery(Branch("a"), combine="xor"), "'all' or 'any'"),
        (lambda: GraphQuery(Branch("a"), as_of="May"), "a date such as"),
        (lambda: GraphQuery(Branch("a"), returns="values"), "a field is needed"),
        (lambda: GraphQuery(Branch("a"), field="n"), "a field is needed"),
        (lambda: GraphQuery(Branch("a"), limit=0), "limit must be"),
        (lambda: GraphQuery(Branch("a"), ties=1), "ties must be true or false"),
        (lambda: GraphQuery(Branch("a"), order_by="<R{2}"), "takes no repetition"),
        (lambda: GraphQuery(Branch("a"), order_by="<"), "is no step"),
        (lambda: Step("A", also=3), "also must be a list"),
        (lambda: Step("A", also=Branch("a", path=Step("A", but_not=Branch("b")))), "make it flat"),
        (lambda: GraphQuery.from_dict(make_deep_query(100_000)), "make it flat"),
        (lambda: GraphQuery.from_dict({"branches": [{"start": "a"}], "typ": 1}), "has no 'typ'"),
        (lambda: GraphQuery.from_dict({"type": "a"}), "has no 'type'"),
        (lambda: GraphQuery.from_dict({}), "needs 'branches'"),
        (lambda: GraphQuery.from_dict([]), "must be an object"),
        (
            lambda: Branch.from_dict({"start": "a", "path": [{"step": "A", "repeat": [1, 2]}]}),
            "has no 'repeat'",
        ),
    ],
)
def test_a_malformed_query_is_an_error_that_says_what_to_do(make, says: str) -> None:
    with pytest.raises(LinkStoreError, match=says):
        make()


def test_a_filter_in_a_query_is_checked_and_copied() -> None:
    with pytest.raises(FilterError):
        GraphQuery(Branch("a"), where={"a": {"$near": 1}})
    where = {"n": {"$in": [1]}}
    query = GraphQuery(Branch("a"), where=where)
    where["n"]["$in"].append(2)
    assert query.where == {"n": {"$in": [1]}}


def test_the_json_schema_takes_queries_and_nothing_else() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = make_json_schema(["FLIES", "HOLDS"], ["Ship", "Flag"])
    other = Branch("f1", path="<FLIES")
    steps = (
        "FLIES",
        Step(["HOLDS", "FLIES"], True, (1, 3), "Flag", also=other),
        Step("FLIES", but_not=other),
    )
    right = GraphQuery(Branch("s1", "Ship", steps), ties=True)
    jsonschema.validate(right.to_dict(), schema)
    for wrong in (
        {"branches": []},
        {"branches": [{"start": "a", "path": ["OWNS"]}]},
        {"branches": [{"start": "a", "type": "Ship"}]},
        {"branches": [{"start": "a"}], "result_type": "Boat"},
        {"branches": [{"start": "a", "path": [{"step": "FLIES", "also": [{"begin": "a"}]}]}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_first_step_decides_between_types_of_one_name(ships: LinkStore) -> None:
    ships.add_documents([SHIPS.document("Flag", "f2", "A flag.", metadata={"title": "MS Boreas"})])
    answer = ships.match(GraphQuery(Branch("Boreas", path="FLIES")))
    assert (answer.starts, answer.ids) == ({"Boreas": "s2"}, ("f1",))
    with pytest.raises(QueryError, match=r"\[f2\] MS Boreas \(Flag\), \[s2\] MV Boreas \(Ship\)"):
        ships.match(GraphQuery(Branch("Boreas")))
