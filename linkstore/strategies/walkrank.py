"""Personalised PageRank on a small graph of documents.

Source: T. Haveliwala, "Topic-Sensitive PageRank", WWW 2002, with the teleport on documents of the question
in the place of a topic.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.arrays import located
from linkstore.plans import Ids, Plan
from linkstore.vectors import Ints

Doubles = npt.NDArray[np.float64]
ROUNDS: Final = 40
"""Number of power iterations; at the default damping of 0.6, the remaining change is below 1e-8."""


def walked(
    refs: Ints, source: Ints, target: Ints, weight: Doubles, teleport: Doubles, damping: float
) -> Plan[Doubles]:
    """Compute the (n,) share of a walker's time at documents, for edges given by documents.

    Documents are numbered by id, so that sums are made in the same order on every engine.

    Args:
        refs: (n,) documents.
        source: (m,) documents that edges leave. Those not among ``refs`` are left out, as for ``target``.
        target: (m,) documents they lead to.
        weight: (m,) greater than 0.
        teleport: (n,) see :func:`personalised`, as for ``damping``.
        damping: How likely an edge is followed.
    """
    ids: list[str] = yield Ids(refs=refs)
    by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    number = np.empty(len(ids), dtype=np.int64)
    number[by_id] = np.arange(len(ids))
    place = np.argsort(refs)
    ordered = refs[place]

    def numbers(documents: Ints) -> Ints:
        at = located(documents, ordered)
        return np.where(at >= 0, number[place[at]], -1)

    source, target = numbers(source), numbers(target)
    known = (source >= 0) & (target >= 0)
    source, target, weight = source[known], target[known], weight[known]
    order = np.lexsort((target, source))
    time = personalised(source[order], target[order], weight[order], teleport[by_id], damping)
    return time[number]


def personalised(source: Ints, target: Ints, weight: Doubles, teleport: Doubles, damping: float) -> Doubles:
    """Compute the share of time at each node of a walker who follows edges by weight or jumps back.

    Args:
        source: (m,) nodes that edges leave, with numbers from 0 to n - 1.
        target: (m,) nodes they lead to.
        weight: (m,) greater than 0.
        teleport: (n,) where a jump lands, by share. Some are greater than 0.
        damping: How likely an edge is followed, from 0 to 1. From a node without edges the walker jumps.

    Returns:
        (n,) that sum to 1.
    """
    count = len(teleport)
    jump = teleport / teleport.sum()
    leaving = np.bincount(source, weight, minlength=count)
    share = weight / leaving[source] if len(source) else weight
    stuck = leaving == 0
    at: Doubles = jump
    for _ in range(ROUNDS):
        followed = np.bincount(target, share * at[source], minlength=count)
        at = (1 - damping) * jump + damping * (followed + at[stuck].sum() * jump)
    return at
