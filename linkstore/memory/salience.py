"""The salience of entities: how often and how recently they were mentioned; derived from turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from linkstore.memory.turns import Turn
from linkstore.text import fold

FADING: Final = 0.8
"""Factor by which a mention counts less with each later turn."""
ELSEWHERE: Final = 0.5
"""Weight of a mention in a topic segment other than the last one."""


def salient(turns: Sequence[Turn], most: int) -> tuple[str, ...]:
    """Return the distinct entities of turns, most salient first, the latest first among equals.

    Args:
        turns: In order.
        most: How many to return at most.
    """
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for age, turn in enumerate(reversed(turns)):
        share = 1.0 if turn.segment == turns[-1].segment else ELSEWHERE
        for name in turn.entities:
            key = fold(name)
            spelled.setdefault(key, name)
            weights[key] = weights.get(key, 0.0) + share * FADING**age
    ranked = sorted(weights, key=lambda key: -weights[key])
    return tuple(spelled[key] for key in ranked[:most])
