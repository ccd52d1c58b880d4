"""The value of a candidate for a knapsack: the probability that it is evidence.

Probabilities can be added up: the sum is the number of pieces of evidence to expect in a context. Scores
cannot: a knapsack over raw scores finds less than filling by rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.core.arguments import require
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


Value = Callable[[Evidence], Doubles]
"""Gives the values of candidates, (n,), which are added up. Those worth 0 or less are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A value: the probability that a candidate is evidence, by rank, score and length, times its strength.

    Args:
        coefficients: By name, see :data:`FEATURES`; default :data:`OPEN_SETS`.

    Raises:
        StrategyError: If a coefficient is missing, unknown or not finite.
    """

    coefficients: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        given = OPEN_SETS if self.coefficients is None else self.coefficients
        require(Mapping, "a dict of numbers", coefficients=given)
        if set(given) != set(FEATURES) or not all(np.isfinite(value) for value in given.values()):
            raise StrategyError(
                f"coefficients must give a finite number for each of {', '.join(FEATURES)},"
                f" not {dict(given)!r}"
            )

    def __call__(self, evidence: Evidence) -> Doubles:
        """Return probabilities times strength, (n,), from 0 to 1."""
        given = OPEN_SETS if self.coefficients is None else self.coefficients
        weights = np.array([given[name] for name in FEATURES])
        logits = np.clip(evidence.features() @ weights, -500, 500)
        values: Doubles = evidence.strength / (1.0 + np.exp(-logits))
        return values
