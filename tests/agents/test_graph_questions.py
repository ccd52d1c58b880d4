"""``ask_graph``: a model writes a query about typed links, which is answered exactly."""

from __future__ import annotations

import asyncio
import json

import pytest
from internals import aask_graph
from langchain_core.documents import Document
from scripted_model import ScriptedChatModel

from linkstore import Link, LinkStore, add_links
from linkstore.agents import ask_graph
from linkstore.errors import AgentError, ArgumentError
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


def propose(*branches: dict, **settings: object) -> dict:
    """What a model outputs for a query."""
    args = {"branches": list(branches), **settings}
    return {"name": "ProposedQuery", "type": "tool_call", "id": "1", "args": args}


WARD = {"start": "Cardiology", "start_type": "Ward", "path": ["USES"]}
CONDITION = {"start": "sepsis", "start_type": "Condition", "path": ["TREATED_BY"]}


def test_the_answer_is_that_of_the_query(hospital) -> None:
    model = ScriptedChatModel(script=[propose(WARD, CONDITION, result_type="Protocol")] * 2)
    reply = ask_graph(hospital, QUESTION, model)
    assert (reply.answer.ids, reply.problem, reply.calls) == (("p2",), None, 1)
    assert reply.answer == hospital.match(reply.query)
    assert asyncio.run(aask_graph(hospital, QUESTION, model)).answer == reply.answer


def test_conditions_and_counts_are_carried_out(hospital) -> None:
    condition = {"field": "version", "operator": "at least", "value": "5"}
    script = [propose(WARD, where=[condition], returns="count")]
    reply = ask_graph(
        hospital, "How many protocols of Cardiology are at version 5?", ScriptedChatModel(script=script)
    )
    assert reply.answer.total == 1


def test_a_query_without_a_result_is_asked_for_once_more_with_the_reason(hospital) -> None:
    wrong = {"start": "Cardiology", "path": ["<TREATED_BY"]}
    model = ScriptedChatModel(script=[propose(wrong), propose(WARD)])
    reply = ask_graph(hospital, QUESTION, model)
    assert (reply.answer.ids, reply.calls) == (("p1", "p2"), 2)
    last = model.calls[-1].messages[-1].text
    assert last.startswith("This query has no result: ")
    assert "TREATED_BY" in last


@pytest.mark.parametrize(
    ("branch", "problem"),
    [
        ({"start": "Neurology", "path": ["USES"]}, "Neurology"),
        ({"start": "Cardiology", "path": ["USES{9"]}, "is no step"),
    ],
)
def test_what_stays_wrong_is_a_problem_and_never_an_answer(hospital, branch, problem) -> None:
    reply = ask_graph(hospital, QUESTION, ScriptedChatModel(script=[propose(branch)] * 9))
    assert problem in reply.problem
    assert reply.answer is None or not reply.answer.total


def test_the_prompt_has_the_relations_and_types_of_the_store_and_no_others(hospital) -> None:
    model = ScriptedChatModel(script=[propose(WARD, CONDITION)])
    ask_graph(hospital, QUESTION, model)
    (call,) = model.calls
    prompt = call.messages[0].text
    assert "Ward —[USES]→ Protocol" in prompt
    assert "Sepsis" not in prompt  # names of things that a model could copy
    tool = json.dumps(call.tools)
    assert '"<USES"' in tool
    assert '"Condition"' in tool


def test_documents_beyond_the_filter_do_not_exist(hospital) -> None:
    model = ScriptedChatModel(script=[propose(WARD)] * 2)
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
