"""Plans that read a session: its segments, and the turns of a segment, latest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkstore.memory.drift import COMPARED
from linkstore.memory.keys import SessionKey
from linkstore.memory.turns import HAS_TURN, WRITTEN, Turn, turn_of, written_tag
from linkstore.plans import Candidates, Documents, Find, Ids, Members, Plan, Reached, Resolve, Stored
from linkstore.vectors import Floats, Ints

PROBED: Final = 16
"""How many segments are looked for at once."""
SEGMENT_CAP: Final = 100_000
"""More turns than any segment has: writers that open one at the same moment may exceed its limit a little."""
_ALL: Final = 2**31 - 2
"""More documents than a group has."""
NO_REFS: Final[Ints] = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a session.

    Args:
        known: Whether the session has a document.
        recorded: The number of the last segment that its document names; 0 without one.
        segment: The number of its last segment; 0 if it has none.
        count: How many turns that segment has.
        recent: Its latest turns, the last one last; older ones may be of the segments before.
        similarity: Of the vector asked for to the most similar of the last turns of that segment.
    """

    known: bool
    recorded: int
    segment: int
    count: int
    recent: tuple[Turn, ...]
    similarity: float = 1.0


def head_of(session: SessionKey, vector: Floats, take: int) -> Plan[Head]:
    """Return the end of a session, with up to ``take`` turns.

    Its cost does not depend on the length of the session: the session's document names a late segment, and
    segments after it are looked for by their tags.
    """
    found: Candidates = yield Find(ids=(session.path,))
    documents: list[Stored] = yield Documents(refs=found.refs)
    recorded = int(documents[0].metadata["segment"]) if documents else 0
    last, refs = yield from _last_segment(session, vector, max(recorded, 1))
    count = len(refs)
    recent = yield from _latest(refs, take)
    similarity = yield from _similarity(recent[-COMPARED:], vector)
    before = last - 1
    while len(recent) < take and before > 0 and before > last - PROBED:
        _, earlier = yield from _members(session, vector, range(before, before + 1))
        recent = [*(yield from _latest(earlier, take - len(recent))), *recent]
        before -= 1
    return Head(
        known=bool(documents),
        recorded=recorded,
        segment=last,
        count=count,
        recent=tuple(recent[-take:]),
        similarity=similarity,
    )


def _similarity(turns: Sequence[Turn], vector: Floats) -> Plan[float]:
    found: Candidates = yield Find(ids=tuple(turn.id for turn in turns), vector=vector)
    return float(found.similarity.max(initial=-1.0))


def turns_of(session: SessionKey, vector: Floats, segments: Sequence[int]) -> Plan[list[Turn]]:
    """Return all turns of some segments, in order."""
    _, refs = yield from _members(session, vector, segments)
    return (yield from _latest(refs, len(refs)))


def written_before(session: SessionKey, writing: str, vector: Floats) -> Plan[Turn | None]:
    """Return the turn that was written for a message, the first if several writers wrote one."""
    refs = yield from linked_at([(WRITTEN, written_tag(session, writing))], vector)
    stored: list[Stored] = yield Documents(refs=refs)
    return min((turn_of(one.id, one.metadata) for one in stored), key=_order, default=None)


def _last_segment(session: SessionKey, vector: Floats, start: int) -> Plan[tuple[int, Ints]]:
    """Return the number of the last segment with turns, 0 if none has, and the refs of those turns."""
    last, refs = 0, NO_REFS
    while True:
        numbers = range(start, start + PROBED)
        owner, members = yield from _members(session, vector, numbers)
        if not len(owner):
            return last, refs
        last, refs = numbers[int(owner.max())], members[owner == owner.max()]
        if last != numbers[-1]:
            return last, refs
        start = last + 1


def _members(session: SessionKey, vector: Floats, segments: Sequence[int]) -> Plan[tuple[Ints, Ints]]:
    """Return the turns of segments: positions in ``segments``, and refs."""
    groups: Ints = yield Resolve(tags=tuple((HAS_TURN, session.segment(number)) for number in segments))
    there = np.flatnonzero(groups >= 0)
    reached: Reached = yield Members(
        groups=groups[there],
        side="in",
        vector=vector,
        take=SEGMENT_CAP,
        cap=SEGMENT_CAP,
        exclude=NO_REFS,
    )
    return there[reached.group], reached.refs


def linked_at(tags: Sequence[tuple[str, str]], vector: Floats) -> Plan[Ints]:
    """Return the refs of all documents that link groups have on their side "in", unranked."""
    groups: Ints = yield Resolve(tags=tuple(tags))
    reached: Reached = yield Members(
        groups=np.unique(groups[groups >= 0]), side="in", vector=vector, take=_ALL, cap=_ALL, exclude=NO_REFS
    )
    return np.unique(reached.refs)


def _latest(refs: Ints, take: int) -> Plan[list[Turn]]:
    """Return the ``take`` latest of some turns, in order."""
    ids: list[str] = yield Ids(refs=refs)
    order = sorted(range(len(ids)), key=ids.__getitem__)[-take:] if take else []
    stored: list[Stored] = yield Documents(refs=refs[np.asarray(order, np.int64)])
    return sorted((turn_of(one.id, one.metadata) for one in stored), key=_order)


def _order(turn: Turn) -> Any:
    return turn.order
