"""The chunks of knowledge that the answers of a session came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from linkstore.memory.keys import SessionKey
from linkstore.memory.reading import NO_REFS
from linkstore.memory.turns import MENTIONS, Turn, turn_of
from linkstore.plans import Documents, Members, Plan, Reached, Resolve, Stored
from linkstore.text import fold
from linkstore.vectors import Floats, Ints

LOOKED_BACK: Final = 16
"""Number of latest segments in which turns are searched by their entities."""
MOST_ENTITIES: Final = 8
"""Number of entities by which turns are searched."""
_TAKEN: Final = 8
"""How many turns of a segment that mention an entity, those most similar to the question."""
_CAP: Final = 1_000


def turns_mentioning(
    session: SessionKey, last_segment: int, names: Sequence[str], vector: Floats
) -> Plan[list[Turn]]:
    """Return the turns of a session's latest segments that mention one of some entities, latest first.

    A segment has an entity of its own for each name, so that an entity that is mentioned ten thousand times
    costs as much as one that is mentioned a few times.
    """
    segments = range(max(1, last_segment - LOOKED_BACK + 1), last_segment + 1)
    ids = [session.entity(segment, name) for segment in segments for name in names[:MOST_ENTITIES]]
    groups: Ints = yield Resolve(tags=tuple((MENTIONS, id) for id in dict.fromkeys(ids)))
    reached: Reached = yield Members(
        groups=np.unique(groups[groups >= 0]),
        side="out",
        vector=vector,
        take=_TAKEN,
        cap=_CAP,
        exclude=NO_REFS,
    )
    stored: list[Stored] = yield Documents(refs=np.unique(reached.refs))
    turns = [
        turn_of(one.id, one.metadata) for one in stored if one.metadata["type"] == "turn"
    ]  # or summaries
    return sorted(turns, key=lambda turn: turn.order, reverse=True)


def by_sense(turns: Sequence[Turn], names: Sequence[str], around: Sequence[str]) -> list[Turn]:
    """Put turns first that mention a name in the sense meant: those that share most neighbours with it.

    "Apple" beside "iPhone" and "Apple" beside "pie" are told apart by what else the turns mention, as in
    M. Lesk, "Automatic Sense Disambiguation Using Machine Readable Dictionaries", SIGDOC 1986.

    Args:
        turns: That mention the names; their order stays among equals.
        names: What is asked about.
        around: What is mentioned beside it, in the question and in the last turns.
    """
    meant = {fold(name) for name in around} - {fold(name) for name in names}
    return sorted(turns, key=lambda turn: -len(meant & set(map(fold, turn.entities))))


def served(turns: Sequence[Turn], most: int) -> tuple[str, ...]:
    """Return the ids of the chunks that turns came from, those of the first turns first, each once."""
    return tuple(dict.fromkeys(id for turn in turns for id in turn.sources))[:most]
