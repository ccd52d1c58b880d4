"""What a statement takes the place of: nothing that may still hold, and nothing said beside it."""

import pytest

from linkstore import LinkStore
from linkstore.memory import ConversationMemory, SessionKey


@pytest.fixture
def memory():
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        yield memory


def recall(memory, older, newer, question):
    """Return the turns that are recalled of two."""
    session = SessionKey(user_id="ann", run_id="1")
    for text in (older, newer):
        memory.add(session, text, "Noted.")
    return memory.recall(session, question).turns


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("My email is a@x.org and my PIN is 99.", "My email is now b@x.org.", "What is my PIN?"),
        ("My wife is Eva.", "My wife is now pregnant.", "What is my wife's name?"),
        ("My wife is Eva.", "My wife is German.", "What is my wife's name?"),
        ("My manager is Petra.", "My manager is now on holiday.", "Who is my manager?"),
        ("Our office is in Kassel.", "Our office is now closed.", "Where is the office?"),
        ("My phone is a Pixel 8.", "My phone is now dead.", "Which phone do I have?"),
        ("My son is Tim.", "My son is now ten.", "What is my son's name?"),
        ("The party is at 8.", "The party is at Anna's.", "When is the party?"),
        ("The meeting is in June.", "The meeting is in Berlin.", "When is the meeting?"),
        ("My house is 120 m2.", "My house is 50 years old.", "How large is my house?"),
        ("I live in Bergen.", "I moved to Oslo as a child.", "Where do I live?"),
        ("I live in Bergen.", "I moved to Oslo in a dream.", "Where do I live?"),
        ("I live in Bergen.", "I moved to Oslo for the summer.", "Where do I live?"),
        ("I live in Bergen.", "I moved to Oslo in 2010, then came to Bergen in 2015.", "Where do I live?"),
        ("I work at Acme on Mondays.", "I work at Globex on Fridays.", "Where do I work?"),
    ],
)
def test_what_may_both_hold_is_recalled_without_an_end(memory, older, newer, question):
    ends = {turn.query: turn.until for turn in recall(memory, older, newer, question)}
    assert ends == {older: None, newer: None}


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("I live in Bergen. My dog is called Rex.", "I moved to Oslo.", "What is my dog called?"),
        ("I live in Bergen and I am allergic to nuts.", "I moved to Oslo.", "What am I allergic to?"),
        ("I live in Bergen, my door code is 4711.", "I moved to Oslo.", "What is my door code?"),
        ("I live in Bergen with my dog Rex.", "I moved to Oslo.", "What is my dog called?"),
        ("My boss is Petra and she is allergic to nuts.", "My boss is now Sven.", "Who is allergic?"),
    ],
)
def test_a_turn_that_says_more_stays_with_its_end(memory, older, newer, question):
    turns = {turn.query: turn for turn in recall(memory, older, newer, question)}
    assert turns.keys() == {older, newer}
    assert turns[older].until == turns[newer].time


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("I live in Bergen.", "I moved to Oslo.", "Where do I live?"),
        ("I live in Bergen.", "I live in Oslo now.", "Where do I live?"),
        ("My phone number is 555-1234.", "My phone number is 555-9999.", "What is my phone number?"),
        ("The review is on Monday.", "The review is on Friday.", "When is the review?"),
        ("My boss is Anna.", "My boss is now Sven.", "Who is my boss?"),
    ],
)
def test_a_turn_that_says_no_more_gives_way(memory, older, newer, question):
    assert [turn.query for turn in recall(memory, older, newer, question)] == [newer]


def test_a_note_that_says_more_stays(memory):
    memory.remember("chat", "I live in Bergen and I am allergic to nuts.")
    memory.add("chat", "I moved to Oslo.", "Noted.")
    assert len(memory.recall("chat", "What am I allergic to?").turns) == 2


def test_what_another_session_says_stays_there(memory):
    here, there = (SessionKey(user_id="ann", run_id=name) for name in ("here", "there"))
    memory.add(here, "I live in Bergen.", "Noted.")
    memory.add(there, "I moved to Oslo, to 5 Secret Street.", "Noted.")
    recalled = memory.recall(here, "Where do I live?")
    assert [turn.query for turn in recalled.turns] == ["I live in Bergen."]
    assert "Secret" not in recalled.prompt
    assert "Secret" not in str(memory.search(here, "Where do I live?"))
    everywhere = memory.recall(here, "Where do I live?", everywhere=True)
    assert [turn.query for turn in everywhere.turns] == ["I moved to Oslo, to 5 Secret Street."]
