"""Gold documents in contexts that fit a budget of tokens: the compiler, filling by rank, and others.

Run: ``python benchmarks/context.py --data DIR``, where DIR (or LINKSTORE_EVAL_DATA) holds the folders
``hotpotqa_train``, ``musique_train``, ``ottqa_links``, ``pep_questions`` with ``docs_site``, and
``locomo_open``, as their SOURCE.txt describes. Recall is the share of a question's gold documents that are in
the context, averaged over questions, in percent. Every context counts tokens and separators in the same way:

- ``compiled``: :class:`linkstore.context.ContextCompiler` with its defaults, documents that are there whole;
- ``excerpts``: the same, with those of which only the best sentences are there;
- ``rank``: the hits of the default search by rank, skipping what does not fit;
- ``topk``: the most similar documents, until one does not fit;
- ``published``: 50 · similarity + 10 · PageRank, those of most value for their length first (ContextOS);
- ``redundancy``: LangChain's EmbeddingsRedundantFilter over the most similar documents, until one does not
  fit. (Its EmbeddingsFilter and LongContextReorder take the documents that ``topk`` takes.)

``--corpus X.jsonl --questions Y.jsonl`` measures any other set in the formats of ``linkstore eval``;
``--links`` chooses its links as there. With ``--json`` it prints
``{"recall": {"compiled": {"400": …}, "rank": {…}, "topk": {…}}}``. ``--parts`` names what else to measure:
``needle``, ``ablation``,
``decay``, ``time``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from _context_parts import PARTS
from _context_sets import SETS, ContextSet, file_set
from _report import add_output, listed, record
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.context import Compiled, ContextCompiler, counter_of
from linkstore.context.candidates import DEFAULT_CANDIDATES
from linkstore.embeddings import get_embedding
from linkstore.evaluate.running import find_gold_units
from linkstore.strategies import PageRank, Similarity

BUDGETS: Final = "200,400,800,1600"
METHODS: Final = ("compiled", "excerpts", "rank", "topk", "published", "redundancy")
OF_CORPUS: Final = ("compiled", "rank", "topk")
"""What is measured of a corpus by default."""
SEPARATOR: Final = "\n\n"
Recalls = dict[str, dict[str, float]]


def main() -> None:
    """Measure the sets; print a table, or JSON."""
    options = _options()
    embedding = get_embedding(options.embedding)
    if options.corpus:
        found = measured(file_set(options), embedding, options.budgets, options)
        _print(options, [{"recall": found["recall"]} if options.json else found])
    else:
        sets = []
        for name in filter(None, options.sets.split(",")):
            made = SETS[name](Path(options.data))
            sets.append(measured(made, embedding, made.budgets or options.budgets, options))
            _print(options, sets[-1:])
            record(options.record, _by_set(sets[-1:]))
        record(options.record, _beyond_ranks(sets))
    for part in filter(None, options.parts.split(",")):
        name = options.record and f"{options.record}-{part}"
        rows = PARTS[part](embedding, options.graph_seed) if part == "ablation" else PARTS[part](embedding)
        listed(part, rows, as_json=options.json, record_as=name)


def _by_set(sets: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Recall by set, in the order of the budgets."""
    return {
        f"{one['set']}, {one['embedding']}": {
            "questions": one["questions"],
            **{method: [*shares.values()] for method, shares in one["recall"].items()},
        }
        for one in sets
    }


