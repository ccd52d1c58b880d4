"""What a conversation is about at a question that does not say so."""

from __future__ import annotations

import time

import pytest
from internals import find_entities, find_focus, refers_back

from linkstore import LinkStore
from linkstore.memory import ConversationMemory

ITEMS = ["Halden pump", "Orsova valve", "Kestrel drone", "Marlow kettle", "Tundra tent", "Vesta oven"]
TEXTS = {
    "price": "The {} costs {} euros including tax.",
    "warranty": "The {} has a warranty of {} years, and spare parts are kept for ten.",
    "noise": "The {} makes a noise of {} decibels at full load.",
    "colour": "The colours of the {} are grey, red and {} blues.",
    "power": "The {} draws {} watts, or runs from a battery.",
    "delivery": "Delivery of the {} takes {} working days.",
    "safety": "Children under {1} must not use the {0} alone.",
}
ANSWERS = {
    "absent": None,
    "empty": "Let me look that up for you. The sheet has the exact figures. Ask if anything is unclear.",
    "naming": "The {} is in the sheet, with all figures. Tell me if you need more.",
}


@pytest.fixture(scope="module")
def knowledge():
    with LinkStore.open(":memory:") as store:
        for item in ITEMS:
            store.add_texts(
                [text.format(item, 3 + ITEMS.index(item)) for text in TEXTS.values()],
                ids=[f"{item}/{name}" for name in TEXTS],
            )
        yield store


@pytest.fixture
def memory(knowledge):
    with LinkStore.open(":memory:") as store, ConversationMemory(store, knowledge) as memory:
        yield memory


def find_ids(memory: ConversationMemory, question: str) -> list[str]:
    return [str(hit.document.id) for hit in memory.recall("chat", question).chunks]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_follow_ups_find_the_thing_that_was_named_long_before(memory, answer):
    def tell(question: str, item: str) -> None:
        memory.add("chat", question, answer and answer.format(item))

    tell("I'm thinking of buying the Halden pump.", ITEMS[0])
    for item in ITEMS[:2]:
        for question, name in (
            ("What does it cost?", "price"),
            ("How long is the warranty?", "warranty"),
            ("Does it make much noise?", "noise"),
            ("How long does delivery take?", "delivery"),
        ):
            assert f"{item}/{name}" in find_ids(memory, question)
            assert memory.recall("chat", question).focus == (item,)
            tell(question, item)
        if item == ITEMS[0]:
            tell("Let us talk about the Orsova valve.", ITEMS[1])
    for question in ("Back to the first one: what does it cost?", "And the pump, what does it cost?"):
        recall = memory.recall("chat", question)
        assert recall.focus == ("Halden pump",)
        assert recall.resolved == question, "nothing is written into it"
        assert recall.chunks[0].document.id == "Halden pump/price"
        assert "focus" in recall.chunks[0].contributions


def test_a_question_with_a_name_is_about_that(memory):
    memory.add("chat", "I'm thinking of buying the Halden pump.", "A sound choice.")
    recall = memory.recall("chat", "What does the Kestrel drone cost?")
    assert recall.focus == ("Kestrel drone",)
    assert "focus" not in recall.chunks[0].contributions


@pytest.mark.parametrize(
    ("said", "question", "focus"),
    [
        ("Ingrid Halvorsen called.", "Did Halvorsen leave a number?", "Ingrid Halvorsen"),
        ("Frau Müller hat angerufen.", "Sie will die Miete nicht zahlen.", "Frau Müller"),
        ("Is the BX-210 conveyor in hall 3?", "Does it work with the CR-45 press?", "BX-210 conveyor"),
        ("Does the BX-210 conveyor fit the CR-45 press?", "Is it heavy?", "BX-210 conveyor"),
        ("What is Project Titan?", "What does the project cost?", "Project Titan"),
    ],
)
def test_the_subject_comes_before_what_it_is_said_of(memory, said, question, focus):
    memory.add("chat", said)
    assert memory.add("chat", question).focus[0] == focus


NOTHING = """It is possible to leave early.|What time is it?|Does it rain in May?|I like jazz.|
Das Brot ist alle.|What's for lunch?|Which wine goes with fish?|Il y a du pain.|Es gibt Brot.|
I have a project of my own."""


@pytest.mark.parametrize("text", NOTHING.split("|"))
def test_what_refers_to_nothing_is_stored_as_meaning_nothing(memory, text):
    memory.add("chat", "We bought from Project Titan.", "Ok.")
    turn = memory.add("chat", text)
    assert "Project Titan" not in (*turn.focus, *turn.entities)


def test_an_answer_that_is_a_name_comes_into_focus(memory):
    memory.add("chat", "I compared the Kestrel drone with the Vesta oven.", "Fine.")
    memory.add("chat", "Which one did I buy?", "Kestrel drone")
    memory.add("other", "Which one did I buy?", "Keine Ahnung")
    memory.add("third", "I saw the Kestrel drone.", key="m1")
    assert memory.turns("other")[-1].focus == ()
    assert memory.add("third", "I saw the Kestrel drone.", "Nice.", key="m1").focus == ("Kestrel drone",)


def test_what_is_forgotten_is_no_longer_in_focus(memory):
    memory.add("chat", "We bought the Halden pump.", "Ok.")
    memory.add("chat", "How heavy is it?", "40 kg.")
    memory.add("chat", "Is the Vesta oven there too?", "Yes.")
    assert set(memory.forget("chat", entity="Halden", preview=True).turns.values()) == {"meant"}
    assert len(memory.forget("chat", entity="Halden pump")) == 2
    assert memory.recall("chat", "Back to the first one: what is its price?").focus == ("Vesta oven",)


@pytest.mark.parametrize("text", ["", "?", "it " * 3000, "the A " * 2000, "it is " * 2000, "\ud83d the X y"])
def test_any_text_is_read_in_little_time(text):
    began = time.process_time()
    assert find_focus(text, find_entities, []).assumed in {True, False}
    refers_back(text)
    assert time.process_time() - began < 1


def test_a_common_noun_is_no_name_to_forget(memory):
    memory.add("chat", "We adopted a greyhound named Biscuit.", "Lovely.")
    memory.add("chat", "I baked a biscuit for grandma.", "Yum.")
    memory.add("chat", "He is afraid of stairs.", "Carry him.")
    assert len(memory.forget("chat", entity="Biscuit", preview=True)) == 2
    memory.add("tea", "I'd like a sencha.", "Which size?")
    assert len(memory.forget("tea", entity="sencha")) == 1
