"""The index of facts, embedded and in memory."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fact_cases import FactCases, chunk, chunks, contents, fresh
from internals import MOST_ELEMENTS, ExtractedFact, ExtractedFacts, chat_model, find_missing_name, join_text
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages.tool import invalid_tool_call
from rule_facts import RuleExtractor
from scripted_model import ScriptedChatModel

from linkstore import LinkStore, get_links
from linkstore.agents import ModelExtractor, index_facts
from linkstore.context import counter_of
from linkstore.errors import (
    ArgumentError,
    DocumentError,
    EmbeddingError,
    ExtractionError,
    StrategyError,
)

SUPPORT = Path(__file__).parents[1] / "support"
MALFORMED = invalid_tool_call(name=None, args="{not json", id=None, error=None)


@pytest.mark.sample("test_a_chunk_that_is_gone_takes_its_facts_with_it")
class TestInAFolder(FactCases):
    @pytest.fixture
    def store(self, tmp_path):
        with LinkStore.open(tmp_path / "kb") as store:
            yield store

    @pytest.fixture
    def facts(self, tmp_path):
        with LinkStore.open(tmp_path / "facts") as facts:
            yield facts


class TestInMemory(FactCases):
    @pytest.fixture
    def store(self):
        with LinkStore() as store:
            yield store

    @pytest.fixture
    def facts(self):
        with LinkStore() as facts:
            yield facts


def test_a_process_that_is_killed_loses_no_more_than_it_was_reading(tmp_path):
    """The next run reads the other chunks only, and the index is that of one run."""
    many = [chunk(f"d{n:03}", f"Document {n} tells of Paris.", f"Title {n}") for n in range(600)]
    with LinkStore.open(tmp_path / "kb") as store:
        store.add_documents(many)
    script = f"""
import os, signal, sys
from linkstore import LinkStore
from linkstore.agents import index_facts

sys.path.insert(0, {str(SUPPORT)!r})
from rule_facts import RuleExtractor

class Killed(RuleExtractor):
    def extract(self, chunks):
        if chunks[0].id != "d000":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().extract(chunks)

with LinkStore.open({str(tmp_path / "kb")!r}) as store, LinkStore.open({str(tmp_path / "facts")!r}) as facts:
    index_facts(store, Killed(), facts=facts)
