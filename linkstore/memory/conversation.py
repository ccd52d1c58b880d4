"""ConversationMemory: what was said in conversations, about what, and from which source."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.language_models import BaseLanguageModel
from langchain_core.tools import BaseTool

from linkstore.core.arguments import (
    omit_none,
    require,
    require_at_least,
    require_having,
    require_list,
    require_model,
)
from linkstore.core.calls import arun, run, run_in_thread
from linkstore.core.plans import Operation
from linkstore.errors import StrategyError
from linkstore.memory.entities import EntityFinder, find_entities
from linkstore.memory.forgetting import forget_turns
from linkstore.memory.recall import Recall, RecallRequest, make_recall
from linkstore.memory.requests import MemoryParts, request_writes
from linkstore.memory.sessions import export_session, list_sessions, list_turns
from linkstore.memory.turns import SessionKey, Turn, check_parts
from linkstore.memory.writing import BackgroundWriter, TurnInput, record_turn
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.search import choose_strategy
from linkstore.strategies.base import Reranker, Strategy
from linkstore.strategies.pagerank import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from linkstore.memory.middleware import MemoryMiddleware, SessionSource

T = TypeVar("T")


class ConversationMemory:
    """Remembers conversations and recalls what answers a question.

    A turn is a query and its response. It is stored as one document, with links to the turn before
    (``next_turn``), to the entities it mentions (``mentions``), to the chunks of knowledge that its response
    came from (``sourced_from``), and from its topic segment (``has_turn``).

    A session is named by a :class:`SessionKey`, or by a string where there is neither user nor agent. One
    session never sees another, unless a caller asks for all sessions of the same user and agent. Any number
    of threads, tasks and processes may use one memory and one session.

    Args:
        store: Where conversations are kept. Give it a store of its own: in a store of knowledge, turns would
            be found as if they were knowledge.
        knowledge: What the responses are made from; its chunks are recalled beside the turns. None: only
            turns are recalled.
        window: How many of the last turns a recall gives and resolves references with; default 10.
        model: Resolves references and writes summaries; any model of LangChain. None: rules do.
        reranker: Function that scores the texts found; default none.
        entities: Gives the entities that a text mentions; default
            :func:`~linkstore.memory.entities.find_entities`.
        strategy: How to search the knowledge; default :data:`~linkstore.strategies.DEFAULT_STRATEGY`.
        ttl: Turns that are older are not recalled, and ``forget_expired`` erases them; default None, none
            are.

    Raises:
        ArgumentError: If an argument has the wrong type, such as a path instead of a store.
        StrategyError: If ``window`` is not an integer of at least 1, ``ttl`` is not positive, or ``strategy``
            is not a strategy.
    """

    def __init__(
        self,
        store: LinkStore,
        knowledge: LinkStore | None = None,
        *,
        window: int = 10,
        model: BaseLanguageModel[Any] | None = None,
        reranker: Reranker | None = None,
        entities: EntityFinder = find_entities,
        strategy: Strategy = DEFAULT_STRATEGY,
        ttl: timedelta | None = None,
    ) -> None:
        require_store(store=store, **omit_none(knowledge=knowledge))
        require_at_least(1, window=window)
        if ttl is not None:
            require(timedelta, "a timedelta, such as timedelta(days=30)", ttl=ttl)
            if ttl <= timedelta(0):
                raise StrategyError(f"ttl must be a positive time, not {ttl!r}")
        if model is not None:
            require_model("invoke", model)
        require_having("__call__", "a function", entities=entities, **omit_none(reranker=reranker))
        self.store = store
        self.knowledge = knowledge
        self._background = BackgroundWriter()
        self._parts = MemoryParts(
            store=store,
            knowledge=knowledge,
            window=window,
            model=model,
            reranker=reranker,
            entities=entities,
            strategy=choose_strategy(strategy, None),
            ttl=ttl,
        )

    def add(
        self,
        session: SessionKey | str,
        query: str,
        response: str | None = None,
        *,
        entities: Sequence[str] | None = None,
        sources: Sequence[str] = (),
        time: datetime | None = None,
        key: str | None = None,
    ) -> Turn:
        """Write a turn at the end of a session. The first turn makes the session.

        The turn is one document. It is stored whole or not at all, also if the process is killed. A turn that
        begins a new topic is written together with the summary of the segment that it closes, for which the
        model is called if there is one; if that fails, the turn is not stored either.

        Args:
            session: The conversation.
            query: What the user said.
            response: What was answered; None if there was no answer.
            entities: What the turn mentions; default: what the memory finds in the query and the response.
            sources: Ids of the chunks of knowledge that the response came from.
            time: When it was said; default now.
            key: Names the message within the session, such as the id that LangChain gives it. If the session
                has a turn with this key and query, that turn gets the response, the entities and the sources,
                and no other is written. Default: each message is new.

        Raises:
            DocumentError: If the session, a text, an id or the time cannot be stored.
            BackendError: If the storage engine fails; the turn is then not stored.
        """
        said = self._make_input(session, query, response, entities, sources, time, key)
        return run(self._settled(said.session, record_turn(self._parts, said)))

    async def aadd(
        self,
        session: SessionKey | str,
        query: str,
        response: str | None = None,
        *,
        entities: Sequence[str] | None = None,
        sources: Sequence[str] = (),
        time: datetime | None = None,
        key: str | None = None,
    ) -> Turn:
        """Write a turn: see :meth:`add`."""
        said = self._make_input(session, query, response, entities, sources, time, key)
        return await arun(self._settled(said.session, record_turn(self._parts, said)))

    def add_later(
        self,
        session: SessionKey | str,
        query: str,
        response: str | None = None,
        *,
        entities: Sequence[str] | None = None,
        sources: Sequence[str] = (),
        time: datetime | None = None,
        key: str | None = None,
    ) -> Future[Turn]:
        """Write a turn in the background: see :meth:`add`.

        Every method of this memory that reads or writes the session waits for the turn first. If the write
        failed, that method raises its error, unless the future's result was asked for before.
        """
        said = self._make_input(session, query, response, entities, sources, time, key)
        operation = record_turn(self._parts, said)
        return self._background.submit(said.session.path, lambda: run(operation))

    def recall(
        self,
        session: SessionKey | str,
        question: str,
        *,
        k: int = 5,
        everywhere: bool = False,
        now: datetime | None = None,
        budget: int | None = None,
        key: str | None = None,
    ) -> Recall:
        """Recall the turns and the chunks of knowledge that answer a question.

        Args:
            session: The conversation that the question is part of; it may be new.
            question: As the user asked it, before it is written as a turn.
            k: How many turns and how many chunks to return at most; default 5.
            everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
            now: The time that "last week" and the like are counted from; default the current time, in UTC.
            budget: The most tokens that :attr:`Recall.prompt` may have, counted as
                :class:`~linkstore.context.ContextCompiler` does, which chooses the chunks. Half of it at most
                is for the conversation. Default None, no budget.
            key: Names the message of the question, if it has been written: its own turn is not recalled.

        Raises:
            StrategyError: If ``k`` or ``budget`` is not an integer of at least 1.
            BudgetError: If the question alone exceeds the budget.
            EmbeddingError: If the question is blank.
            DocumentError: If ``now`` has no time zone.
            BackendError: If a storage engine fails.
        """
        moment = datetime.now(UTC) if now is None else now
        asked = RecallRequest(SessionKey.of(session), question, k, everywhere, moment, budget, key)
        return run(self._settled(asked.session, make_recall(self._parts, asked)))

    async def arecall(
        self,
        session: SessionKey | str,
        question: str,
        *,
        k: int = 5,
        everywhere: bool = False,
        now: datetime | None = None,
        budget: int | None = None,
        key: str | None = None,
    ) -> Recall:
        """Recall: see :meth:`recall`."""
        moment = datetime.now(UTC) if now is None else now
        asked = RecallRequest(SessionKey.of(session), question, k, everywhere, moment, budget, key)
        return await arun(self._settled(asked.session, make_recall(self._parts, asked)))

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
        return run(self._settled(key, list_turns(self._parts, key, last, segment)))

    async def aturns(
        self, session: SessionKey | str, last: int | None = None, *, segment: int | None = None
    ) -> list[Turn]:
        """Return the turns of a session: see :meth:`turns`."""
        key = SessionKey.of(session)
        return await arun(self._settled(key, list_turns(self._parts, key, last, segment)))

    def sessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns, sorted. The cost follows how many there are.

        Args:
            user_id: Only those of this user; default those of all.
            agent_id: Only those with this agent; default those with any.
        """
        check_parts(**omit_none(user_id=user_id, agent_id=agent_id))
        return run(self._settled(None, list_sessions(self._parts, user_id, agent_id)))

    async def asessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns: see :meth:`sessions`."""
        check_parts(**omit_none(user_id=user_id, agent_id=agent_id))
        return await arun(self._settled(None, list_sessions(self._parts, user_id, agent_id)))

    def export(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session as plain JSON: its key, turns in order, and summaries."""
        key = SessionKey.of(session)
        return run(self._settled(key, export_session(self._parts, key)))

    async def aexport(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session: see :meth:`export`."""
        key = SessionKey.of(session)
        return await arun(self._settled(key, export_session(self._parts, key)))

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

        If it is interrupted, a part of the turns may be there; calling it again completes it.

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
        return run(self._settled(None, forget_turns(self._parts, session, user_id, agent_id, entity, before)))

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
        return await arun(
            self._settled(None, forget_turns(self._parts, session, user_id, agent_id, entity, before))
        )

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
        run(self._settled(None, _do_nothing()))

    async def aflush(self) -> None:
        """Wait for the writes in the background: see :meth:`flush`."""
        await arun(self._settled(None, _do_nothing()))

    def close(self) -> None:
        """Wait for the writes in the background, and end them. The stores stay open."""
        self._background.close()

    async def aclose(self) -> None:
        """Wait for the writes in the background: see :meth:`close`."""
        await run_in_thread(self.close)

    def middleware(
        self, session: SessionSource, *, k: int = 5, everywhere: bool = False, budget: int | None = None
    ) -> MemoryMiddleware:
        """Make middleware for LangChain's ``create_agent``: it recalls before model calls and stores turns.

        Args:
            session: The conversation, or a function of LangGraph's runtime that gives it.
            k: How many turns and how many chunks to recall at most.
            everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
            budget: The most tokens that the message and what is recalled for it may have; default None,
                no budget. A run with a longer message raises BudgetError.

        Raises:
            MissingExtraError: If the extra ``agents`` is not installed.
        """
        from linkstore.memory.middleware import MemoryMiddleware

        return MemoryMiddleware(self, session, k=k, everywhere=everywhere, budget=budget)

    def tools(self, session: SessionKey | str, *, everywhere: bool = False) -> list[BaseTool]:
        """Make the tools ``recall`` and ``remember``, with which a model uses this memory.

        Args:
            session: The conversation.
            everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
        """
        from linkstore.memory.tools import memory_tools

        return memory_tools(self, session, everywhere=everywhere)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"ConversationMemory({self.store!r}, knowledge={self.knowledge!r})"

    def _make_input(
        self,
        session: SessionKey | str,
        query: str,
        response: str | None,
        entities: Sequence[str] | None,
        sources: Sequence[str],
        time: datetime | None,
        key: str | None,
    ) -> TurnInput:
        """Return the values that a caller gave, with entities and time filled in."""
        require(str, "a string", query=query, **omit_none(response=response, key=key))
        require_list("names", **omit_none(entities=entities))
        require_list("ids of chunks", sources=sources)
        texts = [query] if response is None else [query, response]
        found = [name for text in texts for name in self._parts.entities(text)]
        return TurnInput(
            session=SessionKey.of(session),
            query=query,
            response=response,
            time=datetime.now(UTC) if time is None else time,
            entities=tuple(found if entities is None else entities),
            sources=tuple(sources),
            key=key,
        )

    def _settled(self, session: SessionKey | None, operation: Operation[T]) -> Operation[T]:
        """Carry out an operation after the writes in the background, of one session or of all."""
        waited_for = self._background.pending(session.path if session else None)
        if waited_for:
            try:
                yield request_writes(waited_for)
            finally:
                self._background.settle(waited_for)
        return (yield from operation)


def _do_nothing() -> Operation[None]:
    yield from ()
