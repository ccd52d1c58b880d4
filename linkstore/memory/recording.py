"""The operation that writes a turn."""

from __future__ import annotations

from langchain_core.documents import Document

from linkstore.backends.base import Manifest
from linkstore.memory.drift import is_new_topic
from linkstore.memory.entities import LONGEST_TEXT
from linkstore.memory.keys import SessionKey
from linkstore.memory.parts import Parts
from linkstore.memory.reading import Head, head_of, turns_of, written_before
from linkstore.memory.requests import add, embed
from linkstore.memory.summaries import FEWEST_TURNS, summary_document, summary_text
from linkstore.memory.turns import WORDLESS, Turn, turn_document
from linkstore.memory.writing import Said, completed, documents_of, entity_documents, placed
from linkstore.plans import Candidates, Find, Ids, Operation, Plan
from linkstore.twins import answered_by, any_vector, of_backend
from linkstore.vectors import Floats, unit_vector

NOTHING_YET = Head(known=False, recorded=0, segment=0, count=0, recent=())


def recorded(parts: Parts, said: Said) -> Operation[Turn]:
    """Write a turn at the end of its session, in one change, or complete the turn of its message."""
    vector = yield from _vector_of(parts, said.query)
    before = yield from _turn_of_message(parts, said, vector)
    if before is not None:
        return (yield from _completed(parts, before, said))
    head = NOTHING_YET
    if vector is not None:
        plan = head_of(said.session, vector, parts.window)
        head = yield answered_by(parts.store, plan)
    new = is_new_topic(said.query, said.entities, head.recent, head.similarity)
    turn = placed(said, head, new_topic=new)
    closing = yield from _summary_of_closed(parts, turn, head, vector)
    ids = tuple(str(one.id) for one in entity_documents(turn))
    known = frozenset((yield answered_by(parts.store, _stored(ids))) if ids and head.segment else ())
    yield add(parts.store, [*closing, *documents_of(turn, head, known)])
    return turn


def _turn_of_message(parts: Parts, said: Said, vector: Floats | None) -> Operation[Turn | None]:
    """Return the turn that was written for a message with a key, or None if there is none."""
    if vector is None or said.writing is None:
        return None
    plan = written_before(said.session, said.writing, vector)
    return (yield answered_by(parts.store, plan))  # type: ignore[no-any-return]


def _completed(parts: Parts, before: Turn, said: Said) -> Operation[Turn]:
    turn = completed(before, said)
    if turn != before:
        ids = tuple(str(one.id) for one in entity_documents(turn))
        known = frozenset((yield answered_by(parts.store, _stored(ids))) if ids else ())
        entities = [one for one in entity_documents(turn) if one.id not in known]
        yield add(parts.store, [*entities, turn_document(turn)])
    return turn


def session_head(parts: Parts, session: SessionKey, take: int) -> Operation[Head]:
    """Return the end of a session, which is empty if the session has no turns."""
    vector = yield from any_vector(parts.store)
    if vector is None:
        return NOTHING_YET
    return (yield answered_by(parts.store, head_of(session, vector, take)))  # type: ignore[no-any-return]


def _vector_of(parts: Parts, query: str) -> Operation[Floats | None]:
    """Embed the beginning of a query, to compare it with the last turns. Return None for an empty store."""
    manifest: Manifest = yield of_backend(parts.store, parts.store.backend.manifest())
    if manifest.dimension is None:
        return None
    said = query[:LONGEST_TEXT]
    given = yield embed(parts.store, said if said.strip() else WORDLESS)
    return unit_vector(given, manifest.dimension)


def _summary_of_closed(
    parts: Parts, turn: Turn, head: Head, vector: Floats | None
) -> Operation[list[Document]]:
    """Return the summary of the segment that a turn closes by opening another one."""
    if vector is None or head.segment in {0, turn.segment} or head.count < FEWEST_TURNS:
        return []
    plan = turns_of(turn.session, vector, [head.segment])
    turns: list[Turn] = yield answered_by(parts.store, plan)
    text = yield from summary_text(turns, parts.model)
    return [summary_document(turns, text)]


def _stored(ids: tuple[str, ...]) -> Plan[list[str]]:
    found: Candidates = yield Find(ids=ids)
    return (yield Ids(refs=found.refs))  # type: ignore[no-any-return]
