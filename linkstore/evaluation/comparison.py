"""Compares searches that follow links with the best search without links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkstore.evaluation.contenders import BOTH, DEFAULT, DENSE, WORDS
from linkstore.evaluation.metrics import Estimate, estimate, recalls, resampled_means
from linkstore.evaluation.outcomes import Evaluation, Outcome

WITHOUT_LINKS: Final = (DENSE, WORDS, BOTH)
"""The searches that follow no link."""
AMONG: Final = 5
ENOUGH: Final = 10
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
        points = f"{100 * self.gain.value:+.1f} points of recall@{AMONG}"
        interval = f"95 % interval {100 * self.gain.low:+.1f} to {100 * self.gain.high:+.1f}"
        rival = f"the best search without links ({self.best})"
        if self.questions < ENOUGH:
            return (
                f"Too few questions to tell: with {self.questions}, the default differs from {rival} by"
                f" {points}; ask at least {ENOUGH}, better 30."
            )
        if self.gain.low > 0:
            return f"Links help: the default finds more than {rival}: {points}, {interval}."
        if self.gain.high < 0:
            return f"Links hurt: the default finds less than {rival}: {points}, {interval}."
        return (
            f"No difference shown: the default differs from {rival} by {points}, {interval}, which contains"
            " 0. More questions make the interval smaller."
        )


def compared(evaluation: Evaluation, seed: int = 0) -> Comparison | None:
    """Compare the default with the best of the searches without links.

    Args:
        evaluation: An evaluation of the default and of some search without links.
        seed: The seed of the resamples for the interval.

    Returns:
        The comparison, or None if the evaluation lacks one of the two.
    """
    outcomes = {outcome.name: outcome for outcome in evaluation.outcomes}
    rivals = [outcomes[name] for name in WITHOUT_LINKS if name in outcomes]
    if DEFAULT not in outcomes or not rivals:
        return None
    best = max(rivals, key=_recall)
    return Comparison(
        best=best.name, gain=_gain(outcomes[DEFAULT], best, seed), questions=evaluation.questions
    )


def _recall(outcome: Outcome) -> float:
    return float(_recalls(outcome).mean())


def _recalls(outcome: Outcome) -> Any:
    return recalls(outcome.ranks, AMONG)


def _gain(outcome: Outcome, rival: Outcome, seed: int) -> Estimate:
    difference = _recalls(outcome) - _recalls(rival)
    drawn = resampled_means(difference[:, np.newaxis], seed)
    return estimate(float(difference.mean()), drawn[:, 0])


def names(*, lexical: bool) -> Sequence[str]:
    """Return the names of the strategies to compare, without lexical search those that need none."""
    return (*WITHOUT_LINKS, DEFAULT) if lexical else (DENSE, DEFAULT)
