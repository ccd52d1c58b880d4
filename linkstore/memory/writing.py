"""Writing a turn: one change, made now or in the background.

The turn's document has all that was said, its entities, its sources and its place. The documents of its
session, segment and entities only help to find it; where an engine writes a change document by document, as
Cassandra does, a turn is stored when its own document is, and readers never need the others. A turn that
opens a segment is written with the summary of the one before. Without a model a summary is extractive: the
sentences that the segment's most frequent entities are in, as in H. P. Luhn, "The Automatic Creation of
Literature Abstracts", IBM Journal 2(2), 1958.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, Final, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.core.arrays import Floats, normalize_vector
from linkstore.core.calls import call_engine, call_plan
from linkstore.core.plans import Operation, select_stored
from linkstore.core.text import fold, is_unicode
from linkstore.engines.contract import Manifest
from linkstore.errors import DocumentError
from linkstore.memory.entities import LONGEST_TEXT
from linkstore.memory.requests import MemoryParts, ask_model, request_add, request_embedding
from linkstore.memory.sessions import (
    SessionHead,
    find_written,
    is_new_topic,
    read_head,
    read_turns,
)
from linkstore.memory.turns import (
    WORDLESS,
    SessionKey,
    Turn,
    format_turn,
    has_words,
    make_entity_documents,
    make_segment_document,
    make_session_document,
    make_summary_document,
    make_turn_document,
    name_writing,
)

MOST_SEGMENT_TURNS: Final = 100
"""How many turns a segment has at most."""
MOST_ENTITIES: Final = 32
"""How many entities of a turn are linked, the first ones."""
FEWEST_TURNS: Final = 3
"""A segment with fewer turns has no summary: its turns are as short."""
_MOST_SENTENCES: Final = 4
_MOST_KEY_ENTITIES: Final = 8
_LONGEST_SENTENCE: Final = 240
"""Characters of a sentence in a summary."""
_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_SUMMARY_PROMPT: Final = """
Summarise this part of a conversation in at most three sentences: what was asked, what was answered, and what
was decided. Add nothing.

{conversation}

Summary:"""

T = TypeVar("T")


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


def select_distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a word in them, each spelling once, the first :data:`MOST_ENTITIES`."""
    spelled: dict[str, str] = {}
    for name in names:
        shown = " ".join(name.split())
        if has_words(shown):
            spelled.setdefault(fold(shown), shown)
    return tuple(spelled.values())[:MOST_ENTITIES]


def record_turn(parts: MemoryParts, said: TurnInput) -> Operation[Turn]:
    """Write a turn at the end of its session, in one change, or complete the turn of its message."""
    vector = yield from _embed_query(parts, said.query)
    head, closing = SessionHead(), list[Document]()
    if vector is not None and said.writing is not None:
        plan = find_written(said.session, said.writing)
        before: Turn | None = yield call_plan(parts.store.backend, plan)
        if before is not None:
            turn = complete_turn(before, said)
            if turn != before:
                entities = yield from _make_new_entities(parts, turn)
                yield request_add(parts.store, [*entities, make_turn_document(turn)])
            return turn
    if vector is not None:
        head = yield call_plan(parts.store.backend, read_head(said.session, vector, parts.window))
    new = is_new_topic(said.query, said.entities, head.recent, head.similarity)
    turn = place_turn(said, head, new_topic=new)
    if vector is not None and head.segment not in {0, turn.segment} and head.count >= FEWEST_TURNS:
        closed: list[Turn] = yield call_plan(parts.store.backend, read_turns(turn.session, [head.segment]))
        text = yield from summarise(closed, parts.model)
        closing = [make_summary_document(closed, rank_key_entities(closed), text)]
    opened = turn.segment != head.segment
    around = [make_session_document(turn), make_segment_document(turn)] if opened or not head.known else []
    entities = make_entity_documents(turn) if opened else (yield from _make_new_entities(parts, turn))
    yield request_add(parts.store, [*closing, *around, *entities, make_turn_document(turn)])
    return turn


