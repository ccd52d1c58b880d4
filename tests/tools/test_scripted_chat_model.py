"""The scripted chat model behaves as models that call tools do, and says what it was asked."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.caches import InMemoryCache
from langchain_core.exceptions import OutputParserException
from langchain_core.globals import set_llm_cache
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.tools import tool
from langchain_tests.unit_tests import ChatModelUnitTests
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, ValidationError
from scripted_model import ModelCall, ScriptedChatModel, ScriptError


class Plan(BaseModel):
    """A plan."""

    steps: list[str]
    hops: int = 2


class Verdict(TypedDict):
    """A verdict."""

    score: int


@dataclass
class Place:
    """A place."""

    name: str


@tool
def area(width: int, height: int) -> int:
    """The area of a rectangle."""
    return width * height


def scripted(*answers: Any, **options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=answers, **options)


def called(name: str, **args: Any) -> Any:
    return tool_call(name=name, args=args, id=None)


class TestAsLangChainDemands(ChatModelUnitTests):
    """langchain-tests' suite for chat models."""

    @property
    def chat_model_class(self) -> type[ScriptedChatModel]:
        return ScriptedChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"script": ["yes"]}

    @property
    def has_tool_calling(self) -> bool:
        return True

    @property
    def has_structured_output(self) -> bool:
        return True


def test_answers_come_in_order_and_calls_are_recorded() -> None:
    model = scripted("one", AIMessage("two", id="m2"))
    assert model.invoke("first").text == "one"
    assert model.invoke([HumanMessage("second")], stop=["."]).id == "m2"
    first, second = model.calls
    assert [message.text for message in first.messages] == ["first"]
    assert second == ModelCall(messages=(HumanMessage("second"),), options={"stop": ["."]})


def test_a_script_that_is_over_says_so_and_what_was_asked() -> None:
    model = scripted("only")
    model.invoke("a")
    with pytest.raises(ScriptError, match=r"the script has 1 answers, and this is call 2.*'and then\?'"):
        model.invoke("and then?")
    assert len(model.calls) == 2


@pytest.mark.parametrize("script", ["a text", 7, None])
def test_a_script_that_is_none_is_refused(script: Any) -> None:
    with pytest.raises(ScriptError, match="a script is a list"):
        ScriptedChatModel(script=script)


def test_an_answer_that_is_none_is_refused() -> None:
    with pytest.raises(ScriptError, match="7 is not an answer"):
        scripted(7).bind_tools([area]).invoke("?")


def test_a_function_answers_from_the_messages() -> None:
    model = ScriptedChatModel(script=lambda messages: f"heard {messages[-1].text}")
    assert [model.invoke(text).text for text in ("a", "b", "c")] == ["heard a", "heard b", "heard c"]
    one = scripted("first", lambda messages: called("area", width=len(messages), height=1))
    assert one.invoke("x").text == "first"
    assert one.invoke(["x", "y"]).tool_calls[0]["args"] == {"width": 2, "height": 1}


@pytest.mark.parametrize("error", [TimeoutError("too slow"), TimeoutError, lambda _: TimeoutError("x")])
def test_an_error_is_raised_and_the_script_goes_on(error: Any) -> None:
    model = scripted(error, "well")
    with pytest.raises(TimeoutError):
        model.invoke("?")
    assert model.with_retry().invoke("?").text == "well"


def test_a_retry_takes_the_next_answer() -> None:
    model = scripted(ConnectionError("reset"), "well")
    retrying = model.with_retry(retry_if_exception_type=(ConnectionError,), wait_exponential_jitter=False)
    assert retrying.invoke("?").text == "well"


