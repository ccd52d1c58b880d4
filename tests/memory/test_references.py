"""References that rules are sure of: names that were answered."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from internals import (
    SessionKey,
    Turn,
    depends_on_history,
    find_answered_name,
    find_entities,
    has_name,
    make_time_filter,
    may_mean_answer,
)


def turns(*said: tuple[str, str | None]) -> list[Turn]:
    return [
        Turn(
            id=str(at),
            session=SessionKey(run_id="chat"),
            ordinal=at + 1,
            query=query,
            response=response,
            time=datetime(2026, 3, 2, tzinfo=UTC),
            entities=find_entities(f"{query}\n{response or ''}"),
        )
        for at, (query, response) in enumerate(said)
    ]


def read(question: str, *said: tuple[str, str | None]) -> str | None:
    """Return the name that a pronoun of the question may mean."""
    last = turns(*said)[-1]
    return find_answered_name(last.query, last.response) if may_mean_answer(question, last.query) else None


def test_a_pronoun_may_mean_the_name_that_the_last_answer_was():
    before = ("What company published the journal?", "American Psychological Association")
    assert read("Who was its first president?", before) == "American Psychological Association"
    assert read("Who was the first president?", before) is None


@pytest.mark.parametrize(
    ("said", "question"),
    [
        (("What is missing?", "It is the cable."), "Where do I buy it?"),
        (("Tell me about Paris.", "Do you mean the city?"), "Where is it?"),
        (("Who was Emmy Noether?", "Emmy Noether proved it; David Hilbert admired her."), "Did he teach?"),
        (("What is Rust?", "A language."), "Is it possible to leave early?"),
        (("What is Rust?", "A language."), "Is it like Go?"),
        (("Mark Twain wrote Tom Sawyer.", "Yes."), "When was it published?"),
        (("Who qualifies for Medi-Cal?", "People with low incomes."), "Got it. Does it cover my babies?"),
        (
            ("Are police reports provided?", "The Town of Danville provides them."),
            "got it. what do they cost?",
        ),
        (("What is kubernetes?", "Kubernetes runs containers on many machines."), "How does it scale?"),
    ],
)
def test_what_is_not_sure_is_left_alone(said, question):
    assert read(question, said) is None


@pytest.mark.parametrize(
    "text", ["", "it", "it it it", "?" * 5000, "the second one " * 300, "a, b and " * 2000]
)
def test_any_text_is_read(text):
    for said in ((text, text), (text, None), ("", ""), ("Who?", text)):
        assert read(text, said) is None


@pytest.mark.parametrize(
    "said",
    ["a" * 8_000, "a b " * 2_000, "a, " * 2_700, f"1. a{' ' * 8_000}b", "did i " * 1_300, "the noun " * 880],
    ids=["one word", "no list", "no end", "spaces", "did", "nouns"],
)
def test_resolving_does_not_take_time_with_the_square_of_a_text(said):
    """With the square of these lengths it takes seconds or minutes; it takes a hundredth of a second."""
    now, began = datetime(2026, 3, 2, tzinfo=UTC), time.process_time()
    for question in ("What about the second one, and the noun?", said):
        read(question, (said, said))
        depends_on_history(question)
        make_time_filter(question, now)
    assert time.process_time() - began < 1


def test_a_question_about_a_named_thing_does_not_depend_on_history():
    assert not depends_on_history("Which licence does the Linux kernel have?")
    assert depends_on_history("Why?")
    assert depends_on_history("What about Germany?")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("how does Kubernetes work?", {"Kubernetes"}),
        ("What did Ada Lovelace publish in 1843?", {"Ada Lovelace"}),
        ("Who read Q4-2023-report.pdf and Project Titan's offers?", {"Q4-2023-report.pdf", "Project Titan"}),
        ("", set()),
        ("it is what it is", set()),
    ],
)
def test_entities_are_names_and_identifiers(text, names):
    assert names <= set(find_entities(text))
    assert names or not find_entities(text)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Where was he born?", ("Who discovered penicillin?", "Alexander Fleming found it in London.")),
        ("And Sweden?", ("What is the population of Norway?", "5.5 million.")),
        ("And Peter?", ("When is Easter?", "In April.")),
        ("In spinach?", ("Which vitamins are in carrots?", "Vitamin A.")),
        ("In winter?", ("Which vitamins are in carrots?", "Vitamin A.")),
        ("And in 1990?", ("Who won the cup in 1986?", "Argentina.")),
        ("Is the second one free?", ("Which tools run containers?", "1. Docker 2. Podman")),
        ("When was it written?", ("Which PEP has wheels?", "PEP 427 has them.")),
        ("Which of them is older?", ("Compare zlib with brotli.", "The latter is slower.")),
        ("Who wrote that introduction?", ("Is there an introduction?", "Yes, Dive Into Rust is one.")),
        ("What else did he write?", ("Did Tres Seaver work on Zope?", "Tres Seaver did, for years.")),
        ("Inside comprehensions too?", ("Can I write await inside lambdas?", "No.")),
    ],
)
def test_what_may_mean_several_things_is_left_alone(question, said):
    """The search reads it beside the last question and the last answer; no rule guesses."""
    assert read(question, said) is None


@pytest.mark.parametrize(
    "answer", ["About 460 kilometres.", "In the Rijksmuseum.", "It was Ann.", "Of course!"]
)
def test_an_answer_that_names_nothing_is_not_what_a_pronoun_means(answer):
    assert read("When was it built?", ("How about the bridge?", answer)) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I like Wells and Banks.", ("Wells", "Banks")),
        ("Wells has many ways to do things.", ("Wells",)),
        ("A book of H.G. Wells.", ("H.G. Wells",)),
        ("How does it scale, and what does it offer?", ()),
        ("Was it J. R. R. Tolkien?", ("J. R. R. Tolkien",)),
        ("Eric V. Smith. Then Bob.", ("Eric V. Smith", "Bob")),
        ("Is sys.monitoring new?", ("sys.monitoring",)),
        ("We met Ann. Bob came.", ("Ann", "Bob")),
        ("Another thing about PEP 615.", ("PEP 615",)),
    ],
)
def test_names_are_found_as_they_are_written(text, names):
    assert find_entities(text) == names


@pytest.mark.parametrize(
    ("query", "answer", "name"),
    [
        ("Which play?", "Hamlet.", "Hamlet"),
        ("Which painting is it?", "The Night Watch", "Night Watch"),
        ("Where is it?", "In the Rijksmuseum.", "Rijksmuseum"),
        ("Who?", "J. R. R. Tolkien", "J. R. R. Tolkien"),
        ("capital of australia", "Canberra", "Canberra"),
        ("What is Hamlet?", "A play.", None),
        ("Who did it?", "I see.", None),
        ("Who did it?", "She did.", None),
        ("Who did it?", "I don't know.", None),
        ("Which one?", "", None),
        ("Which one?", "the second", None),
        ("I like Hamlet.", "Hamlet", None),
        ("Can you do it?", "Done.", None),
        ("What?", "One\nTwo", None),
    ],
)
def test_an_answer_may_be_a_name_only_if_one_was_asked_for(query, answer, name):
    assert find_answered_name(query, answer) == name


@pytest.mark.parametrize(
    ("name", "text", "known"),
    [
        ("Canberra", "The capital is Canberra.", True),
        ("Canberra", "Canberra is the capital.", False),
        ("Night Watch", "It is the Night Watch", True),
        ("Keine Ahnung", "Keine Ahnung.", False),
        ("Perfect", "Perfect! It is done. Perfect", False),
        ("Sent", "Was it sent?", False),
        ("Ann", "It was Anna.", False),
    ],
)
def test_a_text_has_a_name_where_it_has_capitals_of_its_own(name, text, known):
    assert has_name([text], name) is known


def test_a_person_who_was_answered_is_not_it():
    said = ("Who wrote Dune?", "Frank Herbert.")
    assert read("When was he born?", said) == "Frank Herbert"
    assert read("How long is it?", said) is None
