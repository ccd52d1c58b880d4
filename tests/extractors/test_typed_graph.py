"""From texts to a typed graph by a scripted model: what is taken over, what is reported."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document
from scripted_model import ScriptedChatModel

from linkstore import LinkStore
from linkstore.agents import TypedGraphExtractor, graph_tools
from linkstore.errors import AgentError, SchemaError
from linkstore.store import Relation, Schema

SCHEMA = Schema(
    types={"Drug", "Class", "Approval", "Place", "Rule"},
    relations=(
        Relation("BELONGS_TO", "Drug", "Class"),
        Relation("GOVERNED_BY", "Class", "Rule"),
        Relation("HAS_APPROVAL", "Drug", "Approval"),
        Relation("IN_PLACE", "Approval", "Place"),
        Relation("ENFORCES", "Place", "Rule"),
    ),
)
TEXTS = [
    Document(
        id="leaflet",
        page_content="Zalamizole is an azole. The azoles are governed by Directive 12. There are many.",
    ),
    Document(
        id="register",
        page_content="ZALAMIZOLE has the approval A-7, valid in Arvania. Arvania enforces Directive 12.",
    ),
]


def node(type: str, name: str, *aliases: str) -> dict:
    return {"type": type, "name": name, "aliases": list(aliases)}


def relation(kind: str, source: str, target: str, quote: str = "") -> dict:
    return {"kind": kind, "source": source, "target": target, "quote": quote}


FIRST = {
    "nodes": [
        node("Drug", "Zalamizole"),
        node("Class", "azole", "azoles"),
        node("Rule", "Directive 12"),
        node("Molecule", "azole"),
        node("Drug", "Merotidine"),
    ],
    "relations": [
        relation("BELONGS_TO", "Zalamizole", "azole", "Zalamizole is an azole"),
        relation("GOVERNED_BY", "azoles", "Directive 12", "governed by Directive 12"),
        relation("BELONGS_TO", "azole", "Zalamizole"),
        relation("CITES", "azole", "Directive 12"),
        relation("BELONGS_TO", "Merotidine", "azole"),
        relation("BELONGS_TO", "Zalamizole", "azoles", "was withdrawn in 2019"),
        relation("GOVERNED_BY", "Zalamizole", "Directive 12"),
    ],
}
SECOND = {
    "nodes": [
        node("Drug", "ZALAMIZOLE"),
        node("Approval", "A-7"),
        node("Place", "Arvania"),
        node("Rule", "Directive 12"),
    ],
    "relations": [
        relation("HAS_APPROVAL", "Zalamizole", "A-7"),
        relation("IN_PLACE", "A-7", "Arvania"),
        relation("ENFORCES", "Arvania", "Directive 12"),
    ],
}


def scripted(*replies: object) -> ScriptedChatModel:
    return ScriptedChatModel(
        script=[
            {"name": "ProposedGraph", "args": one, "id": str(at), "type": "tool_call"}
            if isinstance(one, dict)
            else one
            for at, one in enumerate(replies)
        ]
    )


SHIPS = Schema(
    types={"Ship", "Owner"},
    relations=(Relation("OWNED_BY", "Ship", "Owner"), Relation("SISTER_OF", "Ship", "Ship")),
)
SHIP_TEXTS = [
    "MV Aurora belongs to Anders Shipping.",
    "The Aurora is a sister of the Boreas; Anders Shiping owns her.",
    "Aurora and MV Boreas. ASC is Anders Shipping Company.",
]
SHIP_GRAPHS = [
    {
        "nodes": [node("Ship", "MV Aurora"), node("Owner", "Anders Shipping")],
        "relations": [relation("OWNED_BY", "MV Aurora", "Anders Shipping")],
    },
    {
        "nodes": [node("Ship", "Aurora"), node("Ship", "Boreas"), node("Owner", "Anders Shiping")],
        "relations": [
            relation("SISTER_OF", "Aurora", "Boreas"),
            relation("OWNED_BY", "Aurora", "Anders Shiping"),
        ],
    },
    {
        "nodes": [node("Ship", "MV Boreas"), node("Owner", "ASC"), node("Owner", "Anders Shipping Company")],
        "relations": [],
    },
]


def extract_ships(**options):
    model = scripted(*SHIP_GRAPHS)
    texts = [Document(id=f"t{at}", page_content=text) for at, text in enumerate(SHIP_TEXTS)]
    return TypedGraphExtractor(model, SHIPS, max_concurrency=1, **options).extract(texts)


def test_names_that_are_alike_stay_two_nodes_and_are_reported() -> None:
    graph = extract_ships()
    assert len(graph.documents) == 8
    pairs = {(pair.first, pair.second) for pair in graph.duplicates}
    assert pairs == {
        ("Ship/mv aurora", "Ship/aurora"),
        ("Ship/boreas", "Ship/mv boreas"),
        ("Owner/anders shipping", "Owner/anders shiping"),
        ("Owner/anders shipping", "Owner/anders shipping company"),
        ("Owner/anders shiping", "Owner/anders shipping company"),
        ("Owner/asc", "Owner/anders shipping company"),
    }
    assert str(graph.duplicates[0]).startswith(
        "Ship/mv aurora and Ship/aurora may be the same: name but for "
    )


def test_names_that_are_declared_as_aliases_are_one_node() -> None:
    aliases = {"MV Aurora": ["Aurora"], "Boreas": ["MV Boreas"], "Anders Shipping": ["Anders Shiping"]}
    graph = extract_ships(aliases=aliases)
    assert [(pair.first, pair.second) for pair in graph.duplicates] == [
        ("Owner/anders shipping", "Owner/anders shipping company"),
        ("Owner/asc", "Owner/anders shipping company"),
    ]
    by_id = {document.id: document for document in graph.documents}
    assert {"Ship/mv aurora", "Ship/boreas", "Owner/anders shipping"} < set(by_id)
    aurora = by_id["Ship/mv aurora"]
    assert aurora.metadata["aliases"] == ["Aurora"]
    assert aurora.metadata["sources"] == ["t0", "t1"]
    owned, sister = sorted(
        (link for link in aurora.metadata["links"] if link["direction"] == "out"),
        key=lambda link: link["kind"],
    )
    assert (owned["tag"], owned["data"]["source"]) == ("Owner/anders shipping", "t0")
    assert sister["tag"] == "Ship/boreas"
    with LinkStore.open(":memory:") as store:
        store.schema.set(SHIPS)
        store.add_documents(graph.documents)


def test_things_that_only_share_words_are_not_alike() -> None:
    names = ["Directive 12", "Directive 13", "Amendment 1 to HB 4", "Amendment 4 to HB 1", "R-7", "R-8"]
    proposed = {"nodes": [node("Rule", name) for name in names], "relations": []}
    text = Document(id="t", page_content="; ".join(names))
    assert TypedGraphExtractor(scripted(proposed), SCHEMA).extract([text]).duplicates == ()


def test_a_question_is_answered_from_what_was_text() -> None:
    found = TypedGraphExtractor(scripted(FIRST, SECOND), SCHEMA, max_concurrency=1).extract(TEXTS)
    with LinkStore.open(":memory:") as store:
        store.schema.set(SCHEMA)
        store.add_documents(list(found.documents))
        assert store.schema.check().sound
        (tool,) = (tool for tool in graph_tools(store) if tool.name == "match")
        query = (
            "MATCH (d {name: 'Zalamizole'})-[:BELONGS_TO]->()-[:GOVERNED_BY]->(x),"
            " (d)-[:HAS_APPROVAL]->()-[:IN_PLACE]->()-[:ENFORCES]->(x) RETURN x"
        )
        told = tool.invoke({"query": query})
    assert "[Rule/directive 12]" in told
    assert "1 result" in told


def test_what_does_not_fit_is_reported_and_not_written() -> None:
    found = TypedGraphExtractor(scripted(FIRST), SCHEMA).extract(TEXTS[:1])
    told = "\n".join(map(str, found.rejections))
    for reason in (
        "Molecule 'azole': the schema has no such type",
        "Drug 'Merotidine': the text does not have this name",
        "—[CITES]→ 'Directive 12': the schema has no such kind",
        "'Merotidine' —[BELONGS_TO]→ 'azole': it joins names that are no nodes",
        "the text does not have the quoted words, and no sentence has both names",
        "GOVERNED_BY does not lead from Drug to Rule",
    ):
        assert reason in told
    assert len(found.rejections) == 6
    assert {one.id for one in found.documents} == {"Drug/zalamizole", "Class/azole", "Rule/directive 12"}


def test_spellings_are_one_node() -> None:
    found = TypedGraphExtractor(scripted(FIRST, SECOND), SCHEMA, max_concurrency=1).extract(TEXTS)
    (drug,) = (one for one in found.documents if one.metadata["type"] == "Drug")
    assert drug.metadata["sources"] == ["leaflet", "register"]
    assert drug.metadata["aliases"] == ["ZALAMIZOLE"]
    (belongs,) = (one for one in drug.metadata["links"] if one["kind"] == "BELONGS_TO")
    assert belongs["data"] == {"quote": "Zalamizole is an azole", "source": "leaflet"}
    assert drug.page_content.startswith("Zalamizole is an azole. ZALAMIZOLE has the approval A-7")


def test_answers_that_are_no_graph_are_reported() -> None:
    model = scripted(FIRST, "I cannot.", "I cannot.")
    found = TypedGraphExtractor(model, SCHEMA, max_concurrency=1).extract(TEXTS)
    told = [str(one) for one in found.rejections]
    assert any(one.startswith("register: the whole answer") for one in told)


async def test_async_extraction_is_the_same() -> None:
    one = TypedGraphExtractor(scripted(FIRST, SECOND), SCHEMA, max_concurrency=1).extract(TEXTS)
    other = await TypedGraphExtractor(scripted(FIRST, SECOND), SCHEMA, max_concurrency=1).aextract(TEXTS)
    assert one == other


def test_declared_aliases_are_one_node() -> None:
    aliases = {"Zalamizole": ["Directive-free azole"]}
    found = TypedGraphExtractor(scripted(FIRST), SCHEMA, aliases=aliases).extract(TEXTS[:1])
    assert len([one for one in found.documents if one.metadata["type"] == "Drug"]) == 1


def test_a_schema_makes_documents_with_their_links() -> None:
    made = SCHEMA.document(
        "Class", "c", "The azoles.", [("GOVERNED_BY", "r", {"since": 2014})], metadata={"n": 1}
    )
    assert made.metadata["type"] == "Class"
    assert made.metadata["n"] == 1
    assert [(one["kind"], one["direction"], one["tag"]) for one in made.metadata["links"]] == [
        ("GOVERNED_BY", "out", "r"),
        ("BELONGS_TO", "in", "c"),
    ]
    for wrong in (("Nothing", []), ("Class", [("BELONGS_TO", "x")]), ("Class", [("NO", "x")])):
        with pytest.raises(SchemaError, match="document 'c'"):
            SCHEMA.document(wrong[0], "c", "text", wrong[1])


def test_what_is_plainly_meant_is_repaired() -> None:
    """A relation the wrong way round, a type for its only node, a quote that leaves words out."""
    proposed = {
        "nodes": [node("Drug", "Zalamizole"), node("Class", "azole")],
        "relations": [relation("BELONGS_TO", "Class", "Zalamizole", "Zalamizole an azole")],
    }
    found = TypedGraphExtractor(scripted(proposed), SCHEMA).extract(TEXTS[:1])
    assert not found.rejections
    (drug,) = (one for one in found.documents if one.metadata["type"] == "Drug")
    (link,) = drug.metadata["links"]
    assert (link["kind"], link["tag"]) == ("BELONGS_TO", "Class/azole")
    assert link["data"]["quote"] == "Zalamizole is an azole."


def test_a_quote_in_other_words_gives_way_to_the_sentence_with_both_names() -> None:
    proposed = {
        "nodes": [node("Drug", "Zalamizole"), node("Class", "azole")],
        "relations": [relation("BELONGS_TO", "Zalamizole", "azole", "it belongs to that class")],
    }
    graph = TypedGraphExtractor(scripted(proposed), SCHEMA).extract(TEXTS[:1])
    [link] = (link for document in graph.documents for link in document.metadata["links"] if link.get("data"))
    assert (link["tag"], link["data"]["quote"]) == ("Class/azole", "Zalamizole is an azole.")


def test_a_text_at_which_the_model_fails_is_reported_and_the_others_are_kept() -> None:
    found = TypedGraphExtractor(scripted(FIRST, ConnectionError("no route")), SCHEMA, max_concurrency=1)
    graph = found.extract(TEXTS)
    assert len(graph.documents) == 3
    assert any(str(one).startswith("register: the whole answer: ") for one in graph.rejections)
    assert "no route" in str(graph.rejections[-1])
    with pytest.raises(AgentError, match="no route"):
        TypedGraphExtractor(scripted(ConnectionError("no route")), SCHEMA).extract(TEXTS[:1])


def test_the_model_is_told_types_and_kinds() -> None:
    model = scripted(FIRST)
    TypedGraphExtractor(model, SCHEMA).extract(TEXTS[:1])
    task = str(model.calls[0].messages[0].text)
    assert '"type" (one of Approval, Class, Drug, Place, Rule)' in task
