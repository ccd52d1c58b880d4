"""Writing: a turn is one document, and what it means is known when it is stored.

Its query is read in the light of the turns before it, its entities are those of what it means, and what it
states may supersede what was stated before. The document of its session only helps to find it; where an
engine writes a change document by document, as Cassandra does, a turn is stored when its own document is.

Writes in the background are carried out in order by one thread, and whoever reads waits for them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypedDict, TypeVar

from linkstore.core.arguments import omit_none, require, require_list
from linkstore.core.calls import Operation, call
from linkstore.core.plans import read_documents
from linkstore.core.processes import Lock
from linkstore.core.text import is_unicode
from linkstore.errors import DocumentError
from linkstore.memory.facts import FactStatement, read_statements, states_only
from linkstore.memory.focus import find_focus
from linkstore.memory.names import (
    find_answered_name,
    has_name,
    has_words,
    read_speaker,
    select_distinct_names,
)
from linkstore.memory.sessions import SessionKey, get_page, make_session_document
from linkstore.memory.settings import MemorySettings, add_documents, search_store
from linkstore.memory.turns import (
    STATES,
    SUPERSEDES,
    WRITTEN,
    Turn,
    check_metadata,
    format_time,
    make_document,
    make_written_tag,
    name_writing,
    read_head,
    read_turn,
    read_turns,
)
from linkstore.strategies.first_stage import Words

NAMING_CHUNKS: Final = 5
"""How many chunks are read to see whether an answer is a name."""
SUMMARY: Final = "summary"
"""The key of metadata that is true for the note with a session's summary."""
MOST_EARLIER: Final = 64
"""How many turns that state something of the same are compared with a new one, the latest."""


class TurnFields(TypedDict, total=False):
    """What may be given of a turn besides its texts.

    Attributes:
        entities: What the turn means; default: what the memory finds in the query and the response.
        sources: Ids of the chunks of knowledge that the response came from.
        time: When it was said; default now.
        key: Names the message within the session, such as the id that LangChain gives it. If the session has
            a turn with this key and query, that turn gets the response, the entities and the sources, and no
            other is written. Default: each message is new.
        metadata: What the application keeps with the turn, for filters of ``search``.
        supersedes: Ids of turns that state what is no longer so; default: what a rule finds.
        meaning: The query so that it stands alone; default: not known.
    """

    entities: Sequence[str] | None
    sources: Sequence[str]
    time: datetime | None
    key: str | None
    metadata: Mapping[str, Any]
    supersedes: Sequence[str] | None
    meaning: str | None


class TurnChanges(TypedDict, total=False):
    """What takes the place of a part of a turn; None or left out: it stays.

    Attributes:
        query: What the user said, or the text of a note.
        response: What was answered.
        metadata: What the application keeps with it, all of it.
    """

    query: str | None
    response: str | None
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class TurnInput:
    """The parts of a turn that a caller gave: see :class:`TurnFields`."""

    session: SessionKey
    query: str
    response: str | None = None
    entities: Sequence[str] | None = None
    sources: Sequence[str] = ()
    time: datetime | None = None
    key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    supersedes: Sequence[str] | None = None
    meaning: str | None = None

    def __post_init__(self) -> None:
        texts = omit_none(response=self.response, key=self.key, meaning=self.meaning)
        require(str, "a string", query=self.query, **texts)
        require_list("names", **omit_none(entities=self.entities))
        require_list("ids", sources=self.sources, **omit_none(supersedes=self.supersedes))
        check_metadata(self.metadata)
        for name in ("query", "response", "key", "meaning", "entities", "sources", "supersedes"):
            value = getattr(self, name) or ()
            for text in (value,) if isinstance(value, str) else value:
                if not is_unicode(text):
                    raise DocumentError(f"{name} must not have lone surrogates: {text[:80]!r}")

    @property
    def writing(self) -> str | None:
        """The name of this message in the ids of turns, None without a key."""
        return None if self.key is None else name_writing(self.key, self.query)


