"""Readers, facts, ``linkstore ask`` and the benchmark, with a server that speaks OpenAI's interface."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from documented import linkstore
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from openai_server import Fault, OpenAiServer, read_the_first, serving
from reader_cases import graph_reader
from reading_time import SECONDS, ReaderClock

from linkstore import LinkStore
from linkstore.agents import Budget, ModelExtractor, chat_model, index_facts, steps
from linkstore.cli import exits
from linkstore.errors import AgentError

langchain_openai = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
PROGRAM = Path(__file__).parents[2] / "benchmarks" / "reader.py"
QUESTION = "Where does the river Aar rise?"
THREAD: Any = {"configurable": {"thread_id": "one"}}


@pytest.fixture
def store() -> Iterator[LinkStore]:
    with LinkStore() as opened:
        opened.add_documents(
            [
                Document("Grimsel pass: the river Aar rises there.", id="aar"),
                Document("A cathedral stands in Bern.", id="bern"),
            ]
        )
        yield opened


@contextmanager
def model_of(server: OpenAiServer, cls: Any = None, **options: Any) -> Iterator[Any]:
    """A chat model of the server. It tries once more where the server is at fault."""
    with serving(server) as url:
        made = cls or langchain_openai.ChatOpenAI
        yield made(model="local", base_url=url, api_key="none", max_retries=1, **options)


class ByTools(langchain_openai.ChatOpenAI):  # type: ignore[misc]
    """A model that makes structured output by calls of tools, as those of other providers do."""

    def with_structured_output(self, schema: Any, **options: Any) -> Any:
        return super().with_structured_output(schema, **{"method": "function_calling", **options})


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("cls", [None, ByTools], ids=["structured output", "tool calls"])
def test_a_reading_is_answered_and_its_tokens_are_those_that_the_server_counted(store, cls, streaming):
    server = OpenAiServer(read_the_first)
    with (
        model_of(server, cls, streaming=streaming, stream_usage=True) as model,
        graph_reader(store, model) as reader,
    ):
        answer = reader.invoke(QUESTION)
        again = asyncio.run(reader.ainvoke(QUESTION))

    assert (answer.text, [one.id for one in answer.citations]) == ("Grimsel pass:", ["aar"])
    assert (again.text, again.steps) == (answer.text, answer.steps)
    assert (answer.steps, answer.malformed, len(server.requests)) == (3, 0, 6)
    assert answer.prompt_tokens + again.prompt_tokens == server.prompt_tokens
    assert answer.output_tokens + again.output_tokens == server.output_tokens
    key = "tools" if cls else "response_format"
    assert all(key in request and bool(request.get("stream")) == streaming for request in server.requests)


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_model_without_structured_output_is_asked_for_json_in_words(store, status):
    server = OpenAiServer(read_the_first, [Fault(status=status, message="no tools here")])
    with model_of(server) as model, graph_reader(store, model) as reader:
        answer = reader.invoke(QUESTION)

    assert (answer.text, answer.steps, answer.malformed) == ("Grimsel pass:", 3, 0)
    in_words = ["response_format" not in request for request in server.requests]
    assert in_words == [False, True, True, True], "a server that refused it once is not asked for it again"
    assert all("Output one JSON object" in request["messages"][0]["content"] for request in server.requests)


def test_an_error_that_is_no_refusal_of_structured_output_is_named(store):
    server = OpenAiServer(read_the_first, [Fault(status=400, message="no credit left")] * 2)
    with (
        model_of(server) as model,
        graph_reader(store, model) as reader,
        pytest.raises(AgentError, match=r"status 400.*no credit left"),
    ):
        reader.invoke(QUESTION)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_limit_of_rate_and_a_failing_server_are_tried_again(store, status):
    fault = Fault(status=status, headers={"Retry-After": "0", "retry-after-ms": "1"})
    server = OpenAiServer(read_the_first, [None, fault, None, fault])
    with model_of(server) as model, graph_reader(store, model) as reader:
        assert reader.invoke(QUESTION).outcome == "answered"
    assert len(server.requests) == 5


def test_a_server_that_keeps_failing_ends_the_reading_which_goes_on_later(store):
    fault = Fault(status=500, message="overloaded", headers={"retry-after-ms": "1"})
    server = OpenAiServer(read_the_first, [None, fault, fault])
    with model_of(server) as model, graph_reader(store, model, checkpointer=InMemorySaver()) as reader:
        with pytest.raises(AgentError, match="overloaded"):
            reader.invoke(QUESTION, THREAD)
        assert reader.invoke(None, THREAD).outcome == "answered"
    assert len(server.requests) == 5


def test_a_wrong_key_is_named(store):
    server = OpenAiServer(read_the_first, [Fault(status=401, message="Incorrect API key provided")])
    with (
        model_of(server) as model,
        graph_reader(store, model) as reader,
        pytest.raises(AgentError, match="Incorrect API key"),
    ):
        reader.invoke(QUESTION)


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "async"])
def test_an_answer_that_is_late_is_not_waited_for(store, awaited, monkeypatch):
    """By the budget of the reading, which leaves time for an answer from what was read."""
    clock = ReaderClock()
    monkeypatch.setattr(steps, "time", clock)

    def answer_and_take_time(messages: Any) -> Any:
        clock.jump_to_the_end()
        return read_the_first(messages)

    server = OpenAiServer(answer_and_take_time, [None, Fault(waits=30)])
    with model_of(server) as model, graph_reader(store, model, budget=Budget(seconds=SECONDS)) as reader:
        began = time.monotonic()
        answer = asyncio.run(reader.ainvoke(QUESTION)) if awaited else reader.invoke(QUESTION)
        assert time.monotonic() - began < 25
    assert (answer.stopped, answer.outcome) == ("seconds", "not in the sources")


def test_a_timeout_of_the_model_is_an_error(store):
    server = OpenAiServer(read_the_first, [None, Fault(waits=30), Fault(waits=30)])
    with (
        model_of(server, timeout=0.5) as model,
        graph_reader(store, model) as reader,
        pytest.raises(AgentError, match="timed out"),
    ):
        reader.invoke(QUESTION)


@pytest.mark.parametrize("cls", [None, ByTools], ids=["structured output", "tool calls"])
@pytest.mark.parametrize("fault", [Fault(cut=20), Fault(says="I cannot do that."), Fault(says="")])
def test_output_that_is_cut_off_or_prose_is_asked_for_once_more(store, cls, fault):
    server = OpenAiServer(read_the_first, [None, fault])
    with model_of(server, cls) as model, graph_reader(store, model) as reader:
        answer = reader.invoke(QUESTION)

    assert (answer.outcome, answer.malformed, answer.steps) == ("answered", 1, 4)
    assert "could not be used" in str([one["content"] for one in server.requests[2]["messages"]])


def test_a_model_that_always_refuses_ends_after_six_calls(store):
    server = OpenAiServer(lambda _: "I cannot help with that.")
    with (
        model_of(server) as model,
        graph_reader(store, model) as reader,
        pytest.raises(AgentError, match="cannot help with that"),
    ):
        reader.invoke(QUESTION)
    assert len(server.requests) == 6


def test_a_server_that_ignores_the_format_is_understood(store):
    server = OpenAiServer(
        lambda messages: f"Here it is:\n```json\n{json.dumps(read_the_first(messages))}\n```"
    )
    with model_of(server) as model, graph_reader(store, model) as reader:
        answer = reader.invoke(QUESTION)

    assert (answer.text, answer.malformed, answer.steps) == ("Grimsel pass:", 0, 3)


def test_facts_are_extracted_at_once_and_a_chunk_that_fails_is_reported(store):
    facts = {"facts": [{"fact": "A cathedral stands in Bern.", "key_elements": ["Bern"]}]}
    server = OpenAiServer(lambda _: facts, structured=False)
    with model_of(server) as model, LinkStore() as found:
        summary = index_facts(store, ModelExtractor(model), facts=found)
    assert (summary.extracted, summary.facts, summary.doubtful) == (2, 1, 1)

    server = OpenAiServer(lambda _: facts, [Fault(status=401, message="no more credit")])
    with model_of(server) as model, LinkStore() as found:
        summary = index_facts(store, ModelExtractor(model, max_concurrency=1), facts=found)
    assert [one.reason for one in summary.failed] == [summary.failed[0].reason]
    assert "no more credit" in summary.failed[0].reason


@pytest.fixture
def named(monkeypatch) -> Iterator[OpenAiServer]:
    """A server whose models ``openai:NAME`` names."""
    server = OpenAiServer(read_the_first)
    with serving(server) as url:
        for name, value in {
            "OPENAI_BASE_URL": url,
            "OPENAI_API_BASE": url,
            "OPENAI_API_KEY": "none",
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        yield server


def test_a_model_is_named_as_langchain_names_it(named):
    assert chat_model("openai:gpt-4.1-mini").invoke([("system", "A library"), ("user", "Where?")]).text
    assert named.requests[0]["model"] == "gpt-4.1-mini"


def test_ask_answers_on_the_command_line(named, tmp_path):
    place = str(tmp_path / "kb")
    with LinkStore.open(place) as opened:
        opened.add_documents([Document("Grimsel pass: the river Aar rises there.", id="aar")])

    code, out, err = linkstore(
        "ask", QUESTION, "--store", place, "--model", "openai:local", "--price", "1", "2"
    )

    assert (code, out.splitlines()) == (0, ["Grimsel pass: [1]", "", " 1  aar  aar"])
    cost = (named.prompt_tokens + 2 * named.output_tokens) / 1e6
    assert f"1 call, {named.prompt_tokens:,} tokens sent and {named.output_tokens:,} received" in err
    assert f"cost {cost:.4f}" in err


def test_ask_says_when_the_server_is_at_fault(named, tmp_path):
    place = str(tmp_path / "kb")
    with LinkStore.open(place) as opened:
        opened.add_documents([Document("Grimsel pass: the river Aar rises there.", id="aar")])
    named.faults = [Fault(status=401, message="Incorrect API key provided")]

    code, out, err = linkstore("ask", QUESTION, "--store", place, "--model", "openai:local")

    assert code == exits.OTHER
    assert "Incorrect API key provided" in err
    assert "aar" in out


def test_the_benchmark_compares_reader_and_plain_retrieval(named, tmp_path):
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    rows = [{"id": f"d{n}", "title": "", "text": f"River{n} Aar{n} rises at {n}."} for n in range(5)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [
        {"question": f"What is River{n}?", "gold": [f"d{n}"], "answers": [f"River{n} Aar{n}"]} for n in (1, 2)
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in asked))
    options = ["--corpus", corpus, "--questions", questions, "--plain", "--price", "1", "2", "--json"]

    done = subprocess.run(
        [sys.executable, PROGRAM, *options, "--model", "openai:local"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    reader = found["corpus, wordllama, without facts, openai:local, reader"]
    plain = found["corpus, wordllama, without facts, openai:local, plain"]
    assert (reader["exact"], reader["f1"], reader["calls"], reader["failed"]) == (1.0, 1.0, 1.0, 0)
    assert (plain["exact"], plain["calls"]) == (0.0, 1.0)
    sent = 2 * (reader["prompt_tokens"] + plain["prompt_tokens"])
    assert sent == pytest.approx(named.prompt_tokens)
    assert reader["cost"] == pytest.approx((reader["prompt_tokens"] + 2 * reader["output_tokens"]) / 1e6)
