"""Plans that read which sessions there are, and everything that belongs to a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from linkstore.memory.keys import SessionKey, group_of
from linkstore.memory.reading import NO_REFS, PROBED, linked_at
from linkstore.memory.turns import HAS_ENTITY, HAS_SESSION, HAS_TURN
from linkstore.plans import Candidates, Documents, Find, Members, Plan, Reached, Resolve, Stored
from linkstore.vectors import Floats, Ints


def sessions_of(user_id: str | None, agent_id: str | None, vector: Floats) -> Plan[list[Stored]]:
    """Return the documents of the sessions of a user, with an agent, both, or all."""
    refs = yield from linked_at([(HAS_SESSION, group_of(user_id, agent_id))], vector)
    return (yield Documents(refs=refs))  # type: ignore[no-any-return]


def with_turns(sessions: Sequence[Stored], vector: Floats) -> Plan[list[SessionKey]]:
    """Return the keys of the sessions that have a turn.

    A session's document names its last segment. Only where that has no turn, as after a write that was
    interrupted, the segments before it are looked at.
    """
    latest = yield from _filled([_segments(one)[-1:] for one in sessions], vector)
    doubtful = [one for one, filled in zip(sessions, latest, strict=True) if not filled]
    earlier = yield from _filled(list(map(_segments, doubtful)), vector)
    empty = {one.id for one, filled in zip(doubtful, earlier, strict=True) if not filled}
    return sorted(
        (SessionKey.from_path(one.id) for one in sessions if one.id not in empty), key=lambda key: key.path
    )


def belonging(sessions: Sequence[SessionKey], vector: Floats) -> Plan[list[Stored]]:
    """Return all documents of sessions: their own, and those of segments, turns, entities and summaries."""
    found: Candidates = yield Find(ids=tuple(key.path for key in sessions))
    own: list[Stored] = yield Documents(refs=found.refs)
    recorded = {one.id: int(one.metadata["segment"]) for one in own}
    numbered = [
        (key, number) for key in sessions for number in range(1, recorded.get(key.path, 0) + PROBED + 1)
    ]
    ids = [id for key, number in numbered for id in (key.segment(number), key.summary(number))]
    found = yield Find(ids=tuple(ids))
    around: list[Stored] = yield Documents(refs=found.refs)
    tags = [(kind, key.segment(number)) for key, number in numbered for kind in (HAS_TURN, HAS_ENTITY)]
    refs = yield from linked_at(tags, vector)
    linked: list[Stored] = yield Documents(refs=refs)
    return [*own, *around, *linked]


def _segments(session: Stored) -> list[str]:
    """Return the ids of the segments that a session has had, in order."""
    key = SessionKey.from_path(session.id)
    return [key.segment(number) for number in range(1, int(session.metadata["segment"]) + 1)]


def _filled(segments: Sequence[Sequence[str]], vector: Floats) -> Plan[Iterator[bool]]:
    """Say for each list of segments whether one has a turn."""
    tags = [(HAS_TURN, id) for ids in segments for id in ids]
    groups: Ints = yield Resolve(tags=tuple(tags))
    there = np.flatnonzero(groups >= 0)
    reached: Reached = yield Members(
        groups=groups[there], side="in", vector=vector, take=1, cap=1, exclude=NO_REFS
    )
    filled = {tags[at][1] for at, size in zip(there.tolist(), reached.sizes.tolist(), strict=True) if size}
    return (any(id in filled for id in ids) for ids in segments)
