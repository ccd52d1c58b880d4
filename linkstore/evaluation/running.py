"""Asking every question of every strategy, and measuring what comes first and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final, Protocol

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore.errors import EvaluationError
from linkstore.evaluation.contenders import STRATEGIES, strategies_named
from linkstore.evaluation.metrics import Ranks
from linkstore.evaluation.outcomes import DEPTH, Evaluation
from linkstore.evaluation.rows import GoldQuestion
from linkstore.evaluation.scoring import Run, outcomes_of
from linkstore.operations import is_storable
from linkstore.plans import Candidates, Find, Names, Plan
from linkstore.store import LinkStore
from linkstore.strategies import Question, Similarity, Strategy
from linkstore.vectors import unit_vector

_IDS_AT_ONCE: Final = 1000
_NAMED: Final = 5
"""How many missing ids a message names."""


class Progress(Protocol):
    """Called after each question."""

    def __call__(self, done: int, total: int, question: str) -> None:
        """``done`` of ``total`` questions are asked; the last one was ``question``."""
        ...


def evaluate(
    source: LinkStore | Sequence[Document],
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str] | Mapping[str, Strategy] = STRATEGIES,
    *,
    embedding: Embeddings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure how well strategies find the documents that answer questions.

    Each question is embedded once, then asked of all strategies in turn, for 20 hits. Before, the first
    question is asked of each once, unmeasured. Dense search is always run, as the baseline of gains.

    Args:
        source: A store, which stays as it is; or documents, which are put into one in memory.
        questions: With the ids that answer them.
        strategies: Names of :data:`~linkstore.evaluation.STRATEGIES`, or strategies by names of your own.
        embedding: For documents only; default wordllama.
        seed: For the intervals; the same seed gives the same ones.
        progress: Called after each question.

    Raises:
        EvaluationError: If there is no question, a gold document is not there, or a strategy is unknown.
        CapabilityError: If a strategy needs what the store's backend cannot do.
    """
    if isinstance(source, LinkStore):
        if embedding is not None:
            raise EvaluationError("a store has its embedding; give one with documents only")
        return _evaluated(source, questions, strategies, seed, progress)
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents(list(source))
        return _evaluated(store, questions, strategies, seed, progress)


def _evaluated(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    strategies: Sequence[str] | Mapping[str, Strategy],
    seed: int,
    progress: Progress | None,
) -> Evaluation:
    chosen = dict(strategies) if isinstance(strategies, Mapping) else strategies_named(strategies, store)
    if not chosen:
        raise EvaluationError("no strategy is given; there is nothing to measure")
    if not questions:
        raise EvaluationError("no question is given; there is nothing to measure with")
    require_gold(store, questions)
    runs = {name: _Clocked(strategy.limited(DEPTH)) for name, strategy in chosen.items()}
    baseline = _Clocked(Similarity(k=DEPTH))
    embedding_ms = _ask_all(store, questions, [*runs.values(), baseline], progress)
    results = [clocked.run(name, questions, embedding_ms) for name, clocked in runs.items()]
    outcomes = outcomes_of(results, baseline.ranks(questions), seed)
    return Evaluation(questions=len(questions), outcomes=outcomes)


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

    def ranks(self, questions: Sequence[GoldQuestion]) -> Ranks:
        places = [{name: rank for rank, name in enumerate(hits, 1)} for hits in self.hits]
        return [
            tuple(place.get(name) for name in question.gold)
            for place, question in zip(places, questions, strict=True)
        ]

    def run(self, name: str, questions: Sequence[GoldQuestion], embedding_ms: Sequence[float]) -> Run:
        whole = [search + embed for search, embed in zip(self.milliseconds, embedding_ms, strict=True)]
        return Run(
            name=name,
            settings=str(self.strategy),
            ranks=self.ranks(questions),
            ms_per_query=median(whole),
            ms_without_embedding=median(self.milliseconds),
        )


def _ask_all(
    store: LinkStore, questions: Sequence[GoldQuestion], runs: Sequence[_Clocked], progress: Progress | None
) -> list[float]:
    """Ask every question of every strategy; returns how many ms each question took to embed."""
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
    """The questions as strategies are asked them, and how many ms each took to embed."""
    asked, times = [], []
    store.embeddings.embed_query(texts[0])  # loads the model
    for text in texts:
        started = time.perf_counter()
        vector = store.embeddings.embed_query(text)
        times.append((time.perf_counter() - started) * 1e3)
        asked.append(Question(vector=unit_vector(vector), text=text))
    return asked, times


def require_gold(store: LinkStore, questions: Sequence[GoldQuestion]) -> None:
    """Make sure that every gold document is in the store.

    Raises:
        EvaluationError: Naming those that are not.
    """
    wanted = list(dict.fromkeys(name for question in questions for name in question.gold))
    known: set[str] = set()
    for start in range(0, len(wanted), _IDS_AT_ONCE):
        ids = tuple(filter(is_storable, wanted[start : start + _IDS_AT_ONCE]))
        known.update(store.backend.run(store.backend.answer(_known(ids))))
    missing = [name for name in wanted if name not in known]
    if missing:
        named = ", ".join(map(repr, missing[:_NAMED])) + (", …" if len(missing) > _NAMED else "")
        raise EvaluationError(
            f"{len(missing)} of {len(wanted)} gold documents are not in the corpus: {named}; a gold id must"
            " be the id of a document"
        )


def _known(ids: tuple[str, ...]) -> Plan[list[str]]:
    found: Candidates = yield Find(ids=ids)
    names: list[str] = yield Names(refs=found.refs)
    return names