def record_turn(memory: MemorySettings, said: TurnInput) -> Operation[Turn]:
    """Write a turn at the end of its session, or complete the one that its message has already."""
    if said.time is not None:
        format_time(said.time)  # it needs a time zone
    if said.writing is not None:
        tags = [(WRITTEN, make_written_tag(said.session, said.writing))]
        written = yield from memory.read(read_turns(tags))
        if written:
            before = min(written, key=attrgetter("order"))
            _, recent = yield from memory.read(read_head(said.session, memory.window))
            earlier = [turn for turn in recent if turn.order < before.order]
            turn = yield from _complete(memory, before, said, earlier)
            if turn != before:
                yield from _store_turns(memory, [turn])
            return turn
    recorded, latest = yield from memory.read(read_head(said.session, memory.window))
    ordinal = latest[-1].ordinal + 1 if latest else 1
    turn = yield from understand(memory, said, ordinal, said.writing or uuid.uuid4().hex[:8], latest)
    yield from _store_turns(memory, [turn], recorded=recorded)
    return turn


def _store_turns(
    memory: MemorySettings, turns: Sequence[Turn], *, recorded: int | None = None
) -> Operation[None]:
    """Store turns or notes, and their session's document if that names no page as late.

    A session that is forgotten meanwhile loses its document: it is looked for after the turn is stored, and
    put back. Who removes it looks for turns afterwards. So one of the two sees what the other did.

    Args:
        memory: Where.
        turns: What is stored.
        recorded: The page that the session's document names, 0 without one; None: at least the turn's.
    """
    first = turns[0]
    head = make_session_document(first.session, max(1, get_page(first.ordinal)))
    late = recorded is not None and head.metadata["page"] > recorded
    yield from add_documents(memory.store, [*([head] if late else []), *map(make_document, turns)])
    if not (yield from memory.read(read_documents([first.session.path]))):
        yield from add_documents(memory.store, [head])


def understand(
    memory: MemorySettings,
    said: TurnInput,
    ordinal: int,
    writing: str,
    before: Sequence[Turn] = (),
    kind: str | None = None,
) -> Operation[Turn]:
    """Make a turn of what was said after others, or a note of a kind of memory."""
    meaning = said.meaning if said.meaning != said.query else None
    about = find_focus(meaning or said.query, memory.entities, before)
    focus = about.things if about.refers or not about.assumed else ()
    answered = yield from _find_answered_name(memory, said, before)
    stated = () if SUMMARY in said.metadata else read_statements(said.query)  # it tells of what was so
    turn = Turn(
        id=f"{said.session.path}/{ordinal:07d}-{writing}",
        session=said.session,
        ordinal=ordinal,
        query=said.query,
        response=said.response,
        time=datetime.now(UTC) if said.time is None else said.time,
        meaning=meaning or None,
        entities=_name_entities(memory, said, meaning or said.query, focus),
        focus=tuple(dict.fromkeys((*answered, *focus))),
        sources=tuple(dict.fromkeys(said.sources)),
        supersedes=tuple(said.supersedes or ()),
        statements=tuple(statement.key for statement in stated),
        follows=before[-1].id if before else None,
        memory=kind,
        metadata=dict(said.metadata),
    )
    if said.supersedes is None:
        turn = replace(turn, supersedes=(yield from _find_superseded(memory, turn, stated)))
    return turn


def _name_entities(
    memory: MemorySettings, said: TurnInput, resolved: str, meant: Sequence[str] = ()
) -> tuple[str, ...]:
    if said.entities is not None:
        return select_distinct_names(said.entities)
    texts = [resolved] if said.response is None else [resolved, said.response]
    texts = [*(f"the {thing}" for thing in meant), *texts]
    return select_distinct_names([name for text in texts for name in memory.entities(text)])


def _find_answered_name(
    memory: MemorySettings, said: TurnInput, before: Sequence[Turn]
) -> Operation[tuple[str, ...]]:
    """Return the name that an answer is, if an earlier turn or the knowledge has the name too."""
    name = find_answered_name(said.query, said.response)
    if name is None or has_name((turn.text for turn in before), name):
        return () if name is None else (name,)
    if memory.knowledge is None:
        return ()
    hits = yield from search_store(memory.knowledge, name, strategy=Words(), k=NAMING_CHUNKS)
    titled = any(hit.document.metadata.get("title") == name for hit in hits)
    return (name,) if titled or has_name((hit.document.page_content for hit in hits), name) else ()


def _complete(memory: MemorySettings, turn: Turn, said: TurnInput, before: Sequence[Turn]) -> Operation[Turn]:
    """Complete an earlier turn with what its message has got since: an answer, entities, sources."""
    fresh = _name_entities(memory, said, turn.meaning or said.query)
    answered = yield from _find_answered_name(memory, said, before)
    return replace(
        turn,
        response=turn.response if said.response is None else said.response,
        entities=select_distinct_names((*turn.entities, *fresh)),
        focus=tuple(dict.fromkeys((*answered, *turn.focus))),
        sources=tuple(dict.fromkeys((*turn.sources, *said.sources))),
        metadata={**turn.metadata, **said.metadata},
    )


