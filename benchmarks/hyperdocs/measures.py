"""What a ranking is worth: recall of sections, hits, pages and nDCG, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

RECALLS: Final = (5, 10, 20)
AMONG: Final = (1, 5, 10)
SAMPLES: Final = 1_000


def measure(
    ranked: Sequence[str], units: Sequence[frozenset[str]], page_of: Mapping[str, str]
) -> dict[str, float]:
    """Measure one ranking.

    Args:
        ranked: Ids of documents, best first.
        units: For each gold section or page, the ids of its documents. One of them in the ranking suffices.
        page_of: The page of each document.
    """
    gold = frozenset[str]().union(*units)
    pages = {page_of[one] for one in gold}
    places = [next((place for place, one in enumerate(ranked) if one in unit), math.inf) for unit in units]
    listed = [page_of[one] for one in ranked]
    distinct = list(dict.fromkeys(listed))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(units), 10)))
    return {
        **{f"R@{k}": float(np.mean([place < k for place in places])) for k in RECALLS},
        **{f"hits@{k}": float(bool(pages & set(listed[:k]))) for k in AMONG},
        **{f"pages@{k}": float(bool(pages & set(distinct[:k]))) for k in AMONG},
        "nDCG@10": sum(1 / math.log2(place + 2) for place in places if place < 10) / ideal,
    }


def summarise(found: Sequence[Mapping[str, float]], seed: int = 31) -> dict[str, Any]:
    """Return the means in %, and the 95 % interval of R@5 from resampled questions."""
    table = np.array([list(one.values()) for one in found])
    chance = np.random.default_rng(seed)
    drawn = table[chance.integers(len(table), size=(SAMPLES, len(table))), 0].mean(axis=1)
    low, high = np.percentile(drawn, (2.5, 97.5))
    means = dict(zip(found[0], (100 * table.mean(axis=0)).tolist(), strict=True))
    return {**means, "interval of R@5": [100 * float(low), 100 * float(high)]}
