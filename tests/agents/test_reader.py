"""GraphReader, embedded; readings that random scripts lead, and what a reader refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import CitedReply, CitedStatement
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from reader_cases import (
    BORN,
    MALFORMED,
    NOTHING,
    QUESTION,
    TEXTS,
    VILLAGE,
    ReaderCases,
    extracted,
    filled,
    final,
    graph_reader,
    note,
    scripted,
)
from scripted_model import ScriptedChatModel
from stores import times

from linkstore import LinkStore
from linkstore.agents import Budget, reading
from linkstore.errors import AgentError, ArgumentError, EmbeddingError, ExtractionError, StrategyError

NUMBERS = ("P1", "P2", "[P3]", "p4", "5", "P6", "P99", "P0", "elba", "")


class TestInAFolder(ReaderCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "kb") as store:
            yield filled(store)

    @pytest.fixture
    def facts(self, store, tmp_path):
        with LinkStore.open(tmp_path / "facts") as facts:
            yield extracted(store, facts)


@pytest.fixture(scope="module")
def world():
    with LinkStore() as store:
        yield filled(store)


@pytest.fixture(scope="module")
def facts(world):
    with LinkStore() as facts:
        yield extracted(world, facts)


class Erratic:
    """Answers at random: real numbers and invented ones, often malformed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, messages: Any) -> Any:
        pick = self._random
        if pick.random() < 0.1:
            return MALFORMED
        texts = pick.sample(["x", "born in Domrémy", "It is 1999.", "a river", ""], pick.randrange(3))
        return CitedReply(
            statements=[CitedStatement(text=text, passages=self._some(NUMBERS)) for text in texts],
            answered=pick.random() < 0.2,
            read=self._some(NUMBERS),
            search=[pick.choice(["", "river", "nothing like it", "Rouen"])] if pick.random() < 0.5 else [],
        )

    def _some(self, names: Sequence[str]) -> list[str]:
        return self._random.sample(names, self._random.randrange(4))


@pytest.mark.parametrize(
    ("text", "why"),
    [("x" * 10_001, "at most 10,000"), ("a\ud800", "lone surrogate"), ("a\0", "NUL")],
    ids=["long", "surrogate", "NUL"],
)
def test_a_text_that_cannot_be_used_is_malformed_and_asked_for_once_more(world, facts, text, why):
    """It reaches neither the notes nor a search; the model is told."""
    model = scripted([{"search": [text]}, BORN])
    answer = graph_reader(world, facts, model).invoke(QUESTION)
    assert (answer.outcome, answer.malformed, answer.searched) == ("answered", 1, (QUESTION,))
    assert why in str(model.calls[1].messages[-1].text)


@settings(max_examples=times(25, 1_000))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 10), first=st.integers(0, 2))
def test_whatever_a_model_says_a_reading_keeps_its_rules(world, facts, seed, steps, first):
    """Nothing is read that is not there, nothing twice, the budget holds, and every citation was read."""
    model = ScriptedChatModel(script=Erratic(seed))
    reader = graph_reader(world, facts, model, first=first, budget=Budget(steps=steps))
    answer = None
    try:
        for answer in reader.stream(QUESTION):
            assert answer.reading == json.loads(json.dumps(answer.reading))
    except AgentError:  # malformed twice, or the budget was used up, before anything was noted
        assert len(model.calls) <= steps
        assert answer is None or not answer.statements
        return
    assert answer is not None
    assert set(answer.read) <= TEXTS.keys()
    assert len(set(answer.read)) == len(answer.read)
    assert len(model.calls) == answer.steps <= steps
    assert {citation.id for citation in answer.citations} <= set(answer.read)
    assert all(statement.citations for statement in answer.statements)
    assert not [statement for statement in answer.statements if "1999" in statement.text]
    prompts = "\n".join(str(message.text) for call in model.calls for message in call.messages)
    assert all(f"[P{answer.shown.index(id) + 1}]" in prompts for id in answer.read)
    assert answer.outcome in {"answered", "partly", "not in the sources"}
    assert (answer.outcome == "not in the sources") == (not answer.statements)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"steps": True}, {"tokens": 0}, {"seconds": 0.0}])
def test_a_budget_of_nothing_is_refused(wrong):
    with pytest.raises(StrategyError):
        Budget(**wrong)


@pytest.mark.parametrize("question", ["", " \n", "\ud800"], ids=["empty", "blank", "surrogate"])
def test_a_question_that_cannot_be_searched_for_is_refused_before_the_model_is_called(world, facts, question):
    model = scripted([])
    reader = graph_reader(world, facts, model)
    with pytest.raises(EmbeddingError, match=r"blank|Unicode"):
        reader.invoke(question)
    assert not model.calls


@pytest.mark.parametrize("question", [{"question": QUESTION}, 5, [QUESTION], b"Where?"], ids=repr)
def test_a_question_must_be_a_string(world, facts, question):
    reader = graph_reader(world, facts, scripted([]))
    with pytest.raises(AgentError, match="a string, not"):
        reader.invoke(question)


def test_a_reader_refuses_what_it_cannot_read_with(world, facts):
    model = ScriptedChatModel(script=[])
    with LinkStore(DeterministicFakeEmbedding(size=8)) as other:
        with pytest.raises(EmbeddingError, match="use the same for both"):
            graph_reader(world, other, model)
        with pytest.raises(ArgumentError, match="model"):
            graph_reader(world, facts, object())  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="is no fact; pass the store that index_facts wrote"):
        graph_reader(world, world, model).invoke(QUESTION)