def test_tool_calls_have_ids_of_their_own_and_tools_are_recorded() -> None:
    model = scripted([called("area", width=2, height=3), called("nothing")], called("area"))
    bound = model.bind_tools([area, Plan], tool_choice="any")
    first, second = bound.invoke("a"), bound.invoke("b")
    assert isinstance(first, AIMessage)
    ids = [one["id"] for message in (first, second) for one in message.tool_calls]
    assert len(set(ids)) == 3
    assert [one["name"] for one in first.tool_calls] == ["area", "nothing"]
    assert model.calls[0].tool_names == ("area", "Plan")
    assert model.calls[0].tool_choice == "any"
    assert model.calls[0].tools[0]["function"]["parameters"]["required"] == ["width", "height"]


@pytest.mark.parametrize("method", ["function_calling", "json_schema", None])
@pytest.mark.parametrize("answer", [Plan(steps=["a"]), {"steps": ["a"]}])
def test_structured_output_is_an_object_of_the_class(method: str | None, answer: Any) -> None:
    options = {} if method is None else {"method": method}
    assert scripted(answer).with_structured_output(Plan, **options).invoke("?") == Plan(steps=["a"])


@pytest.mark.parametrize("schema", [Verdict, {"title": "Verdict", "type": "object", "properties": {}}])
def test_structured_output_by_a_schema_is_a_dict(schema: Any) -> None:
    assert scripted({"score": 3}).with_structured_output(schema).invoke("?") == {"score": 3}


def test_with_include_raw_what_is_wrong_is_returned() -> None:
    wrong = called("Plan", steps="not a list")
    found = scripted(wrong).with_structured_output(Plan, include_raw=True).invoke("?")
    assert isinstance(found, dict)
    assert found["parsed"] is None
    assert isinstance(found["parsing_error"], ValidationError)
    right = scripted(Plan(steps=[])).with_structured_output(Plan, include_raw=True).invoke("?")
    assert right["parsed"] == Plan(steps=[])  # type: ignore[index]
    assert right["raw"].tool_calls[0]["name"] == "Plan"  # type: ignore[index]


@pytest.mark.parametrize("malformed", ["I would rather talk.", invalid_tool_call(args='{"steps": [')])
def test_malformed_output_is_what_a_real_model_gives(malformed: Any) -> None:
    model = scripted(malformed, malformed)
    assert model.with_structured_output(Plan).invoke("?") is None
    found = model.with_structured_output(Plan, include_raw=True).invoke("?")
    if not isinstance(malformed, str):
        (one,) = found["raw"].invalid_tool_calls  # type: ignore[index]
        assert (one["name"], one["args"]) == ("Plan", '{"steps": [')


def test_an_answer_of_another_class_than_asked_for_is_an_error() -> None:
    with pytest.raises(ScriptError, match="answers with a Plan, but the tools of this call are: Verdict"):
        scripted(Plan(steps=[])).with_structured_output(Verdict).invoke("?")
    with pytest.raises(ScriptError, match=r"does not name, but .* are: area, Plan"):
        scripted({"steps": []}).bind_tools([area, Plan]).invoke("?")
    with pytest.raises(ScriptError, match="are: none"):
        scripted(Plan(steps=[])).invoke("?")
    chosen = scripted({"width": 1}).bind_tools([area, Plan], tool_choice="area").invoke("?")
    assert chosen.tool_calls[0]["name"] == "area"


async def test_async_calls_are_answered_and_recorded_alike() -> None:
    model = scripted("a", Plan(steps=["b"]), TimeoutError("late"))
    assert (await model.ainvoke("1")).text == "a"
    assert await model.with_structured_output(Plan).ainvoke("2") == Plan(steps=["b"])
    with pytest.raises(TimeoutError):
        await model.ainvoke("3")
    assert [call.messages[-1].text for call in model.calls] == ["1", "2", "3"]


LONG = AIMessage(
    "Two  words,\nthen more ",
    tool_calls=[
        {"name": "area", "args": {"width": 12, "height": "ünïcode " * 9}, "id": "c1", "type": "tool_call"},
        {"name": "area", "args": {}, "id": "c2", "type": "tool_call"},
    ],
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
)


