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
OF_WARD = "Which protocols does Cardiology use?"


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
    ("question", "cypher", "ids"),
    [
        (OF_WARD, "MATCH (x:Protocol)-[:USES]->(:Ward {name: 'Cardiology'}) RETURN x", ("p1", "p2")),
        (OF_WARD, "MATCH (x:protocol)-[:USES]-(:ward {name: 'cardiology'}) RETURN x.name", ("p1", "p2")),
        (
            "What treats sepsis?",
            "MATCH (:Condition {name: 'Sepsis'})<-[:TREATED_BY]-(x) RETURN x",
            ("p2", "p3"),
        ),
        ("What treats sepsis?", "MATCH (x)<-[:TREATED_BY]-(:Ward {name: 'Sepsis'}) RETURN x", ("p2", "p3")),
    ],
    ids=["turned", "undirected and lower case", "one type unsaid", "another type of the name"],
)
def test_what_the_schema_leaves_one_reading_is_corrected(
    hospital, question: str, cypher: str, ids: tuple[str, ...]
) -> None:
    assert ask(hospital, question, cypher).answer.ids == ids


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
    reply = ask_graph(hospital, OF_WARD, model)
    assert (reply.answer.ids, reply.tries, reply.calls) == (("p1", "p2"), 2, 2)
    last = model.calls[1].messages[-1].text
    assert last.startswith("That query has no result: ")
    assert reason in last


@pytest.mark.parametrize(
    ("question", "cypher", "problem"),
    [
        (QUESTION, USES, "the question says 'Sepsis', which is a name or a value, and the query does not"),
        (
            "Which approved protocols does Cardiology use?",
            USES,
            "the question says 'approved', which is a name or a value",
        ),
        ("Which protocols does Cardiology not use?", USES, "the question says 'not'"),
        ("Which protocols doesn't Cardiology use?", USES, 'the question says "doesn\'t"'),
        ("Welche Protokolle hat Cardiology nicht?", USES, "the question says 'nicht'"),
    ],
)
def test_a_query_that_leaves_out_what_the_question_says_claims_nothing(
    hospital, question: str, cypher: str, problem: str
) -> None:
    hospital.add_documents(
        [document(f"p{n}", "Protocol", f"Protocol {n}", status="approved") for n in (4, 5)]
    )
    reply = ask(hospital, question, cypher, cypher)
    assert (reply.answer, reply.tries) == (None, 2)
    assert problem in reply.problem


def test_a_query_that_excludes_or_compares_answers_a_question_with_a_negation(hospital) -> None:
    without = "MATCH (x:Protocol) WHERE NOT (:Ward {name: 'Cardiology'})-[:USES]->(x) RETURN x"
    reply = ask(hospital, "Which protocols does Cardiology not use?", without)
    assert (reply.answer.ids, reply.reading) == (("p3",), "X is a Protocol; not: Cardiology uses X")
    other = USES.replace("RETURN", "WHERE x.version <> 3 RETURN")
    assert ask(hospital, "Which of Cardiology's protocols are not version 3?", other).answer.ids == ("p2",)


@pytest.fixture
def company():
    """Ada leads Bo, and Bo leads Cy."""
    with LinkStore() as store:
        store.schema.set(Schema(types={"Person"}, relations={Relation("REPORTS_TO", "Person", "Person")}))
        leads = {"Ada": [], "Bo": [("REPORTS_TO", "Ada")], "Cy": [("REPORTS_TO", "Bo")]}
        store.add_documents(
            [
                store.schema.get().document("Person", name, f"{name} works.", links)
                for name, links in leads.items()
            ]
        )
        yield store


BOSS = "MATCH (:Person {name: 'Bo'})-[:REPORTS_TO]->(x:Person) RETURN x"


UP, DOWN = "Bo reports to which person?", "Which person reports to Bo?"


def test_where_the_schema_leaves_a_direction_open_paths_are_shown_in_both_orders(company) -> None:
    model = ScriptedChatModel(script=[write(BOSS)] * 2)
    reply = ask_graph(company, "Who does Bo report to?", model)
    assert (reply.answer.ids, reply.tries, reply.calls) == (("Ada",), 1, 2)
    assert reply.reading == "X is a Person; Bo reports to X"
    first, second = (recorded.messages[-1].text for recorded in model.calls)
    assert first.index(UP) < first.index(DOWN)
    assert second.index(DOWN) < second.index(UP)


def test_a_direction_that_depends_on_the_order_of_the_paths_is_no_answer(company) -> None:
    other = BOSS.replace("-[:REPORTS_TO]->", "<-[:REPORTS_TO]-")
    reply = ask(company, "Who does Bo report to?", BOSS, other)
    assert (reply.answer, reply.tries, reply.calls) == (None, 1, 2)
    assert reply.problem == "asked again, the model wrote another query than: X is a Person; Bo reports to X"


