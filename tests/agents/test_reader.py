"""GraphReader, embedded; readings that random scripts lead, and a key element with 10,000 facts."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import CitedAnswer, CitedStatement, Decision, FoundFacts
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from reader_cases import (
    BORN,
    GIVEN_UP,
    MALFORMED,
    PLAN,
    QUESTION,
    TEXTS,
    ReaderCases,
    decide,
    extracted,
    filled,
    graph_reader,
    scripted,
)
from scripted_model import ScriptedChatModel
from stores import times

from linkstore import LinkStore, get_links
from linkstore.agents import Budget
from linkstore.agents import steps as passages
from linkstore.errors import AgentError, ArgumentError, EmbeddingError, ExtractionError, StrategyError

ELEMENTS = ("joan of arc", "domrémy", "rouen", "orléans", "meuse", "seine", "France", "elba", "")
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
        if "No passage is shown yet" in str(messages[1].text):
            return PLAN
        return Decision(
            notes=pick.choice(["", "something"]),
            finished=pick.random() < 0.1,
            statements=statements,
            read=self._some(NUMBERS),
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
def test_a_text_that_cannot_be_used_is_malformed_and_the_reading_goes_on(world, facts, text, why):
    """It reaches neither the notebook nor a search; the model is told, and a rule decides then."""
    wrong = {"notes": text, "search": [text]}
    model = scripted([PLAN, wrong, wrong, GIVEN_UP])
    reader = graph_reader(world, facts, model)
    answer = reader.invoke(QUESTION)
    assert (answer.outcome, answer.notebook) == ("not in the sources", ("Nothing about it.",))
    assert why in str(model.calls[2].messages[-1].text)


@settings(max_examples=times(25, 1_000))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 30))
def test_whatever_a_model_says_a_reading_keeps_its_rules(world, facts, seed, steps):
    """No node is read that is not there, none twice, the budget holds, and every citation was read."""
    model = ScriptedChatModel(script=Erratic(seed))
    reader = graph_reader(world, facts, model, budget=Budget(steps=steps))
    try:
        answer = reader.invoke(QUESTION)
    except AgentError:  # the answer was malformed twice, or once at the end of the budget
        assert model.calls[-1].tool_names == ("CitedAnswer",)
        return
    named = {link.tag for fact in facts.scan() for link in get_links(fact)}
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


@pytest.mark.parametrize("question", ["", " \n", "\ud800"], ids=["empty", "blank", "surrogate"])
def test_a_question_that_cannot_be_searched_for_is_refused_before_the_model_is_called(world, facts, question):
    model = scripted([PLAN])
    reader = graph_reader(world, facts, model)
    with pytest.raises(EmbeddingError, match=r"blank|Unicode"):
        reader.invoke(question)
    assert not model.calls


@pytest.mark.parametrize("question", [{"question": QUESTION}, 5, [QUESTION], b"Where?"], ids=repr)
def test_a_question_must_be_a_string(world, facts, question):
    reader = graph_reader(world, facts, scripted([]))
    with pytest.raises(AgentError, match="a string, not"):
        reader.invoke(question)


def test_key_elements_of_the_first_facts_of_a_long_passage_are_offered(world, facts, monkeypatch):
    def offered() -> str:
        model = scripted([PLAN, decide("rouen"), GIVEN_UP])
        reader = graph_reader(world, facts, model)
        reader.invoke("Where is a cathedral?")
        return str(model.calls[-1].messages[1].text).partition("Key elements")[2]

    monkeypatch.setattr(passages.lookups, "find_likely_facts", _find_nothing)
    assert "seine" in offered()
    monkeypatch.setattr(passages, "FACTS_OF_PASSAGE", 0)
    assert "seine" not in offered()


def _find_nothing(*_: object) -> Any:
    yield from ()
    return FoundFacts(facts=(), elements=())


def test_a_reader_refuses_what_it_cannot_read_with(world, facts):
    model = ScriptedChatModel(script=[])
    with LinkStore(DeterministicFakeEmbedding(size=8)) as other:
        with pytest.raises(EmbeddingError, match="use the same for both"):
            graph_reader(world, other, model)
        with pytest.raises(ArgumentError, match="model"):
            graph_reader(world, facts, object())  # type: ignore[arg-type]


def test_a_model_without_structured_output_is_asked_for_json_in_words(world, facts):
    """Also in a block of code; and what it says instead is corrected once."""
    read = '```json\n{"read": ["P1"]}\n```'
    answers = ['{"search": ["Joan"]}', read, "She was born in Domrémy.", '{"finished": true}']
    model = FakeListChatModel(responses=answers)
    reader = graph_reader(world, facts, model)
    answer = reader.invoke(QUESTION)

    assert (answer.plan, len(answer.read), answer.outcome) == (("Joan",), 1, "not in the sources")
    assert (answer.steps, answer.malformed) == (4, 1)
    assert answer.output_tokens > 0


def test_a_model_may_be_named(monkeypatch):
    named = scripted([PLAN, BORN])
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda name, **_: {"made:up": named}[name])

    with LinkStore() as store:
        reader = graph_reader(store, None, "made:up")
        assert reader.invoke(QUESTION).outcome == "not in the sources"
        with pytest.raises(ExtractionError, match="the chat model 'no:such' cannot be used"):
            graph_reader(store, None, "no:such")

    assert len(named.calls) == 1


def test_an_empty_store_does_not_answer_and_costs_one_call():
    model = scripted([PLAN])
    with LinkStore() as store:
        answer = graph_reader(store, None, model).invoke(QUESTION)
    assert (answer.outcome, answer.steps) == ("not in the sources", 1)


def test_a_statement_that_repeats_the_question_or_invents_a_number_is_none(world, facts):
    def echo(text: str) -> CitedAnswer:
        return CitedAnswer(statements=[CitedStatement(text=text, passages=["P1"])], answered=True)

    model = scripted([echo(QUESTION), echo("Joan of Arc was born in 1999.")])
    reader = graph_reader(world, facts, model, first=5)
    answer = reader.invoke(QUESTION)
    assert (answer.outcome, answer.statements, answer.refused) == (
        "not in the sources",
        (),
        {"statements": 1},
    )
    assert "repeats the question" in str(model.calls[1].messages[-1].text)


@pytest.mark.parametrize(
    ("said", "outcome", "stopped"),
    [
        (CitedAnswer(search=["Joan"]), "not in the sources", "steps"),
        (
            CitedAnswer(statements=[CitedStatement(text="Joan was.", passages=["P1"])], answered=True),
            "answered",
            "",
        ),
    ],
    ids=["not answered", "answered"],
)
def test_a_budget_of_one_call_leaves_it_at_the_first(world, said, outcome, stopped):
    model = scripted([said])
    answer = graph_reader(world, None, model, first=5, budget=Budget(steps=1)).invoke(QUESTION)
    assert (answer.outcome, answer.stopped, answer.steps) == (outcome, stopped, 1)


def test_a_reader_takes_no_other_options(world):
    with pytest.raises(AgentError, match="not stream_mode"):
        graph_reader(world, None, scripted([])).invoke(QUESTION, stream_mode="values")


def test_the_state_of_a_reading_can_be_kept_as_json(world, facts):
    *_, answer = graph_reader(world, facts, scripted([PLAN, decide("joan"), BORN])).stream(QUESTION)
    assert json.loads(json.dumps(answer.reading)) == answer.reading
