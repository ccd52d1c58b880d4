"""``ask_graph``: a model writes a query about typed links, which is answered exactly."""

from __future__ import annotations

import asyncio
import json

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


def say(name: str, **args: object) -> dict:
    """What a model outputs."""
    return {"name": name, "type": "tool_call", "id": "1", "args": args}


def propose(*things: tuple[str, str], result_type: str = "Protocol", **more: object) -> dict:
    """The things of a question, by name and type, and the type of its answer."""
    named = [{"name": name, "type": of} for name, of in things]
    return say("ProposedQuery", things=named, result_type=result_type, **more)


WARD, CONDITION = ("Cardiology", "Ward"), ("sepsis", "Condition")
USES = say("ChosenPath", path="USES Protocol")
TREATED = say("ChosenPath", path="TREATED_BY Protocol")


def test_the_answer_is_that_of_the_query(hospital) -> None:
    model = ScriptedChatModel(script=[propose(WARD, CONDITION), USES, TREATED] * 2)
    reply = ask_graph(hospital, QUESTION, model)
    assert (reply.answer.ids, reply.problem, reply.tries, reply.calls) == (("p2",), None, 1, 3)
    assert reply.answer == hospital.match(reply.query)
    assert asyncio.run(aask_graph(hospital, QUESTION, model)).answer == reply.answer


def test_conditions_counts_and_exclusions_are_carried_out(hospital) -> None:
    condition = {"field": "version", "operator": "at least", "value": "5"}
    script = [propose(WARD, where=[condition], returns="count"), USES]
    assert (
        ask_graph(hospital, "How many are at version 5?", ScriptedChatModel(script=script)).answer.total == 1
    )
    without = propose(WARD, CONDITION)
    without["args"]["things"][1]["excluded"] = True
    reply = ask_graph(hospital, "Which not for sepsis?", ScriptedChatModel(script=[without, USES, TREATED]))
    assert reply.answer.ids == ("p1",)


def test_a_query_without_a_result_is_asked_for_once_more_with_the_reason(hospital) -> None:
    wrong = say("ChosenPath", path="USES Protocol <TREATED_BY Condition TREATED_BY Protocol")
    model = ScriptedChatModel(script=[propose(("Neurology", "Ward")), wrong, propose(WARD), USES])
    reply = ask_graph(hospital, QUESTION, model)
    assert (reply.answer.ids, reply.tries, reply.calls) == (("p1", "p2"), 2, 4)
    last = model.calls[2].messages[-1].text
    assert last.startswith("This query has no result: ")
    assert "Neurology" in last


def test_what_stays_wrong_is_a_problem_and_never_an_answer(hospital) -> None:
    script = [propose(("Neurology", "Ward")), USES] * 2
    reply = ask_graph(hospital, QUESTION, ScriptedChatModel(script=script))
    assert "Neurology" in reply.problem
    assert reply.answer is None
    nothing = ScriptedChatModel(script=[propose(WARD), *[say("ChosenPath", path="SELLS Ward")] * 2] * 2)
    reply = ask_graph(hospital, QUESTION, nothing)
    assert (reply.query, reply.answer) == (None, None)
    assert reply.problem


def test_the_prompts_have_the_types_and_paths_of_the_store_and_no_names_to_copy(hospital) -> None:
    model = ScriptedChatModel(script=[propose(WARD), USES])
    ask_graph(hospital, QUESTION, model)
    first, second = model.calls
    assert '"Condition"' in json.dumps(first.tools)
    assert "Sepsis" not in first.messages[0].text
    assert "\nUSES Protocol\n" in second.messages[-1].text
    assert '"USES Protocol"' in json.dumps(second.tools)


def test_paths_are_the_shortest() -> None:
    schema = Schema(
        types={"Person", "Team", "Site"},
        relations={
            Relation("MEMBER_OF", "Person", "Team"),
            Relation("AT", "Team", "Site"),
            Relation("REPORTS_TO", "Person", "Person"),
        },
    )
    paths = list_paths(schema, "Person", "Site")
    assert list(paths)[:2] == ["MEMBER_OF Team AT Site", "REPORTS_TO Person MEMBER_OF Team AT Site"]
    assert list(list_paths(schema, "Person", "Person"))[:2] == ["REPORTS_TO Person", "<REPORTS_TO Person"]
    assert "MEMBER_OF Team <MEMBER_OF Person" in list_paths(schema, "Person", "Person")
    assert len(list_paths(schema, "Person", "Team")) <= MAX_PATHS
    assert list_paths(Schema(types={"A", "B"}), "A", "B") == {}


def test_a_dense_schema_and_one_without_a_way_take_no_time() -> None:
    dense = Schema(types={"A", "B", "C"}, relations={Relation(f"R{n}", "A", "B") for n in range(60)})
    assert len(list_paths(dense, "A", "B")) == MAX_PATHS
    assert list_paths(dense, "A", "C") == {}
    far = [Relation(f"S{n}", first, second) for n in range(40) for first, second in ("AB", "BC", "CD", "DE")]
    paths = list_paths(Schema(types=set("ABCDE"), relations=set(far)), "A", "E")
    assert (len(paths), next(iter(paths))) == (MAX_PATHS, "S0 B S0 C S0 D S0 E")


def test_documents_beyond_the_filter_do_not_exist(hospital) -> None:
    hospital.add_documents([document("w3", "Ward", "Hidden ward", secret="yes")])
    seeing = ScriptedChatModel(script=[propose(WARD), USES])
    ask_graph(hospital, QUESTION, seeing, filter={"title": {"$ne": "Hidden ward"}})
    assert '"version"' in json.dumps(seeing.calls[0].tools)
    assert "secret" not in json.dumps(seeing.calls[0].tools) + seeing.calls[0].messages[0].text
    model = ScriptedChatModel(script=[propose(WARD), USES] * 2)
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