def test_what_stays_wrong_is_a_problem_and_never_an_answer(hospital) -> None:
    reply = ask(hospital, QUESTION, *[USES.replace("Cardiology", "Neurology")] * 2)
    assert (reply.query, reply.answer, reply.tries) == (None, None, 2)
    assert "Neurology" in reply.problem
    reply = ask_graph(hospital, QUESTION, ScriptedChatModel(script=["I cannot."] * 4))
    assert (reply.cypher, reply.query, reply.answer) == ("", None, None)
    assert reply.problem


def test_the_prompt_has_the_schema_examples_without_names_and_paths_from_what_is_named(hospital) -> None:
    model = ScriptedChatModel(script=[write(BOTH)])
    ask_graph(hospital, QUESTION, model)
    task, question = (message.text for message in model.calls[0].messages)
    assert "(:Ward)-[:USES]->(:Protocol)" in task
    assert "MATCH (x:Ward)-[:USES]->(:Protocol {name: '<a protocol>'}) RETURN x" in task
    assert "Sepsis" not in task
    assert "Cardiology is a Ward" in question
    both = (
        "(:Ward {name: 'Cardiology'})-[:USES]->(x:Protocol)",
        "(:Condition {name: 'Sepsis'})-[:TREATED_BY]->",
    )
    assert f"MATCH {both[0]}, {both[1]}(x) RETURN x" in question
    assert f"MATCH {both[0]} WHERE NOT {both[1]}(x) RETURN x" in question
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
    seeing = ScriptedChatModel(script=[write(USES)] * 2)
    question = "Which protocols do Cardiology and the Hidden ward use?"
    ask_graph(hospital, question, seeing, filter={"title": {"$ne": "Hidden ward"}})
    shown = "".join(message.text for message in seeing.calls[0].messages)
    assert "version" in shown
    assert "secret" not in shown
    assert "Hidden ward is a" not in shown
    model = ScriptedChatModel(script=[write(USES)] * 2)
    reply = ask_graph(hospital, OF_WARD, model, filter={"title": {"$ne": "Cardiology"}})
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


def test_two_of_a_type_are_shown_with_and_or_not_and_either(hospital) -> None:
    model = ScriptedChatModel(script=[write("MATCH (x:Ward) RETURN x")] * 2)
    ask_graph(hospital, "What do Cardiology and Surgery use?", model)
    shown = model.calls[0].messages[-1].text
    ways = "(:Ward {name: 'Cardiology'})-[:USES]->", "(:Ward {name: 'Surgery'})-[:USES]->"
    assert f"MATCH {ways[0]}(x:Protocol), {ways[1]}(x) RETURN x" in shown
    assert f"MATCH {ways[1]}(x:Protocol) WHERE NOT {ways[0]}(x) RETURN x" in shown
    assert "WHERE y.name IN ['Cardiology', 'Surgery'] RETURN x" in shown


def test_either_of_two_names_is_answered(hospital) -> None:
    either = "MATCH (y:Ward)-[:USES]->(x:Protocol) WHERE y.name IN ['Cardiology', 'Surgery'] RETURN x"
    union = f"{USES} UNION {USES.replace('Cardiology', 'Surgery')}"
    for cypher in (either, union):
        reply = ask(hospital, "What is used by Cardiology or by Surgery?", cypher)
        assert reply.answer.ids == ("p1", "p2", "p3")
        assert reply.reading.count("; or ") == 1


def test_a_relation_in_the_place_of_a_field_is_explained(hospital) -> None:
    field = "MATCH (x:Protocol) WHERE x.uses = 'Cardiology' RETURN x"
    model = ScriptedChatModel(script=[write(field), write(USES)])
    assert ask_graph(hospital, OF_WARD, model).answer.ids == ("p1", "p2")
    assert "USES is a relation, no field: write (x)-[:USES]->" in model.calls[1].messages[-1].text


def test_a_name_that_no_text_has_is_found_in_the_question() -> None:
    schema = Schema(types={"Hut", "Valley"}, relations=(Relation("LIES_IN", "Hut", "Valley"),))
    with LinkStore() as store:
        store.schema.set(schema)
        store.add_documents(
            [
                schema.document("Valley", "v", "Green, and without a road.", metadata={"name": "Kaltental"}),
                *(
                    schema.document("Hut", f"h{at}", f"It has {at} beds.", [("LIES_IN", "v")])
                    for at in range(80)
                ),
            ]
        )
        model = ScriptedChatModel(script=[write("MATCH (x:Hut) RETURN x")] * 2)
        ask_graph(store, "What lies in Kaltental?", model)
        assert "Kaltental is a Valley" in model.calls[0].messages[-1].text


def test_relations_given_as_a_set_have_one_order() -> None:
    relations = [Relation(f"R{at}", "A", "B") for at in range(20)]
    assert Schema(types={"A", "B"}, relations=set(relations)).relations == tuple(sorted(relations, key=str))  # type: ignore[arg-type]
