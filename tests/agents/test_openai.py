"""GraphReader with a model of OpenAI: exact match and F1 on questions of two open sets.

Run with ``OPENAI_API_KEY`` and the folder of the sets in ``LINKSTORE_EVAL_DATA``:
``pytest -m openai tests/agents -s`` prints the figures.
"""

from __future__ import annotations

import json
import os
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from rule_facts import RuleExtractor

from linkstore import LinkStore
from linkstore.agents import Budget, chat_model, graph_reader, index_facts

MODEL = os.environ.get("LINKSTORE_OPENAI_MODEL", "gpt-4.1-mini")
DATA = os.environ.get("LINKSTORE_EVAL_DATA")
QUESTIONS = 50
SHORT = " Answer in as few words as possible."
ARTICLES = {"a", "an", "the"}

pytestmark = [
    pytest.mark.openai,
    pytest.mark.skipif("OPENAI_API_KEY" not in os.environ, reason="needs OPENAI_API_KEY"),
    pytest.mark.skipif(DATA is None, reason="needs LINKSTORE_EVAL_DATA, the folder of the sets"),
]


def words(text: str) -> list[str]:
    """The words that exact match and F1 compare, as in SQuAD: without case, punctuation and articles."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in ARTICLES]


def f1(said: str, wanted: str) -> float:
    """Of the words of an answer."""
    one, other = Counter(words(said)), Counter(words(wanted))
    common = sum((one & other).values())
    return 2 * common / (one.total() + other.total()) if common else 0.0


def corpus(name: str) -> list[Document]:
    """The passages of a set."""
    given: Any = json.loads((Path(DATA or "") / name / f"{name}_corpus.json").read_text())
    if isinstance(given, dict):
        given = [{"title": title, "text": " ".join(text)} for title, text in given.items()]
    return [
        Document(id=f"p{number}", page_content=one["text"], metadata={"title": one["title"]})
        for number, one in enumerate(given)
    ]


@pytest.mark.parametrize("name", ["hotpotqa_train", "musique_train"])
def test_a_model_answers_questions_of_several_steps(name):
    """More than a third of the words of the answers are right; the figures are printed."""
    from linkstore.ingest import link_corpus

    asked = json.loads((Path(DATA or "") / name / f"{name}.json").read_text())[:QUESTIONS]
    exact, overlap, tokens, calls = [], [], [], []
    with LinkStore() as store:
        store.add_documents(corpus(name))
        link_corpus(store)
        index_facts(store, RuleExtractor())
        with graph_reader(store, chat_model(f"openai:{MODEL}"), budget=Budget(steps=30)) as reader:
            for one in asked:
                answer = reader.invoke(one["question"] + SHORT)
                wanted = [one["answer"], *one.get("answer_aliases", ())]
                exact.append(any(words(answer.text) == words(each) for each in wanted))
                overlap.append(max(f1(answer.text, each) for each in wanted))
                tokens.append(answer.tokens)
                calls.append(answer.steps)
    print(
        f"{name} {MODEL}: EM {100 * statistics.fmean(exact):.1f}, F1 {100 * statistics.fmean(overlap):.1f},"
        f" {statistics.fmean(calls):.1f} calls and {statistics.fmean(tokens):,.0f} tokens a question"
    )
    assert statistics.fmean(overlap) > 1 / 3


def test_exact_match_and_f1_are_those_of_squad():
    assert words("The Meuse!") == words("meuse")
    assert f1("the river Meuse", "Meuse") == pytest.approx(2 / 3)
