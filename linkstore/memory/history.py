"""The operations that list sessions and turns.

Reads, exports and forgets what a memory stores, after the writes in the background.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.plans import Ids, Operation, Plan, StoredDocument
from linkstore.memory.forgetting import Forgettable, ForgettingFinisher, forget_turns
from linkstore.memory.requests import MemoryParts, arun_operation, request_writes, run_operation
from linkstore.memory.sessions import read_linked, read_sessions, read_turns, select_sessions_with_turns
from linkstore.memory.summaries import read_summaries
from linkstore.memory.turns import HAS_SEGMENT, SessionKey, Summary, Turn, check_owner
from linkstore.memory.writing import BackgroundWriter, read_session_head
from linkstore.store.linkstore import make_plan_call


def list_turns(
    parts: MemoryParts, session: SessionKey, last: int | None = None, segment: int | None = None
) -> Operation[list[Turn]]:
    """Return the turns of a session or of one of its segments, in order.

    Raises:
        StrategyError: If ``last`` or ``segment`` is not an integer of at least 0.
    """
    require_at_least(0, **omit_none(last=last, segment=segment))
    if last is not None and segment is None:
        head = yield from read_session_head(parts, session, last)
        return list(head.recent)
    numbers = [segment] if segment is not None else []
    if segment is None:
        numbers = yield make_plan_call(parts.store, list_segments(session))
    turns: list[Turn] = yield make_plan_call(parts.store, read_turns(session, numbers))
    return turns if last is None else turns[-last:] if last else []


def list_segments(session: SessionKey) -> Plan[list[int]]:
    """Return the numbers of a session's segments, ascending."""
    refs = yield from read_linked([(HAS_SEGMENT, session.path)])
    ids: list[str] = yield Ids(refs=refs)
    return sorted(int(id.rpartition("/")[2]) for id in ids)


def list_sessions(
    parts: MemoryParts, user_id: str | None, agent_id: str | None
) -> Operation[list[SessionKey]]:
    """Return the sessions of a user, of an agent, of both, or of all, that have turns."""
    found: list[StoredDocument] = yield make_plan_call(parts.store, read_sessions(user_id, agent_id))
    return (yield make_plan_call(parts.store, select_sessions_with_turns(found)))  # type: ignore[no-any-return]


def export_session(parts: MemoryParts, session: SessionKey) -> Operation[dict[str, Any]]:
    """Return all that is stored of a session, as plain JSON."""
    turns = yield from list_turns(parts, session)
    summaries: list[Summary] = []
    if turns:
        plan = read_summaries(session, turns[-1].segment, most=turns[-1].segment)
        summaries = yield make_plan_call(parts.store, plan)
    return {
        "user_id": session.user_id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
        "turns": [turn.to_dict() for turn in turns],
        "summaries": [{"segment": one.segment, "text": one.text} for one in summaries],
    }


T = TypeVar("T")


