"""Structured output from servers that answer as local models do, and errors of providers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import (
    MalformedOutputError,
    OutputModel,
    PromptTooLongError,
    add_fields,
    arun,
    get_context,
    make_json_schema,
    read_output,
    run,
)
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from openai_server import Fault, OpenAiServer, serving
from pydantic import BaseModel, Field
from scripted_model import ScriptedChatModel

from linkstore.agents import chat_model, model_calls
from linkstore.errors import AgentError, ExtractionError, StrategyError

langchain_openai = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
PROMPT = [SystemMessage("Name the parts."), HumanMessage("A boat has a mast and a keel.")]


class Part(BaseModel):
    """A part."""

    name: str = Field(description="As the text has it.", max_length=40)
    place: Literal["above", "below"] = "above"


class Parts(BaseModel):
    """The parts of a thing."""

    thing: str = Field(default="", description="What has them.")
    parts: list[Part] = Field(default_factory=list, max_length=3, description="Its parts.")
    numbers: list[str] = Field(default_factory=list, max_length=4)
    sure: bool = False


WHOLE = {"thing": "boat", "parts": [{"name": "mast", "place": "above"}], "numbers": ["1"], "sure": True}
EXPECTED = Parts.model_validate(WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WHOLE),
        f"Sure! Here it is:\n```json\n{json.dumps(WHOLE, indent=1)}\n```\nI hope it {{helps}}.",
        f'<think>The form is {{"thing": "…"}}, so {{x}}.</think>\n{json.dumps(WHOLE)}',
        json.dumps({"Parts": WHOLE}),
        json.dumps({**WHOLE, "confidence": 0.9}),
        json.dumps({**WHOLE, "numbers": 1}),
        json.dumps({**WHOLE, "parts": WHOLE["parts"][0]}),  # type: ignore[index]
        json.dumps({**WHOLE, "parts": [{"name": "mast", "place": "Above"}] * 7}),
        json.dumps({**WHOLE, "sure": "true", "numbers": [1, None]}),
    ],
    ids=["plain", "fenced", "thought", "wrapped", "more", "number", "lone", "repeated", "texts"],
)
def test_what_is_clear_is_taken(text):
    assert read_output(AIMessage(text), Parts, {}) == EXPECTED


def test_numbers_of_passages_may_lack_their_quotes():
    assert read_output(AIMessage('{"numbers": [P1, P3]}'), Parts, {}).numbers == ["P1", "P3"]


def test_null_is_what_is_not_said():
    nulls = '{"thing": null, "parts": null, "numbers": null, "sure": null}'
    assert read_output(AIMessage(nulls), Parts, {}) == Parts()


def test_of_output_that_was_cut_off_the_whole_items_are_taken():
    text = json.dumps({"thing": "boat", "parts": [{"name": "mast"}, {"place": "below"}]})[:-4]
    cut = AIMessage(text, response_metadata={"finish_reason": "length"})
    assert read_output(cut, Parts, {}).parts == [Part(name="mast")]
    with pytest.raises(MalformedOutputError, match="cut off"):
        read_output(AIMessage('{"thing": "boa', response_metadata={"finish_reason": "length"}), Parts, {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("It has a mast.", "expected a JSON object, got 'It has a mast.'"),
        ("", "expected a JSON object"),
        ('{"mast": 1}', "expected a JSON object"),
        ('{"parts": [{"place": "above"}]}', '"parts.0.name": Field required'),
        ('{"parts": [{"name": "mast", "place": "left"}]}', '"parts.0.place": Input should be'),
    ],
)
def test_what_is_not_clear_is_told_in_words(text, problem):
    with pytest.raises(MalformedOutputError) as raised:
        read_output(AIMessage(text), Parts, {})
    assert problem in str(raised.value)
    assert "http" not in str(raised.value)


@given(st.text(alphabet='{}[]":, abthingparts<>/0', max_size=80))
def test_no_text_breaks_the_reading(text):
    with suppress(MalformedOutputError):
        assert isinstance(read_output(AIMessage(text), Parts, {}), Parts)


def test_the_prompt_names_each_field_and_the_schema_has_bounds():
    prompt = str(add_fields(PROMPT, Parts, {"numbers": ["P1", "P2"]})[0].text)
    assert prompt.splitlines()[2:] == [
        "Output one JSON object with these fields:",
        '- "thing" (text): What has them.',
        '- "parts" (list of at most 3: object): Its parts.',
        '  - "name" (text): As the text has it.',
        '  - "place" (one of above, below)',
        '- "numbers" (list of at most 4: one of P1, P2)',
        '- "sure" (true or false)',
    ]
    schema = make_json_schema(Parts, {"numbers": ["P1", "P2"]})
    assert schema["required"] == ["thing", "parts", "numbers", "sure"]
    assert schema["properties"]["parts"]["maxItems"] == 3
    assert schema["properties"]["parts"]["items"]["properties"]["name"]["maxLength"] == 40
    assert schema["properties"]["numbers"]["items"] == {"type": "string", "enum": ["P1", "P2"]}
    assert "numbers" not in make_json_schema(Parts, {"numbers": []})["properties"]
    assert "default" not in json.dumps(schema)


def ask(model: Any, *prompts: Sequence[BaseMessage], **options: Any) -> list[Any]:
    return run(OutputModel(model).request_all(Parts, prompts or [PROMPT], **options))


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(model_calls, "WAITS", (0.01, 0.01))


def test_one_repair_says_what_was_wrong():
    model = FakeListChatModel(responses=["A mast.", json.dumps(WHOLE)])
    scripted = ScriptedChatModel(script=["A mast.", WHOLE])
    for asked in (model, scripted):
        [reply] = ask(asked)
        assert (reply.output, reply.calls, reply.malformed) == (EXPECTED, 2, 1)
    assert "expected a JSON object, got 'A mast.'" in str(scripted.calls[1].messages[-1].text)
    [reply] = ask(FakeListChatModel(responses=["A mast."]))
    assert reply.output is None
    assert (reply.problem, reply.calls) == ("expected a JSON object, got 'A mast.'", 2)


def test_a_check_asks_once_more_and_the_last_output_is_returned():
    model = ScriptedChatModel(script=[WHOLE, WHOLE])
    reply = run(OutputModel(model).request(Parts, PROMPT, check=lambda _: "the text has no mast"))
    assert (reply.output, reply.calls) == (EXPECTED, 2)
    assert "the text has no mast" in str(model.calls[1].messages[-1].text)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_waited_for(quick, status):
    server = OpenAiServer(lambda _: WHOLE, [Fault(status=status, message="Loading model")] * 2)
    with serving(server) as url:
        model = langchain_openai.ChatOpenAI(model="local", base_url=url, api_key="x", max_retries=0)
        assert ask(model)[0].output == EXPECTED
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault(status=401, message="bad key"), AgentError, "status 401: .*bad key.*OPENAI_API_KEY"),
        (Fault(status=404, message="The model 'x' does not exist"), AgentError, "check the name"),
        (Fault(status=429, message="slow down"), AgentError, "status 429: .*try again later"),
        (
            Fault(status=400, message="the request exceeds the available context size"),
            PromptTooLongError,
            "the size of the model's context",
        ),
        (Fault(status=500, message="internal"), AgentError, "status 500: .*internal"),
    ],
    ids=["key", "model", "busy", "context", "server"],
)
def test_an_error_names_server_status_and_next_step_and_is_not_repeated(quick, fault, kind, words):
    server = OpenAiServer(lambda _: WHOLE, [fault] * 9)
    with serving(server) as url:
        model = langchain_openai.ChatOpenAI(model="local", base_url=url, api_key="x", max_retries=0)
        [reply] = ask(model)
    error = reply.error
    assert type(error) is kind
    assert (reply.output, reply.problem) == (None, str(error))
    assert url in str(error)
    with pytest.raises(AgentError, match=words):
        raise error
    assert len(server.requests) == (3 if fault.status == 429 else 1)


def test_a_server_that_is_not_there_is_named():
    model = langchain_openai.ChatOpenAI(
        model="local", base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0
    )
    error = ask(model)[0].error
    assert "http://127.0.0.1:9/v1" in str(error)
    assert "start the server" in str(error)


def test_what_is_no_server_of_models_is_told():
    server = OpenAiServer(lambda _: "x")
    server.reply = lambda _: (Fault(), {}, {})  # type: ignore[method-assign]
    with serving(server) as url:
        model = langchain_openai.ChatOpenAI(model="local", base_url=f"{url}/none", api_key="x", max_retries=0)
        [reply] = ask(model)
    assert reply.output is None
    assert isinstance(reply.error, AgentError | None)


@pytest.mark.parametrize("awaited", [False, True])
def test_many_prompts_are_asked_at_once_and_each_has_its_reply(awaited):
    together, most = threading.Semaphore(0), []

    def answer(messages: Any) -> Any:
        most.append(1)
        if len(most) >= 3:
            together.release(3)
        together.acquire(timeout=10)
        return {**WHOLE, "thing": messages[-1]["content"]}

    server = OpenAiServer(answer)
    prompts = [[SystemMessage("x"), HumanMessage(name)] for name in ("boat", "car", "house")]
    with serving(server) as url:
        model = langchain_openai.ChatOpenAI(model="local", base_url=url, api_key="x")
        asking = OutputModel(model).request_all(Parts, prompts, max_concurrency=3)
        replies = asyncio.run(arun(asking)) if awaited else run(asking)
    assert [reply.output.thing for reply in replies] == ["boat", "car", "house"]  # type: ignore[union-attr]


def test_an_async_call_that_is_cancelled_ends_at_once():
    server = OpenAiServer(lambda _: WHOLE, [Fault(waits=20)])

    async def cancel(model: Any) -> float:
        asking = asyncio.ensure_future(arun(OutputModel(model).request(Parts, PROMPT)))
        await asyncio.sleep(0.5)
        began = time.monotonic()
        asking.cancel()
        await asyncio.wait([asking])
        return time.monotonic() - began

    with serving(server) as url:
        model = langchain_openai.ChatOpenAI(model="local", base_url=url, api_key="x", max_retries=0)
        assert asyncio.run(cancel(model)) < 1


def test_settings_of_a_model_reach_its_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    server = OpenAiServer(lambda _: WHOLE)
    with serving(server) as url:
        model = chat_model("openai:local", base_url=url, max_tokens=77, timeout=5, context=2_000)
        assert ask(model)[0].output == EXPECTED
        in_words = chat_model("openai:local", base_url=url, temperature=0.5, method="words")
        assert ask(in_words)[0].output == EXPECTED
    first, second = server.requests
    assert (first["temperature"], first.get("max_tokens") or first["max_completion_tokens"]) == (0.0, 77)
    assert first["response_format"]["json_schema"]["schema"]["properties"]["parts"]["maxItems"] == 3
    assert (second["temperature"], "response_format" in second) == (0.5, False)
    assert (get_context(model), get_context(in_words)) == (2_000, 8_192)


def test_a_provider_without_its_package_is_told_how_to_get_it(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ExtractionError, match="OPENAI_API_KEY"):
        chat_model("openai:local")
    assert chat_model("openai:local", base_url="http://127.0.0.1:8080/v1").temperature == 0.0  # type: ignore[attr-defined]
    with pytest.raises(ExtractionError, match=r"pip install .*langchain-mistralai"):
        chat_model("mistralai:small")
    for wrong in ({"temperature": 3}, {"max_tokens": 0}, {"timeout": -1.0}, {"context": 0}):
        with pytest.raises(StrategyError):
            chat_model("openai:local", **wrong)  # type: ignore[arg-type]
