"""The value of a candidate in a context: the probability that it is evidence, or a weighted sum."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.arguments import require, require_within
from linkstore.errors import StrategyError

Doubles = npt.NDArray[np.float64]
FEATURES: Final = ("one", "log_rank", "log_share", "share", "log_tokens")
"""The features of the calibrated value, in the order of coefficients."""
OPEN_SETS: Final[Mapping[str, float]] = {
    "one": -2.206,
    "log_rank": -0.868,
    "log_share": 0.79,
    "share": 0.64,
    "log_tokens": 0.378,
}
"""Coefficients of the calibrated value.

Source: logistic regression over the first 100 hits of the default strategy (wordllama) on hotpotqa_train,
musique_train, ottqa_links, pep_questions and locomo_open, each set with the same total weight. To fit them
again: ``python benchmarks/context.py --data DIR --fit``; to one's own questions: ``linkstore eval --calibrate
--corpus FILE --questions FILE``.
"""
_LEAST_SHARE: Final = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The features of the candidates of a search, each array of shape (n,).

    Args:
        rank: From 1, as the strategy ranks them.
        score: Of the strategy.
        similarity: Cosine to the question.
        walk: The share of PageRank in the score (``contributions["walk"]``); the score where there is none.
        tokens: How long each is.
        strength: From 0 to 1, see :class:`~linkstore.context.Decay`.
    """

    rank: Doubles
    score: Doubles
    similarity: Doubles
    walk: Doubles
    tokens: Doubles
    strength: Doubles

    def features(self) -> Doubles:
        """Return the columns of :data:`FEATURES`, (n, 5)."""
        top = float(self.score.max(initial=0.0))
        share = np.clip(self.score / top, 0.0, 1.0) if top > 0 else np.ones(len(self.score))
        columns = (
            np.ones(len(share)),
            np.log(self.rank),
            np.log(np.maximum(share, _LEAST_SHARE)),
            share,
            np.log1p(self.tokens),
        )
        return np.stack(columns, axis=1)


class Value(ABC):
    """The valuation of candidates. Values are added up, and what has a value of 0 or less is left out."""

    __slots__ = ()

    least_gain: float
    """The context is filled by rank unless a better selection is worth this much more."""
    rank_bonus: float
    """The bonus, as a share, of documents that filling by rank takes in the search for a better selection."""

    @abstractmethod
    def of(self, evidence: Evidence) -> Doubles:
        """Return the values of candidates, (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Value):
    """The probability that a candidate is evidence, given its rank, score and length; times its strength.

    Probabilities can be added up: the sum is the number of pieces of evidence to expect in the context.
    Scores
    cannot: knapsacks over raw scores find less than filling by rank.

    Args:
        coefficients: By name, see :data:`FEATURES`; default :data:`OPEN_SETS`.
        least_gain: The context is filled by rank unless a better selection promises so many more pieces of
            evidence; default 0.02. The estimate is not sharper than that.
        rank_bonus: In the search for a better selection, documents that filling by rank takes count so much
            more; default 0.15. A knapsack picks what happens to be estimated too high.
    """

    coefficients: Mapping[str, float] | None = None
    least_gain: float = 0.02
    rank_bonus: float = 0.15

    def __post_init__(self) -> None:
        _check_selection(self)
        given = OPEN_SETS if self.coefficients is None else self.coefficients
        require(Mapping, "a dict of numbers", coefficients=given)
        if set(given) != set(FEATURES) or not all(np.isfinite(value) for value in given.values()):
            raise StrategyError(
                f"coefficients must give a finite number for each of {', '.join(FEATURES)},"
                f" not {dict(given)!r}"
            )

    def of(self, evidence: Evidence) -> Doubles:
        """Return probabilities times strength, (n,), from 0 to 1."""
        given = OPEN_SETS if self.coefficients is None else self.coefficients
        weights = np.array([given[name] for name in FEATURES])
        logits = np.clip(evidence.features() @ weights, -500, 500)
        values: Doubles = evidence.strength / (1.0 + np.exp(-logits))
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum(Value):
    """``alpha * similarity + beta * PageRank * strength``, as in ContextOS (Thakur, 2025).

    It finds less than :class:`Calibrated` on every set measured; see the benchmarks.

    Args:
        alpha: Weight of the similarity; default 50.
        beta: Weight of the PageRank; default 10.
        least_gain: As in :class:`Calibrated`; default 0, the selection with the highest sum is taken.
        rank_bonus: As in :class:`Calibrated`; default 0.
    """

    alpha: float = 50.0
    beta: float = 10.0
    least_gain: float = 0.0
    rank_bonus: float = 0.0

    def __post_init__(self) -> None:
        _check_selection(self)
        require_within(-math.inf, math.inf, alpha=self.alpha, beta=self.beta)

    def of(self, evidence: Evidence) -> Doubles:
        """Return sums of any size, (n,)."""
        values: Doubles = self.alpha * evidence.similarity + self.beta * evidence.walk * evidence.strength
        return values


def _check_selection(value: Value) -> None:
    """Raise StrategyError unless ``least_gain`` and ``rank_bonus`` are finite numbers."""
    require_within(-math.inf, math.inf, least_gain=value.least_gain, rank_bonus=value.rank_bonus)