"""
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert killed.returncode == -signal.SIGKILL

    with LinkStore.open(tmp_path / "kb") as store, LinkStore.open(tmp_path / "facts") as facts:
        assert index_facts(store, RuleExtractor(), facts=facts).extracted == 600 - 32
        assert contents(facts) == fresh(many)


def test_facts_that_no_reader_could_use_are_not_extracted():
    """Before a model is paid: facts of another embedding, and facts among their chunks."""
    model = ScriptedChatModel(script=[])
    with LinkStore() as store, LinkStore(DeterministicFakeEmbedding(size=8)) as other:
        store.add_documents(chunks())
        with pytest.raises(EmbeddingError, match=r"wordllama-256.*DeterministicFakeEmbedding"):
            index_facts(store, ModelExtractor(model), facts=other)
        with pytest.raises(DocumentError, match="pass another store"):
            index_facts(store, ModelExtractor(model), facts=store)
        assert len(list(store.scan())) == 3
    assert model.calls == ()


def test_a_model_without_structured_output_is_asked_for_json_in_words():
    model = FakeListChatModel(responses=['{"facts": [{"fact": "Rouen has it.", "key_elements": ["Rouen"]}]}'])
    (facts,) = ModelExtractor(model).extract(chunks()[2:])
    assert [one.text for one in facts] == ["Rouen has it."]
    with pytest.raises(ArgumentError, match="model"):
        ModelExtractor(object())  # type: ignore[arg-type]


PASSAGE = "Joan of Arc (in French: Jeanne) was tried in 1,431 days; the Norman bishop came on 7 May."


@pytest.mark.parametrize(
    ("fact", "doubt"),
    [
        ("Jeanne was tried in 1431 days.", ""),
        ("The trial of Joan of Arc took 1,431 days.", ""),
        ("The bishop of Normandy came on 07 May.", ""),
        ("In Rouen, a bishop came.", "Rouen"),
        ("The trial took 1,432 days.", "1432"),
        ("Charlie Chaplin was there.", "Chaplin"),
        ("the film (1928) shows the trial of Carl Dreyer", "Carl"),
    ],
)
def test_a_fact_with_a_name_or_number_that_its_chunk_lacks_is_left_out(fact, doubt):
    document = chunk("it", PASSAGE, "Joan of Arc (1928 film)")
    model = ScriptedChatModel(script=[{"facts": [{"fact": fact, "key_elements": []}]}])
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents([document])
        summary = index_facts(store, ModelExtractor(model), facts=facts)
        stored = [one.page_content for one in facts.scan()]

    assert find_missing_name(fact, join_text(document)) == doubt
    assert (summary.facts, summary.doubtful, len(stored)) == ((0, 1, 0) if doubt else (1, 0, 1))


def test_a_fact_keeps_the_title_that_says_what_it_is_about():
    fact = {
        "fact": "Joan of Arc is widely regarded as a landmark of cinema.",
        "key_elements": ["Joan of Arc"],
    }
    model = ScriptedChatModel(script=[{"facts": [fact, fact]}])
    text = "Joan of Arc is widely regarded as a landmark of cinema."
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents([chunk("film", text, "The Passion of Joan of Arc (film)")])
        index_facts(store, ModelExtractor(model), facts=facts)
        stored = [one.page_content for one in facts.scan()]

    assert stored == [f"The Passion of Joan of Arc (film): {text}"]
    assert str(model.calls[0].messages[1].text).startswith("Title: The Passion of Joan of Arc (film)\n\n")


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_at_which_no_call_is_made_is_refused(rate):
    with pytest.raises(StrategyError, match="above 0"):
        chat_model("openai:gpt-4.1-mini", rate=rate)


def test_facts_of_a_model_cost_one_call_for_each_new_chunk():
    model = ScriptedChatModel(script=lambda messages: said(str(messages[-1].text)))
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents(chunks())
        counted = index_facts(store, ModelExtractor(model), facts=facts, dry_run=True)
        calls_before = len(model.calls)
        index_facts(store, ModelExtractor(model), facts=facts)
        first = len(model.calls)
        index_facts(store, ModelExtractor(model), facts=facts)
        texts = {one.page_content for one in facts.get_by_ids(["fact:rouen:1"])}
    prompts = [str(message.text) for call in model.calls for message in call.messages]
    assert (calls_before, counted.extracted, first, len(model.calls)) == (0, 3, 3, 3)
    assert counted.prompt_tokens == sum(counter_of(None).count(prompts))
    assert texts == {"Rouen: All of it."}


def said(prompt: str) -> ExtractedFacts:
    return ExtractedFacts(facts=[ExtractedFact(fact="All of it.", key_elements=[prompt.split()[-1]])])


def test_malformed_output_is_asked_for_once_more_and_then_reported():
    """One chunk at a time, so that the order of calls is known."""
    model = ScriptedChatModel(script=[MALFORMED, said("x"), MALFORMED, MALFORMED])
    with LinkStore() as store:
        store.add_documents(chunks()[:2])

        first = ModelExtractor(model, max_concurrency=1).extract(chunks()[:1])
        second = ModelExtractor(model, max_concurrency=1).extract(chunks()[1:2])

    assert [fact.text for fact in first[0]] == ["All of it."]
    assert "malformed twice" in second[0].reason


@pytest.mark.parametrize(
    ("text", "why"),
    [("Paris is " * 300, "at most 600 characters"), ("Paris\ud800", "unicode string"), ("Paris\0", "NUL")],
    ids=["long", "surrogate", "NUL"],
)
def test_a_fact_that_is_no_sentence_is_malformed_and_the_others_are_written(text, why):
    wrong = {"facts": [{"fact": text, "key_elements": ["Paris"]}]}
    model = ScriptedChatModel(script=[said("Rouen"), wrong, wrong])
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents(chunks()[:2])
        summary = index_facts(store, ModelExtractor(model, max_concurrency=1), facts=facts)
    assert (summary.facts, len(summary.failed), len(model.calls)) == (1, 1, 3)
    assert why in summary.failed[0].reason


def test_a_model_that_cannot_be_reached_ends_the_run_with_its_error():
    model = ScriptedChatModel(script=lambda messages: ConnectionError("no route to the model"))
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents(chunks())
        with pytest.raises(ExtractionError, match="no route to the model"):
            index_facts(store, ModelExtractor(model), facts=facts)


@pytest.mark.parametrize(
    "text",
    [
        "Word " * 100_000,
        "Anna and " * 30_000,
        "x" * 200_000,
        "1962 + 3.5 % … !!! ??? § 7",
        "😀 😀😀 says hello 👩‍👩‍👧‍👦 to 🇫🇷.",
        "שלום עולם. זה משפט בעברית! إنه نص عربي.",
        "\u202eevil text of the right to left\u202c. A\u200bB\u00adC is hidden.",
        "a\u0301\u0301\u0301 " * 5_000,
        "'\u2019-" * 10_000 + " Rhine's",
    ],
    ids=["capitals", "names", "no end", "no letters", "emoji", "other scripts", "hidden", "marks", "quotes"],
)
def test_hostile_texts_give_facts_of_bounded_size(text):
    with LinkStore() as store, LinkStore() as facts:
        store.add_documents([chunk("it", text, text[:5_000], text[:5_000]), *chunks()])
        summary = index_facts(store, RuleExtractor(), facts=facts)
        made = [one for one in facts.scan() if one.metadata.get("chunk") == "it"]

        assert summary.extracted == 4
        assert all(len(get_links(one)) <= MOST_ELEMENTS for one in made)
        assert facts.verify().sound
