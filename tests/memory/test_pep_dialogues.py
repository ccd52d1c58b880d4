"""The dialogues about the PEPs are what they say they are; their references are left to who reads them."""

from collections import Counter
from collections.abc import Sequence

import pytest
from internals import find_answered_name, has_name, may_mean_answer
from pep_dialogues import FILE, Dialogue, dialogues, share_resolved

from linkstore import LinkStore
from linkstore.memory import ConversationMemory


def test_there_are_sixty_dialogues_of_five_kinds_in_two_halves():
    told = dialogues()
    assert len({one.id for one in told}) == len(told) == 60
    assert set(Counter((one.kind, one.half) for one in told).values()) == {6}
    assert min(len(one.said) for one in told) < 3
    assert max(len(one.said) for one in told) > 40


def test_neither_the_question_alone_nor_all_that_was_said_resolves_references():
    told = dialogues()
    assert share_resolved(told, lambda one: one.ask) < 0.1
    assert share_resolved(told, lambda one: " ".join([*map(" ".join, one.said), one.ask])) < 0.5


def test_a_reference_is_resolved_by_a_spelling_of_what_it_means_and_by_nothing_else():
    (told,) = (one for one in dialogues() if one.id == "ordinal-01")
    assert told.is_resolved("Summarise pep 635.")
    assert not told.is_resolved("Summarise PEP 6350.")
    assert not told.is_resolved("Summarise PEP 635 and PEP 636.")
    assert not told.is_resolved("Summarise the second one.")


@pytest.mark.parametrize("half", ["dev", "held-out"])
def test_rules_are_never_wrong(half):
    """What they are not sure of is left alone."""
    assert by_rules(dialogues(half))[1] == 0


def test_rules_are_never_wrong_on_dialogues_that_were_written_later():
    """Ten dialogues that were written after most rules."""
    told = dialogues(file=FILE.with_name("later_dialogues.json"))
    assert Counter(one.kind for one in told) == dict.fromkeys({one.kind for one in dialogues()}, 2)
    assert by_rules(told)[1] == 0


def by_rules(told: Sequence[Dialogue]) -> tuple[int, int]:
    """How many questions are read with a name that was answered rightly, and how many wrongly."""
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:

        def named(one: Dialogue) -> str | None:
            turns = [memory.add(one.id, query, response) for query, response in one.said]
            name = find_answered_name(turns[-1].query, turns[-1].response) if turns else None
            known = name is not None and has_name((turn.text for turn in turns[:-1]), name)
            return name if known and may_mean_answer(one.ask, turns[-1].query) else None

        changed = [(one, name) for one in told if (name := named(one)) is not None]
    right = sum(one.is_resolved(f"{one.ask} {name}") for one, name in changed)
    return right, len(changed) - right


@pytest.mark.parametrize(
    "question",
    [
        "Who was the architect of the Sydney Opera House?",
        "Is it possible to boil an egg without water?",
        "When Guido wrote the tutorial, did he use a Mac?",
        "Does it rain in Oslo in May?",
    ],
)
def test_a_question_that_stands_alone_stays_as_it_is(question):
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        memory.add("chat", "What is the walrus operator?", "It assigns a value inside an expression.")
        assert memory.recall("chat", question).resolved == question


def test_a_whole_question_on_something_else_finds_what_it_asks_for():
    """Few words and no reference: the turn before is not what it is about."""
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        memory.add("chat", "My favourite tea is sencha.", "Noted.")
        memory.add("chat", "My cat is called Tom.", "Nice.")
        for question in ("Which tea do I like?", "What do I like to drink?"):
            assert memory.recall("chat", question).turns[0].query == "My favourite tea is sencha."
