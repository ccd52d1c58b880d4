"""The operation that recalls: from a question to the turns and chunks that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from langchain_core.documents import Document

from linkstore.filters import Filter
from linkstore.hits import Hit, Hits
from linkstore.memory.keys import SessionKey
from linkstore.memory.parts import Parts, any_vector
from linkstore.memory.reading import Head
from linkstore.memory.recalled import Recall
from linkstore.memory.recording import session_head
from linkstore.memory.references import Resolved, resolve
from linkstore.memory.requests import Fetched, Get, Search
from linkstore.memory.rewriting import rewritten
from linkstore.memory.serving import served, turns_mentioning
from linkstore.memory.turns import Turn, turn_of
from linkstore.memory.views import View, fused, views_of
from linkstore.memory.when import time_filter
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.strategies.reranking import reranked
from linkstore.text import fold

RECENT_ENTITIES: Final = 10
"""How many entities of the last turns a question without any may be about."""
SERVED: Final = 5
"""How many chunks that served the session before are recalled."""
POOL: Final = 50
"""How many hits of each view are joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller asks a memory."""

    session: SessionKey
    question: str
    k: int
    everywhere: bool
    now: datetime


def recalled(parts: Parts, asked: Asked) -> Operation[Recall]:
    """Recall what answers a question."""
    head = yield from session_head(parts, asked.session, parts.window)
    resolved = yield from _understood(parts, asked.question, head)
    entities = parts.entities(resolved.text) or recent_entities(head.recent)
    views = views_of(asked.question, resolved, head.recent)
    turns: tuple[Hit, ...] = ()
    if head.segment or asked.everywhere:
        turns = yield from _found(parts, parts.store, views, asked, _scope(asked))
    chunks: tuple[Hit, ...] = ()
    before: list[Document] = []
    if parts.knowledge is not None:
        before = yield from _served_before(parts, parts.knowledge, asked.session, head, entities)
        chunks = yield from _found(parts, parts.knowledge, views, asked, None)
    return Recall(
        question=asked.question,
        resolved=resolved.text,
        entities=tuple(entities),
        recent=head.recent,
        turns=tuple(turn_of(str(hit.document.id), hit.document.metadata) for hit in turns),
        scores=tuple(hit.score for hit in turns),
        chunks=chunks,
        served=tuple(before),
        reason=None if turns or chunks else "neither a turn nor a chunk is stored that could answer it",
    )


def recent_entities(turns: Sequence[Turn], most: int = RECENT_ENTITIES) -> tuple[str, ...]:
    """The distinct entities of turns, latest first."""
    found: dict[str, str] = {}
    for turn in reversed(turns):
        for name in turn.entities:
            found.setdefault(fold(name), name)
    return tuple(found.values())[:most]


def _understood(parts: Parts, question: str, head: Head) -> Operation[Resolved]:
    """The question with its references resolved, by the model if there is one."""
    if parts.model is not None and head.recent:
        return (yield from rewritten(parts.model, question, head.recent))
    return resolve(question, head.recent, parts.entities)


def _scope(asked: Asked) -> Filter:
    """The turns that may be recalled."""
    scope = asked.session.owners_scope if asked.everywhere else asked.session.scope
    return {**scope, **(time_filter(asked.question, asked.now) or {})}


def _found(
    parts: Parts, store: LinkStore, views: Sequence[View], asked: Asked, scope: Filter | None
) -> Operation[tuple[Hit, ...]]:
    """What a store has for the views of a question, best first."""
    pool = max(POOL, 2 * asked.k)
    found: list[Hits] = []
    for view in views:
        hits: Hits = yield Search(
            store=store, question=view.text, strategy=parts.strategy, k=pool, filter=scope
        )
        found.append(hits)
    best = fused(views, found, pool)
    if parts.reranker is None or not best:
        return best[: asked.k]
    judged: Hits = yield from reranked(Hits(hits=best), views[0].text, parts.reranker, 1.0, pool, asked.k)
    return judged.hits


def _served_before(
    parts: Parts, knowledge: LinkStore, session: SessionKey, head: Head, entities: Sequence[str]
) -> Operation[list[Document]]:
    """The chunks that responses of this session about these entities came from."""
    vector = (yield from any_vector(parts.store)) if head.segment and entities else None
    if vector is None:
        return []
    plan = turns_mentioning(session, head.segment, entities, vector)
    turns: list[Turn] = yield Fetched(store=parts.store, plan=plan)
    ids = served(turns, SERVED)
    return (yield Get(store=knowledge, ids=list(ids))) if ids else []
