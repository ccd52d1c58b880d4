"""How much of what answers a question GraphReader comes to read, led by an oracle; and what it costs.

Run: ``python benchmarks/reader.py --data DIR`` for the sets of the retrieval benchmark, or with ``--corpus
X.jsonl --questions Y.jsonl`` for one set in the form of ``linkstore eval``; ``--json`` prints JSON.

The oracle knows the gold documents, and always picks the best of what it is shown: gold, else key elements
that facts of gold documents name, else the first. So it measures what the reader shows, and no model. The
facts are those of the rules in ``_rule_facts.py``. Compared with the first documents of a search by PageRank,
of which as many are counted as the reader has read.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import add_output, record
from _retrieval_sets import ROW_SETS
from _rule_facts import RuleExtractor
from langchain_core.messages import BaseMessage

from linkstore import LinkStore, get_links
from linkstore.agents import Budget, ScriptedChatModel, fact_store, graph_reader, index_facts
from linkstore.agents.facts import CHUNK_KEY, KEY_ELEMENT
from linkstore.embeddings import get_embedding
from linkstore.errors import EvaluationError
from linkstore.evaluate import GoldQuestion, read_corpus, read_questions, with_links
from linkstore.evaluate.running import find_gold_units

CUTS = (5, 10, 20)
SETS = ("hotpotqa_train", "musique_train", "ottqa_links")
LINE = re.compile(r"^- \[(.+?)\] ", re.MULTILINE)
ELEMENT = re.compile(r"^- (?!\[)(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one corpus.

    Args:
        reader: Share of gold documents among the first documents read.
        pagerank: The same of a search.
        calls: Calls of the model for a question.
        seconds: For a question, by the oracle.
        embedding: Seconds of the processor to embed the corpus.
        indexing: Seconds of the processor to index its facts.
    """

    reader: Mapping[int, float]
    pagerank: Mapping[int, float]
    calls: float
    seconds: float
    embedding: float
    indexing: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        shares = {"reader": self.reader, "pagerank": self.pagerank}
        gold = {name: {str(cut): share for cut, share in by.items()} for name, by in shares.items()}
        costs = {"calls": self.calls, "seconds": self.seconds}
        return {"gold_read": gold, **costs, "embedding": self.embedding, "indexing": self.indexing}


class Oracle:
    """Answers a reader's questions as a model would that knows what to look for.

    Args:
        gold: Ids of the documents that answer the question.
        naming: Key elements that facts of each of them name.
    """

    def __init__(self, gold: frozenset[str], naming: Mapping[str, frozenset[str]]) -> None:
        self._gold, self._naming = gold, naming
        self.read: list[str] = []

    def __call__(self, messages: Sequence[BaseMessage]) -> dict[str, Any]:
        task, shown = str(messages[0].text), str(messages[-1].text)
        if "First make a plan" in task:
            return {"plan": ""}
        if "Score those" in task:
            best = [
                name for name in ELEMENT.findall(shown.partition("Key elements:")[2]) if self._leads(name)
            ]
            return {"elements": [{"key_element": name, "score": 90} for name in best]}
        if "Read a passage" in task:
            return self._after(shown)
        if "Answer the question" in task:
            return {"in_sources": False}
        return self._chosen(task, shown)

    @property
    def _wanted(self) -> frozenset[str]:
        return self._gold.difference(self.read)

    def _leads(self, name: str) -> bool:
        return any(name in self._naming.get(id, ()) for id in self._wanted)

    def _after(self, shown: str) -> dict[str, Any]:
        self.read.append(re.findall(r"^Passage:\n\[(.+?)\] ", shown, re.MULTILINE)[-1])
        if not self._wanted or len(self.read) >= max(CUTS):
            return {"action": "termination"}
        return {"action": "read_neighbors" if shown.endswith("Queue: empty") else "search_more"}

    def _chosen(self, task: str, shown: str) -> dict[str, Any]:
        ids = list(dict.fromkeys(LINE.findall(shown)))
        gold = [id for id in ids if id in self._wanted]
        if gold:
            return {"action": "read_chunk", "chunk_ids": gold}
        if "Read facts" in task:
            return {"action": "stop_and_read_neighbor"}
        if "Choose where" in task:
            names = shown.partition("Key elements:")[2].partition("Linked passages:")[0]
            best = next((name for name in ELEMENT.findall(names) if self._leads(name)), None)
            if best is not None:
                return {"action": "read_neighbor_node", "key_element": best}
            return {"action": "termination"}
        return {"action": "read_chunk", "chunk_ids": ids[:1]}


