"""Dialogues on all kinds of subjects: the rules leave alone what they are not sure of, and are never wrong.

``further_dialogues.json`` has 49 questions and answers in few words, ``assistant_dialogues.json`` 40 with
answers as assistants write them, acknowledgements, refusals, greetings and other languages. With the half
"dev" the rules were developed; the half "held-out" has changed nothing.
"""

import json
from pathlib import Path

import pytest

from linkstore import LinkStore
from linkstore.memory import ConversationMemory


def outcome(dialogue):
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        for query, response in dialogue["turns"]:
            memory.add("chat", query, response)
        found = memory.recall("chat", dialogue["ask"]).resolved
    if found == dialogue["ask"]:
        return "left alone"
    right = all(one.lower() in found.lower() for one in dialogue["all_of"]) and not any(
        one.lower() in found.lower() for one in dialogue["none_of"]
    )
    return "right" if right and not dialogue.get("alone") else "wrong"


@pytest.mark.parametrize("half", ["dev", "held-out"])
@pytest.mark.parametrize(
    ("file", "count"), [("further", {"dev": 28, "held-out": 21}), ("assistant", {"dev": 20, "held-out": 20})]
)
def test_rules_are_never_wrong_on_any_subject(file, count, half):
    told = json.loads(Path(__file__).with_name(f"{file}_dialogues.json").read_text(encoding="utf-8"))
    told = [one for one in told if one["half"] == half]
    assert len(told) == count[half]
    assert "wrong" not in map(outcome, told)
