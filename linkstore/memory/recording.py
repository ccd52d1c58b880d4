"""The operation that writes a turn."""

from __future__ import annotations

from linkstore.memory.keys import SessionKey
from linkstore.memory.parts import Parts, any_vector
from linkstore.memory.reading import Head, head_of
from linkstore.memory.requests import Add, Fetched
from linkstore.memory.turns import Turn
from linkstore.memory.writing import Said, documents_of, entity_documents, placed
from linkstore.plans import Candidates, Find, Ids, Operation, Plan

NOTHING_YET = Head(known=False, recorded=0, segment=0, count=0, recent=())


def recorded(parts: Parts, said: Said) -> Operation[Turn]:
    """Write a turn at the end of its session, in one change."""
    head = yield from session_head(parts, said.session, parts.window)
    turn = placed(said, head, new_topic=False)
    ids = tuple(str(one.id) for one in entity_documents(turn))
    known = frozenset((yield Fetched(store=parts.store, plan=_stored(ids))) if ids and head.segment else ())
    yield Add(store=parts.store, documents=documents_of(turn, head, known))
    return turn


def session_head(parts: Parts, session: SessionKey, take: int) -> Operation[Head]:
    """The end of a session; of one without turns, an empty one."""
    vector = yield from any_vector(parts.store)
    if vector is None:
        return NOTHING_YET
    return (yield Fetched(store=parts.store, plan=head_of(session, vector, take)))  # type: ignore[no-any-return]


def _stored(ids: tuple[str, ...]) -> Plan[list[str]]:
    found: Candidates = yield Find(ids=ids)
    return (yield Ids(refs=found.refs))  # type: ignore[no-any-return]
