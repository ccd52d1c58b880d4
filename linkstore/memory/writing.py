"""Writing a turn: one change, made now or in the background.

Writing a turn: one change, of a turn that stands alone and of documents made from it.

The turn's document has all that was said, its entities, its sources and its place. The documents of its
session, segment and entities only help to find it; where an engine writes a change document by document, as
Cassandra does, a turn is stored when its own document is, and readers never need the others.

The operation that writes a turn.

Writing in the background, one write after another, with reads that wait for them.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, Final, TypeVar

from langchain_core.documents import Document

from linkstore.core.arrays import Floats, normalize_vector
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import Operation, select_stored
from linkstore.core.text import fold, is_unicode
from linkstore.engines.contract import Manifest
from linkstore.errors import DocumentError
from linkstore.memory.entities import LONGEST_TEXT
from linkstore.memory.requests import MemoryParts, request_add, request_embedding
from linkstore.memory.sessions import SessionHead, find_written, is_new_topic, read_head, read_turns
from linkstore.memory.summaries import FEWEST_TURNS, make_summary_document, summarise
from linkstore.memory.turns import (
    HAS_ENTITY,
    HAS_SEGMENT,
    HAS_SESSION,
    HAS_TURN,
    MENTIONS,
    RELATED_TO,
    WORDLESS,
    SessionKey,
    Turn,
    format_time,
    make_metadata,
    make_turn_document,
    name_writing,
)
from linkstore.store.linkstore import make_backend_call, make_plan_call

MOST_SEGMENT_TURNS: Final = 100
"""How many turns a segment has at most."""
OPENING_CHARACTERS: Final = 400
"""How many characters of its first query the text of a segment has."""
MOST_ENTITIES: Final = 32
"""How many entities of a turn are linked, the first ones."""
MOST_RELATED: Final = 8
"""How many entities an entity is related to, of those that the same turn mentions first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """The parts of a turn that a caller gave."""

    session: SessionKey
    query: str
    response: str | None
    time: datetime
    entities: tuple[str, ...]
    sources: tuple[str, ...]
    key: str | None = None

    @property
    def writing(self) -> str | None:
        """The name of this message in the ids of turns, None without a key."""
        return None if self.key is None else name_writing(self.key, self.query)

    def __post_init__(self) -> None:
        texts = {"query": (self.query,), "response": (self.response or "",), "key": (self.key or "",)}
        for name, given in {**texts, "entities": self.entities, "sources": self.sources}.items():
            for text in given:
                if not is_unicode(text):
                    raise DocumentError(f"{name} must not have lone surrogates: {text[:80]!r}")


def place_turn(said: TurnInput, head: SessionHead, *, new_topic: bool) -> Turn:
    """Make a turn at the end of its session. A new topic, or a full segment, opens a segment."""
    opens = head.segment == 0 or new_topic or head.count >= MOST_SEGMENT_TURNS
    last = head.recent[-1] if head.recent else None
    ordinal = last.ordinal + 1 if last else 1
    return Turn(
        id=said.session.turn(ordinal, said.writing or uuid.uuid4().hex[:8]),
        session=said.session,
        ordinal=ordinal,
        segment=max(head.segment, head.recorded) + 1 if opens else head.segment,
        query=said.query,
        response=said.response,
        time=said.time,
        entities=select_distinct_names(said.entities),
        sources=tuple(dict.fromkeys(said.sources)),
        follows=last.id if last else None,
    )


def complete_turn(turn: Turn, said: TurnInput) -> Turn:
    """Complete an earlier turn with what its message has got since: an answer, entities, sources."""
    return replace(
        turn,
        response=turn.response if said.response is None else said.response,
        entities=select_distinct_names((*turn.entities, *said.entities)),
        sources=tuple(dict.fromkeys((*turn.sources, *said.sources))),
    )


