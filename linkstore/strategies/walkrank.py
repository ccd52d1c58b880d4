"""Personalised PageRank on a small graph.

Source: T. Haveliwala, "Topic-Sensitive PageRank", WWW 2002, with the teleport on documents of the question
in the place of a topic.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from linkstore.vectors import Ints

Doubles = npt.NDArray[np.float64]
ROUNDS: Final = 40
"""Of power iteration: at the default damping of 0.6 what is left to change is below 1e-8."""


def personalised(source: Ints, target: Ints, weight: Doubles, teleport: Doubles, damping: float) -> Doubles:
    """The share of a walker's time at each node, who follows edges by weight or jumps back.

    Args:
        source: (m,) nodes that edges leave; numbers from 0 to n - 1.
        target: (m,) nodes they lead to.
        weight: (m,) greater than 0.
        teleport: (n,) where a jump lands, by share; some greater than 0.
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
