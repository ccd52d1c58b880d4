"""ConversationMemory: what was said in conversations, with its subjects and sources."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import convert_to_messages
from langchain_core.tools import BaseTool

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.calls import Operation, arun, run, run_in_thread
from linkstore.memory.distil import distil_session, read_session, summarise_session
from linkstore.memory.forgetting import ForgetOptions, Forgotten, delete_turns, forget_turns
from linkstore.memory.recall import Recall, RecallOptions, RecallRequest, find_turns, make_recall
from linkstore.memory.search import QueryView
from linkstore.memory.sessions import SessionKey, check_parts
from linkstore.memory.settings import MemorySettings
from linkstore.memory.turns import Turn, find_exchanges, read_head, read_session_documents, select_filled
from linkstore.memory.writing import (
    BackgroundWriter,
    TurnChanges,
    TurnFields,
    TurnInput,
    record_note,
    record_turn,
    update_turn,
)
from linkstore.store.search import check_argument_names

if TYPE_CHECKING:
    from linkstore.memory.middleware import MemoryMiddleware, SessionSource

T = TypeVar("T")
Messages = Sequence[Any]
"""Messages with roles, in any form that LangChain takes: ``{"role": …, "content": …}``, pairs, messages."""


class ConversationMemory(MemorySettings):
    """Remembers conversations and recalls what answers a question.

    A turn is a query and its response. It is stored as one document, with links to the turn before
    (``next_turn``), to what it means (``mentions``), to the chunks of knowledge that its response came from
    (``sourced_from``), and to turns that state what is no longer so (``supersedes``). A note is a fact, an
    event, a rule or a summary, made from turns or written by itself.

    A session is named by a :class:`SessionKey`, or by a string where there is neither user nor agent. One
    session never sees another, unless a caller asks for all sessions of the same user and agent. Any number
    of threads, tasks and processes may use one memory and one session.

    Args:
        store: Where conversations are kept. Give it a store of its own: in a store of knowledge, turns would
            be found as if they were knowledge.
        knowledge: What the responses are made from; its chunks are recalled beside the turns. None: only
            turns are recalled.
        window: How many of the last turns a recall gives and resolves references with; default 10.
        model: Distils and summarises; any model of LangChain. Default none.
        rewriter: Rewrites questions so that they stand alone: a model, or a function of the question and the
            last turns. None: questions stay as they are, and are searched for with what was said. What a
            model writes is used only if it is one question, keeps the user's words, and adds words of the
            turns or names of the knowledge; if it fails, the question stays as it is.
        reranker: Scores the texts found: a function, or a cross-encoder or document compressor of LangChain;
            default none.
        entities: Gives the entities that a text mentions; default
            :func:`~linkstore.memory.names.find_entities`.
        strategy: How to search the knowledge; default :data:`~linkstore.strategies.DEFAULT_STRATEGY`.
        ttl: Turns that are older are not recalled, and ``forget_expired`` erases them; default None, none
            are.
        touch: Whether a recall counts as an access to notes and chunks that fade; default True.

    Raises:
        ArgumentError: If an argument has the wrong type, such as a path instead of a store.
        StrategyError: If ``window`` is not an integer of at least 1, ``ttl`` is not positive, or ``strategy``
            is not a strategy.
    """

    _background: BackgroundWriter

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_background", BackgroundWriter())

    @overload
    def add(  # pyright: ignore[reportOverlappingOverload]
        self, session: SessionKey | str, query: str, response: str | None = None, **given: Unpack[TurnFields]
    ) -> Turn: ...
    @overload
    def add(self, session: SessionKey | str, query: Messages, **given: Unpack[TurnFields]) -> list[Turn]: ...
    def add(
        self,
        session: SessionKey | str,
        query: str | Messages,
        response: str | None = None,
        **given: Unpack[TurnFields],
    ) -> Turn | list[Turn]:
        """Write a turn at the end of a session, or several from messages. The first makes the session.

        A turn is one document. It is stored whole or not at all, also if the process is killed.

        Args:
            session: The conversation.
            query: What the user said; or messages with roles, of which those of the user become turns with
                the assistant's answers, under their ids. Messages of the system, of tools and of middleware
                (summaries) are left out.
            response: What was answered; None if there was no answer.
            given: What else is known: see :class:`~linkstore.memory.writing.TurnFields`.

        Raises:
            DocumentError: If the session, a text, an id or the time cannot be stored.
            BackendError: If the storage engine fails; the turn is then not stored.
        """
        return self._run(self._add(session, query, response, given))  # type: ignore[no-any-return]

    @overload
    async def aadd(
        self, session: SessionKey | str, query: str, response: str | None = None, **given: Unpack[TurnFields]
    ) -> Turn: ...
    @overload
    async def aadd(
        self, session: SessionKey | str, query: Messages, **given: Unpack[TurnFields]
    ) -> list[Turn]: ...
    async def aadd(
        self,
        session: SessionKey | str,
        query: str | Messages,
        response: str | None = None,
        **given: Unpack[TurnFields],
    ) -> Turn | list[Turn]:
        """Write a turn, or several from messages: see :meth:`add`."""
        return await self._arun(self._add(session, query, response, given))

    def add_later(
        self, session: SessionKey | str, query: str, response: str | None = None, **given: Unpack[TurnFields]
    ) -> Future[Turn]:
        """Write a turn in the background: see :meth:`add`.

        Every method of this memory waits for the turn first. If the write failed, the first of them raises
        its error.
        """
        check_argument_names("add_later()", given, TurnFields.__annotations__)
        turn_input = TurnInput(SessionKey.of(session), query, response, **given)
        return self._background.submit(lambda: run(record_turn(self, turn_input)))

    def remember(
        self, session: SessionKey | str, text: str, *, supersedes: Sequence[str] | None = None
    ) -> Turn:
        """Write a fact as a note of a session, or of a user: it is recalled, and is no turn.

        Args:
            session: Where it belongs.
            text: The fact, as a sentence that makes sense by itself.
            supersedes: Ids of turns and notes that are no longer so; default: what a rule finds.
        """
        return self._run(record_note(self, TurnInput(SessionKey.of(session), text, supersedes=supersedes)))

    async def aremember(
        self, session: SessionKey | str, text: str, *, supersedes: Sequence[str] | None = None
    ) -> Turn:
        """Write a fact: see :meth:`remember`."""
        note_input = TurnInput(SessionKey.of(session), text, supersedes=supersedes)
        return await self._arun(record_note(self, note_input))

    def recall(self, session: SessionKey | str, question: str, **options: Unpack[RecallOptions]) -> Recall:
        """Recall the turns and the chunks of knowledge that answer a question.

        Args:
            session: The conversation that the question is part of; it may be new.
            question: As the user asked it, before it is written as a turn.
            options: See :class:`~linkstore.memory.recall.RecallOptions`: ``k``, ``everywhere``, ``now``,
                ``as_of``, ``budget``, ``key``, ``filter``.

        Raises:
            StrategyError: If ``k`` or ``budget`` is not an integer of at least 1.
            BudgetError: If the question alone exceeds the budget.
            EmbeddingError: If the question is blank.
            DocumentError: If ``now`` or ``as_of`` has no time zone.
            BackendError: If a storage engine fails.
        """
        return self._run(make_recall(self, _make_request("recall", session, question, options)))

    async def arecall(
        self, session: SessionKey | str, question: str, **options: Unpack[RecallOptions]
    ) -> Recall:
        """Recall: see :meth:`recall`."""
        return await self._arun(make_recall(self, _make_request("arecall", session, question, options)))

    def search(
        self, session: SessionKey | str, text: str, **options: Unpack[RecallOptions]
    ) -> list[tuple[Turn, float]]:
        """Search turns and notes for a text as it is, best first, with scores: see :meth:`recall`.

        Nothing is rewritten, and the knowledge is not searched.
        """
        asked = _make_request("search", session, text, options)
        return self._run(find_turns(self, [QueryView(text)], asked))

    async def asearch(
        self, session: SessionKey | str, text: str, **options: Unpack[RecallOptions]
    ) -> list[tuple[Turn, float]]:
        """Search turns and notes: see :meth:`search`."""
        asked = _make_request("asearch", session, text, options)
        return await self._arun(find_turns(self, [QueryView(text)], asked))

    def turns(self, session: SessionKey | str, last: int | None = None) -> list[Turn]:
        """Return the turns of a session in order, none for an unknown session.

        Args:
            session: The conversation.
            last: Only this number of turns, the latest; default all.
        """
        return self._run(self._list_turns(session, last))

    async def aturns(self, session: SessionKey | str, last: int | None = None) -> list[Turn]:
        """Return the turns of a session: see :meth:`turns`."""
        return await self._arun(self._list_turns(session, last))

    def notes(self, session: SessionKey | str) -> list[Turn]:
        """Return the notes of a session by time: facts, events, rules and summaries."""
        return self._run(self._list_notes(session))

    async def anotes(self, session: SessionKey | str) -> list[Turn]:
        """Return the notes of a session: see :meth:`notes`."""
        return await self._arun(self._list_notes(session))

    def sessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns or notes, sorted. The cost follows how many there are.

        Args:
            user_id: Only those of this user; default those of all.
            agent_id: Only those with this agent; default those with any.
        """
        return self._run(self._list_sessions(user_id, agent_id))

    async def asessions(self, *, user_id: str | None = None, agent_id: str | None = None) -> list[SessionKey]:
        """Return the sessions that have turns or notes: see :meth:`sessions`."""
        return await self._arun(self._list_sessions(user_id, agent_id))

    def export(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session as plain JSON: its key, turns in order, and notes."""
        return self._run(self._export(session))

    async def aexport(self, session: SessionKey | str) -> dict[str, Any]:
        """Return all that is stored of a session: see :meth:`export`."""
        return await self._arun(self._export(session))

    def distil(
        self, session: SessionKey | str, model: BaseLanguageModel[Any] | None = None, *, pinning: bool = False
    ) -> list[Turn]:
        """Have a model write down facts, events and rules from the turns it has not read yet, as notes.

        Args:
            session: The conversation.
            model: A chat model with structured output; default the memory's.
            pinning: Whether a note may be a rule, which context compilers over the memory's store put into
                every context; default False, for conversations of strangers, who could pin what they like.

        Returns:
            The notes written; see :attr:`Turn.memory` and :attr:`Turn.supersedes`.

        Raises:
            ExtractionError: If the model fails, or returns something else.
        """
        return self._run(distil_session(self, SessionKey.of(session), model, pinning=pinning))

    async def adistil(
        self, session: SessionKey | str, model: BaseLanguageModel[Any] | None = None, *, pinning: bool = False
    ) -> list[Turn]:
        """Have a model write down what matters: see :meth:`distil`."""
        return await self._arun(distil_session(self, SessionKey.of(session), model, pinning=pinning))

    def summarise(self, session: SessionKey | str) -> Turn | None:
        """Write the summary of a session by the memory's model, as a note in the place of the one before.

        None if the session has no turns.

        Raises:
            ArgumentError: If the memory has no model.
            ExtractionError: If the model writes no word.
        """
        return self._run(summarise_session(self, SessionKey.of(session)))

    async def asummarise(self, session: SessionKey | str) -> Turn | None:
        """Write the summary of a session: see :meth:`summarise`."""
        return await self._arun(summarise_session(self, SessionKey.of(session)))

    def update(self, id: str, **changes: Unpack[TurnChanges]) -> Turn:
        """Replace texts or metadata of one turn or note. Its place and its time stay.

        Args:
            id: Its id.
            changes: See :class:`~linkstore.memory.writing.TurnChanges`.

        Raises:
            DocumentError: If there is none with this id.
        """
        return self._run(update_turn(self, id, **changes))

    async def aupdate(self, id: str, **changes: Unpack[TurnChanges]) -> Turn:
        """Replace texts or metadata of one turn or note: see :meth:`update`."""
        return await self._arun(update_turn(self, id, **changes))

    def delete(self, ids: list[str]) -> Forgotten:
        """Erase turns or notes by their ids, with notes made from them, as :meth:`forget` does."""
        return self._run(delete_turns(self, ids))

    async def adelete(self, ids: list[str]) -> Forgotten:
        """Erase turns or notes: see :meth:`delete`."""
        return await self._arun(delete_turns(self, ids))

    def forget(self, session: SessionKey | str | None = None, **chosen: Unpack[ForgetOptions]) -> Forgotten:
        """Forget the turns that meet all given conditions, with the notes made from them.

        Afterwards nothing of them can be recalled, and no file of an embedded store contains a byte of them.
        Cassandra keeps deleted content in its files until ``gc_grace_seconds`` of the tables have passed (10
        days by default) and the files have been compacted. Turns that others write meanwhile may stay.

        If it is interrupted, a part of the turns may be there; calling it again completes it.

        Only the sessions that are named are read: without a session, a user and an agent, all turns. An
        embedded store is then compacted, which costs what :meth:`~linkstore.LinkStore.compact` costs.

        Args:
            session: Turns of this session.
            chosen: ``user_id``, ``agent_id``, ``entity``, ``before``, ``preview``: see
                :class:`~linkstore.memory.forgetting.ForgetOptions`.

        Returns:
            What was erased, or would be with ``preview=True``, and why.

        Raises:
            DocumentError: If nothing is given, or ``before`` has no time zone.
        """
        check_argument_names("forget()", chosen, ForgetOptions.__annotations__)
        return self._run(forget_turns(self, session, **chosen))

    async def aforget(
        self, session: SessionKey | str | None = None, **chosen: Unpack[ForgetOptions]
    ) -> Forgotten:
        """Forget turns: see :meth:`forget`."""
        check_argument_names("aforget()", chosen, ForgetOptions.__annotations__)
        return await self._arun(forget_turns(self, session, **chosen))

    def forget_expired(self) -> Forgotten:
        """Forget the turns that are older than ``ttl``; none without one."""
        return self._run(self._forget_expired())

    async def aforget_expired(self) -> Forgotten:
        """Forget the turns that are older than ``ttl``; none without one."""
        return await self._arun(self._forget_expired())

    def flush(self) -> None:
        """Wait for the writes in the background, raise the error of one that failed, and record accesses."""
        self._run(self._record_accesses())

    async def aflush(self) -> None:
        """Wait for the writes in the background, and record accesses: see :meth:`flush`."""
        await self._arun(self._record_accesses())

    def close(self) -> None:
        """Wait for the writes in the background, and end them. The stores stay open.

        If a write failed, its error is raised; another call raises that of the next.
        """
        self._background.close()
        self.flush()

    async def aclose(self) -> None:
        """Wait for the writes in the background: see :meth:`close`."""
        await run_in_thread(self._background.close)
        await self.aflush()

    def middleware(
        self,
        session: SessionSource,
        *,
        k: int = 5,
        everywhere: bool = False,
        budget: int | None = None,
        place: Literal["system", "message"] = "system",
    ) -> MemoryMiddleware:
        """Make middleware for LangChain's ``create_agent``: it recalls before model calls and stores turns.

        Args:
            session: The conversation, or a function of LangGraph's runtime that gives it.
            k: How many turns and how many chunks to recall at most.
            everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
            budget: The most tokens that the message and what is recalled for it may have; default None,
                no budget. A run with a longer message raises BudgetError.
            place: Where what is recalled stands: at the end of the system message, or in a message of its own
                before the user's last one, so that prompt caches keep what stands before it.

        Raises:
            MissingExtraError: If the extra ``agents`` is not installed.
        """
        from linkstore.memory.middleware import MemoryMiddleware

        return MemoryMiddleware(self, session, k=k, everywhere=everywhere, budget=budget, place=place)

    def tools(self, session: SessionKey | str, *, everywhere: bool = False) -> list[BaseTool]:
        """Make the tools ``recall``, ``remember``, ``correct`` and ``forget`` for a model.

        Args:
            session: The conversation, whose turns and notes alone the tools change.
            everywhere: Whether turns of other sessions of the same user and agent are recalled as well.
        """
        from linkstore.memory.tools import MemoryScope, make_memory_tools

        return make_memory_tools(MemoryScope(self, SessionKey.of(session), everywhere))

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

    def _add(
        self, session: SessionKey | str, query: str | Messages, response: str | None, given: TurnFields
    ) -> Operation[Any]:
        key = SessionKey.of(session)
        check_argument_names("add()", given, TurnFields.__annotations__)
        if isinstance(query, str) or not isinstance(query, Sequence):
            return (yield from record_turn(self, TurnInput(key, query, response, **given)))
        exchanges = find_exchanges(convert_to_messages(query))
        inputs = [TurnInput(key, **{**asdict(exchange), **given}) for exchange in exchanges]
        turns: list[Turn] = []
        for turn_input in inputs:
            turns += [(yield from record_turn(self, turn_input))]
        return turns

    def _list_turns(self, session: SessionKey | str, last: int | None) -> Operation[list[Turn]]:
        require_at_least(0, **omit_none(last=last))
        key = SessionKey.of(session)
        if last is not None:
            return (yield from self.read(read_head(key, last)))[1]
        return (yield from read_session(self, key))[0]

    def _list_notes(self, session: SessionKey | str) -> Operation[list[Turn]]:
        return (yield from read_session(self, SessionKey.of(session)))[1]

    def _list_sessions(self, user_id: str | None, agent_id: str | None) -> Operation[list[SessionKey]]:
        check_parts(**omit_none(user_id=user_id, agent_id=agent_id))
        documents = yield from self.read(read_session_documents(user_id, agent_id))
        return (yield from self.read(select_filled(documents)))

    def _export(self, session: SessionKey | str) -> Operation[dict[str, Any]]:
        key = SessionKey.of(session)
        turns, notes = yield from read_session(self, key)
        parts = {"user_id": key.user_id, "agent_id": key.agent_id, "run_id": key.run_id}
        return {
            **parts,
            "turns": [turn.to_dict() for turn in turns],
            "notes": [note.to_dict() for note in notes],
        }

    def _forget_expired(self) -> Operation[Forgotten]:
        if self.ttl is None:
            return Forgotten(turns={}, notes=())
        return (yield from forget_turns(self, before=datetime.now(UTC) - self.ttl))

    def _record_accesses(self) -> Operation[None]:
        for accesses in self.accesses:
            yield from accesses.record(all=True)

    def _run(self, operation: Operation[T]) -> T:
        """Carry out an operation after the writes in the background."""
        return run(self._settle(operation))

    async def _arun(self, operation: Operation[T]) -> T:
        """Carry out an operation after the writes in the background."""
        return await arun(self._settle(operation))

    def _settle(self, operation: Operation[T]) -> Operation[T]:
        yield from self._background.wait()
        return (yield from operation)


def _make_request(
    method: str, session: SessionKey | str, question: str, options: RecallOptions
) -> RecallRequest:
    check_argument_names(f"{method}()", options, RecallOptions.__annotations__)
    return RecallRequest(SessionKey.of(session), question, **options)