def test_a_model_without_structured_output_is_asked_for_json_in_words(world, facts):
    """Also in a block of code; and what it says instead is corrected once."""
    answers = ['{"search": ["Joan"]}', "She was born in Domrémy.", '```json\n{"answered": true}\n```']
    answer = graph_reader(world, facts, FakeListChatModel(responses=answers)).invoke(QUESTION)

    assert (answer.searched, answer.outcome) == ((QUESTION, "Joan"), "not in the sources")
    assert (answer.steps, answer.malformed) == (3, 1)
    assert answer.output_tokens > 0


def test_a_model_may_be_named(monkeypatch):
    named = scripted([NOTHING])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: {"made:up": named}[name])

    with LinkStore() as store:
        reader = graph_reader(store, None, "made:up", first=0)
        assert reader.invoke(QUESTION).outcome == "not in the sources"
        with pytest.raises(ExtractionError, match="the chat model 'no:such' cannot be used"):
            graph_reader(store, None, "no:such")

    assert len(named.calls) == 1


@pytest.mark.parametrize("first", [0, 5])
def test_an_empty_store_does_not_answer(first):
    """A call is made only to plan."""
    model = scripted([CitedReply(search=["Joan"])])
    with LinkStore() as store:
        answer = graph_reader(store, None, model, first=first).invoke(QUESTION)
    assert (answer.outcome, answer.steps) == ("not in the sources", 0 if first else 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (QUESTION, "repeats the question"),
        ("Joan of Arc was born in 1999.", "do not have '1999'"),
        ("She was born in Paris.", "do not have 'Paris'"),
        (" [P1]", "is empty"),
    ],
)
def test_a_statement_that_its_passages_do_not_support_is_none(world, facts, text, problem):
    """The model is asked once more."""
    model = scripted([final(text, "joan")] * 2)
    answer = graph_reader(world, facts, model).invoke(QUESTION)
    assert (answer.outcome, answer.statements) == ("not in the sources", ())
    assert answer.refused == 1
    assert problem in str(model.calls[1].messages[-1].text)


def test_names_of_the_question_may_stand_in_another_passage(world, facts):
    text = "Joan of Arc was born in Domrémy, a village on the Meuse."
    model = scripted([VILLAGE, final(text, "domremy")])
    assert graph_reader(world, facts, model).invoke(QUESTION).text == text


def test_the_passage_that_has_the_names_of_a_statement_is_cited(world):
    """Small models say what stands in one passage, and name another that they have read."""
    model = scripted([final("About 100 people.", "joan")])
    [citation] = graph_reader(world, None, model, first=5).invoke("Who lives in Domrémy?").citations
    assert citation.id == "domremy"


def test_instructions_end_each_prompt(world):
    model = scripted([VILLAGE, NOTHING])
    graph_reader(world, None, model, instructions="Answer in German.").invoke(QUESTION)
    assert [str(call.messages[1].text).splitlines()[-1] for call in model.calls] == ["Answer in German."] * 2


@pytest.mark.parametrize("text", ["In Domrémy [P1].", "In Domrémy. [p1, P2]"])
def test_numbers_of_passages_in_a_statement_are_left_out(world, text):
    answer = graph_reader(world, None, scripted([final(text, "joan")])).invoke(QUESTION)
    assert answer.text == "In Domrémy."


def test_of_an_answer_the_supported_statements_are_kept(world):
    reply = final("In Domrémy.", "joan")
    reply.statements = (*reply.statements, ("She had 12 sisters.", ("joan",)))
    answer = graph_reader(world, None, scripted([reply, reply])).invoke(QUESTION)
    assert (answer.text, answer.outcome, answer.refused) == ("In Domrémy.", "partly", 1)


@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_fewer_passages_are_shown_where_a_prompt_is_too_long(world, monkeypatch, most):
    """Down to one, and a part of that; then what the server says is the error."""
    monkeypatch.setattr(reading, "SMALLEST_ROOM", 20)

    def answer(messages: Any) -> Any:
        if str(messages[1].text).count("<text>") > most:
            raise ValueError("the request exceeds the maximum context length")
        return NOTHING

    reader = graph_reader(world, None, ScriptedChatModel(script=answer), first=5)
    if most:
        assert 1 <= len(reader.invoke(QUESTION).read) <= most
    else:
        with pytest.raises(AgentError, match="maximum context length"):
            reader.invoke(QUESTION)


@pytest.mark.parametrize(
    ("reply", "outcome", "stopped"),
    [
        (CitedReply(search=["Joan"]), "not in the sources", "steps"),
        (note("Joan was.", "joan", answered=True), "answered", ""),
    ],
    ids=["not answered", "answered"],
)
def test_a_budget_of_one_call_leaves_it_at_the_first(world, reply, outcome, stopped):
    answer = graph_reader(world, None, scripted([reply]), first=5, budget=Budget(steps=1)).invoke(QUESTION)
    assert (answer.outcome, answer.stopped, answer.steps) == (outcome, stopped, 1)


def test_a_reader_takes_no_other_options(world):
    with pytest.raises(AgentError, match="not stream_mode"):
        graph_reader(world, None, scripted([])).invoke(QUESTION, stream_mode="values")
