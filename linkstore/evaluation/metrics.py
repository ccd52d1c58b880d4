"""Measures over the ranks of gold documents, with confidence intervals.

Intervals are percentiles of a paired bootstrap over questions: B. Efron and R. Tibshirani, "An Introduction
to the Bootstrap", 1993, chapter 13; for comparing two rankings of the same questions, T. Sakai, "Evaluating
Evaluation Metrics based on the Bootstrap", SIGIR 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Ranks = Sequence[Sequence[int | None]]
"""For each question the rank of each of its gold documents, from 1; None for one that was not found."""

RESAMPLES: Final = 10_000
_LEVEL: Final = (2.5, 97.5)
_AT_ONCE: Final = 1_000_000
"""How many numbers a block of resamples has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and its 95 % interval.

    Args:
        value: The measured value.
        low: The value is less in 2.5 % of the resamples.
        high: The value is more in 2.5 % of the resamples.
    """

    value: float
    low: float
    high: float


def recalls(ranks: Ranks, k: int) -> Doubles:
    """Return (q,) the share of each question's gold documents that are among the first ``k``."""
    return np.array([sum(_within(rank, k) for rank in one) / len(one) for one in ranks], dtype=np.float64)


def reciprocal_ranks(ranks: Ranks) -> Doubles:
    """Return (q,) one over the rank of each question's first gold document, 0 where none was found."""
    best = [min((rank for rank in one if rank is not None), default=None) for one in ranks]
    return np.array([0.0 if rank is None else 1.0 / rank for rank in best], dtype=np.float64)


def rescues(ranks: Ranks, baseline: Ranks, within: int, missed: int) -> tuple[Doubles, Doubles]:
    """Count the gold answers that one ranking finds and another misses, by question.

    Args:
        ranks: The ranking.
        baseline: The other one.
        within: A gold document is found if its rank is at most this.
        missed: A gold document is missed if its rank is above this.

    Returns:
        (q,) how many gold documents the baseline misses and the ranking finds, and (q,) how many the
        baseline misses.
    """
    pairs = [
        [(rank, other) for rank, other in zip(ours, theirs, strict=True) if not _within(other, missed)]
        for ours, theirs in zip(ranks, baseline, strict=True)
    ]
    found = [sum(_within(rank, within) for rank, _ in one) for one in pairs]
    return np.array(found, dtype=np.float64), np.array([len(one) for one in pairs], dtype=np.float64)


def resampled_means(columns: Doubles, seed: int, resamples: int = RESAMPLES) -> Doubles:
    """Return (resamples, m) means of columns over questions drawn with replacement.

    All columns see the same questions in each resample, so that differences of means are paired.

    Args:
        columns: (q, m), a row for each question.
        seed: The same seed gives the same draws.
        resamples: The number of resamples.
    """
    rng = np.random.default_rng(seed)
    questions = len(columns)
    block = max(1, _AT_ONCE // questions)
    means = np.empty((resamples, columns.shape[1]), dtype=np.float64)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = rng.multinomial(questions, np.full(questions, 1 / questions), size=size)
        means[start : start + size] = drawn @ columns / questions
    return means


def estimate(value: float, samples: Doubles) -> Estimate:
    """Return a value with the interval that its resamples lie in, where NaN is ignored."""
    known = samples[np.isfinite(samples)]
    low, high = np.percentile(known, _LEVEL) if len(known) else (value, value)
    return Estimate(value=value, low=float(low), high=float(high))


def _within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k