def _beyond_ranks(sets: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """How much more the compiler finds than ranks do, over several sets and all budgets."""
    both = [row for row in _by_set(sets).values() if {"compiled", "rank"} <= set(row)]
    if len(both) < 2:
        return {}
    more = [a - b for row in both for a, b in zip(row["compiled"], row["rank"], strict=True)]
    return {"+".join(one["set"] for one in sets): {"mean": float(np.mean(more)), "worst": min(more)}}


def measured(
    one: ContextSet, embedding: Embeddings, budgets: Sequence[int], options: argparse.Namespace
) -> dict[str, Any]:
    """Recall of every method at every budget."""
    methods = options.methods.split(",")
    shares: dict[str, dict[int, list[float]]] = {name: {b: [] for b in budgets} for name in methods}
    for store, questions in one.stores(embedding, options.every):
        units = find_gold_units(store, questions, None).documents
        compilers = {budget: ContextCompiler(store, budget=budget) for budget in budgets}
        filling = _Filling(store, methods)
        for question in questions:
            gold = [units[name] for name in question.gold]
            others = filling.contexts(question.question, budgets)
            for budget, compiler in compilers.items():
                compiled = compiler.compile(question.question)
                contexts = {
                    **others[budget],
                    "compiled": _taken(compiled, excerpts=False),
                    "excerpts": _taken(compiled, excerpts=True),
                }
                for name in methods:
                    found = sum(not contexts[name].isdisjoint(unit) for unit in gold)
                    shares[name][budget].append(found / len(gold))
    recall = {
        name: {str(budget): round(100 * float(np.mean(values)), 2) for budget, values in by_budget.items()}
        for name, by_budget in shares.items()
    }
    questions = len(next(iter(shares[methods[0]].values())))
    return {"set": one.name, "embedding": options.embedding, "questions": questions, "recall": recall}


def _taken(compiled: Compiled, *, excerpts: bool) -> frozenset[str]:
    """The documents in a context; one is in it also by the document that says the same."""
    items = (item for item in compiled.items if excerpts or not item.is_excerpt)
    return frozenset(name for item in items for name in (item.id, *item.repeats))


class _Filling:
    """Contexts without a compiler, from one search of each kind."""

    def __init__(self, store: LinkStore, methods: Sequence[str]) -> None:
        self._store = store
        self._methods = methods
        self._counter = counter_of(None)

    def contexts(self, question: str, budgets: Sequence[int]) -> dict[int, dict[str, frozenset[str]]]:
        """By budget, then method, the ids taken."""
        hits = self._store.search(question, strategy=PageRank(k=DEFAULT_CANDIDATES))
        near = [
            hit.document for hit in self._store.search(question, strategy=Similarity(k=DEFAULT_CANDIDATES))
        ]
        ranked = [hit.document for hit in hits]
        costs = dict(zip((d.id for d in ranked), self._costs(ranked), strict=True))
        ratio = [
            (50 * hit.similarity + 10 * hit.contributions.get("walk", 0.0)) / costs[hit.document.id]
            for hit in hits
        ]
        dense_first = [ranked[at] for at in np.argsort(-np.array(ratio), kind="stable")]
        distinct = self._distinct(near) if "redundancy" in self._methods else []
        return {
            budget: {
                "rank": self._filled(ranked, budget),
                "topk": self._filled(near, budget, skipping=False),
                "published": self._filled(dense_first, budget),
                "redundancy": self._filled(distinct, budget, skipping=False),
            }
            for budget in budgets
        }

    def _costs(self, documents: Sequence[Document]) -> list[int]:
        before, *both = self._counter.count(["x", *(f"x{SEPARATOR}{one.page_content}" for one in documents)])
        return [count - before for count in both]

    def _filled(self, documents: Sequence[Document], budget: int, *, skipping: bool = True) -> frozenset[str]:
        """The documents that fit by their costs, with less room where their text is longer than that."""
        empty, separator = self._counter.count(["x", f"x{SEPARATOR}"])
        room = budget + separator - empty
        while True:
            free, taken = room, []
            for document, cost in zip(documents, self._costs(documents), strict=True):
                if cost <= free:
                    taken.append(document)
                    free -= cost
                elif not skipping:
                    break
            text = SEPARATOR.join(one.page_content for one in taken)
            over = self._counter.count([text])[0] - budget
            if over <= 0:
                return frozenset(str(one.id) for one in taken)
            room -= over

    def _distinct(self, documents: Sequence[Document]) -> Sequence[Document]:
        from langchain_community.document_transformers import EmbeddingsRedundantFilter

        kept = EmbeddingsRedundantFilter(embeddings=self._store.embeddings).transform_documents(
            documents[:60]
        )
        texts = {one.page_content for one in kept}
        return [one for one in documents[:60] if one.page_content in texts]


def _print(options: argparse.Namespace, found: Sequence[Mapping[str, Any]]) -> None:
    for one in found:
        if options.json:
            sys.stdout.write(json.dumps(one) + "\n")
            continue
        rows = [
            {"method": name, **{budget: f"{value:.1f}" for budget, value in values.items()}}
            for name, values in one["recall"].items()
        ]
        listed(
            f"{one['set']}, {options.embedding}: {one['questions']} questions, recall in %",
            rows,
            as_json=False,
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    data = os.environ.get("LINKSTORE_EVAL_DATA")
    parser.add_argument("--data", default=data, help="folder of data sets")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {','.join(SETS)} (default all)")
    parser.add_argument("--corpus", help="documents in JSON Lines, instead of --sets")
    parser.add_argument("--questions", help="questions in JSON Lines, for --corpus")
    parser.add_argument("--links", help="link kinds and extractors for --corpus (default as linkstore eval)")
    parser.add_argument("--budgets", default=BUDGETS, help=f"in tokens (default {BUDGETS})")
    parser.add_argument("--embedding", default="wordllama", help="name of an embedding (default wordllama)")
    parser.add_argument(
        "--methods", help=f"some of {','.join(METHODS)} (default all; of --corpus, the first three)"
    )
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question (default 1)")
    parser.add_argument("--parts", default="", help=f"some of {','.join(PARTS)} (default none)")
    parser.add_argument(
        "--graph-seed", type=int, default=0, help="for the chains of --parts ablation (default 0)"
    )
    add_output(parser)
    options = parser.parse_args()
    options.budgets = [int(budget) for budget in options.budgets.split(",")]
    if options.methods is None:
        options.methods = ",".join(OF_CORPUS if options.corpus else METHODS)
    if bool(options.corpus) != bool(options.questions):
        parser.error("--corpus and --questions belong together")
    if not options.corpus and not options.data and options.sets:
        parser.error("give --data, or --corpus and --questions")
    return options


if __name__ == "__main__":
    main()
