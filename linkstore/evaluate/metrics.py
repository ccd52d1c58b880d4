"""Measures over the ranks of gold documents, with intervals, and comparisons of searches.

Intervals are percentiles of a paired bootstrap over questions: B. Efron and R. Tibshirani, "An Introduction
to the Bootstrap", 1993, chapter 13; for comparing two rankings of the same questions, T. Sakai, "Evaluating
Evaluation Metrics based on the Bootstrap", SIGIR 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import require_list
from linkstore.errors import EvaluationError
from linkstore.strategies import AllPaths, Eager, Mmr, PageRank, Similarity, Strategy, Words

DENSE: Final = "similarity"
"""Similarity search alone."""
WORDS: Final = "words"
HYBRID: Final = "similarity+words"
"""Both together, as the first stage of the default joins them; no link is followed."""
DEFAULT: Final = "pagerank"
"""The strategy of a search that names none."""


def _make_hybrid() -> Strategy:
    return PageRank(depth=0)


_FACTORIES: Final[Mapping[str, Callable[[], Strategy]]] = {
    DENSE: Similarity,
    WORDS: Words,
    HYBRID: _make_hybrid,
    "eager": Eager,
    "mmr": Mmr,
    "all-paths": AllPaths,
    DEFAULT: PageRank,
}
STRATEGIES: Final = tuple(_FACTORIES)
"""The names that are known, which are those of ``linkstore query``."""


def make_strategies(names: Sequence[str]) -> dict[str, Strategy]:
    """Return strategies with their own settings, each once, in order.

    Args:
        names: Some of :data:`STRATEGIES`.

    Raises:
        EvaluationError: If a name is unknown, or none is given.
    """
    require_list("names, or a dict of strategies by names of your own", strategies=names)
    unknown = [str(name) for name in names if name not in STRATEGIES]
    if unknown or not names:
        problem = f"unknown strategy {', '.join(unknown)}" if unknown else "no strategy is named"
        raise EvaluationError(f"{problem}; known: {', '.join(STRATEGIES)}")
    return {name: _FACTORIES[name]() for name in names}


Doubles = npt.NDArray[np.float64]
Ranks = Sequence[Sequence[int | None]]
"""For each question the rank of each of its gold documents, from 1; None for one that was not found."""

RESAMPLES: Final = 10_000
_PERCENTILES: Final = (2.5, 97.5)
_BLOCK_SIZE: Final = 1_000_000
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


def compute_recalls(ranks: Ranks, k: int) -> Doubles:
    """Return (q,) the share of each question's gold documents that are among the first ``k``."""
    return np.array([sum(_is_within(rank, k) for rank in row) / len(row) for row in ranks], dtype=np.float64)


def compute_reciprocal_ranks(ranks: Ranks) -> Doubles:
    """Return (q,) one over the rank of each question's first gold document, 0 where none was found."""
    best = [min((rank for rank in row if rank is not None), default=None) for row in ranks]
    return np.array([0.0 if rank is None else 1.0 / rank for rank in best], dtype=np.float64)


def count_rescues(ranks: Ranks, baseline: Ranks, within: int, missed: int) -> tuple[Doubles, Doubles]:
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
        [(rank, other) for rank, other in zip(ours, theirs, strict=True) if not _is_within(other, missed)]
        for ours, theirs in zip(ranks, baseline, strict=True)
    ]
    rescues = [sum(_is_within(rank, within) for rank, _ in pair) for pair in pairs]
    return np.array(rescues, dtype=np.float64), np.array([len(pair) for pair in pairs], dtype=np.float64)


