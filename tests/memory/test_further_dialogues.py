"""Dialogues on all kinds of subjects: an answer is a name that a pronoun means, or is left alone.

``further_dialogues.json`` has 49 questions and answers in few words, ``assistant_dialogues.json`` 40 with
answers as assistants write them, acknowledgements, refusals, greetings and other languages. With the half
"dev" the rules were developed; the half "held-out" has changed nothing.
"""

import json
from pathlib import Path

import pytest
from internals import find_answered_name, has_name, may_mean_answer

from linkstore import LinkStore
from linkstore.memory import ConversationMemory


def outcome(dialogue):
    """Whether the name that was answered is rightly taken for what the question means, or is left alone."""
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        turns = [memory.add("chat", query, response) for query, response in dialogue["turns"]]
    name = find_answered_name(turns[-1].query, turns[-1].response)
    if name is None or not has_name((turn.text for turn in turns[:-1]), name):
        return "left alone"
    if not may_mean_answer(dialogue["ask"], turns[-1].query):
        return "left alone"
    right = all(one.lower() in name.lower() for one in dialogue["all_of"])
    return "right" if right and not dialogue.get("alone") else "wrong"


@pytest.mark.parametrize("half", ["dev", "held-out"])
@pytest.mark.parametrize(
    ("file", "count"), [("further", {"dev": 28, "held-out": 21}), ("assistant", {"dev": 20, "held-out": 20})]
)
def test_no_answer_is_taken_for_a_name_wrongly_on_any_subject(file, count, half):
    told = json.loads(Path(__file__).with_name(f"{file}_dialogues.json").read_text(encoding="utf-8"))
    told = [one for one in told if one["half"] == half]
    assert len(told) == count[half]
    assert "wrong" not in map(outcome, told)