def make_documents(turn: Turn, head: SessionHead, known: frozenset[str]) -> list[Document]:
    """Return the documents of a turn, its own last.

    Args:
        turn: To be written.
        head: The end of its session before it.
        known: Ids of documents of entities that are stored already.
    """
    opened = turn.segment != head.segment
    around = [make_session_document(turn), make_segment_document(turn)] if opened or not head.known else []
    entities = [one for one in make_entity_documents(turn) if one.id not in known]
    return [*around, *entities, make_turn_document(turn)]


def make_session_document(turn: Turn) -> Document:
    """Make the document of a session, which names the last segment."""
    session = turn.session
    links = [Link.incoming(kind=HAS_SESSION, tag=tag) for tag in session.groups]
    links.append(Link.outgoing(kind=HAS_SEGMENT, tag=session.path))
    metadata = {**make_metadata("session", session), "segment": turn.segment}
    return _make_document(session.path, session.run_id, metadata, links)


def make_segment_document(turn: Turn) -> Document:
    """Make the document of a topic segment, which the turn opens."""
    session = turn.session
    id = session.segment(turn.segment)
    links = [Link.incoming(kind=HAS_SEGMENT, tag=session.path), Link.outgoing(kind=HAS_TURN, tag=id)]
    metadata = {
        **make_metadata("segment", session),
        "segment": turn.segment,
        "time": format_time(turn.time),
    }
    return _make_document(id, turn.query[:OPENING_CHARACTERS], metadata, links)


def make_entity_documents(turn: Turn) -> list[Document]:
    """Make the documents of the entities of a turn, each as its segment mentions it."""
    ids = [turn.session.entity(turn.segment, name) for name in turn.entities]
    documents = []
    for id, name in zip(ids, turn.entities, strict=True):
        related = [other for other in ids if other != id][:MOST_RELATED]
        links = [Link.incoming(kind=kind, tag=id) for kind in (MENTIONS, RELATED_TO)]
        links.append(Link.incoming(kind=HAS_ENTITY, tag=turn.session.segment(turn.segment)))
        links += (Link.outgoing(kind=RELATED_TO, tag=other) for other in related)
        metadata = {
            **make_metadata("entity", turn.session),
            "segment": turn.segment,
            "name": fold(name),
            "time": format_time(turn.time),
        }
        documents.append(_make_document(id, name, metadata, links))
    return documents


