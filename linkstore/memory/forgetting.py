"""Forgetting: turns are removed with all that was made from them, and erased from the files of the store.

What tells of turns goes first, then the turns, then what leads to them. So a call that is interrupted leaves
each turn whole or removes it, and another call with the same arguments finds and removes all that is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require
from linkstore.core.calls import call_engine, call_plan
from linkstore.core.plans import Operation, StoredDocument
from linkstore.core.text import fold, tokenize
from linkstore.errors import DocumentError
from linkstore.memory.requests import MemoryParts, request_add, request_delete
from linkstore.memory.sessions import read_session_documents, read_sessions
from linkstore.memory.turns import (
    SessionKey,
    Turn,
    check_parts,
    format_time,
    make_entity_documents,
    make_segment_document,
    make_session_document,
    read_turn,
)

_ORDER: Final = (("entity", "summary"), ("turn",), ("segment",), ("session",))
"""In which order documents are removed. Turns are read by their segments, and segments by their sessions."""
_SESSIONS_AT_ONCE: Final = 100
"""How many sessions are read at once."""


def forget_turns(
    parts: MemoryParts,
    session: SessionKey | str | None,
    user_id: str | None,
    agent_id: str | None,
    entity: str | None,
    before: datetime | None,
) -> Operation[int]:
    """Remove the turns for which all that is given holds, erase them from the files, and return how many.

    Raises:
        ArgumentError: If ``entity`` or ``before`` has the wrong type.
        DocumentError: If nothing is given, a user or agent cannot be stored, or ``before`` has no time zone.
    """
    if all(one is None for one in (session, user_id, agent_id, entity, before)):
        raise DocumentError("forget() needs to know what: a session, user_id, agent_id, entity or before")
    check_parts(**omit_none(user_id=user_id, agent_id=agent_id))
    require(str, "a string", **omit_none(entity=entity))
    key = None if session is None else SessionKey.of(session)
    moment = None if before is None else format_time(before)

    def is_meant(turn: Turn) -> bool:
        early = moment is None or format_time(turn.time) < moment
        return early and (entity is None or _mentions(turn, entity))

    keys: list[SessionKey] = []
    if key is None:
        plan = read_sessions(user_id, agent_id)
        found: list[StoredDocument] = yield call_plan(parts.store.backend, plan)
        keys = [SessionKey.from_path(one.id) for one in found]
    elif user_id in {None, key.user_id} and agent_id in {None, key.agent_id}:
        keys = [key]
    count = 0
    for at in range(0, len(keys), _SESSIONS_AT_ONCE):
        reading = read_session_documents(keys[at : at + _SESSIONS_AT_ONCE])
        documents: list[StoredDocument] = yield call_plan(parts.store.backend, reading)
        turns = [read_turn(one.id, one.metadata) for one in documents if one.metadata["type"] == "turn"]
        gone = {turn.id for turn in turns if is_meant(turn)}
        kept = [turn for turn in turns if turn.id not in gone]
        removed, changed = _find_consequences(documents, kept, gone)
        if changed:
            yield request_add(parts.store, changed)
        for kinds in _ORDER:
            ids = [one.id for one in documents if one.id in removed and one.metadata["type"] in kinds]
            if ids:
                yield request_delete(parts.store, ids)
        count += len(gone)
    yield call_engine(parts.store.backend, parts.store.backend.compact())
    return count


def _mentions(turn: Turn, entity: str) -> bool:
    """Say whether a turn mentions this: as one of its entities, or as words next to each other."""
    if fold(entity) in map(fold, turn.entities):
        return True
    said, words = tokenize(turn.text), tokenize(entity)
    starts = range(len(said) - len(words) + 1) if words else ()
    return any(said[at : at + len(words)] == words for at in starts)


def _find_consequences(
    documents: Iterable[StoredDocument], kept: Iterable[Turn], gone: set[str]
) -> tuple[set[str], list[Document]]:
    """Return the documents that go, with these turns, and those that are to be as if these had never been."""
    wanted: dict[str, Document] = {}
    for turn in sorted(kept, key=lambda turn: turn.order):
        for made in (make_segment_document(turn), *make_entity_documents(turn)):
            wanted.setdefault(str(made.id), made)
        session = wanted.get(turn.session.path)
        if session is None or session.metadata["segment"] < turn.segment:
            wanted[turn.session.path] = make_session_document(turn)
    touched = {_read_segment_id(one) for one in documents if one.id in gone}
    removed: set[str] = set()
    changed: list[Document] = []
    for one in documents:
        kind, segment = one.metadata["type"], _read_segment_id(one)
        if kind == "summary":
            stays = segment in wanted and segment not in touched
        else:
            stays = one.id in wanted or (kind == "turn" and one.id not in gone)
        if not stays:
            removed.add(one.id)
        elif kind == "session":
            if one.metadata["segment"] > wanted[one.id].metadata["segment"]:
                changed.append(wanted[one.id])
        elif kind != "turn" and segment in touched:
            changed.append(wanted[one.id])
    return removed, changed


def _read_segment_id(one: StoredDocument) -> str:
    return SessionKey.from_path(one.metadata["session"]).segment(one.metadata.get("segment", 0))