def _find_superseded(
    memory: MemorySettings, turn: Turn, stated: Sequence[FactStatement]
) -> Operation[tuple[str, ...]]:
    """Return the ids of earlier turns and notes that state something else of the same."""
    if not stated:
        return ()
    tags = [(STATES, f"{turn.session.reach}#{key}") for key in dict.fromkeys(turn.statements)]
    earlier = yield from memory.read(read_turns(tags))
    return tuple(
        earlier_turn.id
        for earlier_turn in sorted(earlier, key=attrgetter("time"))[-MOST_EARLIER:]
        if earlier_turn.id != turn.id
        and earlier_turn.time <= turn.time
        and (not earlier_turn.is_note or states_only(earlier_turn.query))  # nothing else goes with it
        and read_speaker(earlier_turn.query) == read_speaker(turn.query)
        and any(new.supersedes(old) for new in stated for old in read_statements(earlier_turn.query))
    )


def record_note(memory: MemorySettings, said: TurnInput, kind: str = "semantic") -> Operation[Turn]:
    """Write a note of a session. The same text from the same turns is the same note."""
    if not has_words(said.query):
        raise DocumentError(f"a note needs words, and has none: {said.query!r}")
    writing = name_writing("\0".join(said.sources), said.query)
    turn = yield from understand(memory, said, 0, writing, kind=kind)
    documents = yield from memory.read(read_documents([said.session.path]))
    yield from _store_turns(memory, [turn], recorded=len(documents))
    return turn


def update_turn(
    memory: MemorySettings,
    id: str,
    *,
    query: str | None = None,
    response: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Operation[Turn]:
    """Replace texts or metadata of a stored turn or note; its place, time and links to others stay.

    Raises:
        DocumentError: If there is none with this id.
    """
    require(str, "the id of a turn", id=id)
    documents = yield from memory.read(read_documents([id]))
    if not documents or "ordinal" not in documents[0].metadata:
        raise DocumentError(f"there is no turn with the id {id!r}; see Turn.id of memory.turns(session)")
    before = read_turn(documents[0])
    turn_input = TurnInput(
        before.session,
        before.query if query is None else query,
        before.response if response is None else response,
        sources=before.sources,
        time=before.time,
        metadata=before.metadata if metadata is None else metadata,
        supersedes=before.supersedes if query is None else None,
        meaning=before.meaning if query is None else None,
    )
    turn = yield from understand(memory, turn_input, before.ordinal, before.writing, kind=before.memory)
    turn = replace(turn, follows=before.follows)
    if query is None:
        entities = select_distinct_names((*before.focus, *turn.entities))
        turn = replace(turn, focus=before.focus, entities=entities)
    changed: list[Turn] = []
    if query is not None:
        # What replaced the earlier text does not replace this one.
        later = yield from memory.read(read_turns([(SUPERSEDES, id)], "out"))
        changed = [replace(turn, supersedes=tuple({*turn.supersedes} - {id})) for turn in later]
    yield from _store_turns(memory, [turn, *changed])
    return turn


T = TypeVar("T")


class BackgroundWriter:
    """Carries out writes in one thread, in order, and keeps track of pending and failed ones."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[Future[Any], None] = {}
        self._lock = Lock()

    def submit(self, write: Callable[[], T]) -> Future[T]:
        """Carry out a write after those submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-memory")
            future = self._pool.submit(write)
            self._pending[future] = None
        future.add_done_callback(self._drop_succeeded)
        return future

    def _drop_succeeded(self, future: Future[Any]) -> None:
        if future.cancelled() or future.exception() is None:
            self._pending.pop(future, None)

    def wait(self) -> Operation[None]:
        """Wait for all writes. One that failed raises its error, once; another call goes on after it."""
        for future in list(self._pending):
            try:
                yield from call(future.result, partial(_await_write, future))
            finally:
                if future.done():
                    self._pending.pop(future, None)

    def close(self) -> None:
        """Carry out all writes, and end the thread."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)


async def _await_write(future: Future[T]) -> T:
    # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
    return await asyncio.shield(asyncio.wrap_future(future))
