"""The operation that recalls: from a question to the turns and chunks that answer it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.hits import Hit, Hits
from linkstore.memory.keys import SessionKey
from linkstore.memory.parts import Parts
from linkstore.memory.recalled import Recall
from linkstore.memory.recording import session_head
from linkstore.memory.requests import Search
from linkstore.memory.turns import Turn, turn_of
from linkstore.plans import Operation
from linkstore.text import fold

RECENT_ENTITIES: Final = 10
"""How many entities of the last turns a reference may mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a caller asks a memory."""

    session: SessionKey
    question: str
    k: int
    everywhere: bool


def recalled(parts: Parts, asked: Asked) -> Operation[Recall]:
    """Recall what answers a question."""
    head = yield from session_head(parts, asked.session, parts.window)
    entities = parts.entities(asked.question) or recent_entities(head.recent)
    turns: Sequence[Hit] = ()
    chunks: Sequence[Hit] = ()
    scope = asked.session.owners_scope if asked.everywhere else asked.session.scope
    if head.segment or asked.everywhere:
        hits: Hits = yield Search(
            store=parts.store, question=asked.question, strategy=parts.strategy, k=asked.k, filter=scope
        )
        turns = tuple(hits)
    if parts.knowledge is not None:
        found: Hits = yield Search(
            store=parts.knowledge, question=asked.question, strategy=parts.strategy, k=asked.k
        )
        chunks = tuple(found)
    return Recall(
        question=asked.question,
        resolved=asked.question,
        entities=tuple(entities),
        recent=head.recent,
        turns=tuple(turn_of(str(hit.document.id), hit.document.metadata) for hit in turns),
        scores=tuple(hit.score for hit in turns),
        chunks=tuple(chunks),
        reason=None if turns or chunks else "nothing is stored that the question could be answered from",
    )


def recent_entities(turns: Sequence[Turn], most: int = RECENT_ENTITIES) -> tuple[str, ...]:
    """The distinct entities of turns, latest first."""
    found: dict[str, str] = {}
    for turn in reversed(turns):
        for name in turn.entities:
            found.setdefault(fold(name), name)
    return tuple(found.values())[:most]