class MemoryHistory:
    """Reads, exports and forgets what is stored; each method first waits for the writes in the background."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts
        self._background = BackgroundWriter()
        self._finisher = ForgettingFinisher(parts)

    def turns(
        self, session: SessionKey | str, last: int | None = None, *, segment: int | None = None
    ) -> list[Turn]:
        """Return the turns of a session in order, none for an unknown session.

        Args:
            session: The conversation.
            last: Only this number of turns, the latest; default all.
            segment: Only those of this topic segment, such as one that a summary is of; default all.
        """
        key = SessionKey.of(session)
        return run_operation(self._settled(key, list_turns(self._parts, key, last, segment)))

    async def aturns(
        self, session: SessionKey | str, last: int | None = None, *, segment: int | None = None
    ) -> list[Turn]:
        """Return the turns of a session: see :meth:`turns`."""
        key = SessionKey.of(session)
        return await arun_operation(self._settled(key, list_turns(self._parts, key, last, segment)))

    def sessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns, sorted. The cost follows how many there are.

        Args:
            user_id: Only those of this user; default those of all.
            agent_id: Only those with this agent; default those with any.
        """
        check_owner(user_id, agent_id)
        return run_operation(self._settled(None, list_sessions(self._parts, user_id, agent_id)))

    async def asessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns: see :meth:`sessions`."""
        check_owner(user_id, agent_id)
        return await arun_operation(self._settled(None, list_sessions(self._parts, user_id, agent_id)))

    def export(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session as plain JSON: its key, turns in order, and summaries."""
        key = SessionKey.of(session)
        return run_operation(self._settled(key, export_session(self._parts, key)))

    async def aexport(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session: see :meth:`export`."""
        key = SessionKey.of(session)
        return await arun_operation(self._settled(key, export_session(self._parts, key)))

    def forget(
        self,
        session: SessionKey | str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        entity: str | None = None,
        before: datetime | None = None,
    ) -> int:
        """Forget the turns for which all that is given holds, with their entities, segments and summaries.

        Afterwards nothing of them can be recalled, and no file of an embedded store contains a byte of them.
        Cassandra keeps deleted content in its files until ``gc_grace_seconds`` of the tables have passed (10
        days by default) and the files have been compacted. Turns that others write meanwhile may stay.

        What is to be removed is written down first. If the process is killed, the next memory over the store
        finishes it before its first operation, a memory that is open within two minutes, with its next
        operation, and so does the next call. A memory over a store that cannot be written logs a warning.

        Only the sessions that are named are read: without a session, a user and an agent, all turns. An
        embedded store is then compacted, which costs what :meth:`~linkstore.LinkStore.compact` costs.

        Args:
            session: Turns of this session.
            user_id: Turns of this person: all sessions with all agents.
            agent_id: Turns with this agent.
            entity: Turns that mention this, as one of their entities or in their words.
            before: Turns before this moment.

        Returns:
            How many turns.

        Raises:
            DocumentError: If nothing is given, or ``before`` has no time zone.
        """
        return run_operation(self._forget(session, user_id, agent_id, entity, before))

    async def aforget(
        self,
        session: SessionKey | str | None = None,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        entity: str | None = None,
        before: datetime | None = None,
    ) -> int:
        """Forget turns: see :meth:`forget`."""
        return await arun_operation(self._forget(session, user_id, agent_id, entity, before))

    def forget_expired(self) -> int:
        """Forget the turns that are older than ``ttl``, and return how many: none without ``ttl``."""
        ttl = self._parts.ttl
        return 0 if ttl is None else self.forget(before=datetime.now(UTC) - ttl)

    async def aforget_expired(self) -> int:
        """Forget the turns that are older than ``ttl``: see ``forget_expired``."""
        ttl = self._parts.ttl
        return 0 if ttl is None else await self.aforget(before=datetime.now(UTC) - ttl)

    def flush(self) -> None:
        """Wait for the writes in the background, and raise the error of one that failed."""
        run_operation(self._settled(None, _do_nothing()))

    async def aflush(self) -> None:
        """Wait for the writes in the background: see :meth:`flush`."""
        await arun_operation(self._settled(None, _do_nothing()))

    def _forget(
        self,
        session: SessionKey | str | None,
        user_id: str | None,
        agent_id: str | None,
        entity: str | None,
        before: datetime | None,
    ) -> Operation[int]:
        what = Forgettable(
            session=None if session is None else SessionKey.of(session),
            user_id=user_id,
            agent_id=agent_id,
            entity=entity,
            before=before,
        )
        return self._settled(None, forget_turns(self._parts, what))

    def _after_looking(self, operation: Operation[T]) -> Operation[T]:
        """Carry out an operation without waiting for the writes in the background, being one of them."""
        yield from self._finisher.look()
        return (yield from operation)

    def _settled(self, session: SessionKey | None, operation: Operation[T]) -> Operation[T]:
        """Carry out an operation after the writes in the background, of one session or of all."""
        yield from self._finisher.look()
        waited_for = self._background.pending(session.path if session else None)
        if waited_for:
            try:
                yield request_writes(waited_for)
            finally:
                self._background.settle(waited_for)
        return (yield from operation)


def _do_nothing() -> Operation[None]:
    yield from ()
