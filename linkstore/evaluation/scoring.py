"""Computes outcomes with intervals from ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linkstore.evaluation.metrics import (
    Doubles,
    Estimate,
    Ranks,
    estimate,
    recalls,
    reciprocal_ranks,
    resampled_means,
    rescues,
)
from linkstore.evaluation.outcomes import CUTOFFS, DEPTH, MEASURES, RESCUED_WITHIN, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The ranks and times of one strategy.

    Args:
        name: The name of the strategy.
        settings: The strategy, as text.
        ranks: The ranks of the gold documents of each question.
        ms_per_query: Median time of a query in milliseconds, with its embedding.
        ms_without_embedding: Median time of a query whose vector is known.
    """

    name: str
    settings: str
    ranks: Ranks
    ms_per_query: float
    ms_without_embedding: float


def outcomes_of(runs: Sequence[Run], baseline: Ranks, seed: int) -> tuple[Outcome, ...]:
    """Return the outcome of each run, where all intervals come from the same draws of questions.

    Args:
        runs: Runs on the same questions.
        baseline: Ranks of dense search on these questions.
        seed: The seed of the draws.
    """
    columns = [_columns(baseline, baseline), *(_columns(run.ranks, baseline) for run in runs)]
    width = columns[0].shape[1]
    means = resampled_means(np.concatenate(columns, axis=1), seed)
    samples = [means[:, start : start + width] for start in range(0, means.shape[1], width)]
    measured = [_Measured(values.mean(axis=0), drawn) for values, drawn in zip(columns, samples, strict=True)]
    return tuple(_outcome(run, one, measured[0]) for run, one in zip(runs, measured[1:], strict=True))


@dataclass(frozen=True, slots=True)
class _Measured:
    """Means of all columns, and of their resamples."""

    means: Doubles
    samples: Doubles


def _columns(ranks: Ranks, baseline: Ranks) -> Doubles:
    """Return (q, m + 2) the measures of each question, then rescued and missed gold documents."""
    measures = [*(recalls(ranks, k) for k in CUTOFFS), reciprocal_ranks(ranks)]
    return np.stack([*measures, *rescues(ranks, baseline, RESCUED_WITHIN, DEPTH)], axis=1)


def _outcome(run: Run, own: _Measured, dense: _Measured) -> Outcome:
    return Outcome(
        name=run.name,
        settings=run.settings,
        ranks=tuple(tuple(one) for one in run.ranks),
        measures=_estimates(own.means, own.samples),
        gains=_estimates(own.means - dense.means, own.samples - dense.samples),
        rescue_rate=_rescue_rate(own),
        ms_per_query=run.ms_per_query,
        ms_without_embedding=run.ms_without_embedding,
    )


def _estimates(means: Doubles, samples: Doubles) -> Mapping[str, Estimate]:
    return {name: estimate(float(means[at]), samples[:, at]) for at, name in enumerate(MEASURES)}


def _rescue_rate(own: _Measured) -> Estimate | None:
    """Divide rescued by missed: both are means over the same questions, so this is the overall ratio."""
    found, missed = own.means[-2:]
    if not missed:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = own.samples[:, -2] / own.samples[:, -1]
    return estimate(float(found / missed), rates)
