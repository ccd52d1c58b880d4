"""``linkstore ask``: what it prints, where, and the code it ends with."""

from __future__ import annotations

import json

import pytest
from documented import linkstore
from reader_cases import GIVEN_UP, PLAN, READINGS, Numbered, decide, documents, filled, scripted
from scripted_model import ScriptedChatModel

from linkstore import LinkStore
from linkstore.cli import exits

QUESTION = "Where was Joan of Arc born?"


@pytest.fixture
def place(tmp_path):
    with LinkStore.open(tmp_path / "kb") as store:
        filled(store)
    return str(tmp_path / "kb")


@pytest.fixture
def answer(monkeypatch, place):
    """Ask with a scripted model."""

    def ask(script, *options, store=place):
        model = script if isinstance(script, ScriptedChatModel) else scripted(script)
        monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: model)
        return linkstore("ask", QUESTION, "--store", store, "--model", "made:up", *options)

    return ask


def test_statements_have_the_numbers_of_their_sources(answer):
    script = [
        PLAN,
        decide("joan", "domremy"),
        Numbered(
            finished=True,
            statements=[("In Domrémy,\nby birth.", ("joan",)), ("A village.", ("domremy", "joan"))],
        ),
    ]
    code, out, err = answer(script)

    assert code == 0
    assert out.splitlines() == [
        "In Domrémy, by birth. [1]",
        "A village. [2, 1]",
        "",
        " 1  Joan of Arc  /joan#top",
        " 2  Domremy  /domremy#top",
    ]
    assert err.startswith("3 calls, ")
    assert "cost" not in err


def test_a_refusal_has_a_code_of_its_own(answer):
    code, out, err = answer([PLAN, decide("joan"), GIVEN_UP])

    assert code == exits.NOT_ANSWERED == 11
    assert out.splitlines() == ["The sources do not answer this.", "Nothing about it."]
    assert "3 calls" in err


def test_verbose_logs_each_step_and_quiet_nothing(answer):
    _, _, verbose = answer(READINGS["simple"][0], "-v")
    _, out, quiet = answer(READINGS["simple"][0], "-q")

    assert "search: searched for 'Where was Joan of Arc born?': 6 new passages" in verbose
    assert "read: read 'joan': answered joan" in verbose
    assert (out.splitlines()[0], quiet) == ("In Domrémy. [1]", "")


def test_json_has_everything(answer):
    _, out, _ = answer(READINGS["simple"][0], "--json", "--price", "1000", "0")

    found = json.loads(out)
    assert (found["answer"], found["outcome"], found["steps"]) == ("In Domrémy.", "answered", 3)
    assert found["statements"][0]["citations"][0]["id"] == "joan"
    assert found["cost"] == pytest.approx(found["prompt_tokens"] / 1000)


def test_budgets_hold_and_are_named(answer):
    code, out, err = answer([], "--tokens", "10")

    assert (code, out.strip()) == (exits.NOT_ANSWERED, "The budget was used up before an answer was written.")
    assert "the budget of tokens was used up" in err


def test_without_facts_it_says_so(answer, tmp_path):
    other = str(tmp_path / "other")
    with LinkStore.open(other) as store:
        store.add_documents(documents())

    code, _, err = answer(READINGS["simple"][0], store=other)

    assert code == 0
    assert "there are no facts of this store" in err


def test_without_a_model_it_says_what_it_needs_and_shows_what_a_search_finds(place):
    code, out, err = linkstore("ask", QUESTION, "--store", place)

    assert code == exits.USAGE
    assert "--model openai:gpt-4.1-mini" in err
    assert "ollama:" in err
    assert "Joan of Arc was born in Domrémy." in out


def test_what_a_model_says_cannot_control_the_terminal(answer):
    script = [PLAN, decide("joan"), Numbered(finished=True, statements=[("\x1b[31mred\x07", ("joan",))])]
    _, out, _ = answer(script)

    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["ask", " ", "--model", "made:up"], exits.USAGE),
        (["ask", QUESTION, "--model", "nobody:knows"], exits.OTHER),
        (["ask", QUESTION, "--model", "made:up", "--steps", "0"], exits.USAGE),
    ],
    ids=["blank", "unknown model", "no steps"],
)
def test_what_cannot_be_asked_is_refused(words, code, place):
    assert linkstore(*words, "--store", place)[0] == code


def test_a_store_that_is_not_there_is_named_before_the_model_is_called(answer, tmp_path):
    model = scripted([])
    code, _, err = answer(model, store=str(tmp_path / "none"))

    assert code == exits.NOT_FOUND
    assert "there is no store at" in err
    assert not model.calls
