"""``ask_graph``: a model writes a query about typed links, which is answered exactly."""

from __future__ import annotations

import asyncio

import pytest
from internals import MAX_PATHS, aask_graph, list_paths
from langchain_core.documents import Document
from scripted_model import ScriptedChatModel

from linkstore import Link, LinkStore, add_links
from linkstore.agents import ask_graph
from linkstore.errors import AgentError, ArgumentError, SchemaError
from linkstore.store import Relation, Schema

QUESTION = "Which protocols does Cardiology use for sepsis?"


def document(id: str, type: str, title: str, *links: tuple[str, str], **fields: object) -> Document:
    """A document of a type that leads to others by their ids."""
    made = Document(id=id, page_content=title, metadata={"type": type, "title": title, **fields})
    add_links(made, [Link.outgoing(kind=kind, tag=tag) for kind, tag in links])
    for kind in ("USES", "TREATED_BY"):
        add_links(made, [Link.incoming(kind=kind, tag=id)])
    return made


@pytest.fixture
def hospital():
    with LinkStore() as store:
        store.schema.set(
            Schema(
                types={"Ward", "Condition", "Protocol"},
                relations={
                    Relation("USES", "Ward", "Protocol"),
                    Relation("TREATED_BY", "Condition", "Protocol"),
                },
            ),
            "warn",
        )
        store.add_documents(
            [
                document("w1", "Ward", "Cardiology", ("USES", "p1"), ("USES", "p2")),
                document("w2", "Ward", "Surgery", ("USES", "p3")),
                document("c1", "Condition", "Sepsis", ("TREATED_BY", "p2"), ("TREATED_BY", "p3")),
                document("p1", "Protocol", "Protocol on shock", version=3),
                document("p2", "Protocol", "Protocol on early antibiotics", version=7),
                document("p3", "Protocol", "Protocol on drains", version=2),
            ]
        )
        yield store


def write(cypher: str) -> dict:
    """What a model outputs."""
    return {"name": "WrittenQuery", "type": "tool_call", "id": "1", "args": {"cypher": cypher}}


USES = "MATCH (:Ward {name: 'Cardiology'})-[:USES]->(x:Protocol) RETURN x"
BOTH = USES.replace("RETURN", ", (:Condition {name: 'sepsis'})-[:TREATED_BY]->(x) RETURN")


def ask(store: LinkStore, question: str, *cyphers: str):
    return ask_graph(store, question, ScriptedChatModel(script=list(map(write, cyphers))))


def test_the_answer_is_that_of_the_query(hospital) -> None:
    model = ScriptedChatModel(script=[write(BOTH)] * 2)
    reply = ask_graph(hospital, QUESTION, model)
    assert (reply.answer.ids, reply.problem, reply.tries, reply.calls) == (("p2",), None, 1, 1)
    assert (reply.cypher, reply.answer) == (BOTH, hospital.match(reply.query))
    assert asyncio.run(aask_graph(hospital, QUESTION, model)).answer == reply.answer


def test_conditions_counts_and_exclusions_are_carried_out(hospital) -> None:
    counted = "MATCH (:Ward {name: 'Cardiology'})-[:USES]->(x) WHERE x.version >= 5 RETURN count(x)"
    assert ask(hospital, "How many of Cardiology are at version 5?", counted).answer.total == 1
    without = USES.replace("RETURN", "WHERE NOT (:Condition {name: 'Sepsis'})-[:TREATED_BY]->(x) RETURN")
    assert ask(hospital, "Which of Cardiology are not for sepsis?", without).answer.ids == ("p1",)


@pytest.mark.parametrize(
    ("cypher", "ids"),
    [
        ("MATCH (x:Protocol)-[:USES]->(:Ward {name: 'Cardiology'}) RETURN x", ("p1", "p2")),
        ("MATCH (x:protocol)-[:USES]-(:ward {name: 'cardiology'}) RETURN x.name", ("p1", "p2")),
        ("MATCH (:Condition {name: 'Sepsis'})<-[:TREATED_BY]-(x) RETURN x", ("p2", "p3")),
        ("MATCH (x)<-[:TREATED_BY]-(:Ward {name: 'Sepsis'}) RETURN x", ("p2", "p3")),
    ],
    ids=["turned", "undirected and lower case", "one type unsaid", "another type of the name"],
)
def test_what_the_schema_leaves_one_reading_is_corrected(hospital, cypher: str, ids: tuple[str, ...]) -> None:
    assert ask(hospital, QUESTION, cypher).answer.ids == ids


@pytest.mark.parametrize(
    ("cypher", "reason"),
    [
        (USES.replace("Cardiology", "Neurology"), "the question does not name 'Neurology'"),
        (USES.replace("USES", "SELLS"), "no document has the link kind 'SELLS'"),
        (
            "MATCH (:Condition)-[:USES]->(x:Protocol) RETURN x",
            "USES does not join Condition and Protocol; these join them: (:Condition)-[:TREATED_BY]->",
        ),
        (
            USES.replace("Protocol", "Drug"),
            "no document has the type 'Drug'; there are Condition, Protocol, Ward",
        ),
        ("SELECT * FROM wards", "cannot be read at 'SELECT * FROM wards'"),
        (USES.replace("RETURN", "WHERE x.version > 99 RETURN"), "0 with version > 99"),
    ],
)
def test_a_query_without_a_result_is_asked_for_once_more_with_the_reason(
    hospital, cypher: str, reason: str
) -> None:
    model = ScriptedChatModel(script=[write(cypher), write(USES)])
    reply = ask_graph(hospital, QUESTION, model)
    assert (reply.answer.ids, reply.tries, reply.calls) == (("p1", "p2"), 2, 2)
    last = model.calls[1].messages[-1].text
    assert last.startswith("That query has no result: ")
    assert reason in last