def measured(store: LinkStore, questions: Sequence[GoldQuestion], *, plain: bool) -> Measured:
    """Read each question with an oracle, and search it."""
    embedding, indexing = costs_of_indexing(store, plain=plain)
    naming = {} if plain else elements_of_chunks(store)
    reader: dict[int, list[float]] = {cut: [] for cut in CUTS}
    pagerank: dict[int, list[float]] = {cut: [] for cut in CUTS}
    calls, began = [], time.perf_counter()
    for question in questions:
        gold = frozenset(question.gold)
        oracle = Oracle(gold, naming)
        with graph_reader(store, ScriptedChatModel(script=oracle), budget=Budget(steps=200)) as reading:
            answer = reading.invoke(question.question)
        calls.append(answer.steps)
        found = [hit.document.id for hit in store.search(question.question, k=max(CUTS))]
        for cut in CUTS:
            reader[cut].append(len(gold.intersection(answer.read[:cut])) / len(gold))
            pagerank[cut].append(len(gold.intersection(found[:cut])) / len(gold))
    return Measured(
        reader={cut: statistics.fmean(by) for cut, by in reader.items()},
        pagerank={cut: statistics.fmean(by) for cut, by in pagerank.items()},
        calls=statistics.fmean(calls),
        seconds=(time.perf_counter() - began) / len(questions),
        embedding=embedding,
        indexing=indexing,
    )


def costs_of_indexing(store: LinkStore, *, plain: bool) -> tuple[float, float]:
    """Seconds of the processor to embed the documents once more, and to index their facts; 0 if not done."""
    texts = [document.page_content for document in store.scan()]
    store.embeddings.embed_documents(texts[:8])  # a model is loaded once
    began = time.process_time()
    store.embeddings.embed_documents(texts)
    embedded = time.process_time()
    if not plain:
        index_facts(store, RuleExtractor())
    return embedded - began, 0.0 if plain else time.process_time() - embedded


def elements_of_chunks(store: LinkStore) -> dict[str, frozenset[str]]:
    """The key elements that the facts of each chunk name."""
    found: dict[str, set[str]] = {}
    with fact_store(store) as facts:
        for fact in facts.scan():
            if CHUNK_KEY in fact.metadata:
                named = (link.tag for link in get_links(fact) if link.kind == KEY_ELEMENT)
                found.setdefault(fact.metadata[CHUNK_KEY], set()).update(named)
    return {id: frozenset(names) for id, names in found.items()}


def corpora(arguments: argparse.Namespace) -> Iterator[tuple[str, LinkStore, list[GoldQuestion]]]:
    """Name, store and questions of each set to measure."""
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
                yield name, store, asked


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
    add_output(parser)
    arguments = parser.parse_args()
    if (arguments.corpus is None) != (arguments.questions is None) or not (
        arguments.corpus or arguments.data
    ):
        parser.error("give --data, or --corpus and --questions")
    try:
        found = {
            name: measured(store, questions, plain=arguments.plain)
            for name, store, questions in corpora(arguments)
        }
    except (EvaluationError, OSError) as error:
        parser.error(str(error))
    how = f"{arguments.embedding}, without facts" if arguments.plain else arguments.embedding
    record(arguments.record, {f"{name}, {how}": one.to_dict() for name, one in found.items()})
    if arguments.json:
        rows = {name: one.to_dict() for name, one in found.items()}
        json.dump(next(iter(rows.values())) if arguments.corpus else rows, sys.stdout)
        sys.stdout.write("\n")
        return
    print(
        "| set | "
        + " | ".join(f"reader {cut} | PageRank {cut}" for cut in CUTS)
        + " | calls | embedding s | indexing s |"
    )
    print("|---" * (2 * len(CUTS) + 4) + "|")
    for name, one in found.items():
        cells = (f"{100 * by[cut]:.1f}" for cut in CUTS for by in (one.reader, one.pagerank))
        print(
            f"| {name} | {' | '.join(cells)} | {one.calls:.1f} | {one.embedding:.2f} | {one.indexing:.2f} |"
        )


if __name__ == "__main__":
    main()