def select_distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a word in them, each spelling once, the first :data:`MOST_ENTITIES`."""
    spelled: dict[str, str] = {}
    for name in names:
        shown = " ".join(name.split())
        if any(map(str.isalnum, shown)):
            spelled.setdefault(fold(shown), shown)
    return tuple(spelled.values())[:MOST_ENTITIES]


def _make_document(id: str, text: str, metadata: dict[str, Any], links: Sequence[Link]) -> Document:
    said = text if any(map(str.isalnum, text)) else id
    return Document(
        id=id,
        page_content=said,
        metadata={**metadata, LINKS_KEY: [link.to_dict() for link in links]},
    )


EMPTY_HEAD = SessionHead(known=False, recorded=0, segment=0, count=0, recent=())


def record_turn(parts: MemoryParts, said: TurnInput) -> Operation[Turn]:
    """Write a turn at the end of its session, in one change, or complete the turn of its message."""
    vector = yield from _embed_query(parts, said.query)
    before = yield from _find_turn_of_message(parts, said, vector)
    if before is not None:
        return (yield from _write_completed(parts, before, said))
    head = EMPTY_HEAD
    if vector is not None:
        plan = read_head(said.session, vector, parts.window)
        head = yield make_plan_call(parts.store, plan)
    new = is_new_topic(said.query, said.entities, head.recent, head.similarity)
    turn = place_turn(said, head, new_topic=new)
    closing = yield from _summarise_closed(parts, turn, head, vector)
    ids = tuple(str(one.id) for one in make_entity_documents(turn))
    known = frozenset((yield make_plan_call(parts.store, select_stored(ids))) if ids and head.segment else ())
    yield request_add(parts.store, [*closing, *make_documents(turn, head, known)])
    return turn


def _find_turn_of_message(
    parts: MemoryParts, said: TurnInput, vector: Floats | None
) -> Operation[Turn | None]:
    """Return the turn that was written for a message with a key, or None if there is none."""
    if vector is None or said.writing is None:
        return None
    plan = find_written(said.session, said.writing)
    return (yield make_plan_call(parts.store, plan))  # type: ignore[no-any-return]


def _write_completed(parts: MemoryParts, before: Turn, said: TurnInput) -> Operation[Turn]:
    turn = complete_turn(before, said)
    if turn != before:
        ids = tuple(str(one.id) for one in make_entity_documents(turn))
        known = frozenset((yield make_plan_call(parts.store, select_stored(ids))) if ids else ())
        entities = [one for one in make_entity_documents(turn) if one.id not in known]
        yield request_add(parts.store, [*entities, make_turn_document(turn)])
    return turn


def read_session_head(parts: MemoryParts, session: SessionKey, take: int) -> Operation[SessionHead]:
    """Return the end of a session, which is empty if the session has no turns."""
    return (yield make_plan_call(parts.store, read_head(session, None, take)))  # type: ignore[no-any-return]


def _embed_query(parts: MemoryParts, query: str) -> Operation[Floats | None]:
    """Embed the beginning of a query, to compare it with the last turns. Return None for an empty store."""
    manifest: Manifest = yield make_backend_call(parts.store, parts.store.backend.manifest())
    if manifest.dimension is None:
        return None
    said = query[:LONGEST_TEXT]
    given = yield request_embedding(parts.store, said if said.strip() else WORDLESS)
    return normalize_vector(given, manifest.dimension)


def _summarise_closed(
    parts: MemoryParts, turn: Turn, head: SessionHead, vector: Floats | None
) -> Operation[list[Document]]:
    """Return the summary of the segment that a turn closes by opening another one."""
    if vector is None or head.segment in {0, turn.segment} or head.count < FEWEST_TURNS:
        return []
    plan = read_turns(turn.session, [head.segment])
    turns: list[Turn] = yield make_plan_call(parts.store, plan)
    text = yield from summarise(turns, parts.model)
    return [make_summary_document(turns, text)]


T = TypeVar("T")


class BackgroundWriter:
    """Carries out writes in one thread, in order, and knows those that are not done.

    A write that failed raises its error where it is waited for: by the next read of the same owner, by
    ``flush`` or by ``close``, once.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: dict[str, list[Future[Any]]] = {}
        self._lock = threading.Lock()

    def submit(self, owner: str, write: Callable[[], T]) -> Future[T]:
        """Carry out a write after those submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-memory")
            future = self._pool.submit(write)
            kept = [one for one in self._pending.get(owner, ()) if not _has_succeeded(one)]
            self._pending[owner] = [*kept, future]
        return future

    def pending(self, owner: str | None = None) -> tuple[Future[Any], ...]:
        """Return the writes that are not known to have succeeded, of one owner or of all."""
        with self._lock:
            owners = list(self._pending) if owner is None else [owner]
            return tuple(future for one in owners for future in self._pending.get(one, ()))

    def settle(self, waited_for: Sequence[Future[Any]]) -> None:
        """Drop the writes whose result a waiter has seen: those up to the first that failed.

        Args:
            waited_for: In the order in which they were waited for.
        """
        seen = waited_for[: sum(1 for _ in takewhile(_has_succeeded, waited_for)) + 1]
        with self._lock:
            for owner, futures in list(self._pending.items()):
                kept = [one for one in futures if one not in seen or not one.done()]
                if kept:
                    self._pending[owner] = kept
                else:
                    del self._pending[owner]

    def close(self) -> None:
        """Wait for all writes, and end the thread.

        Raises:
            Exception: The first that a write raised, if no read has raised it; the others are its notes.
        """
        pending = self.pending()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)
        with self._lock:
            self._pending.clear()
        errors = [error for one in pending if (error := _read_error(one)) is not None]
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"another write failed: {other}")
            raise errors[0]


def _has_succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _read_error(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()
