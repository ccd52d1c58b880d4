"""What a real model makes of a store: without passages, with five in one prompt, by ``ask``, by the reader.

Questions of hotpotqa_train and musique_train. For every tenth question the passages that answer it are left
out of the store, so that it is right to refuse. Any model of LangChain will do, also a small local one::

    python benchmarks/real_model.py --data DIR --model openai:qwen --base-url http://127.0.0.1:8097/v1

Answers of ``ask`` are sentences, so rarely exact: ``has`` says whether one has the words of the gold answer.
What was asked before is read from ``--cache``, as long as neither the question nor the code of
``linkstore.agents`` has changed. Intervals are of 95 %, by resampling the questions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _report import add_output, record
from _retrieval_sets import ROW_SETS
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

import linkstore.agents
from linkstore import LinkStore
from linkstore.agents import Budget, chat_model, graph_reader, graph_tools
from linkstore.errors import LinkStoreError
from linkstore.evaluate import read_corpus
from linkstore.evaluate.profiling import with_links
from linkstore.strategies import Similarity

SETS = ("hotpotqa_train", "musique_train")
PLAIN = "Answer the question from the passages only. If they do not have the answer, say: not in the sources."
SHORT = " Answer in as few words as possible."
ARTICLES = {"a", "an", "the"}
UNANSWERABLE = 10
"""Every so many questions lose their passages."""
PASSAGES = 5
RESAMPLES = 2_000
REFUSAL = "not in the sources"
FIELDS = ("exact", "f1", "has", "refused_rightly", "refused_wrongly", "cited", "calls", "tokens", "seconds")
Row = dict[str, Any]
Way = Callable[[LinkStore, str, BaseChatModel, argparse.Namespace], Row]


def ask_plainly(model: BaseChatModel, question: str, passages: Sequence[str] | None) -> Row:
    """Ask in one prompt, with passages or without."""
    shown = "" if passages is None else "Passages:\n" + "\n\n".join(passages) + "\n\n"
    task = PLAIN if passages is not None else f"Answer the question. If you do not know it, say: {REFUSAL}."
    reply = model.invoke([SystemMessage(task), HumanMessage(f"{shown}Question: {question}{SHORT}")])
    usage: Any = reply.usage_metadata or {}
    text = str(reply.text)
    return {
        "text": text,
        "refused": REFUSAL in text.casefold(),
        "cited": [],
        "calls": 1,
        "tokens": usage.get("input_tokens", 0) + usage.get("output_tokens", 0),
    }


def without_passages(_: LinkStore, question: str, model: BaseChatModel, __: argparse.Namespace) -> Row:
    """By what the model knows."""
    return ask_plainly(model, question, None)


def by_similarity(store: LinkStore, question: str, model: BaseChatModel, _: argparse.Namespace) -> Row:
    """From the most similar passages."""
    hits = store.search(question, k=PASSAGES, strategy=Similarity())
    return ask_plainly(model, question, [hit.document.page_content for hit in hits])


def by_search(store: LinkStore, question: str, model: BaseChatModel, _: argparse.Namespace) -> Row:
    """From the first passages of the default search."""
    hits = store.search(question, k=PASSAGES)
    return ask_plainly(model, question, [hit.document.page_content for hit in hits])


def by_reading(first: int) -> Way:
    """Return the way of ``ask``, or of the reader alone, which plans first."""

    def read(store: LinkStore, question: str, model: BaseChatModel, options: argparse.Namespace) -> Row:
        budget = Budget(steps=options.steps)
        reader = graph_reader(store, model, first=first, budget=budget, instructions=SHORT.strip())
        answer = reader.invoke(question)
        return {
            "text": answer.text if answer.statements else "",
            "refused": not answer.statements,
            "cited": [citation.id for citation in answer.citations],
            "calls": answer.steps,
            "tokens": answer.tokens,
        }

    return read


def by_tools(store: LinkStore, question: str, model: BaseChatModel, options: argparse.Namespace) -> Row:
    """Through an agent with the tools of the store; the model must be able to call them."""
    from langchain.agents import create_agent

    agent = create_agent(model, graph_tools(store), system_prompt=PLAIN)
    state = agent.invoke(
        {"messages": [("user", question + SHORT)]}, {"recursion_limit": 2 * options.steps + 1}
    )
    replies = [message for message in state["messages"] if message.type == "ai"]
    usages = [message.usage_metadata or {} for message in replies]
    text = str(replies[-1].text)
    return {
        "text": text,
        "refused": REFUSAL in text.casefold(),
        "cited": [],
        "calls": len(replies),
        "tokens": sum(usage.get("total_tokens", 0) for usage in usages),
    }


WAYS: dict[str, Way] = {
    "no passages": without_passages,
    "similarity": by_similarity,
    "search": by_search,
    "ask": by_reading(PASSAGES),
    "reader": by_reading(0),
    "tools": by_tools,
}


class Cache:
    """Answers that were paid for, one a line of a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._known: dict[str, Row] = {row["key"]: row for row in map(json.loads, lines)}

    def get(self, key: str, make: Callable[[], Row]) -> Row:
        """Return what is known under a key, else make it and keep it."""
        if key not in self._known:
            self._known[key] = {**make(), "key": key}
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(self._known[key], ensure_ascii=False) + "\n")
        return self._known[key]


