"""The operations that list sessions and turns."""

from __future__ import annotations

from typing import Any

from linkstore.arguments import given, require_at_least
from linkstore.memory.belonging import sessions_of, with_turns
from linkstore.memory.keys import SessionKey
from linkstore.memory.parts import Parts
from linkstore.memory.reading import linked_at, turns_of
from linkstore.memory.recording import session_head
from linkstore.memory.summaries import stored_summaries
from linkstore.memory.turns import HAS_SEGMENT, Summary, Turn
from linkstore.plans import Ids, Operation, Plan, Stored
from linkstore.twins import answered_by, any_vector
from linkstore.vectors import Floats


def listed_turns(
    parts: Parts, session: SessionKey, last: int | None = None, segment: int | None = None
) -> Operation[list[Turn]]:
    """Return the turns of a session or of one of its segments, in order.

    Raises:
        StrategyError: If ``last`` or ``segment`` is not an integer of at least 0.
    """
    require_at_least(0, **given(last=last, segment=segment))
    if last is not None and segment is None:
        head = yield from session_head(parts, session, last)
        return list(head.recent)
    vector = yield from any_vector(parts.store)
    if vector is None:
        return []
    numbers = [segment] if segment is not None else []
    if segment is None:
        numbers = yield answered_by(parts.store, segments_of(session, vector))
    turns: list[Turn] = yield answered_by(parts.store, turns_of(session, vector, numbers))
    return turns if last is None else turns[-last:] if last else []


def segments_of(session: SessionKey, vector: Floats) -> Plan[list[int]]:
    """Return the numbers of a session's segments, ascending."""
    refs = yield from linked_at([(HAS_SEGMENT, session.path)], vector)
    ids: list[str] = yield Ids(refs=refs)
    return sorted(int(id.rpartition("/")[2]) for id in ids)


def listed_sessions(parts: Parts, user_id: str | None, agent_id: str | None) -> Operation[list[SessionKey]]:
    """Return the sessions of a user, of an agent, of both, or of all, that have turns."""
    vector = yield from any_vector(parts.store)
    if vector is None:
        return []
    found: list[Stored] = yield answered_by(parts.store, sessions_of(user_id, agent_id, vector))
    return (yield answered_by(parts.store, with_turns(found, vector)))  # type: ignore[no-any-return]


def exported(parts: Parts, session: SessionKey) -> Operation[dict[str, Any]]:
    """Return all that is stored of a session, as plain JSON."""
    turns = yield from listed_turns(parts, session)
    summaries: list[Summary] = []
    if turns:
        plan = stored_summaries(session, turns[-1].segment, most=turns[-1].segment)
        summaries = yield answered_by(parts.store, plan)
    return {
        "user_id": session.user_id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
        "turns": [turn.to_dict() for turn in turns],
        "summaries": [{"segment": one.segment, "text": one.text} for one in summaries],
    }