def test_a_stream_adds_up_to_the_message() -> None:
    chunks = list(scripted(LONG).stream("?"))
    whole = reduce(add, chunks)
    assert len(chunks) > 10
    assert whole.text == LONG.text
    assert whole.tool_calls == LONG.tool_calls
    assert whole.usage_metadata == LONG.usage_metadata


async def test_an_async_stream_adds_up_and_malformed_arguments_stay_malformed() -> None:
    broken = invalid_tool_call(name="area", args="width: two")
    chunks = [chunk async for chunk in scripted(broken).bind_tools([area]).astream("?")]
    whole = reduce(add, chunks)
    assert [one["args"] for one in whole.invalid_tool_calls] == ["width: two"]  # type: ignore[attr-defined]


def test_an_empty_answer_streams() -> None:
    assert reduce(add, scripted("").stream("?")).text == ""


def test_answers_of_the_script_are_not_changed_by_who_gets_them() -> None:
    answer = AIMessage("same")
    model = scripted(answer, answer)
    model.invoke("?").content = "other"
    assert model.invoke("?").text == "same"
    assert answer.id is None


def test_many_threads_get_each_answer_once() -> None:
    model = ScriptedChatModel(script=[str(number) for number in range(400)])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.invoke("?").text, range(400)))
    assert sorted(found, key=int) == [str(number) for number in range(400)]


async def test_many_tasks_get_each_answer_once() -> None:
    model = ScriptedChatModel(script=[str(number) for number in range(100)])
    found = await asyncio.gather(*(model.ainvoke("?") for _ in range(100)))
    assert sorted(int(message.text) for message in found) == list(range(100))


def test_langchains_global_cache_does_not_repeat_answers() -> None:
    set_llm_cache(InMemoryCache())
    try:
        model = scripted("a", "b")
        assert [model.invoke("?").text for _ in range(2)] == ["a", "b"]
    finally:
        set_llm_cache(None)


def test_an_agent_calls_tools_and_answers_in_the_form_asked_for() -> None:
    """Structured output by a tool: what create_agent does with models that it does not know."""
    model = scripted(called("area", width=6, height=7), Plan(steps=["42"]))
    agent = create_agent(model, [area], response_format=ToolStrategy(Plan))
    state = agent.invoke({"messages": [("human", "How large?")]})
    assert state["structured_response"] == Plan(steps=["42"])
    assert [one.text for one in state["messages"] if isinstance(one, ToolMessage)][:1] == ["42"]
    assert model.calls[1].tool_names == ("area", "Plan")


@pytest.mark.parametrize("schema", [Plan, Place])
def test_an_agent_gets_json_where_the_model_is_said_to_write_it(schema: Any) -> None:
    answer = Plan(steps=["x"]) if schema is Plan else {"name": "Rome"}
    model = scripted(called("area", width=1, height=1), answer, profile={"structured_output": True})
    agent = create_agent(model, [area], response_format=schema)
    state = agent.invoke({"messages": [("human", "?")]})
    assert state["structured_response"] == (answer if schema is Plan else Place("Rome"))
    assert json.loads(state["messages"][-1].text)
    assert "response_format" in model.calls[0].options


def test_an_agent_may_name_the_strategy() -> None:
    model = scripted("not json", profile={"structured_output": True})
    agent = create_agent(model, [], response_format=ProviderStrategy(Plan))
    with pytest.raises(Exception, match="Native structured output") as caught:
        agent.invoke({"messages": [("human", "?")]})
    assert not isinstance(caught.value, OutputParserException | ScriptError)


async def test_a_graph_built_by_hand_streams_tokens_and_tool_calls() -> None:
    model = scripted(called("area", width=2, height=2), "It is four.")
    bound = model.bind_tools([area])

    async def decide(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", decide)
    graph.add_node("tools", ToolNode([area]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    texts = []
    async for chunk, meta in graph.compile().astream(
        {"messages": [HumanMessage("How large?")]}, stream_mode="messages"
    ):
        if meta["langgraph_node"] == "model" and chunk.text:
            texts.append(str(chunk.text))
    assert texts == ["It", " is", " four."]