def hash_code() -> str:
    """Return a hash of the code that asks the model."""
    folder = Path(linkstore.agents.__file__).parent
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()


def read_sets(options: argparse.Namespace) -> Iterator[tuple[str, LinkStore, list[Row]]]:
    """Yield the name, the store and the questions of each set; ``gold`` is empty where it was left out."""
    for name in options.set or SETS:
        rows = ROW_SETS[name](options.data)
        questions = list(rows.questions)
        np.random.default_rng(options.seed).shuffle(questions)  # type: ignore[arg-type]
        questions = questions[: options.most]
        lost = {id for question in questions[UNANSWERABLE - 1 :: UNANSWERABLE] for id in question["gold"]}
        questions = [
            {**question, "gold": [] if lost.intersection(question["gold"]) else question["gold"]}
            for question in questions
        ]
        with tempfile.TemporaryDirectory() as folder:
            corpus = read_corpus(rows.write(Path(folder))[0])
        documents = [document for document in corpus if document.id not in lost]
        with LinkStore() as store:
            store.add_documents(with_links(documents, rows.links[0]))
            yield name, store, questions


def words(text: str) -> list[str]:
    """Return the words that exact match and F1 compare, as in SQuAD: no case, punctuation, articles."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in ARTICLES]


def f1(answer: str, gold: str) -> float:
    """Return the F1 of the words of an answer."""
    given, wanted = Counter(words(answer)), Counter(words(gold))
    return 2 * (given & wanted).total() / (given.total() + wanted.total()) if given & wanted else 0.0


def judge(row: Row, question: Row) -> Row:
    """Return the scores of an answer; None where a score does not apply."""
    answerable = bool(question["gold"])
    said = "" if row["refused"] else row["text"]
    wanted = question["answers"]
    found = any(not Counter(words(one)) - Counter(words(said)) for one in wanted)
    return {
        "exact": float(any(words(said) == words(one) for one in wanted)) if answerable else None,
        "f1": max(f1(said, one) for one in wanted) if answerable else None,
        "has": float(found) if answerable else None,
        "refused_rightly": None if answerable else float(row["refused"]),
        "refused_wrongly": float(row["refused"]) if answerable else None,
        "cited": np.mean([id in question["gold"] for id in row["cited"]]) if row["cited"] else None,
        **{name: row[name] for name in ("calls", "tokens", "seconds")},
    }


def summarise(judged: Sequence[Row], seed: int) -> Row:
    """Return the mean of each score in %, of calls, tokens and seconds as they are, with its interval."""
    random = np.random.default_rng(seed)
    summary: Row = {"questions": len(judged)}
    for name in FIELDS:
        scale = 1 if name in {"calls", "tokens", "seconds"} else 100
        values = scale * np.array([row[name] for row in judged if row[name] is not None], dtype=float)
        if not len(values):
            continue
        means = random.choice(values, (RESAMPLES, len(values))).mean(axis=1)
        summary[name] = float(values.mean())
        summary[f"{name}_interval"] = [float(bound) for bound in np.quantile(means, (0.025, 0.975))]
    return summary


def measure(options: argparse.Namespace) -> dict[str, Row]:
    """Measure all ways on all sets."""
    settings = {"base_url": options.base_url, "context": options.context, "method": options.method}
    settings |= {"temperature": options.temperature, "max_tokens": options.max_tokens}
    model = chat_model(options.model, **settings)
    cache, code = Cache(options.cache), hash_code()
    judged: dict[str, list[Row]] = {}
    for name, store, questions in read_sets(options):
        for question in questions:
            for way in options.way or ("no passages", "similarity", "search", "ask"):

                def make(way: str = way, store: LinkStore = store, question: Row = question) -> Row:
                    began = time.monotonic()
                    try:
                        row = WAYS[way](store, question["question"], model, options)
                    except LinkStoreError as error:
                        print(f"failed: {error}", file=sys.stderr)
                        row = {"text": "", "refused": False, "cited": [], "calls": 0, "tokens": 0}
                    return {**row, "seconds": time.monotonic() - began}

                version = code if way in {"ask", "reader", "tools"} else ""
                parts = [options.model, name, way, version, bool(question["gold"]), options.seed]
                row = cache.get(json.dumps([*parts, options.steps, question["question"]]), make)
                judged.setdefault(way, []).append(judge(row, question))
                print(f"{way}: {question['question'][:60]} -> {row['text'][:80]!r}", file=sys.stderr)
    return {f"{options.model}, {way}": summarise(rows, options.seed) for way, rows in judged.items()}


def show(rows: dict[str, Row]) -> None:
    """Print a table."""
    print(f"| way | questions | {' | '.join(FIELDS)} |")
    print("|---" * (len(FIELDS) + 2) + "|")
    for name, row in rows.items():
        cells = []
        for field in FIELDS:
            if field not in row:
                cells.append("-")
                continue
            low, high = row[f"{field}_interval"]
            cells.append(f"{row[field]:,.1f} ({low:,.0f} to {high:,.0f})")
        print(f"| {name} | {row['questions']} | {' | '.join(cells)} |")


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    data = os.environ.get("LINKSTORE_EVAL_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="folder of the sets")
    parser.add_argument(
        "--model", help="a chat model, such as openai:gpt-4.1-mini; without, nothing is asked"
    )
    parser.add_argument("--base-url", help="where the model's server listens")
    parser.add_argument("--temperature", type=float, help="of the output")
    parser.add_argument("--max-tokens", type=int, help="of an output")
    parser.add_argument("--context", type=int, help="tokens that the model takes")
    parser.add_argument("--method", help="how structured output is asked for")
    parser.add_argument("--set", action="append", choices=SETS, help="one of the sets; default all")
    parser.add_argument("--way", action="append", choices=WAYS, help="one of the ways; default the first 4")
    parser.add_argument("--most", type=int, default=30, help="so many questions of each set")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of questions and of the intervals")
    parser.add_argument("--steps", type=int, default=8, help="calls of the model for a question, at most")
    parser.add_argument("--cache", type=Path, help="file of answers; read and added to")
    add_output(parser)
    options = parser.parse_args()
    if options.model is None:
        print("nothing was measured: give --model", file=sys.stderr)
        return
    rows = measure(options)
    record(options.record, rows)
    if options.json:
        json.dump(rows, sys.stdout)
        sys.stdout.write("\n")
    else:
        show(rows)


if __name__ == "__main__":
    main()
