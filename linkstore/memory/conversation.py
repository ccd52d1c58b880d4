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
from linkstore.core.calls import run_in_thread
from linkstore.errors import StrategyError
from linkstore.memory.entities import EntityFinder, find_entities
from linkstore.memory.history import MemoryHistory
from linkstore.memory.recall import RecallRequest, make_recall
from linkstore.memory.recalled import Recall
from linkstore.memory.requests import MemoryParts, arun_operation, run_operation
from linkstore.memory.turns import SessionKey, Turn, format_time, name_writing
from linkstore.memory.writing import TurnInput, record_turn
from linkstore.store.linkstore import LinkStore, require_store
from linkstore.store.searching import choose_strategy
from linkstore.strategies.base import Reranker, Strategy
from linkstore.strategies.pagerank import DEFAULT_STRATEGY

if TYPE_CHECKING:
    from linkstore.memory.middleware import MemoryMiddleware, SessionSource

T = TypeVar("T")


class ConversationMemory(MemoryHistory):
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
        _check_ttl(ttl)
        _check_helpers(model, reranker, entities)
        self.store = store
        self.knowledge = knowledge
        parts = MemoryParts(
            store=store,
            knowledge=knowledge,
            window=window,
            model=model,
            reranker=reranker,
            entities=entities,
            strategy=choose_strategy(strategy, None),
            ttl=ttl,
        )
        super().__init__(parts)

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
        return run_operation(self._settled(said.session, record_turn(self._parts, said)))

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
        return await arun_operation(self._settled(said.session, record_turn(self._parts, said)))

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
        operation = self._after_looking(record_turn(self._parts, said))
        return self._background.submit(said.session.path, lambda: run_operation(operation))

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
        asked = self._make_request(session, question, k, everywhere, now, budget, key)
        return run_operation(self._settled(asked.session, make_recall(self._parts, asked)))

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
        asked = self._make_request(session, question, k, everywhere, now, budget, key)
        return await arun_operation(self._settled(asked.session, make_recall(self._parts, asked)))

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

    def _make_request(
        self,
        session: SessionKey | str,
        question: str,
        k: int,
        everywhere: bool,
        now: datetime | None,
        budget: int | None,
        key: str | None,
    ) -> RecallRequest:
        require(str, "a string", question=question, **omit_none(key=key))
        require_at_least(1, k=k)
        if budget is not None:
            require_at_least(1, budget=budget)
        moment = datetime.now(UTC) if now is None else now
        format_time(moment)  # it needs a time zone
        return RecallRequest(
            session=SessionKey.of(session),
            question=question,
            k=k,
            everywhere=everywhere,
            now=moment,
            budget=budget,
            own=None if key is None else name_writing(key, question),
        )


def _check_ttl(ttl: timedelta | None) -> None:
    """Raise unless this is a positive time, or None."""
    if ttl is not None:
        require(timedelta, "a timedelta, such as timedelta(days=30)", ttl=ttl)
        if ttl <= timedelta(0):
            raise StrategyError(f"ttl must be a positive time, not {ttl!r}")


def _check_helpers(model: object, reranker: object, entities: object) -> None:
    """Raise unless what a memory calls can be called."""
    if model is not None:
        require_model("invoke", model)
    require_having("__call__", "a function", entities=entities, **omit_none(reranker=reranker))