def test_what_stays_wrong_is_a_problem_and_never_an_answer(hospital) -> None:
    reply = ask(hospital, QUESTION, *[USES.replace("Cardiology", "Neurology")] * 2)
    assert (reply.query, reply.answer, reply.tries) == (None, None, 2)
    assert "Neurology" in reply.problem
    reply = ask_graph(hospital, QUESTION, ScriptedChatModel(script=["I cannot."] * 4))
    assert (reply.cypher, reply.query, reply.answer) == ("", None, None)
    assert reply.problem


def test_the_prompt_has_the_schema_examples_without_names_and_paths_from_what_is_named(hospital) -> None:
    model = ScriptedChatModel(script=[write(USES)])
    ask_graph(hospital, QUESTION, model)
    task, question = (message.text for message in model.calls[0].messages)
    assert "(:Ward)-[:USES]->(:Protocol)" in task
    assert "MATCH (x:Ward)-[:USES]->(:Protocol {name: '<a protocol>'}) RETURN x" in task
    assert "Sepsis" not in task
    assert "Cardiology is a Ward" in question
    assert "MATCH (:Condition {name: 'Sepsis'})-[:TREATED_BY]->(x:Protocol) RETURN x" in question
    assert question.endswith(QUESTION)


def test_the_paths_from_a_misspelt_name_are_shown_with_the_reason(hospital) -> None:
    wrong = "MATCH (:Condition {name: 'Cardiologi'})-[:TREATED_BY]->(x) RETURN x"
    right = USES.replace("Cardiology", "Cardiologi")
    model = ScriptedChatModel(script=[write(wrong), write(right)])
    reply = ask_graph(hospital, "What does Cardiologi use?", model)
    assert (reply.answer.ids, reply.tries) == (("p1", "p2"), 2)
    assert "is a Ward" not in model.calls[0].messages[-1].text
    assert "Cardiologi is a Ward. Paths from there:" in model.calls[1].messages[-1].text


ARROWS = [("MEMBER_OF", "Person", "Team"), ("AT", "Team", "Site"), ("REPORTS_TO", "Person", "Person")]


def test_paths_are_the_shortest() -> None:
    paths = list_paths(ARROWS, "Person", "Site")
    assert paths[0] == "(:Person)-[:MEMBER_OF]->(:Team)-[:AT]->(:Site)"
    assert list_paths(ARROWS, "Person", "Person")[:2] == [
        "(:Person)-[:REPORTS_TO]->(:Person)",
        "(:Person)<-[:REPORTS_TO]-(:Person)",
    ]
    assert len(list_paths(ARROWS, "Person", "Team")) <= MAX_PATHS
    assert list_paths([], "A", "B") == []


def test_a_dense_schema_and_one_without_a_way_take_no_time() -> None:
    dense = [(f"R{n}", "A", "B") for n in range(60)]
    assert len(list_paths(dense, "A", "B")) == MAX_PATHS
    assert list_paths(dense, "A", "C") == []
    far = [(f"S{n}", *pair) for n in range(40) for pair in ("AB", "BC", "CD", "DE")]
    paths = list_paths(far, "A", "E")
    assert (len(paths), paths[0].count("[:S0]")) == (MAX_PATHS, 4)


def test_documents_beyond_the_filter_do_not_exist(hospital) -> None:
    hospital.add_documents([document("w3", "Ward", "Hidden ward", secret="yes")])
    seeing = ScriptedChatModel(script=[write(USES)])
    question = "Which protocols do Cardiology and the Hidden ward use?"
    ask_graph(hospital, question, seeing, filter={"title": {"$ne": "Hidden ward"}})
    shown = "".join(message.text for message in seeing.calls[0].messages)
    assert "version" in shown
    assert "secret" not in shown
    assert "Hidden ward is a" not in shown
    model = ScriptedChatModel(script=[write(USES)] * 2)
    reply = ask_graph(hospital, QUESTION, model, filter={"title": {"$ne": "Cardiology"}})
    assert reply.answer is None
    assert "Cardiology" in reply.problem


def test_errors_of_the_model_and_wrong_arguments_are_raised(hospital) -> None:
    with pytest.raises(AgentError):
        ask_graph(hospital, QUESTION, ScriptedChatModel(script=[ConnectionError("no route")]))
    with pytest.raises(ArgumentError, match="question"):
        ask_graph(hospital, 3, ScriptedChatModel(script=[]))
    with pytest.raises(ArgumentError, match="model"):
        ask_graph(hospital, QUESTION, "openai:gpt-4.1-mini")
    with LinkStore() as store, pytest.raises(SchemaError, match="records no schema"):
        ask_graph(store, QUESTION, ScriptedChatModel(script=[]))
