"""A rewritten question is used only if it is surely still the question of the user."""

from __future__ import annotations

import json
import logging

import pytest
from internals import find_added_words, is_same_question
from scripted_model import ScriptedChatModel

from linkstore import LinkStore
from linkstore.memory import ConversationMemory

TURNS = [
    ("What is gyokuro?", "Gyokuro is a tea that grows in the shade."),
    ("What is sencha?", "Sencha is a green tea from Japan, which farmers in Uji make."),
]


def rewrite(question: str, *script: object) -> str:
    with LinkStore() as store, LinkStore() as knowledge:
        knowledge.add_texts(["The tea master Rikyu lived in Sakai."])
        with ConversationMemory(store, knowledge, rewriter=ScriptedChatModel(script=list(script))) as memory:
            for query, response in TURNS:
                memory.add("chat", query, response)
            return memory.recall("chat", question).resolved


def said(question: str) -> dict[str, str]:
    return {"question": question}


@pytest.mark.parametrize(
    ("question", "rewritten"),
    [
        ("Where is it from?", "Where is sencha from?"),
        ("And scaling?", "And scaling of sencha?"),
        ("Who was her master?", "Who was Rikyu her master?"),
        ("Does it grow in Uji?", "Does sencha grow in Uji?"),
    ],
)
def test_names_of_the_last_turn_and_the_knowledge_may_be_added(question, rewritten):
    assert rewrite(question, said(rewritten)) == rewritten


@pytest.mark.parametrize(
    ("question", "rewritten"),
    [
        ("When was it first harvested?", "What is left out?"),
        ("Where is it from?", "What is the origin of the product?"),
        ("Where is it from?", "Sencha is from Japan."),
        ("Where is it from?", "Where is sencha from? It is from Japan. Shall I tell more?"),
        ("Where is it from?", "Where is matcha from?"),
        ("Where is it from?", "Where is gyokuro from?"),
        ("Where is it from?", "Where is the tea of Napoleon from?"),
        ("Where is it from?", "Where is sencha from " + "Japan green tea farmers Uji " * 6 + "?"),
        ("What is the capital of France?", "What is the capital?"),
    ],
    ids=["prompt", "new words", "answer", "several", "other", "earlier", "invented", "long", "dropped"],
)
def test_what_is_another_question_is_not_used(question, rewritten):
    assert rewrite(question, said(rewritten)) == question


@pytest.mark.parametrize("failing", ["prose", ConnectionError("no route"), "<think>{"], ids=str)
def test_a_failure_leaves_the_question_as_it_is_and_is_logged(failing, caplog):
    with caplog.at_level(logging.WARNING, "linkstore.memory"):
        assert rewrite("Where is it from?", failing, failing) == "Where is it from?"
    assert "the question is used as it is" in caplog.text


def test_reasoning_before_the_question_is_left_out():
    reply = "<think>It means sencha.</think>" + json.dumps(said("Where is sencha from?"))
    assert rewrite("Where is it from?", reply) == "Where is sencha from?"


def test_the_rules_by_themselves():
    assert is_same_question("And scaling?", "How does it scale?")
    assert not is_same_question("Who?", "")
    assert find_added_words("Where is it?", "Where is the temple of Ise?") == ["temple", "ise"]
