"""References are resolved by rules: pronouns, ellipsis, positions in a list, returns to a topic."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import pytest

from linkstore.memory.answers import is_name
from linkstore.memory.entities import entities_in
from linkstore.memory.keys import SessionKey
from linkstore.memory.listed import items_of
from linkstore.memory.references import depends_on_history, resolve
from linkstore.memory.turns import Turn
from linkstore.memory.when import time_filter


def turns(*said: tuple[str, str | None]) -> list[Turn]:
    return [
        Turn(
            id=str(at),
            session=SessionKey(run_id="chat"),
            ordinal=at + 1,
            segment=1,
            query=query,
            response=response,
            time=datetime(2026, 3, 2, tzinfo=UTC),
            entities=entities_in(f"{query}\n{response or ''}"),
        )
        for at, (query, response) in enumerate(said)
    ]


def resolved(question: str, *said: tuple[str, str | None]) -> str:
    return resolve(question, turns(*said), entities_in).text


def test_a_question_that_stands_alone_stays_as_it_is():
    question = "Which licence does the Linux kernel have?"
    assert resolved(question, ("What is Kubernetes?", "An orchestrator.")) == question
    assert resolve(question, [], entities_in).depends is False


def test_a_pronoun_means_what_the_last_short_answer_named():
    before = ("What company published the journal?", "American Psychological Association")
    found = resolve("Who was its first president?", turns(before), entities_in)
    assert found.text == "Who was American Psychological Association's first president?"
    assert found.exact


@pytest.mark.parametrize(
    "said",
    [
        "Like Marie Curie, Paul Langevin studied magnetism.",
        "With the help of Marie Curie, Paul Langevin could go on.",
    ],
)
def test_a_person_behind_a_preposition_is_meant_less_often(said):
    assert "Paul Langevin" in resolved("Where did he teach?", (said, None))
    assert "Marie Curie" in resolved(
        "Where did she teach?", (said.replace("Like ", "").replace("With the help of ", ""), None)
    )


@pytest.mark.parametrize("question", ["How does it scale?", "How do they scale it?", "What are its limits?"])
def test_a_pronoun_means_what_the_last_question_was_about(question):
    answer = "It is a system that runs containers on many machines, and it was first made at a large company."
    assert "kubernetes" in resolved(question, ("What is kubernetes?", answer))


def test_a_reference_to_a_reference_is_resolved():
    answer = "It adds machines when there is more to do, and takes them away when there is less to be done."
    said = (("What is Project Titan?", answer), ("How does it scale?", answer))
    assert "Project Titan" in resolved("And what does it cost?", *said)


def test_it_means_the_new_topic_after_a_change_of_topic():
    long = (
        "There is much to say about this, and the answer to it depends on what you would like to do with it."
    )
    said = (("What is Project Titan?", long), ("How does it scale?", long), ("What is PostgreSQL?", long))
    assert "PostgreSQL" in resolved("How does it scale?", *said)


def test_an_ellipsis_is_read_behind_the_last_question_that_was_stated():
    long = "Several things did, among them the parser, which was written anew, and messages of errors."
    text = resolved("and in 3.12?", ("What changed in typing in Python 3.11?", long))
    assert "typing" in text
    assert "3.12" in text


@pytest.mark.parametrize(
    ("answer", "phrase", "item"),
    [
        ("You can use: 1. Docker 2. Podman 3. containerd", "the second one", "Podman"),
        ("- Docker\n- Podman\n- containerd", "the last one", "containerd"),
        ("There are Docker, Podman and containerd", "the first one", "Docker"),
        ("Either Docker or Podman", "the latter", "Podman"),
    ],
)
def test_an_item_of_a_list_is_named_by_its_position(answer, phrase, item):
    text = resolved(f"Is {phrase} free?", ("Which tools run containers?", answer))
    assert item in text
    assert phrase not in text


def test_a_position_beyond_the_list_is_left_as_it_is():
    assert "the fifth one" in resolved("Is the fifth one free?", ("Which?", "Docker, Podman and containerd"))


def test_a_text_without_a_list_has_no_items():
    assert items_of("Kubernetes runs containers.") == []


@pytest.mark.parametrize(
    "text", ["", "it", "it it it", "?" * 5000, "the second one " * 300, "a, b and " * 2000]
)
def test_any_question_is_resolved_to_some_text(text):
    assert resolved(text, (text, text), (text, None), ("", "")) is not None


@pytest.mark.parametrize(
    "said",
    ["a" * 8_000, "a b " * 2_000, "a, " * 2_700, f"1. a{' ' * 8_000}b", "did i " * 1_300, "the noun " * 880],
    ids=["one word", "no list", "no end", "spaces", "did", "nouns"],
)
def test_resolving_does_not_take_time_with_the_square_of_a_text(said):
    """With the square of these lengths it takes seconds or minutes; it takes a hundredth of a second."""
    now, began = datetime(2026, 3, 2, tzinfo=UTC), time.process_time()
    for question in ("What about the second one, and the noun?", said):
        resolved(question, (said, said))
        time_filter(question, now)
    assert time.process_time() - began < 1


def test_a_question_as_long_as_a_page_stays_as_it_is():
    long = "Who wrote it? " * 1_000
    assert resolved(long, ("What is Hamlet?", "A play.")) == long
    assert resolved("Who wrote it?", (f"What is Hamlet? {'x' * 9_000}", None)) == "Who wrote Hamlet?"


def test_a_question_about_a_named_thing_does_not_depend_on_history():
    assert not depends_on_history("Which licence does the Linux kernel have?")
    assert depends_on_history("Why?")
    assert depends_on_history("What about Germany?")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("how does kubernetes work?", {"kubernetes"}),
        ("What did Ada Lovelace publish in 1843?", {"Ada Lovelace", "1843"}),
        ("", set()),
        ("it is what it is", set()),
    ],
)
def test_entities_need_no_capitals(text, names):
    assert names <= set(entities_in(text))
    assert names or not entities_in(text)


@pytest.mark.parametrize(
    ("question", "said", "found"),
    [
        ("Where was he born?", ("Who discovered penicillin?", "Alexander Fleming discovered it in London."),
         "Where was Alexander Fleming born?"),
        ("Who signed it?", ("Tell me about the Treaty of Tordesillas.", "It divided the new lands in 1494."),
         "Who signed Treaty of Tordesillas?"),
        ("How many people live there?", ("What is the capital of Australia?", "Canberra."),
         "How many people live in Canberra?"),
        ("And Sweden?", ("What is the population of Norway?", "5.5 million."),
         "What is the population of Sweden?"),
        ("In spinach?", ("Which vitamins are in carrots?", "Vitamin A."), "Which vitamins are in spinach?"),
    ],
)  # fmt: skip
def test_what_was_named_takes_the_place_of_a_reference(question, said, found):
    assert resolved(question, said) == found


@pytest.mark.parametrize(
    "answer", ["About 460 kilometres.", "In the Rijksmuseum.", "It was Ann.", "Of course!"]
)
def test_an_answer_that_names_nothing_is_not_what_a_pronoun_means(answer):
    assert answer.rstrip(".!") not in resolved("When was it built?", ("How about the bridge?", answer))


def test_there_is_no_place_where_something_is():
    said = ("What is the capital of Australia?", "Canberra.")
    assert "Canberra there" not in resolved("Is there a beach?", said)
    assert "in Canberra a" not in resolved("Is there a beach?", said)


def test_an_entity_finder_may_find_other_names_in_an_answer_without_white_space_around_it():
    said = turns(("Who found it?", " Fleming found it in London, they say."))
    assert resolve("When did he?", said, re.compile(r"^[A-Z]\w+").findall).text == "When did Fleming?"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I like Wells and Banks.", ("Wells", "Banks")),
        ("Wells has many ways to do things.", ("Wells",)),
        ("A book of H.G. Wells.", ("book", "H.G. Wells")),
        ("Was it J. R. R. Tolkien?", ("J. R. R. Tolkien",)),
        ("Eric V. Smith. Then Bob.", ("Eric V. Smith", "Bob")),
        ("Is sys.monitoring new?", ("sys.monitoring",)),
        ("We met Ann. Bob came.", ("met", "Ann", "Bob")),
        ("A dist-info folder", ("dist-info folder",)),
        ("Another thing about PEP 615.", ("PEP 615",)),
    ],
)
def test_names_are_found_as_they_are_written(text, names):
    assert entities_in(text) == names


@pytest.mark.parametrize(
    ("answer", "named"),
    [("Hamlet.", True), ("A play.", False), ("An old play.", False), ("The Night Watch", True)],
)
def test_a_description_is_not_a_name(answer, named):
    assert is_name(answer) is named


@pytest.mark.parametrize(
    ("said", "question", "meant", "not_meant"),
    [
        ([("What is Hamlet?", "A play.")], "Who wrote it?", "Hamlet", "play"),
        ([("Which PEP has wheels?", "PEP 427 has them.")], "When was it written?", "PEP 427", "PEP?"),
        ([("Compare Flask with Django.", None)], "Is the latter older?", "Django", "Flask"),
        (
            [("What is zlib?", "It packs data."), ("And brotli?", "It packs better, and needs more time.")],
            "Which of them is older?",
            "zlib and brotli",
            "them",
        ),
        (
            [("Is there an introduction?", "Yes, Dive Into Rust is an introduction.")],
            "Who wrote that introduction?",
            "Dive Into Rust",
            "that",
        ),
        (
            [("In which release did the global statement appear?", "In the first one.")],
            "And the yield statement?",
            "release did the yield statement appear",
            "global",
        ),
        (
            [
                ("Who made Zope?", "Jim Fulton."),
                ("Did Tres Seaver work on Zope?", "Tres Seaver did, for years."),
            ],
            "What else did he write?",
            "Tres Seaver",
            "Fulton",
        ),
        (
            [("Who made Zope?", "Jim Fulton, in 1998."), ("Where is Zope used?", "In content management.")],
            "Who maintains it?",
            "Zope",
            "Fulton",
        ),
        (
            [("Can I write await inside lambdas?", "No, and there is no plan to add it to the language.")],
            "Inside comprehensions too?",
            "await inside comprehensions",
            "lambdas",
        ),
    ],
)
def test_references_of_many_kinds_are_resolved(said, question, meant, not_meant):
    text = resolved(question, *said)
    assert meant in text
    assert not_meant not in text
