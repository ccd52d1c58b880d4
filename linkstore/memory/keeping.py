"""Reads, exports and forgets what a memory stores, after the writes in the background."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypeVar

from linkstore.memory.background import Background
from linkstore.memory.finishing import Finisher
from linkstore.memory.forgetting import Forgettable, forgotten
from linkstore.memory.keys import SessionKey, check_owner
from linkstore.memory.listing import exported, listed_sessions, listed_turns
from linkstore.memory.parts import Parts
from linkstore.memory.requests import adrive, drive, written
from linkstore.memory.turns import Turn
from linkstore.plans import Operation

T = TypeVar("T")


class Keeping:
    """Reads, exports and forgets what is stored; each method first waits for the writes in the background."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._background = Background()
        self._finisher = Finisher(parts)

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
        return drive(self._settled(key, listed_turns(self._parts, key, last, segment)))

    async def aturns(
        self, session: SessionKey | str, last: int | None = None, *, segment: int | None = None
    ) -> list[Turn]:
        """Return the turns of a session: see :meth:`turns`."""
        key = SessionKey.of(session)
        return await adrive(self._settled(key, listed_turns(self._parts, key, last, segment)))

    def sessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns, sorted. The cost follows how many there are.

        Args:
            user_id: Only those of this user; default those of all.
            agent_id: Only those with this agent; default those with any.
        """
        check_owner(user_id, agent_id)
        return drive(self._settled(None, listed_sessions(self._parts, user_id, agent_id)))

    async def asessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns: see :meth:`sessions`."""
        check_owner(user_id, agent_id)
        return await adrive(self._settled(None, listed_sessions(self._parts, user_id, agent_id)))

    def export(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session as plain JSON: its key, turns in order, and summaries."""
        key = SessionKey.of(session)
        return drive(self._settled(key, exported(self._parts, key)))

    async def aexport(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session: see :meth:`export`."""
        key = SessionKey.of(session)
        return await adrive(self._settled(key, exported(self._parts, key)))

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
        return drive(self._forget(session, user_id, agent_id, entity, before))

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
        return await adrive(self._forget(session, user_id, agent_id, entity, before))

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
        drive(self._settled(None, _nothing()))

    async def aflush(self) -> None:
        """Wait for the writes in the background: see :meth:`flush`."""
        await adrive(self._settled(None, _nothing()))

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
        return self._settled(None, forgotten(self._parts, what))

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
                yield written(waited_for)
            finally:
                self._background.settle(waited_for)
        return (yield from operation)


def _nothing() -> Operation[None]:
    yield from ()
