"""Runs every strategy on every question, and measures ranks and times."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore.arguments import require_list
from linkstore.errors import EvaluationError
from linkstore.evaluation.contenders import STRATEGIES, strategies_named
from linkstore.evaluation.metrics import Ranks
from linkstore.evaluation.outcomes import DEPTH, Evaluation
from linkstore.evaluation.rows import GoldQuestion
from linkstore.evaluation.scoring import Run, outcomes_of
from linkstore.evaluation.units import GoldKind, GoldUnits, gold_units
from linkstore.store import LinkStore
from linkstore.store.options import chosen_strategy
from linkstore.strategies import Question, Similarity, Strategy
from linkstore.vectors import unit_vector


class Progress(Protocol):
    """Called after each question."""

    def __call__(self, done: int, total: int, question: str) -> None:
        """Note that ``done`` of ``total`` questions are asked, ``question`` the last of them."""
        ...


def evaluate(
    source: LinkStore | Sequence[Document],
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str] | Mapping[str, Strategy] = STRATEGIES,
    *,
    gold: GoldKind | None = None,
    embedding: Embeddings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure how well strategies find the documents that answer questions.

    Each question is embedded once, then asked of all strategies in turn, for 20 hits. Before, the first
    question is asked of each once, unmeasured. Dense search is always run, as the baseline of gains.

    Args:
        source: A store, which stays as it is, or documents, which are put into one in memory.
        questions: Questions with their answers.
        strategies: Names of :data:`~linkstore.evaluation.STRATEGIES`, or strategies by names of your own.
        gold: What answers name: ``"page"``, where any chunk of the page counts as found, ``"section"``,
            where any chunk of the section does, or ``"id"``, one document. None: recognised from the
            questions, see :func:`~linkstore.evaluation.units.gold_units`.
        embedding: For documents only; default wordllama.
        seed: The seed of the intervals. The same seed gives the same intervals.
        progress: Called after each question.

    Raises:
        EvaluationError: If there is no question, a gold answer is not in the store, or a strategy is unknown.
        CapabilityError: If a strategy needs what the store's backend cannot do.
    """
    if isinstance(source, LinkStore):
        if embedding is not None:
            raise EvaluationError("a store already has an embedding; pass one only with documents")
        return _evaluated(source, questions, strategies, gold, seed, progress)
    require_list("documents, or a store", source=source)
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents(list(source))
        return _evaluated(store, questions, strategies, gold, seed, progress)


def _evaluated(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str] | Mapping[str, Strategy],
    gold: GoldKind | None,
    seed: int,
    progress: Progress | None,
) -> Evaluation:
    if isinstance(strategies, Mapping):
        chosen = {name: chosen_strategy(strategy, None) for name, strategy in strategies.items()}
    else:
        chosen = strategies_named(strategies, store)
    if not chosen:
        raise EvaluationError("no strategy is given; pass at least one")
    if not questions:
        raise EvaluationError("no question is given; pass at least one")
    units = gold_units(store, questions, gold)
    runs = {name: _Clocked(strategy.returning(DEPTH)) for name, strategy in chosen.items()}
    baseline = _Clocked(Similarity(k=DEPTH))
    embedding_ms = _ask_all(store, questions, [*runs.values(), baseline], progress)
    results = [clocked.run(name, questions, units, embedding_ms) for name, clocked in runs.items()]
    outcomes = outcomes_of(results, baseline.ranks(questions, units), seed)
    return Evaluation(questions=len(questions), gold=units.kind, outcomes=outcomes)


@dataclass(slots=True)
class _Clocked:
    """A strategy, and what it found for each question, with the time it took."""

    strategy: Strategy
    hits: list[list[str]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def ask(self, store: LinkStore, question: Question) -> list[str]:
        hits = store.backend.run(store.backend.answer(self.strategy.plan(question)))
        return [str(hit.document.id) for hit in hits]

    def measure(self, store: LinkStore, question: Question) -> None:
        started = time.perf_counter()
        hits = self.ask(store, question)
        self.milliseconds.append((time.perf_counter() - started) * 1e3)
        self.hits.append(hits)

    def ranks(self, questions: Sequence[GoldQuestion], units: GoldUnits) -> Ranks:
        """Return the rank of the first document of each gold answer."""
        return [
            tuple(_first(units.documents[answer], hits) for answer in question.gold)
            for hits, question in zip(self.hits, questions, strict=True)
        ]

    def run(
        self, name: str, questions: Sequence[GoldQuestion], units: GoldUnits, embedding_ms: Sequence[float]
    ) -> Run:
        whole = [search + embed for search, embed in zip(self.milliseconds, embedding_ms, strict=True)]
        return Run(
            name=name,
            settings=str(self.strategy),
            ranks=self.ranks(questions, units),
            ms_per_query=median(whole),
            ms_without_embedding=median(self.milliseconds),
        )


def _ask_all(
    store: LinkStore, questions: Sequence[GoldQuestion], runs: Sequence[_Clocked], progress: Progress | None
) -> list[float]:
    """Ask every question of every strategy, and return how many ms each question took to embed."""
    asked, embedding_ms = _embedded(store, [question.question for question in questions])
    for run in runs:
        run.ask(store, asked[0])
    for done, question in enumerate(asked, 1):
        for run in runs:
            run.measure(store, question)
        if progress is not None:
            progress(done, len(asked), question.text)
    return embedding_ms


def _embedded(store: LinkStore, texts: Sequence[str]) -> tuple[list[Question], list[float]]:
    """Return the questions for strategies, and how many ms each took to embed."""
    asked, times = [], []
    store.embeddings.embed_query(texts[0])  # loads the model
    for text in texts:
        started = time.perf_counter()
        vector = store.embeddings.embed_query(text)
        times.append((time.perf_counter() - started) * 1e3)
        asked.append(Question(vector=unit_vector(vector), text=text))
    return asked, times


def _first(documents: Collection[str], hits: Sequence[str]) -> int | None:
    return next((rank for rank, id in enumerate(hits, 1) if id in documents), None)
