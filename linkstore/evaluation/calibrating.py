"""Fits the value of candidates to questions with known answers, for contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from linkstore.arguments import require_list
from linkstore.context.tokens import Tokenizer, counter_of
from linkstore.context.value import FEATURES, Evidence
from linkstore.errors import EvaluationError
from linkstore.evaluation.rows import GoldQuestion
from linkstore.evaluation.units import GoldKind, GoldUnits, gold_units
from linkstore.hits import Hits
from linkstore.store import LinkStore
from linkstore.strategies import DEFAULT_STRATEGY, Strategy

Doubles = npt.NDArray[np.float64]
HITS: Final = 100
"""Number of hits considered for each question."""
_ROUNDS: Final = 100
_RIDGE: Final = 1e-3
_DONE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Sample:
    """Hits of questions and whether they are evidence.

    Args:
        features: (n, 5) see :meth:`~linkstore.context.value.Evidence.features`.
        is_evidence: (n,) 1 for the first hit of each gold answer, else 0.
        questions: How many questions the hits come from.
    """

    features: Doubles
    is_evidence: Doubles
    questions: int


def calibrate(
    source: LinkStore | Sequence[Document],
    questions: Sequence[GoldQuestion],
    *,
    strategy: Strategy | None = None,
    gold: GoldKind | None = None,
    embedding: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> dict[str, float]:
    """Fit the coefficients of :class:`linkstore.context.Calibrated` to questions with known answers.

    Args:
        source: A store, which stays as it is, or documents, which are put into one in memory.
        questions: Questions with their answers.
        strategy: How contexts are searched for; default the default strategy.
        gold: What answers name, see :func:`~linkstore.evaluation.evaluate`.
        embedding: For documents only; default wordllama.
        tokenizer: As for the compiler.

    Returns:
        The coefficients by name.

    Raises:
        EvaluationError: If there is no question, a gold answer is not in the store, or no answer is found.
    """
    return fitted([sampled(source, questions, strategy, gold, embedding, tokenizer)])


def sampled(
    source: LinkStore | Sequence[Document],
    questions: Sequence[GoldQuestion],
    strategy: Strategy | None = None,
    gold: GoldKind | None = None,
    embedding: Embeddings | None = None,
    tokenizer: Tokenizer | None = None,
) -> Sample:
    """Return the hits of questions as a sample: see :func:`calibrate`."""
    if not questions:
        raise EvaluationError("no question is given; pass at least one")
    if isinstance(source, LinkStore):
        return _sampled(source, questions, strategy, gold, tokenizer)
    require_list("documents, or a store", source=source)
    with LinkStore.open(":memory:", embedding) as store:
        store.add_documents(list(source))
        return _sampled(store, questions, strategy, gold, tokenizer)


def _sampled(
    store: LinkStore,
    questions: Sequence[GoldQuestion],
    strategy: Strategy | None,
    gold: GoldKind | None,
    tokenizer: Tokenizer | None,
) -> Sample:
    units = gold_units(store, questions, gold)
    counter = counter_of(tokenizer)
    features: list[Doubles] = []
    labels: list[Doubles] = []
    for question in questions:
        hits = store.search(question.question, k=HITS, strategy=strategy or DEFAULT_STRATEGY)
        if hits:
            tokens = counter.count([hit.document.page_content for hit in hits])
            features.append(_evidence(hits, tokens).features())
            labels.append(_labels(hits, question, units))
    if not features:
        raise EvaluationError("no question has a hit; there is nothing to fit to")
    return Sample(np.concatenate(features), np.concatenate(labels), len(questions))


def _evidence(hits: Hits, tokens: Sequence[int]) -> Evidence:
    score = np.array([hit.score for hit in hits], dtype=np.float64)
    return Evidence(
        rank=np.arange(1, len(hits) + 1, dtype=np.float64),
        score=score,
        similarity=np.array([hit.similarity for hit in hits], dtype=np.float64),
        walk=score,
        tokens=np.array(tokens, dtype=np.float64),
        strength=np.ones(len(hits)),
    )


def _labels(hits: Hits, question: GoldQuestion, units: GoldUnits) -> Doubles:
    """Return 1 for the first hit of each answer, 0 for further chunks of a page that was already found."""
    labels = np.zeros(len(hits))
    for name in question.gold:
        first = (at for at, hit in enumerate(hits) if hit.document.id in units.documents[name])
        at = next(first, None)
        if at is not None:
            labels[at] = 1.0
    return labels


def fitted(samples: Sequence[Sample]) -> dict[str, float]:
    """Fit a logistic regression by Newton's method, with a slight ridge and the same weight for each sample.

    Raises:
        EvaluationError: If no hit is evidence, or all are.
    """
    features = np.concatenate([one.features for one in samples])
    labels = np.concatenate([one.is_evidence for one in samples])
    if not 0 < labels.sum() < len(labels):
        raise EvaluationError("the coefficients cannot be fitted: no hit answers a question, or all do")
    weights = np.concatenate([np.full(len(one.is_evidence), 100 / one.questions) for one in samples])
    found = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(len(found))
    for _ in range(_ROUNDS):
        likely = 1.0 / (1.0 + np.exp(-np.clip(features @ found, -500, 500)))
        slope = features.T @ (weights * (likely - labels)) + _RIDGE * found
        curvature = (features * (weights * likely * (1 - likely))[:, None]).T @ features + ridge
        step = np.linalg.solve(curvature, slope)
        found -= step
        if np.abs(step).max() < _DONE:
            break
    return _named(found)


def _named(found: Doubles) -> dict[str, float]:
    values: Mapping[str, float] = dict(zip(FEATURES, found.tolist(), strict=True))
    return {name: round(value, 3) for name, value in values.items()}