def _make_new_entities(parts: MemoryParts, turn: Turn) -> Operation[list[Document]]:
    """Make the documents of a turn's entities that are not stored."""
    entities = make_entity_documents(turn)
    plan = select_stored(tuple(str(one.id) for one in entities))
    stored: list[str] = (yield call_plan(parts.store.backend, plan)) if entities else []
    return [one for one in entities if one.id not in stored]


def _embed_query(parts: MemoryParts, query: str) -> Operation[Floats | None]:
    """Embed the beginning of a query, to compare it with the last turns. Return None for an empty store."""
    manifest: Manifest = yield call_engine(parts.store.backend, parts.store.backend.manifest())
    if manifest.dimension is None:
        return None
    said = query[:LONGEST_TEXT]
    given = yield request_embedding(parts.store, said if said.strip() else WORDLESS)
    return normalize_vector(given, manifest.dimension)


class BackgroundWriter:
    """Carries out writes in one thread, in order, and knows those that are not done.

    A write that failed raises its error where it is waited for: by the next read of the same owner, by
    ``flush`` or by ``close``, once.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._pending: list[tuple[str, Future[Any]]] = []
        self._lock = threading.Lock()

    def submit(self, owner: str, write: Callable[[], T]) -> Future[T]:
        """Carry out a write after those submitted before."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="linkstore-memory")
            future = self._pool.submit(write)
            kept = [pair for pair in self._pending if not _has_succeeded(pair[1])]
            self._pending = [*kept, (owner, future)]
        return future

    def pending(self, owner: str | None = None) -> tuple[Future[Any], ...]:
        """Return the writes that are not known to have succeeded, of one owner or of all."""
        return tuple(future for whose, future in self._pending if owner in {None, whose})

    def settle(self, waited_for: Sequence[Future[Any]]) -> None:
        """Drop the writes whose result a waiter has seen: those up to the first that failed.

        Args:
            waited_for: In the order in which they were waited for.
        """
        seen = waited_for[: sum(1 for _ in takewhile(_has_succeeded, waited_for)) + 1]
        with self._lock:
            self._pending = [pair for pair in self._pending if pair[1] not in seen or not pair[1].done()]

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
            self._pending = []
        errors = [CancelledError() if one.cancelled() else one.exception() for one in pending]
        failed = [error for error in errors if error is not None]
        if failed:
            for other in failed[1:]:
                failed[0].add_note(f"another write failed: {other}")
            raise failed[0]


def _has_succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def summarise(turns: Sequence[Turn], model: BaseLanguageModel[Any] | None) -> Operation[str]:
    """Summarise a segment, by the model if there is one."""
    if model is None:
        return extract_sentences(turns)
    conversation = "\n".join(map(format_turn, turns))
    answer: str = yield from ask_model(model, _SUMMARY_PROMPT.strip().format(conversation=conversation))
    return answer or extract_sentences(turns)


def extract_sentences(turns: Sequence[Turn]) -> str:
    """Return the sentences of turns that have most of their frequent entities, in order."""
    counts = Counter(word for turn in turns for name in turn.entities for word in fold(name).split())
    sentences = [
        sentence.strip()[:_LONGEST_SENTENCE]
        for turn in turns
        for text in (turn.query, turn.response or "")
        for sentence in _END.split(text)
        if sentence.strip()
    ]
    distinct = list(dict.fromkeys(sentences))

    def worth(at: int) -> tuple[float, int]:
        words = set(fold(distinct[at]).split())
        return -sum(counts[word] for word in words) / (8 + len(words)), at

    chosen = sorted(sorted(range(len(distinct)), key=worth)[:_MOST_SENTENCES])
    return " ".join(distinct[at] for at in chosen) or turns[0].text[:_LONGEST_SENTENCE]


def rank_key_entities(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Return the entities that most of the turns mention, the first mentioned first among equals."""
    spelled = {fold(name): name for turn in reversed(turns) for name in reversed(turn.entities)}
    counts = Counter(fold(name) for turn in turns for name in turn.entities)
    return tuple(spelled[key] for key, _ in counts.most_common(_MOST_KEY_ENTITIES))
