"""GraphReader, embedded; readings that random scripts lead, and a key element with 10,000 facts."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from reader_cases import (
    BORN,
    GIVEN_UP,
    MALFORMED,
    PLAN,
    QUESTION,
    READINGS,
    TEXTS,
    ReaderCases,
    decide,
    filled,
    graph_reader,
    scripted,
)
from scripted_model import ScriptedChatModel
from stores import times

from linkstore import LinkStore, get_links
from linkstore.agents import Budget, GraphReader, fact_store
from linkstore.agents import steps as passages
from linkstore.agents.lookups import FoundFacts
from linkstore.agents.state import CitedAnswer, CitedStatement, Decision, begin_reading
from linkstore.errors import AgentError, ArgumentError, EmbeddingError, ExtractionError, StrategyError

ELEMENTS = ("joan of arc", "domrémy", "rouen", "orléans", "meuse", "seine", "France", "elba", "")
NUMBERS = ("P1", "P2", "[P3]", "p4", "5", "P6", "P99", "P0", "elba", "")


class TestInAFolder(ReaderCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "kb") as store:
            yield filled(store)


@pytest.fixture(scope="module")
def world():
    with LinkStore() as store:
        yield filled(store)


class Erratic:
    """Answers at random: real names and invented ones, often malformed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, messages: Any) -> Any:
        pick, task = self._random, str(messages[0].text)
        if pick.random() < 0.1:
            return MALFORMED
        statements = [CitedStatement(text="x", passages=self._some(NUMBERS))] * pick.randrange(3)
        if "has ended" in task:
            return CitedAnswer(answered=pick.random() < 0.7, statements=statements)
        if task.startswith("A library"):
            return PLAN
        return Decision(
            notes=pick.choice(["", "something"]),
            finished=pick.random() < 0.1,
            statements=statements,
            read=self._some(NUMBERS),
            sure=pick.random() < 0.5,
            key_elements=self._some(ELEMENTS) if pick.random() < 0.3 else [],
            search=[pick.choice(["", "river", "nothing like it"])] if pick.random() < 0.3 else [],
        )

    def _some(self, names: Sequence[str]) -> list[str]:
        return self._random.sample(names, self._random.randrange(4))


@pytest.mark.parametrize(
    ("text", "why"),
    [("x" * 10_001, "at most 10,000"), ("a\ud800", "lone surrogate"), ("a\0", "NUL")],
    ids=["long", "surrogate", "NUL"],
)
def test_a_text_that_cannot_be_used_is_malformed_and_the_reading_goes_on(world, text, why):
    """It reaches neither the notebook nor a search; the model is told, and a rule decides then."""
    wrong = {"notes": text, "search": [text]}
    model = scripted([PLAN, wrong, wrong, GIVEN_UP])
    with graph_reader(world, model) as reader:
        answer = reader.invoke(QUESTION)
    assert (answer.outcome, answer.notebook) == ("not in the sources", ("Nothing about it.",))
    assert why in str(model.calls[2].messages[-1].text)


@settings(max_examples=times(25, 1_000))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 30))
def test_whatever_a_model_says_a_reading_keeps_its_rules(world, seed, steps):
    """No node is read that is not there, none twice, the budget holds, and every citation was read."""
    model = ScriptedChatModel(script=Erratic(seed))
    reader = graph_reader(world, model, budget=Budget(steps=steps))
    with reader, fact_store(world) as facts_of_world:
        try:
            answer = reader.invoke(QUESTION)
        except AgentError:  # the answer was malformed twice, or once at the end of the budget
            assert model.calls[-1].tool_names == ("CitedAnswer",)
            return
        named = {link.tag for fact in facts_of_world.scan() for link in get_links(fact)}
        assert named.issuperset(answer.explored)
    assert set(answer.read) <= TEXTS.keys()
    for visited in (answer.read, answer.explored):
        assert len(set(visited)) == len(visited)
    assert len(model.calls) == answer.steps <= steps
    assert {one.id for one in answer.citations} <= set(answer.read)
    assert all(statement.citations for statement in answer.statements)
    prompts = "\n".join(str(message.text) for call in model.calls for message in call.messages)
    assert all(f"[P{answer.shown.index(id) + 1}]" in prompts for id in answer.read)
    assert answer.outcome in {"answered", "partly", "not in the sources"}


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"steps": True}, {"tokens": 0}, {"seconds": 0.0}])
def test_a_budget_of_nothing_is_refused(wrong):
    with pytest.raises(StrategyError):
        Budget(**wrong)


def test_a_reading_without_checkpointer_has_no_thread_to_explain(world):
    with graph_reader(world, scripted([])) as reader, pytest.raises(AgentError, match="checkpointer"):
        reader.explain({"configurable": {"thread_id": "x"}})


@pytest.mark.parametrize("question", ["", " \n", "\ud800"], ids=["empty", "blank", "surrogate"])
def test_a_question_that_cannot_be_searched_for_is_refused_before_the_model_is_called(world, question):
    model = scripted([PLAN])
    with graph_reader(world, model) as reader, pytest.raises(EmbeddingError, match=r"blank|Unicode"):
        reader.invoke(question)
    assert not model.calls


