"""How much of what answers a question GraphReader reads, and what it costs; and the answers of a real model.

Run: ``python benchmarks/reader.py --data DIR`` for the sets of the retrieval benchmark, or with ``--corpus
X.jsonl --questions Y.jsonl`` for one set in the form of ``linkstore eval``; ``--json`` prints JSON.

Without ``--model`` the reader is led by an oracle, which knows the gold documents and chooses them whenever
it is shown one; or, with ``--noise 0.2``, by a model that chooses by overlap of words, and one time in five
at random. Compared with the first documents of a search by PageRank, of which as many are counted as the
reader has read. The facts are those of the rules in ``_rule_facts.py``.

With ``--model openai:gpt-4.1-mini``, ``--model ollama:…`` or any other that LangChain knows, reader and plain
retrieval (the first five hits in one prompt) answer the questions: exact match, F1, tokens and cost. Rows of
questions have their answers as ``answers`` then.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _reader_models import Oracle, StandIn, WordOverlap
from _report import add_output, record
from _retrieval_sets import ROW_SETS
from _rule_facts import RuleExtractor
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from linkstore import LinkStore, get_links
from linkstore.agents import Answer, Budget, GraphReader, fact_store, graph_reader, index_facts
from linkstore.agents.facts import CHUNK_KEY, KEY_ELEMENT
from linkstore.agents.model_calls import OutputModel
from linkstore.agents.reader import chat_model, compile_graph
from linkstore.agents.steps import ReadingSources, ReadingStep
from linkstore.context import counter_of
from linkstore.embeddings import get_embedding
from linkstore.errors import AgentError, EvaluationError, LinkStoreError
from linkstore.evaluate import GoldQuestion, read_corpus, read_questions
from linkstore.evaluate.profiling import with_links
from linkstore.evaluate.running import find_gold_units

sys.path.insert(1, str(Path(__file__).parents[1] / "tests" / "support"))

from scripted_model import ScriptedChatModel

CUTS = (5, 10, 20)
SETS = ("hotpotqa_train", "musique_train", "ottqa_links")
SHORT = " Answer in as few words as possible."
CONTEXT = 128_000
"""Tokens of the context of a stand-in."""
HITS = 5
"""Passages in the prompt of plain retrieval."""
PLAIN = "Answer the question from the passages only. If they do not have the answer, say: not in the sources."
ARTICLES = {"a", "an", "the"}
Lead = Callable[[GoldQuestion, int, list[str]], StandIn]
"""Makes what leads a reading: of a question, its number, and the ids that the reader numbers."""


@dataclass(slots=True)
class Measured:
    """What was read, by the reader and by a search, over all questions so far."""

    reader: dict[int, list[float]] = field(default_factory=lambda: {cut: [] for cut in CUTS})
    pagerank: dict[int, list[float]] = field(default_factory=lambda: {cut: [] for cut in CUTS})
    calls: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, gold: frozenset[str], answer: Answer, found: Sequence[str]) -> None:
        """Add a question."""
        for cut in CUTS:
            self.reader[cut].append(len(gold.intersection(answer.read[:cut])) / len(gold))
            self.pagerank[cut].append(len(gold.intersection(found[:cut])) / len(gold))
        self.calls.append(answer.steps)
        self.tokens.append(answer.tokens)
        self.seconds.append(answer.seconds)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        shares = {"reader": self.reader, "pagerank": self.pagerank}
        gold = {
            name: {str(cut): statistics.fmean(of) for cut, of in by.items()} for name, by in shares.items()
        }
        costs = {"calls": self.calls, "tokens": self.tokens, "seconds": self.seconds}
        return {"gold_read": gold, **{name: statistics.fmean(of) for name, of in costs.items()}}


@contextmanager
def noting_numbers(numbered: list[str]) -> Iterator[None]:
    """Tell which passages a reader has numbered, each time that its model is asked."""
    ask = ReadingStep.ask

    def noted(step: ReadingStep, *arguments: Any, **options: Any) -> Any:
        numbered[:] = step.state["shown"]
        return ask(step, *arguments, **options)

    with patch.object(ReadingStep, "ask", noted):
        yield


def measured(
    store: LinkStore, facts: LinkStore | None, questions: Sequence[GoldQuestion], lead: Lead
) -> Measured:
    """Read and search each question."""
    result = Measured()
    for number, question in enumerate(questions):
        numbered: list[str] = []
        budget = Budget(steps=200)
        model = ScriptedChatModel(script=lead(question, number, numbered))
        sources = ReadingSources(
            store=store,
            facts=facts,
            model=OutputModel(model),
            budget=budget,
            counter=counter_of(None),
            context=CONTEXT,
            first=0,
        )
        with noting_numbers(numbered):
            reader = GraphReader(sources, compile_graph(sources), owned=False)
            answer = reader.invoke(question.question)
        found = [hit.document.id or "" for hit in store.search(question.question, k=max(CUTS))]
        result.add(frozenset(question.gold), answer, found)
    return result


def costs_of_indexing(store: LinkStore) -> dict[str, float]:
    """Seconds of the processor to embed the documents once more, and to index their facts."""
    texts = [document.page_content for document in store.scan()]
    store.embeddings.embed_documents(texts[:8])  # a model is loaded once
    began = time.process_time()
    store.embeddings.embed_documents(texts)
    embedded = time.process_time()
    index_facts(store, RuleExtractor())
    return {"embedding": embedded - began, "indexing": time.process_time() - embedded}


def elements_of_chunks(facts: LinkStore) -> dict[str, frozenset[str]]:
    """The key elements that the facts of each chunk name."""
    found: dict[str, set[str]] = {}
    for fact in facts.scan():
        if CHUNK_KEY in fact.metadata:
            named = (link.tag for link in get_links(fact) if link.kind == KEY_ELEMENT)
            found.setdefault(fact.metadata[CHUNK_KEY], set()).update(named)
    return {id: frozenset(names) for id, names in found.items()}


@dataclass(slots=True)
class Answered:
    """Answers of a model, and what they cost, over all questions so far."""

    price: tuple[float, float] | None
    exact: list[float] = field(default_factory=list)
    overlap: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    got: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, said: str, wanted: Sequence[str], calls: int, sent: int, got: int) -> None:
        """Add an answer."""
        self.exact.append(float(any(words(said) == words(one) for one in wanted)))
        self.overlap.append(max((f1(said, one) for one in wanted), default=0.0))
        self.calls.append(calls)
        self.sent.append(sent)
        self.got.append(got)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; ``cost`` is in the currency of the price, for a question."""
        sent, got = statistics.fmean(self.sent), statistics.fmean(self.got)
        cost = None if self.price is None else (sent * self.price[0] + got * self.price[1]) / 1e6
        return {
            "exact": statistics.fmean(self.exact),
            "f1": statistics.fmean(self.overlap),
            "calls": statistics.fmean(self.calls),
            "prompt_tokens": sent,
            "output_tokens": got,
            "cost": cost,
            "failed": len(self.failed),
        }


