"""Writing a turn: one change, of a turn that stands alone and of documents made from it.

The turn's document has all that was said, its entities, its sources and its place. The documents of its
session, segment and entities only help to find it; where an engine writes a change document by document, as
Cassandra does, a turn is stored when its own document is, and readers never need the others.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.errors import DocumentError
from linkstore.links import LINKS_KEY, Link
from linkstore.memory.keys import SessionKey
from linkstore.memory.reading import Head
from linkstore.memory.turns import (
    HAS_ENTITY,
    HAS_SEGMENT,
    HAS_SESSION,
    HAS_TURN,
    MENTIONS,
    RELATED_TO,
    Turn,
    common_metadata,
    turn_document,
    writing_of,
    written_time,
)
from linkstore.text import fold, is_unicode

SEGMENT_TURNS: Final = 100
"""How many turns a segment has at most."""
OPENING: Final = 400
"""How many characters of its first query the text of a segment has."""
MOST_ENTITIES: Final = 32
"""How many entities of a turn are linked, the first ones."""
MOST_RELATED: Final = 8
"""How many entities an entity is related to, of those that the same turn mentions first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
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
        return None if self.key is None else writing_of(self.key, self.query)

    def __post_init__(self) -> None:
        texts = {"query": (self.query,), "response": (self.response or "",), "key": (self.key or "",)}
        for name, given in {**texts, "entities": self.entities, "sources": self.sources}.items():
            for text in given:
                if not is_unicode(text):
                    raise DocumentError(f"{name} must not have lone surrogates: {text[:80]!r}")


def placed(said: Said, head: Head, *, new_topic: bool) -> Turn:
    """Make a turn at the end of its session. A new topic, or a full segment, opens a segment."""
    opens = head.segment == 0 or new_topic or head.count >= SEGMENT_TURNS
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
        entities=distinct_names(said.entities),
        sources=tuple(dict.fromkeys(said.sources)),
        follows=last.id if last else None,
    )


def completed(turn: Turn, said: Said) -> Turn:
    """Complete an earlier turn with what its message has got since: an answer, entities, sources."""
    return replace(
        turn,
        response=turn.response if said.response is None else said.response,
        entities=distinct_names((*turn.entities, *said.entities)),
        sources=tuple(dict.fromkeys((*turn.sources, *said.sources))),
    )


def documents_of(turn: Turn, head: Head, known: frozenset[str]) -> list[Document]:
    """Return the documents of a turn, its own last.

    Args:
        turn: To be written.
        head: The end of its session before it.
        known: Ids of documents of entities that are stored already.
    """
    opened = turn.segment != head.segment
    around = [session_document(turn), segment_document(turn)] if opened or not head.known else []
    entities = [one for one in entity_documents(turn) if one.id not in known]
    return [*around, *entities, turn_document(turn)]


def session_document(turn: Turn) -> Document:
    """Make the document of a session, which names the last segment."""
    session = turn.session
    links = [Link.incoming(kind=HAS_SESSION, tag=tag) for tag in session.groups]
    links.append(Link.outgoing(kind=HAS_SEGMENT, tag=session.path))
    metadata = {**common_metadata("session", session), "segment": turn.segment}
    return _linked(session.path, session.run_id, metadata, links)


def segment_document(turn: Turn) -> Document:
    """Make the document of a topic segment, which the turn opens."""
    session = turn.session
    id = session.segment(turn.segment)
    links = [Link.incoming(kind=HAS_SEGMENT, tag=session.path), Link.outgoing(kind=HAS_TURN, tag=id)]
    metadata = {
        **common_metadata("segment", session),
        "segment": turn.segment,
        "time": written_time(turn.time),
    }
    return _linked(id, turn.query[:OPENING], metadata, links)


def entity_documents(turn: Turn) -> list[Document]:
    """Make the documents of the entities of a turn, each as its segment mentions it."""
    ids = [turn.session.entity(turn.segment, name) for name in turn.entities]
    documents = []
    for id, name in zip(ids, turn.entities, strict=True):
        related = [other for other in ids if other != id][:MOST_RELATED]
        links = [Link.incoming(kind=kind, tag=id) for kind in (MENTIONS, RELATED_TO)]
        links.append(Link.incoming(kind=HAS_ENTITY, tag=turn.session.segment(turn.segment)))
        links += (Link.outgoing(kind=RELATED_TO, tag=other) for other in related)
        metadata = {
            **common_metadata("entity", turn.session),
            "segment": turn.segment,
            "name": fold(name),
            "time": written_time(turn.time),
        }
        documents.append(_linked(id, name, metadata, links))
    return documents


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return names with a word in them, each spelling once, the first :data:`MOST_ENTITIES`."""
    spelled: dict[str, str] = {}
    for name in names:
        shown = " ".join(name.split())
        if any(map(str.isalnum, shown)):
            spelled.setdefault(fold(shown), shown)
    return tuple(spelled.values())[:MOST_ENTITIES]


def _linked(id: str, text: str, metadata: dict[str, Any], links: Sequence[Link]) -> Document:
    said = text if any(map(str.isalnum, text)) else id
    return Document(
        id=id,
        page_content=said,
        metadata={**metadata, LINKS_KEY: [link.to_dict() for link in links]},
    )
