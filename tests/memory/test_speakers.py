"""Names of speakers: found at the beginning of turns, and left out of what a question is compared by."""

import pytest

from linkstore import LinkStore
from linkstore.memory import ConversationMemory
from linkstore.memory.speakers import speaker_of, speakers_named, without_names


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("Ann: I have moved to Oslo.", "Ann"),
        ("Mary Ann O'Neil: hello", "Mary Ann O'Neil"),
        ("\u00c9va: szia", "\u00c9va"),
        ("Анна Иванова: привет", "Анна Иванова"),
        ("Ответ на вопрос: да", None),
        ("Answer to it: yes", None),
        ("ann: hello", None),
        ("I like it: very much", None),
        ("https://example.org: a link", None),
        ("Ann:hello", None),
        ("12:30 is fine", None),
        ("", None),
    ],
)
def test_a_speaker_is_the_name_before_a_colon_at_the_beginning(query, speaker):
    assert speaker_of(query) == speaker


@pytest.mark.parametrize(
    ("question", "names", "rest"),
    [
        ("What did Ann\u2019s sister tell Ann?", ["Ann"], "What did sister tell ?"),
        ("Does Annika know Ann-Marie?", ["Ann"], "Does Annika know Ann-Marie?"),
        ("Who is Ann?", ["Ann"], "Who is Ann?"),
        ("What  is new?", [], "What  is new?"),
    ],
)
def test_a_question_without_names_still_says_something(question, names, rest):
    assert without_names(question, names) == rest


def test_only_the_names_of_those_who_speak_are_taken_for_speakers():
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        for query in ("Ann: Shall we go to Oslo?", "Bob: Yes, with Carol.", "Ann: Carol is in Oslo."):
            memory.add("chat", query)
        plan = speakers_named("Did Ann or Bob meet Carol in Oslo? And Zoe?")
        assert store.backend.run(store.backend.answer(plan)) == {"Ann": "Ann", "Bob": "Bob"}


def test_words_without_a_capital_take_the_place_of_no_name_in_any_script():
    with LinkStore.open(":memory:") as store, ConversationMemory(store) as memory:
        memory.add("chat", "Анна: Я живу в Осло.")
        plan = speakers_named("Куда недавно вместе нашей семьёй переехала Анна?")
        assert store.backend.run(store.backend.answer(plan)) == {"Анна": "Анна"}