@pytest.mark.parametrize("question", [{"question": QUESTION}, 5, [QUESTION], b"Where?"], ids=repr)
def test_a_question_must_be_a_string(world, question):
    with graph_reader(world, scripted([])) as reader, pytest.raises(AgentError, match="a string, not"):
        reader.invoke(question)


@pytest.mark.parametrize("checkpointer", [None, InMemorySaver()], ids=["without", "with"])
def test_a_reading_that_was_not_begun_cannot_go_on(world, checkpointer):
    thread: Any = {"configurable": {"thread_id": "new"}}

    async def streamed(reader: GraphReader) -> list[Any]:
        return [answer async for answer in reader.astream(None, thread)]

    with graph_reader(world, scripted([]), checkpointer=checkpointer) as reader:
        for go_on in (
            lambda: reader.invoke(None, thread),
            lambda: list(reader.stream(None, thread)),
            lambda: asyncio.run(reader.ainvoke(None, thread)),
            lambda: asyncio.run(streamed(reader)),
        ):
            with pytest.raises(AgentError, match="no reading to go on with in the thread 'new'"):
                go_on()


@pytest.mark.parametrize("mode", ["updates", "messages", ["values", "updates"]], ids=str)
def test_a_reader_streams_answers_and_its_graph_all_else(world, mode):
    thread: Any = {"configurable": {"thread_id": "one"}}
    with graph_reader(world, scripted(READINGS["simple"][0]), checkpointer=InMemorySaver()) as reader:
        for call in (reader.invoke, lambda *given, **options: list(reader.stream(*given, **options))):
            with pytest.raises(AgentError, match=r"use reader\.graph"):
                call(QUESTION, thread, stream_mode=mode)
        assert list(reader.graph.stream(begin_reading(QUESTION), thread, stream_mode=mode))
        assert reader.answer(thread).text == "In Domrémy."


def test_key_elements_of_the_first_facts_of_a_long_passage_are_offered(world, monkeypatch):
    def offered() -> str:
        model = scripted([PLAN, decide("rouen"), GIVEN_UP])
        with graph_reader(world, model) as reader:
            reader.invoke("Where is a cathedral?")
        return str(model.calls[-1].messages[1].text).partition("Key elements")[2]

    monkeypatch.setattr(passages.lookups, "find_likely_facts", _find_nothing)
    assert "seine" in offered()
    monkeypatch.setattr(passages, "FACTS_OF_PASSAGE", 0)
    assert "seine" not in offered()


def _find_nothing(*_: object) -> Any:
    yield from ()
    return FoundFacts(facts=(), elements=())


def test_a_reader_refuses_what_it_cannot_read_with(world):
    model = ScriptedChatModel(script=[])
    with LinkStore(DeterministicFakeEmbedding(size=8)) as other:
        with pytest.raises(EmbeddingError, match="use the same for both"):
            graph_reader(world, model, facts=other)
        with pytest.raises(ArgumentError, match="model"):
            graph_reader(world, object())  # type: ignore[arg-type]


def test_a_model_without_structured_output_is_asked_for_json_in_words(world):
    """Also in a block of code; and what it says instead is corrected once."""
    read = '```json\n{"read": ["P1"], "sure": true}\n```'
    answers = ['{"search": ["Joan"]}', read, "She was born in Domrémy.", '{"finished": true}']
    model = FakeListChatModel(responses=answers)
    with graph_reader(world, model) as reader:
        answer = reader.invoke(QUESTION)

    assert (answer.plan, len(answer.read), answer.outcome) == (("Joan",), 1, "not in the sources")
    assert (answer.steps, answer.malformed) == (4, 1)
    assert answer.output_tokens > 0


def test_a_model_may_be_named(monkeypatch):
    named = scripted([PLAN, BORN])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: {"made:up": named}[name])

    with LinkStore() as store:
        with graph_reader(store, "made:up") as reader:
            assert reader.invoke(QUESTION).outcome == "not in the sources"
        with pytest.raises(ExtractionError, match="the chat model 'no:such' cannot be used"):
            graph_reader(store, "no:such")

    assert len(named.calls) == 1


def test_an_empty_store_does_not_answer_and_costs_one_call():
    model = scripted([PLAN])
    with LinkStore() as store, graph_reader(store, model) as reader:
        answer = reader.invoke(QUESTION)
    assert (answer.outcome, answer.steps) == ("not in the sources", 1)


def test_langgraph_is_imported_when_a_reader_is_made():
    code = "import sys, linkstore.agents; print('langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_statement_that_repeats_the_question_or_invents_a_number_is_none(world):
    def echo(text: str) -> CitedAnswer:
        return CitedAnswer(statements=[CitedStatement(text=text, passages=["P1"])], answered=True)

    model = scripted([echo(QUESTION), echo("Joan of Arc was born in 1999.")])
    with graph_reader(world, model, first=5) as reader:
        answer = reader.invoke(QUESTION)
    assert (answer.outcome, answer.statements, answer.refused) == (
        "not in the sources",
        (),
        {"statements": 1},
    )
    assert "repeats the question" in str(model.calls[1].messages[-1].text)
