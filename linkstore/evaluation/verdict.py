"""Says in words whether links help.

With questions, the verdict is a measurement: the default compared with the best search without links. The
second sentence says why: the share of gold answers that dense search misses among its first 5, and the share
of these that one link from its first 10 hits leads to. Without questions, it is the share of documents that a
link from another page leads to.
"""

from __future__ import annotations

from typing import Final

from linkstore.display import in_percent
from linkstore.evaluation.comparison import Comparison
from linkstore.evaluation.profiles import GoldProfile

WELL_LINKED: Final = 0.5
"""From this share of documents reached on, a corpus is well linked."""
BARELY_LINKED: Final = 0.1
"""Below this share, a search finds hardly any link to follow."""


def verdict(reached_share: float, gold: GoldProfile | None, comparison: Comparison | None) -> str:
    """Return the verdict in one or two sentences.

    Args:
        reached_share: Share of documents that another one leads to by one link other than ``section``.
        gold: What questions with known answers say about the links, if there are any questions.
        comparison: What these questions say about the searches.
    """
    if gold is None or comparison is None:
        return _by_structure(reached_share)
    return (
        f"{comparison} Dense search misses {in_percent(gold.headroom, 0)} of the gold answers among its first"
        f" 5, and one link from its first 10 leads to {in_percent(gold.reach, 0)} of what it misses."
    )


def _by_structure(share: float) -> str:
    asked = "Questions with known answers (--questions) show whether the links lead to what is asked for."
    counted = f"{in_percent(share, 0)} of the documents can be reached from another document by one link"
    if share >= WELL_LINKED:
        return f"Well linked: {counted}. {asked}"
    if share >= BARELY_LINKED:
        return f"Partly linked: {counted}. {asked}"
    return f"Hardly linked: {counted}, so links can add little to any search."
