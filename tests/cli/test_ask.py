"""``linkstore ask``: what it prints, where, and the code it ends with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from documented import linkstore
from internals import CitedReply
from openai_server import Fault, OpenAiServer, read_the_first, serving
from reader_cases import MALFORMED, NOTHING, Numbered, filled, note, scripted
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


def cited(*statements, **fields):
    return Numbered(*statements, **{"answered": True, **fields})


BORN = cited(("In Domrémy.", ("joan",)))
LACKING = CitedReply(search=["river in France"])


def test_statements_have_the_numbers_of_their_sources(answer):
    said = cited(("In Domrémy,\nby birth.", ("joan",)), ("A village.", ("domremy", "joan")))
    code, out, err = answer([said])

    assert code == 0
    assert out.splitlines() == [
        "In Domrémy, by birth. [1]",
        "A village. [2, 1]",
        "",
        " 1  Joan of Arc  /joan#top",
        " 2  Domremy  /domremy#top",
    ]
    assert err.startswith("1 call, ")
    assert "cost" not in err


def test_a_refusal_has_a_code_of_its_own_and_shows_what_was_found(answer):
    code, out, err = answer([LACKING, NOTHING])

    assert code == exits.NOT_ANSWERED == 11
    assert out.splitlines()[0] == "The sources do not answer this."
    assert "Joan of Arc was born in Domrémy." in out
    assert "2 calls" in err


def test_a_part_of_an_answer_is_said_to_be_one(answer):
    code, out, err = answer([cited(("In Domrémy.", ("joan",)), answered=False)])

    assert (code, out.splitlines()[0]) == (exits.NOT_ANSWERED, "In Domrémy. [1]")
    assert "only a part of the answer" in err


@pytest.mark.parametrize("failing", ["I cannot.", ConnectionError("no route to host")], ids=str)
def test_what_was_found_is_shown_when_the_model_fails(answer, failing):
    code, out, err = answer([failing, failing])

    assert code == exits.OTHER
    assert str(failing) in err
    assert "checkpointer" not in err
    assert "Joan of Arc was born in Domrémy." in out


def test_verbose_logs_each_step_and_quiet_nothing(answer):
    _, _, verbose = answer([BORN], "-v")
    _, out, quiet = answer([BORN], "-q")

    assert "searched for 'Where was Joan of Arc born?': 6 new passages" in verbose
    assert "answered joan" in verbose
    assert (out.splitlines()[0], quiet) == ("In Domrémy. [1]", "")


@pytest.mark.parametrize(
    ("failing", "ending"),
    [
        ([MALFORMED, MALFORMED], exits.NOT_ANSWERED),
        ([KeyboardInterrupt()], exits.INTERRUPTED),
        ([ConnectionError("no route")], exits.OTHER),
    ],
    ids=["malformed", "Ctrl-C", "no model"],
)
def test_what_was_found_out_is_shown_when_a_reading_is_stopped(answer, failing, ending):
    noted = note("In Domrémy.", "joan", search=["a river in France"])
    code, out, err = answer([noted, *failing], "--passages", "1")

    assert code == ending
    assert ("stopped" in err) == (ending == exits.INTERRUPTED)
    assert out.splitlines()[0] == "In Domrémy. [1]"
    assert "Joan of Arc was born in Domrémy." in out


def test_json_of_a_reading_that_was_stopped_is_none(answer):
    code, out, _ = answer([KeyboardInterrupt()], "--json")
    assert (code, out) == (exits.INTERRUPTED, "")


def test_a_terminal_shows_each_step_while_it_waits_and_ctrl_c_ends_that_at_once(place):
    """The server takes a minute for its answer."""
    pty = pytest.importorskip("pty", reason="terminals are those of POSIX")
    with serving(OpenAiServer(read_the_first, [Fault(waits=60)])) as url:
        terminal, stderr = pty.openpty()
        options = ["--store", place, "--model", "openai:local", "--base-url", url]
        command = [sys.executable, "-m", "linkstore", "ask", QUESTION, *options]
        run = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, "NO_PROXY": "127.0.0.1"}
        )
        os.close(stderr)
        shown = b""
        while b"waits for the model" not in shown:
            shown += os.read(terminal, 1000)
        time.sleep(0.5)
        began = time.monotonic()
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=30)
        took = time.monotonic() - began
        os.close(terminal)

    assert b"searched for 'Where was Joan of Arc born?'" in shown
    assert run.returncode == exits.INTERRUPTED
    assert "Joan of Arc was born in Domrémy." in out.decode()
    assert took < 20


def test_json_has_everything(answer):
    _, out, _ = answer([BORN], "--json", "--price", "1000", "0")

    found = json.loads(out)
    assert (found["answer"], found["outcome"], found["steps"]) == ("In Domrémy.", "answered", 1)
    assert found["statements"][0]["citations"][0]["id"] == "joan"
    assert found["cost"] == pytest.approx(found["prompt_tokens"] / 1000)


def test_budgets_hold_and_are_named(answer):
    code, out, err = answer([], "--tokens", "10")

    assert code == exits.OTHER
    assert "the budget of tokens was used up" in err
    assert "Joan of Arc was born in Domrémy." in out


def test_without_a_model_it_says_what_it_needs_and_shows_what_a_search_finds(place):
    code, out, err = linkstore("ask", QUESTION, "--store", place)

    assert code == exits.USAGE
    assert "--model openai:gpt-4.1-mini" in err
    assert "ollama:" in err
    assert "Joan of Arc was born in Domrémy." in out


def test_what_a_model_says_cannot_control_the_terminal(answer):
    _, out, _ = answer([cited(("\x1b[31mred\x07", ("joan",)))])

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