def resample_means(columns: Doubles, seed: int, resamples: int = RESAMPLES) -> Doubles:
    """Return (resamples, m) means of columns over questions drawn with replacement.

    All columns see the same questions in each resample, so that differences of means are paired.

    Args:
        columns: (q, m), a row for each question.
        seed: The same seed gives the same draws.
        resamples: The number of resamples.
    """
    rng = np.random.default_rng(seed)
    questions = len(columns)
    block = max(1, _BLOCK_SIZE // questions)
    means = np.empty((resamples, columns.shape[1]), dtype=np.float64)
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        drawn = rng.multinomial(questions, np.full(questions, 1 / questions), size=size)
        means[start : start + size] = drawn @ columns / questions
    return means


def make_estimate(value: float, samples: Doubles) -> Estimate:
    """Return a value with the interval that its resamples lie in, where NaN is ignored."""
    finite = samples[np.isfinite(samples)]
    low, high = np.percentile(finite, _PERCENTILES) if len(finite) else (value, value)
    return Estimate(value=value, low=float(low), high=float(high))


def _is_within(rank: int | None, k: int) -> bool:
    return rank is not None and rank <= k


CUTOFFS: Final = (2, 5, 10, 20)
"""Recall is measured on this many hits."""
MAX_RANK: Final = CUTOFFS[-1]
"""Each strategy returns this many hits; documents ranked lower count as not found."""
RESCUED_WITHIN: Final = 10
"""A gold document is rescued if it is among this many hits and not among the 20 of dense search."""
MRR: Final = "mrr"


def name_recall(k: int) -> str:
    """Return the name of the measure of recall among the first ``k`` hits."""
    return f"recall@{k}"


MEASURES: Final = (*map(name_recall, CUTOFFS), MRR)
"""Names of the measures, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRun:
    """The ranks and times of one strategy.

    Args:
        name: The name of the strategy.
        settings: The strategy, as text.
        ranks: For each question the rank of each gold document, in the order of its gold; None for one
            that is not among the first 20.
        ms_per_query: Median time of a query in milliseconds, with its embedding.
        ms_without_embedding: Median time of a query whose vector is known.
    """

    name: str
    settings: str
    ranks: Ranks
    ms_per_query: float
    ms_without_embedding: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(StrategyRun):
    """The ranks, times and measures of one strategy.

    Args:
        measures: ``recall@2``, ``recall@5``, ``recall@10``, ``recall@20`` and ``mrr``, each in [0, 1],
            averaged over questions.
        gains: The same, minus those of dense search.
        rescue_rate: Of the gold documents that dense search misses among its first 20, in all questions
            together, the share that are among this strategy's first 10; None if dense search misses none.
    """

    measures: Mapping[str, Estimate]
    gains: Mapping[str, Estimate]
    rescue_rate: Estimate | None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain JSON, with recalls from 0 to 1, and intervals as [low, high]."""
        values: dict[str, Any] = {name: measure.value for name, measure in self.measures.items()}
        return values | {
            "intervals": {name: [measure.low, measure.high] for name, measure in self.measures.items()},
            "gain_over_dense": {
                name: {"value": gain.value, "interval": [gain.low, gain.high]}
                for name, gain in self.gains.items()
            },
            "rescue_rate": None if self.rescue_rate is None else self.rescue_rate.value,
            "rescue_rate_interval": self.rescue_rate and [self.rescue_rate.low, self.rescue_rate.high],
            "ms_per_query": self.ms_per_query,
            "ms_without_embedding": self.ms_without_embedding,
            "settings": self.settings,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """How strategies did on the same questions.

    Args:
        questions: How many questions.
        gold: What their answers name: ``"page"``, ``"section"`` or ``"id"``.
        outcomes: One for each strategy, in the order asked.
        comparison: The default compared with the best search without links, which as text is the verdict;
            None if one of the two was not asked.
    """

    questions: int
    gold: str
    outcomes: tuple[Outcome, ...]
    comparison: Comparison | None = None

    def __getitem__(self, name: str) -> Outcome:
        """Return the outcome of a strategy.

        Raises:
            KeyError: If the strategy was not evaluated.
        """
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the evaluation as plain JSON."""
        strategies = {outcome.name: outcome.to_dict() for outcome in self.outcomes}
        comparison = self.comparison and self.comparison.to_dict()
        return {"gold": self.gold, "strategies": strategies, "comparison": comparison}


def compute_outcomes(runs: Sequence[StrategyRun], baseline: Ranks, seed: int) -> tuple[Outcome, ...]:
    """Return the outcome of each run, where all intervals come from the same draws of questions.

    Args:
        runs: Runs on the same questions.
        baseline: Ranks of dense search on these questions.
        seed: The seed of the draws.
    """
    columns = [_stack_measures(baseline, baseline), *(_stack_measures(run.ranks, baseline) for run in runs)]
    width = columns[0].shape[1]
    means = resample_means(np.concatenate(columns, axis=1), seed)
    samples = [means[:, start : start + width] for start in range(0, means.shape[1], width)]
    measured = [
        _MeasuredMeans(values.mean(axis=0), drawn) for values, drawn in zip(columns, samples, strict=True)
    ]
    return tuple(
        _make_outcome(run, means, measured[0]) for run, means in zip(runs, measured[1:], strict=True)
    )


@dataclass(frozen=True, slots=True)
class _MeasuredMeans:
    """Means of all columns, and of their resamples."""

    means: Doubles
    samples: Doubles


def _stack_measures(ranks: Ranks, baseline: Ranks) -> Doubles:
    """Return (q, m + 2) the measures of each question, then rescued and missed gold documents."""
    measures = [*(compute_recalls(ranks, k) for k in CUTOFFS), compute_reciprocal_ranks(ranks)]
    return np.stack([*measures, *count_rescues(ranks, baseline, RESCUED_WITHIN, MAX_RANK)], axis=1)


def _make_outcome(run: StrategyRun, own: _MeasuredMeans, dense: _MeasuredMeans) -> Outcome:
    return Outcome(
        **{field.name: getattr(run, field.name) for field in fields(run)},
        measures=_make_estimates(own.means, own.samples),
        gains=_make_estimates(own.means - dense.means, own.samples - dense.samples),
        rescue_rate=_estimate_rescue_rate(own),
    )


def _make_estimates(means: Doubles, samples: Doubles) -> Mapping[str, Estimate]:
    return {name: make_estimate(float(means[at]), samples[:, at]) for at, name in enumerate(MEASURES)}


def _estimate_rescue_rate(own: _MeasuredMeans) -> Estimate | None:
    """Divide rescued by missed: both are means over the same questions, so this is the overall ratio."""
    rescued, missed = own.means[-2:]
    if not missed:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = own.samples[:, -2] / own.samples[:, -1]
    return make_estimate(float(rescued / missed), rates)


WITHOUT_LINKS: Final = (DENSE, WORDS, HYBRID)
"""The searches that follow no link."""
COMPARED_CUTOFF: Final = 5
MIN_QUESTIONS: Final = 10
"""Number of questions below which a bootstrap cannot estimate their variation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The default compared with the best search without links.

    Args:
        best: The name of that search.
        gain: Recall@5 of the default minus that of ``best``, with a paired 95 % interval.
        questions: How many questions were asked.
    """

    best: str
    gain: Estimate
    questions: int

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain JSON."""
        return {"best": self.best, "gain": self.gain.value, "interval": [self.gain.low, self.gain.high]}

    def __str__(self) -> str:
        points = f"{100 * self.gain.value:+.1f} points of recall@{COMPARED_CUTOFF}"
        interval = f"95 % interval {100 * self.gain.low:+.1f} to {100 * self.gain.high:+.1f}"
        rival = f"the best search without links ({self.best})"
        if self.questions < MIN_QUESTIONS:
            return (
                f"Too few questions to tell: with {self.questions}, the default differs from {rival} by"
                f" {points}; ask at least {MIN_QUESTIONS}, better 30."
            )
        if self.gain.low > 0:
            return f"Links help: the default finds more than {rival}: {points}, {interval}."
        if self.gain.high < 0:
            return f"Links hurt: the default finds less than {rival}: {points}, {interval}."
        return (
            f"No difference shown: the default differs from {rival} by {points}, {interval}, which contains"
            " 0. More questions make the interval smaller."
        )


def compare_with_baseline(outcomes: Sequence[Outcome], questions: int, seed: int) -> Comparison | None:
    """Compare the default with the best of the searches without links.

    Args:
        outcomes: Those of the default and of some search without links.
        questions: How many questions were asked.
        seed: The seed of the resamples for the interval.

    Returns:
        The comparison, or None if one of the two lacks.
    """
    by_name = {outcome.name: outcome for outcome in outcomes}
    rivals = [by_name[name] for name in WITHOUT_LINKS if name in by_name]
    if DEFAULT not in by_name or not rivals:
        return None
    best = max(rivals, key=lambda rival: float(_compute_recalls(rival).mean()))
    difference = _compute_recalls(by_name[DEFAULT]) - _compute_recalls(best)
    drawn = resample_means(difference[:, np.newaxis], seed)
    gain = make_estimate(float(difference.mean()), drawn[:, 0])
    return Comparison(best=best.name, gain=gain, questions=questions)


def _compute_recalls(outcome: Outcome) -> Any:
    return compute_recalls(outcome.ranks, COMPARED_CUTOFF)
