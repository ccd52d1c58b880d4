"""What an evaluation found: values, and their form in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from linkstore.evaluation.metrics import Estimate

CUTOFFS: Final = (2, 5, 10, 20)
"""Recall is measured on this many hits."""
DEPTH: Final = CUTOFFS[-1]
"""Each strategy returns this many hits; documents ranked lower count as not found."""
RESCUED_WITHIN: Final = 10
"""A gold document is rescued if it is among this many hits and not among the 20 of dense search."""
MRR: Final = "mrr"


def recall_at(k: int) -> str:
    """Return the name of the measure of recall among the first ``k`` hits."""
    return f"recall@{k}"


MEASURES: Final = (*map(recall_at, CUTOFFS), MRR)
"""Names of the measures, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The measures and times of one strategy.

    Args:
        name: The name of the strategy.
        settings: The strategy, as text.
        ranks: For each question the rank of each gold document, in the order of its gold; None for one
            that is not among the first 20.
        measures: ``recall@2``, ``recall@5``, ``recall@10``, ``recall@20`` and ``mrr``, each in [0, 1],
            averaged over questions.
        gains: The same, minus those of dense search.
        rescue_rate: Of the gold documents that dense search misses among its first 20, in all questions
            together, the share that are among this strategy's first 10; None if dense search misses none.
        ms_per_query: Median time of a query in milliseconds, with its embedding.
        ms_without_embedding: Median time of a query whose vector is known.
    """

    name: str
    settings: str
    ranks: tuple[tuple[int | None, ...], ...]
    measures: Mapping[str, Estimate]
    gains: Mapping[str, Estimate]
    rescue_rate: Estimate | None
    ms_per_query: float
    ms_without_embedding: float

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain JSON, with recalls from 0 to 1, and intervals as [low, high]."""
        values: dict[str, Any] = {name: one.value for name, one in self.measures.items()}
        return values | {
            "intervals": {name: [one.low, one.high] for name, one in self.measures.items()},
            "gain_over_dense": {
                name: {"value": one.value, "interval": [one.low, one.high]}
                for name, one in self.gains.items()
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
    """

    questions: int
    gold: str
    outcomes: tuple[Outcome, ...]

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
        """Return the evaluation as plain JSON: ``{"gold": …, "strategies": {NAME: {"recall@2": …, …}}}``."""
        strategies = {outcome.name: outcome.to_dict() for outcome in self.outcomes}
        return {"gold": self.gold, "strategies": strategies}
