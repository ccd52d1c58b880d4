"""``linkstore memory``: conversations on the command line."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from langchain_core.documents import Document

from linkstore import LinkStore
from linkstore.cli import exits
from linkstore.memory import ConversationMemory, SessionKey

ANN = SessionKey(run_id="tea", user_id="ann")


@pytest.fixture
def places(tmp_path):
    """Folders of a memory with three sessions, and of a knowledge store."""
    turns, chunks = str(tmp_path / "turns"), str(tmp_path / "chunks")
    with LinkStore.open(turns) as store, ConversationMemory(store) as memory:
        memory.add(ANN, "My favourite tea is sencha.", "Noted:\nsencha.")
        memory.add(ANN, "My cat is called Tom.")
        memory.add(SessionKey(run_id="tea", user_id="bob"), "I only drink coffee.", "Fine.")
        memory.add("tea", "Nobody says this.", "Indeed.")
    with LinkStore.open(chunks) as store:
        store.add_documents([Document(id="sencha", page_content="Sencha is a green tea of Japan.")])
    return turns, chunks


def test_sessions_are_listed_by_user_and_agent(places):
    _, out, _ = linkstore("memory", "--store", places[0], "--json")
    assert {(row["user"], row["agent"], row["session"]) for row in json.loads(out)} == {
        ("ann", None, "tea"),
        ("bob", None, "tea"),
        (None, None, "tea"),
    }
    code, out, err = linkstore("memory", "--store", places[0], "--user", "ann")
    assert (code, out, err) == (0, "tea  user ann\n", "")
    code, out, err = linkstore("memory", "--store", places[0], "--user", "eve")
    assert (code, out) == (0, "")
    assert "no session" in err


def test_the_turns_of_one_session_are_shown(places):
    asked = ("memory", "tea", "--store", places[0], "--user", "ann")
    code, out, err = linkstore(*asked)
    assert (code, err) == (0, "")
    lines = [line.strip() for line in out.splitlines()]
    assert lines[1:4] == ["User: My favourite tea is sencha.", "Assistant: Noted:", "sencha."]
    assert "coffee" not in out
    rows = json.loads(linkstore(*asked, "--json")[1])
    assert [(row["ordinal"], row["query"], row["response"]) for row in rows] == [
        (1, "My favourite tea is sencha.", "Noted:\nsencha."),
        (2, "My cat is called Tom.", None),
    ]
    assert len(json.loads(linkstore(*asked, "--json", "--last", "1")[1])) == 1


def test_a_session_that_is_not_there_is_an_error(places):
    code, out, err = linkstore("memory", "tea", "--store", places[0], "--user", "eve")
    assert (code, out) == (1, "")
    assert "no session 'tea' of the user 'eve'" in err


def test_a_session_is_found_by_its_name_alone_where_only_one_has_it(places):
    with LinkStore.open(places[0]) as store, ConversationMemory(store) as memory:
        memory.add(SessionKey(run_id="dogs", user_id="ann"), "My dog is called Rex.")
        memory.add(SessionKey(run_id="cats", user_id="ann"), "My cat is called Tom.")
        memory.add(SessionKey(run_id="cats", user_id="bob"), "My cat is called Tim.")
    asked = ("memory", "dogs", "--store", places[0])
    assert "Rex" in linkstore(*asked)[1]
    assert "Rex" in linkstore(*asked, "--recall", "What is my dog called?")[1]
    assert linkstore(*asked, "--forget")[2] == "forgot 1 turn\n"
    again = "forgot 0 turns: no stored turn has run_id 'dogs'\n"
    assert linkstore(*asked, "--forget")[2] == again
    nobody = ("memory", "--store", places[0], "--forget", "--user", "eve")
    assert "no stored turn has user_id 'eve'" in linkstore(*nobody)[2]
    code, _, err = linkstore("memory", "cats", "--store", places[0], "--forget")
    assert code == exits.USAGE
    assert "user ann, agent None; user bob, agent None" in err


def test_recall_finds_turns_and_chunks_of_the_session(places):
    turns, chunks = places
    asked = ("memory", "tea", "--recall", "Which tea do I like?", "--store", turns, "--user", "ann")
    found = json.loads(linkstore(*asked, "--knowledge", chunks, "--json")[1])
    assert {turn["query"] for turn in found["turns"]} == {
        "My favourite tea is sencha.",
        "My cat is called Tom.",
    }
    assert [chunk["id"] for chunk in found["chunks"]] == ["sencha"]
    code, out, err = linkstore(*asked, "--knowledge", chunks)
    assert (code, err) == (0, "")
    assert out.index("My favourite tea is sencha.") < out.index("Sencha is a green tea of Japan.")


def test_recall_says_why_there_is_nothing(places):
    code, out, err = linkstore("memory", "new", "--recall", "Which tea?", "--store", places[0])
    assert (code, out) == (0, "")
    assert "nothing recalled" in err


def said(place: str, key: SessionKey | str) -> list[str]:
    """The queries of a session."""
    with LinkStore.open(place) as store, ConversationMemory(store) as memory:
        return [turn.query for turn in memory.turns(key)]


def test_one_session_is_forgotten_and_its_bytes_are_gone(places, tmp_path):
    asked = ("memory", "tea", "--forget", "--user", "ann", "--store", places[0])
    assert linkstore(*asked) == (0, "", "forgot 2 turns\n")
    assert said(places[0], ANN) == []
    assert said(places[0], "tea") == ["Nobody says this."]
    files = [path.read_bytes() for path in (tmp_path / "turns").rglob("*") if path.is_file()]
    assert files
    assert not any(b"sencha" in content for content in files)
    assert json.loads(linkstore(*asked, "--json")[1]) == {"turns": {}, "notes": []}


def test_a_person_an_entity_or_what_is_old_is_forgotten(places):
    forget = ("memory", "--forget", "--store", places[0], "--json")
    assert list(json.loads(linkstore(*forget, "--entity", "Tom")[1])["turns"].values()) == ["meant"]
    assert said(places[0], ANN) == ["My favourite tea is sencha."]
    assert json.loads(linkstore(*forget, "--before", "2001-01-01")[1])["turns"] == {}
    assert json.loads(linkstore(*forget, "--user", "bob", "--before", "2901-01-01T00:00Z")[1])["turns"]
    assert json.loads(linkstore(*forget, "--user", "ann")[1])["turns"]
    assert said(places[0], "tea") == ["Nobody says this."]


@pytest.mark.parametrize("words", [(), ("--before", "yesterday")])
def test_forget_needs_to_know_what(places, words):
    code, out, err = linkstore("memory", "--forget", *words, "--store", places[0])
    assert (code, out) == (exits.USAGE, "")
    assert err
    assert said(places[0], ANN)


@pytest.mark.parametrize(
    "words",
    [
        ("",),
        ("tea", "--recall", " "),
        ("tea", "--last", "0"),
        ("--last", "2"),
        ("--recall", "Which tea?"),
        ("tea", "--recall", "Which tea?", "--forget"),
        ("tea", "--recall", "Which tea?", "--last", "2"),
        ("tea", "--recall", "Which tea?", "--before", "2026-03-31"),
        ("tea", "--forget", "--everywhere"),
        ("tea", "--preview"),
    ],
)
def test_wrong_words_are_usage_errors_or_say_what_is_wrong(places, words):
    code, out, err = linkstore("memory", *words, "--store", places[0])
    assert code in (1, exits.USAGE)
    assert out == ""
    assert err
    assert said(places[0], ANN)


def test_a_store_that_does_not_exist_is_not_made(tmp_path):
    code, _, err = linkstore("memory", "--store", str(tmp_path / "none"))
    assert code == exits.NOT_FOUND
    assert "ConversationMemory" in err
    assert "linkstore index" not in err
    assert not (tmp_path / "none").exists()
