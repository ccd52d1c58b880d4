"""Queries in Cypher: equal to patterns that are tried out on all documents, or refused with what to do."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import date

import pytest
from graph_cases import KINDS, TYPES, Oracle, make_graph
from internals import Branch, GraphQuery, Step, parse_cypher, read_cypher
from langchain_core.documents import Document
from stores import times

from linkstore import Link, LinkStore, add_links
from linkstore.core.filters import parse_filter
from linkstore.errors import QueryError

SIZE = 24


def write_query(rng: random.Random) -> str:
    """Write a pattern that is a tree, with conditions, names and what must not be there."""
    nodes, links, conditions = ["x"], [], []
    for number in range(rng.randrange(1, 4)):
        parent, child = rng.choice(nodes), f"v{number}"
        label = rng.choice(["", "", f":{rng.choice(TYPES)}", *[f" {{id: 'd{rng.randrange(SIZE)}'}}"] * 2])
        kinds = "|".join(rng.sample(KINDS, rng.choice([1, 1, 2])))
        often = rng.choice(["", "", "*2", "*1..2", "*..2"])
        left, right = rng.choice([("-", "->"), ("<-", "-")])
        links.append(f"({parent}){left}[:{kinds}{often}]{right}({child}{label})")
        nodes.append(child)
        if rng.random() < 0.3:
            conditions.append(
                rng.choice(
                    [
                        f"{child}.n >= 1",
                        f"NOT ({child}.n = 2 AND {child}.status = 'over')",
                        f"({child}.n IN [0, 1] OR {child}.status IS NULL)",
                        f"{child}.status <> 'over'",
                        f"{child}.id <> 'd{rng.randrange(SIZE)}'" if not label else f"{child}.n < 3",
                    ]
                )
            )
    if rng.random() < 0.4:
        anchor = rng.choice(nodes)
        target = rng.choice(["", f":{rng.choice(TYPES)}", f" {{id: 'd{rng.randrange(SIZE)}'}}"])
        conditions.append(f"NOT ({anchor})-[:{rng.choice(KINDS)}]->({target})")
    if rng.random() < 0.4:
        ids = [f"d{number}" for number in rng.sample(range(SIZE), 2)]
        ways = [f"(x)-[:{rng.choice(KINDS)}]->({{id: '{id}'}})" for id in ids]
        named = f"x.id IN ['{ids[0]}', '{ids[1]}']"
        conditions.append(named if rng.random() < 0.5 else f"({' OR '.join(ways)})")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"MATCH {', '.join(links)}{where} RETURN x LIMIT 1000"


class Trial:
    """Tries out all documents for the nodes of a pattern.

    A branch of a query does not come back to the document that it starts from. So results are between those
    of patterns in which a named document is nowhere else (``apart``), and those in which it may be.
    """

    def __init__(self, oracle: Oracle, pattern, apart: bool) -> None:
        self.oracle, self.pattern, self.apart = oracle, pattern, apart
        named = {node.name for node in pattern.nodes.values()} - {None}
        self.barred = named if apart else set()

    def list_results(self) -> set[str]:
        return {id for id in self.oracle.documents if self.has_match("x", id)}

    def has_match(self, variable: str, id: str) -> bool:
        return self.fits(variable, id) and any(True for _ in self.list_matches({variable: id}))

    def list_matches(self, bound: dict[str, str]) -> Iterator[dict[str, str]]:
        links = [link for link in self.pattern.links if len({link.start, link.end} & bound.keys()) == 1]
        if not links:
            yield bound
            return
        link = links[0]
        forward = link.start in bound
        start, end = (link.start, link.end) if forward else (link.end, link.start)
        step = Step(link.kinds, backward=not forward)
        reached, layer = set(), {bound[start]}
        for hops in range(1, link.repeat[1] + 1):
            layer = {other for id in layer for other in self.oracle.follow(id, step, None)}
            reached |= layer if hops >= link.repeat[0] else set()
            layer -= self.barred
        for id in sorted(reached):
            if self.fits(end, id):
                yield from self.list_matches({**bound, end: id})

    def fits(self, variable: str, id: str) -> bool:
        node, metadata = self.pattern.nodes[variable], self.oracle.documents[id].metadata
        if node.name not in (None, id) or node.type not in (None, metadata["type"]):
            return False
        if node.name is None and id in self.barred:
            return False
        if not all(parse_filter(condition).matches(metadata) for condition in node.filters):
            return False
        others = [other for anchor, other in self.pattern.without if anchor == variable]
        return not any(Trial(self.oracle, other, not self.apart).has_match(variable, id) for other in others)


@pytest.mark.parametrize("seed", range(times(8, 300)))
def test_answers_are_those_of_the_pattern(seed: int) -> None:
    rng = random.Random(seed)
    documents = make_graph(rng, SIZE)
    oracle, compared = Oracle(documents), 0
    with LinkStore() as store:
        store.add_documents(documents)
        for _ in range(12):
            text = write_query(rng)
            cypher = read_cypher(text)
            patterns = (cypher.pattern, *cypher.others)
            try:
                answer = store.match(text)
            except QueryError as error:
                if not re.search(
                    "make it flat|NOT can say|may be the same|where it has NOT|at most", str(error)
                ):
                    raise
                continue  # exclusions that a query cannot nest, and links that it cannot tell apart
            least, most = (
                set().union(*(Trial(oracle, pattern, apart).list_results() for pattern in patterns))
                for apart in (True, False)
            )
            assert least <= set(answer.ids) <= most, text
            compared += bool(least) and least == most
    assert compared


ONE = "MATCH (:Ship {name: 'Aurora'})-[:OWNED_BY]->(o:Owner) "


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (
            ONE + "RETURN count(DISTINCT o)",
            GraphQuery(
                Branch("Aurora", "Ship", Step("OWNED_BY", type="Owner")), result_type="Owner", returns="count"
            ),
        ),
        (
            "match (s:Ship)-[:OWNED_BY]->(o:Owner) return o.name, count(s) as n order by n desc limit 1;",
            GraphQuery(
                Branch(None, "Ship", Step("OWNED_BY", type="Owner")),
                result_type="Owner",
                order_by="<OWNED_BY",
                descending=True,
                limit=1,
            ),
        ),
        (
            "MATCH (o:Owner) RETURN o.name ORDER BY o.name // of a harbour",
            GraphQuery(Branch(None, "Owner"), result_type="Owner", order_by="name"),
        ),
        (
            "MATCH (o:`Big Owner`) RETURN o.city, count(*)",
            GraphQuery(Branch(None, "Big Owner"), result_type="Big Owner", returns="groups", field="city"),
        ),
    ],
)
def test_a_query_says_what_its_text_says(text: str, query: GraphQuery) -> None:
    assert parse_cypher(text) == query


def test_a_named_node_may_close_a_circle() -> None:
    text = "MATCH (d {name: 'D'})-[:R]->()-[:S]->(x), (d)-[:T]->(a:A)-[:U]->(x) RETURN x"
    assert parse_cypher(text).branches == (
        Branch("D", path=("R", "S")),
        Branch("D", path=(Step("T", type="A"), "U")),
    )
    text = "MATCH (x)-[:R]->(d {name: 'D'})-[:S]->(:B {name: 'E'}) RETURN x"
    (branch,) = parse_cypher(text).branches
    assert branch == Branch("E", "B", (Step("S", backward=True, also=Branch("D")), "<R"))


def test_nodes_that_are_the_same_are_one() -> None:
    text = "MATCH (a {name: 'it\\'s'})-[:R]->(b), (c)-[:S]->(d) WHERE b = d RETURN c"
    assert parse_cypher(text) == GraphQuery(Branch("it's", path=("R", "<S")))
    assert parse_cypher(text.replace("b = d", "b.name = d.name")) == parse_cypher(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DELETE everything", "cannot be read at 'DELETE everything'; of Cypher it takes MATCH"),
        ("", "cannot be read at its end"),
        ("MATCH (a)-[:X]->(b) RETURN a, b", "return one of them"),
        ("MATCH (a)-[:X]->(b)-[:Y]->(a) RETURN a", "in a circle"),
        ("MATCH (a)-[:X]-(b {name: 'q'}) RETURN a", "needs a direction"),
        ("MATCH (a)-->(b {name: 'q'}) RETURN a", "without a type"),
        ("MATCH (a:A) WHERE a.name CONTAINS 'x' RETURN a", "at \"CONTAINS 'x' RETURN a\""),
        ("MATCH (a:A {name: 'x'}), (b:B) RETURN a", "nothing joins 'a' with 'b'"),
        ("MATCH (a:A) RETURN b", "no variable 'b' in MATCH; it has a"),
        ("MATCH (a:A {name: 'x'})-[:R]->(a:A {name: 'y'}) RETURN a", "use a variable for each node"),
        ("MATCH (a:A) WHERE a.name = 'x' OR NOT (a)-[:R]->(:B) RETURN a", "needs a relationship"),
        (f"MATCH (a:A) WHERE a.name IN [{', '.join(map(repr, 'abcdefghi'))}] RETURN a", "at most 8 patterns"),
        ("MATCH (a:A) RETURN a UNION MATCH (b:B) RETURN b", "return the same variable"),
        ("MATCH (a:A) WHERE size(a.x) = 1 RETURN a", "function size"),
        ("MATCH (a:A)-[:R*1..99]->(b) RETURN b", "repeat"),
        ("MATCH (a)-[:R]->(b) WHERE a <> b RETURN a", "needs a name"),
        ("MATCH (a:A:B) RETURN a", "use a variable for each node"),
        (
            "MATCH (a)-[:R]->(t)<-[:R]-(c) RETURN t",
            "relationships R lead to one node, and 'a' and 'c' may be",
        ),
        ("MATCH (a)-[:R]->(t)<-[:R|S]-(c) RETURN c", "may be the same document"),
        ("MATCH (a {name: 'x'})-[:R]->(t)<-[:R]-(c) RETURN t", "may be the same document"),
        ("MATCH (t)-[:R]->(:A), (t)-[:R]->() RETURN t", "lead from one node, and () and () may be"),
        ("MATCH (a:A)-[:R]->(b:B) RETURN a.year, count(b)", "count a, not b; write count(a)"),
        ("MATCH (a:A)-[:R]->(b:B) RETURN a, count(b) ORDER BY a.year", "ORDER BY takes that count"),
        ("MATCH (a {name: 'x'})-[:R]->(b) WHERE b <> zz RETURN b", "no variable 'zz' in MATCH; it has a, b"),
        (f"MATCH (a {{id: {'1' * 5_000}}}) RETURN a", "cannot be read at '111"),
        (f"MATCH (a:A) RETURN a LIMIT {'1' * 5_000}", "cannot be read at '111"),
        ("MATCH (a:A) RETURN a ORDER BY a", "give a property, such as a.year"),
        ("MATCH " + "(" * 400 + "a", "cannot be read"),
        ("MATCH (a:A) WHERE " + "NOT " * 2_000 + "a.x = 1 RETURN a", "nested too deeply"),
        ("MATCH (a:A) RETURN a" + " " * 10_000, "10,000 characters"),
    ],
)
def test_what_a_query_cannot_say_is_refused_with_what_to_do(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=re.escape(says)):
        parse_cypher(text)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a {name: 'x'})-[:R]->(t)<-[:R]-(c) RETURN c",
        "MATCH (a {name: 'x'})-[:R]->(t)<-[:R]-(c {name: 'y'}) RETURN t",
        "MATCH (a {name: 'x'})-[:R]->(t)<-[:R]-(c) WHERE c <> a RETURN t",
        "MATCH (a:A)-[:R]->(t)<-[:R]-(c:C) RETURN t",
        "MATCH (a)-[:R]->(t)-[:R]->(c) RETURN c",
        "MATCH (a)-[:R]->(t)<-[:S]-(c) RETURN t",
    ],
)
def test_links_that_are_surely_different_are_followed(text: str) -> None:
    assert parse_cypher(text).branches


def test_what_is_returned_with_its_count_has_it() -> None:
    with LinkStore() as store:
        for at in range(4):
            task = Document(id=f"t{at}", page_content="A task.", metadata={"type": "T"})
            person = Document(id=f"p{at}", page_content="A person.", metadata={"type": "P"})
            done = [Link.outgoing(kind="DOES", tag=f"t{number}") for number in range(at)]
            add_links(task, Link.incoming(kind="DOES", tag=f"t{at}"))
            add_links(person, *done)
            store.add_documents([person, task])
        answer = store.match("MATCH (p:P)-[:DOES]->(t:T) RETURN p.name, count(t)")
        assert [(hit.document.id, hit.count) for hit in answer] == [("p3", 3), ("p2", 2), ("p1", 1)]
        assert answer.to_dict()["hits"][0]["count"] == 3
        ordered = store.match("MATCH (p:P)-[:DOES]->(t:T) RETURN p ORDER BY p.type")
        assert [hit.count for hit in ordered] == [None] * 3


def test_names_are_values_and_groups_where_they_tell_results_apart() -> None:
    with LinkStore() as store:
        titles = ["Poems", "Poems", "Essays", "Essays"]
        store.add_documents(
            [
                Document(
                    id=f"b{at}", page_content="A book.", metadata={"type": "B", "title": title, "year": at}
                )
                for at, title in enumerate(titles)
            ]
        )
        assert store.match("MATCH (b:B) RETURN DISTINCT b.title").values == ("Essays", "Poems")
        groups = store.match("MATCH (b:B) RETURN b.title, count(b)").groups
        assert groups == (("Essays", 2), ("Poems", 2))
        assert len(store.match("MATCH (b:B) RETURN b.title")) == 4
        with pytest.raises(QueryError, match="DISTINCT takes one"):
            store.match("MATCH (b:B) RETURN DISTINCT b.title, b.year")


def test_conditions_on_relationships_are_refused_as_such() -> None:
    with pytest.raises(QueryError, match="'r' is a relationship"):
        parse_cypher("MATCH (a:A)-[r:R]->(b:B) WHERE r.since > 2000 RETURN b")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("MATCH (x:T)-[:R]->(p:P) WHERE p.name IN ['a', 'b'] RETURN x", ["a <R", "b <R"]),
        ("MATCH (x:T) WHERE (x)-[:R]->({name: 'a'}) OR (x)-[:S]->({name: 'b'}) RETURN x", ["a <R", "b <S"]),
        (
            "MATCH (x)-[:R]->({name: 'a'}) RETURN x UNION MATCH ({name: 'b'})-[:S]->(x) RETURN x",
            ["a <R", "b S"],
        ),
        ("MATCH (x:T) WHERE x.name = 'a' OR x.name = 'b' RETURN x", ["a", "b"]),
    ],
)
def test_what_either_of_several_leads_to_is_one_query(text: str, paths: list[str]) -> None:
    query = parse_cypher(text)
    assert (query.combine, [str(branch) for branch in query.branches]) == ("any", paths)


def test_a_named_result_may_have_relationships() -> None:
    query = parse_cypher("MATCH (x {name: 'a'})-[:R]->(:P) RETURN x")
    assert [str(branch) for branch in query.branches] == ["a", "all P <R"]


def test_a_match_is_of_a_day() -> None:
    with LinkStore() as store:
        over = Document(id="a", page_content="A.", metadata={"type": "T", "valid_until": "2020-01-01"})
        store.add_documents([over, Document(id="b", page_content="B.", metadata={"type": "T"})])
        assert store.match("MATCH (x:T) RETURN x", as_of=date(2024, 5, 1)).ids == ("b",)
        assert store.match("MATCH (x:T) RETURN x", as_of="2019-05-01").ids == ("a", "b")
        with pytest.raises(QueryError, match="as_of must be a date"):
            store.match("MATCH (x:T) RETURN x", as_of="May")


def test_a_forgiven_variable_with_two_names_stands_for_two_nodes() -> None:
    text = "MATCH (p:P {name: 'a'})-[:R]->(m:M) MATCH (p:P {name: 'b'})-[:R]->(m:M) RETURN m"
    with pytest.raises(QueryError, match="use a variable for each node"):
        parse_cypher(text)
    assert sorted(read_cypher(text, forgiving=True).pattern.nodes) == ["1", "m", "p"]
