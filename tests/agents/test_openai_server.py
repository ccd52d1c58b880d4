"""Readers, facts and ``linkstore ask``, with a server that speaks OpenAI's interface."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from documented import linkstore
from langchain_core.documents import Document
from openai_server import Fault, OpenAiServer, read_the_first, serving
from reading_time import SECONDS, ReaderClock

from linkstore import LinkStore
from linkstore.agents import (
    Budget,
    GraphReader,
    ModelExtractor,
    chat_model,
    graph_reader,
    index_facts,
    reading,
)
from linkstore.cli import exits
from linkstore.errors import AgentError

langchain_openai = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
QUESTION = "Where does the river Aar rise?"


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


def make_reader(store: LinkStore, model: Any, **options: Any) -> GraphReader:
    """A reader that plans first, and then reads: two calls."""
    return graph_reader(store, model, first=0, **options)


class ByTools(langchain_openai.ChatOpenAI):  # type: ignore[misc]
    """A model that makes structured output by calls of tools, as those of other providers do."""

    def with_structured_output(self, schema: Any, **options: Any) -> Any:
        return super().with_structured_output(schema, **{"method": "function_calling", **options})


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("cls", [None, ByTools], ids=["structured output", "tool calls"])
def test_a_reading_is_answered_and_its_tokens_are_those_that_the_server_counted(store, cls, streaming):
    server = OpenAiServer(read_the_first)
    with model_of(server, cls, streaming=streaming, stream_usage=True) as model:
        reader = make_reader(store, model)
        answer = reader.invoke(QUESTION)
        again = asyncio.run(reader.ainvoke(QUESTION))

    assert (answer.text, [one.id for one in answer.citations]) == ("Grimsel pass:", ["aar"])
    assert (again.text, again.steps) == (answer.text, answer.steps)
    assert (answer.steps, answer.malformed, len(server.requests)) == (2, 0, 4)
    assert answer.prompt_tokens + again.prompt_tokens == server.prompt_tokens
    assert answer.output_tokens + again.output_tokens == server.output_tokens
    key = "tools" if cls else "response_format"
    assert all(key in request and bool(request.get("stream")) == streaming for request in server.requests)


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_model_without_structured_output_is_asked_for_json_in_words(store, status):
    server = OpenAiServer(read_the_first, [Fault(status=status, message="no tools here")])
    with model_of(server) as model:
        reader = make_reader(store, model)
        answer = reader.invoke(QUESTION)

    assert (answer.text, answer.steps, answer.malformed) == ("Grimsel pass:", 2, 0)
    in_words = ["response_format" not in request for request in server.requests]
    assert in_words == [False, True, True], "a server that refused it once is not asked for it again"
    assert all("Output one JSON object" in request["messages"][0]["content"] for request in server.requests)


def test_an_error_that_is_no_refusal_of_structured_output_is_named(store):
    server = OpenAiServer(read_the_first, [Fault(status=400, message="no credit left")] * 2)
    with (
        model_of(server) as model,
        pytest.raises(AgentError, match=r"status 400.*no credit left"),
    ):
        make_reader(store, model).invoke(QUESTION)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_limit_of_rate_and_a_failing_server_are_tried_again(store, status):
    fault = Fault(status=status, headers={"Retry-After": "0", "retry-after-ms": "1"})
    server = OpenAiServer(read_the_first, [fault, None, fault])
    with model_of(server) as model:
        reader = make_reader(store, model)
        assert reader.invoke(QUESTION).outcome == "answered"
    assert len(server.requests) == 4


def test_a_server_that_keeps_failing_ends_the_reading_which_goes_on_later(store):
    fault = Fault(status=500, message="overloaded", headers={"retry-after-ms": "1"})
    server = OpenAiServer(read_the_first, [None, fault, fault])
    with model_of(server) as model:
        reader = make_reader(store, model)
        steps = reader.stream(QUESTION)
        planned = next(steps)
        with pytest.raises(AgentError, match="overloaded"):
            next(steps)
        assert reader.invoke(planned).outcome == "answered"
    assert len(server.requests) == 4


def test_a_wrong_key_is_named(store):
    server = OpenAiServer(read_the_first, [Fault(status=401, message="Incorrect API key provided")])
    with (
        model_of(server) as model,
        pytest.raises(AgentError, match="Incorrect API key"),
    ):
        make_reader(store, model).invoke(QUESTION)


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "async"])
def test_a_call_that_is_late_is_not_waited_for(store, awaited, monkeypatch):
    """What was noted before is the answer."""
    clock = ReaderClock()
    monkeypatch.setattr(reading, "time", clock)

    def answer_and_take_time(messages: Any) -> Any:
        clock.jump_to_the_end()
        return read_the_first(messages) | {"answered": False, "search": ["a cathedral"]}

    server = OpenAiServer(answer_and_take_time, [None, Fault(waits=30)])
    with model_of(server) as model:
        reader = graph_reader(store, model, first=1, budget=Budget(seconds=SECONDS))
        began = time.monotonic()
        answer = asyncio.run(reader.ainvoke(QUESTION)) if awaited else reader.invoke(QUESTION)
        assert time.monotonic() - began < 25
    assert (answer.stopped, answer.outcome, answer.text) == ("seconds", "partly", "Grimsel pass:")


def test_a_timeout_of_the_model_is_an_error(store):
    server = OpenAiServer(read_the_first, [None, Fault(waits=30), Fault(waits=30)])
    with (
        model_of(server, timeout=0.5) as model,
        pytest.raises(AgentError, match="timed out"),
    ):
        make_reader(store, model).invoke(QUESTION)


@pytest.mark.parametrize("cls", [None, ByTools], ids=["structured output", "tool calls"])
@pytest.mark.parametrize("fault", [Fault(cut=20), Fault(says="I cannot do that."), Fault(says="")])
def test_output_that_is_cut_off_or_prose_is_asked_for_once_more(store, cls, fault):
    server = OpenAiServer(read_the_first, [None, fault])
    with model_of(server, cls) as model:
        reader = make_reader(store, model)
        answer = reader.invoke(QUESTION)

    assert (answer.outcome, answer.malformed, answer.steps) == ("answered", 1, 3)
    assert "could not be used" in str([one["content"] for one in server.requests[2]["messages"]])


def test_a_model_that_always_refuses_ends_after_two_calls(store):
    server = OpenAiServer(lambda _: "I cannot help with that.")
    with (
        model_of(server) as model,
        pytest.raises(AgentError, match="cannot help with that"),
    ):
        make_reader(store, model).invoke(QUESTION)
    assert len(server.requests) == 2


def test_a_server_that_ignores_the_format_is_understood(store):
    server = OpenAiServer(
        lambda messages: f"Here it is:\n```json\n{json.dumps(read_the_first(messages))}\n```"
    )
    with model_of(server) as model:
        reader = make_reader(store, model)
        answer = reader.invoke(QUESTION)

    assert (answer.text, answer.malformed, answer.steps) == ("Grimsel pass:", 0, 2)


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