def words(text: str) -> list[str]:
    """The words that exact match and F1 compare, as in SQuAD: without case, punctuation and articles."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in ARTICLES]


def f1(said: str, wanted: str) -> float:
    """Of the words of an answer."""
    one, other = Counter(words(said)), Counter(words(wanted))
    common = sum((one & other).values())
    return 2 * common / (one.total() + other.total()) if common else 0.0


def answered(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    answers: Mapping[str, Sequence[str]],
    model: BaseChatModel,
    budget: Budget,
    price: tuple[float, float] | None,
) -> dict[str, Answered]:
    """Answer each question by the reader and by plain retrieval. A call that fails counts as no answer."""
    results = {"reader": Answered(price), "plain": Answered(price)}
    with graph_reader(store, model, budget=budget) as reader:
        for question in questions:
            wanted = answers[question.question]
            try:
                answer = reader.invoke(question.question + SHORT)
            except AgentError as error:
                _note_failure(results["reader"], error)
            else:
                costs = (answer.steps, answer.prompt_tokens, answer.output_tokens)
                results["reader"].add(answer.text, wanted, *costs)
            try:
                reply = answer_plainly(store, question.question, model)
            except Exception as error:  # noqa: BLE001 - of any provider
                _note_failure(results["plain"], error)
            else:
                usage: Any = reply.usage_metadata or {}
                costs = (1, usage.get("input_tokens", 0), usage.get("output_tokens", 0))
                results["plain"].add(str(reply.text), wanted, *costs)
    return results


def _note_failure(result: Answered, error: Exception) -> None:
    result.failed.append(str(error))
    result.add("", (), 0, 0, 0)
    print(f"failed: {error}", file=sys.stderr)


def answer_plainly(store: LinkStore, question: str, model: BaseChatModel) -> Any:
    """Ask a model with the first hits of the default search."""
    hits = store.search(question, k=HITS)
    shown = "\n\n".join(hit.document.page_content for hit in hits)
    return model.invoke(
        [SystemMessage(PLAIN), HumanMessage(f"Passages:\n{shown}\n\nQuestion: {question}{SHORT}")]
    )


def corpora(arguments: argparse.Namespace) -> Iterator[tuple[str, LinkStore, list[GoldQuestion], Path]]:
    """Name, store, questions and their file, of each set to measure."""
    with tempfile.TemporaryDirectory() as folder:
        if arguments.corpus:
            files = [(arguments.corpus.stem, arguments.corpus, arguments.questions, None)]
        else:
            sets = [ROW_SETS[name](arguments.data) for name in arguments.set or SETS]
            files = [(one.name, *one.write(Path(folder)), one.links[0]) for one in sets]
        for name, corpus, questions, kinds in files:
            documents = read_corpus(corpus)
            with LinkStore(get_embedding(arguments.embedding)) as store:
                store.add_documents(with_links(documents, kinds))
                asked = read_questions(questions)[: arguments.most]
                find_gold_units(store, asked, "id")  # refuses gold that no document has
                yield name, store, asked, questions


def read_answers(questions: Path) -> dict[str, list[str]]:
    """The answers of each question.

    Raises:
        EvaluationError: If a row has none.
    """
    found = {}
    for number, line in enumerate(filter(str.strip, questions.read_text().splitlines()), 1):
        row = json.loads(line)
        if not row.get("answers"):
            raise EvaluationError(f"{questions}, line {number}: with --model, a question needs 'answers'")
        found[row["question"]] = row["answers"]
    return found


def show(rows: Mapping[str, Mapping[str, Any]], *, with_model: bool) -> None:
    """Print a table."""
    if with_model:
        print("| set | EM | F1 | calls | tokens sent | tokens got | cost | failed |")
        print("|---" * 8 + "|")
        for name, one in rows.items():
            cost = "-" if one["cost"] is None else f"{one['cost']:.5f}"
            print(
                f"| {name} | {100 * one['exact']:.1f} | {100 * one['f1']:.1f} | {one['calls']:.1f} "
                f"| {one['prompt_tokens']:,.0f} | {one['output_tokens']:,.0f} | {cost} | {one['failed']} |"
            )
        return
    cuts = " | ".join(f"reader {cut} | PageRank {cut}" for cut in CUTS)
    print(f"| set | {cuts} | calls | tokens | embedding s | indexing s |")
    print("|---" * (2 * len(CUTS) + 5) + "|")
    for name, one in rows.items():
        shares = one["gold_read"]
        cells = [f"{100 * shares[by][str(cut)]:.1f}" for cut in CUTS for by in ("reader", "pagerank")]
        cells += [f"{one['calls']:.1f}", f"{one['tokens']:,.0f}"]
        cells += [f"{one.get(key, 0.0):.2f}" for key in ("embedding", "indexing")]
        print(f"| {name} | {' | '.join(cells)} |")


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure all sets; what was measured, by the name of its row."""
    how = f"{arguments.embedding}, without facts" if arguments.plain else arguments.embedding
    rows: dict[str, dict[str, Any]] = {}
    for name, store, questions, file in corpora(arguments):
        costs = {} if arguments.plain else costs_of_indexing(store)
        row = f"{name}, {how}"
        if arguments.model:
            model = chat_model(arguments.model, rate=arguments.rate)
            budget = Budget(steps=arguments.steps, seconds=arguments.seconds)
            answers = read_answers(file)
            found = answered(store, questions, answers, model, budget, arguments.price)
            rows |= {f"{row}, {arguments.model}, {by}": one.to_dict() for by, one in found.items()}
            continue
        facts = None if arguments.plain else fact_store(store)
        naming = {} if facts is None else elements_of_chunks(facts)

        def lead(question: GoldQuestion, number: int, numbered: list[str]) -> StandIn:
            if arguments.noise is None:
                return Oracle(frozenset(question.gold), naming, numbered, max(CUTS))  # noqa: B023
            seed = 1_000 * arguments.seed + number
            return WordOverlap(question.question, arguments.noise, seed, arguments.read)

        result = measured(store, facts, questions, lead).to_dict() | costs
        rows[row if arguments.noise is None else f"{row}, noise {arguments.noise:g}"] = result
        if facts is not None:
            facts.close()
    return rows


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--corpus", type=Path, help="documents, JSON Lines")
    parser.add_argument("--questions", type=Path, help="questions with gold, JSON Lines")
    parser.add_argument("--set", action="append", choices=SETS, help="one of the sets; default all")
    parser.add_argument("--most", type=int, help="so many questions of each set, the first ones")
    parser.add_argument("--embedding", default="wordllama", help="name of the embedding")
    parser.add_argument("--plain", action="store_true", help="without an index of facts")
    parser.add_argument("--noise", type=float, help="choose by overlap of words, and so often at random")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--read", type=int, default=10, help="passages that overlap of words reads")
    parser.add_argument("--model", help="a chat model, such as openai:gpt-4.1-mini or ollama:qwen3")
    parser.add_argument("--steps", type=int, default=20, help="calls of the model for a question, at most")
    parser.add_argument("--seconds", type=float, help="for a question, at most")
    parser.add_argument("--rate", type=float, help="calls of the model per second, at most")
    parser.add_argument(
        "--price", type=float, nargs=2, metavar=("IN", "OUT"), help="of a million tokens, sent and got"
    )
    add_output(parser)
    arguments = parser.parse_args()
    if (arguments.corpus is None) != (arguments.questions is None) or not (
        arguments.corpus or arguments.data
    ):
        parser.error("give --data, or --corpus and --questions")
    try:
        rows = measure(arguments)
    except (LinkStoreError, OSError) as error:
        parser.error(str(error))
    record(arguments.record, rows)
    if arguments.json:
        json.dump(rows, sys.stdout)
        sys.stdout.write("\n")
    else:
        show(rows, with_model=bool(arguments.model))


if __name__ == "__main__":
    main()
