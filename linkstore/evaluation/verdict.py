"""Whether links help, in words.

With gold, the rule is what following one link from the first 10 hits of dense search can add at most to
recall among the first 5: the share of gold documents that dense search misses there (the headroom), times
the share of these that one link joins to one of those 10 (the reach). On four sets of questions PageRank,
which also searches by words and names, gained 54 to 120 % of that product over dense search. Without gold,
it is the share of documents that another one leads to.
"""

from __future__ import annotations

from typing import Final

from linkstore.evaluation.profiles import GoldProfile

MUCH: Final = 0.10
"""From this gain on, in recall, links help much."""
SOME: Final = 0.03
"""Below this gain they hardly help."""
WELL_LINKED: Final = 0.5
"""From this share of documents reached on, a corpus is well linked."""
BARELY_LINKED: Final = 0.1
"""Below it, there is hardly anything to follow."""


def verdict(reached_share: float, gold: GoldProfile | None) -> str:
    """One or two sentences.

    Args:
        reached_share: Share of documents that another one leads to by one link.
        gold: What questions with known answers say, if there are any.
    """
    return _by_structure(reached_share) if gold is None else _by_gold(gold)


def _by_gold(gold: GoldProfile) -> str:
    potential = gold.headroom * gold.reach
    reason = (
        f"dense search misses {_percent(gold.headroom)} of the gold among its first 5, and one link from its"
        f" first 10 leads to {_percent(gold.reach)} of what it misses: up to {100 * potential:.0f} points of"
        " recall@5 to gain by links"
    )
    if potential >= MUCH:
        return f"Links help much: {reason}."
    if potential >= SOME:
        return f"Links help somewhat: {reason}."
    if gold.headroom < SOME:
        return f"Links have little to add: {reason}."
    return f"These links hardly help: {reason}. Other kinds of link may."


def _by_structure(share: float) -> str:
    asked = "Questions with gold answers (--questions) tell whether they lead to what is asked for."
    counted = f"{_percent(share)} of the documents can be reached from another by one link"
    if share >= WELL_LINKED:
        return f"Well linked: {counted}. {asked}"
    if share >= BARELY_LINKED:
        return f"Partly linked: {counted}. {asked}"
    return f"Hardly linked: {counted}; links can add little to any search."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
