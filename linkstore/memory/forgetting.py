"""Forgetting: turns are removed with all that was made from them, and erased from the files of the store.

A turn is about an entity if the entity is among those of what it means, or if its words name it; within a
session that names it in full, a part of its name or its last noun does too. Nothing goes for its place in
the conversation alone; a note made from a turn that goes does.

What tells of turns goes first, and the documents of sessions last; the document of one that got a turn
meanwhile is put back. So a call that is interrupted leaves each turn whole or removes it, and another call
with the same arguments finds and removes all that is left.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from typing import Final, TypedDict

from linkstore.core.arguments import omit_none, require, require_list
from linkstore.core.calls import Operation, call_engine
from linkstore.core.plans import StoredDocument, read_documents
from linkstore.core.text import fold, tokenize
from linkstore.errors import DocumentError
from linkstore.memory.sessions import SessionKey, check_parts
from linkstore.memory.settings import MemorySettings, add_documents, delete_documents
from linkstore.memory.turns import Turn, format_time, read_all, read_session_documents, read_turn
from linkstore.store.documents import as_document
from linkstore.strategies.resolver import has_part, strip_word

_COMMON_NOUN: Final = re.compile(r"\b(?:an?|une?|una) [a-z]\w*")
_SESSIONS_AT_ONCE: Final = 100
"""How many sessions are read at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was erased.

    Args:
        turns: For the id of each turn why it went: ``"meant"``, ``"named"``, or ``"asked"`` where no entity
            was given.
        notes: The ids of notes: facts, events, rules and summaries.
        reason: Why nothing met the conditions, None if something did.
    """

    turns: Mapping[str, str]
    notes: tuple[str, ...]
    reason: str | None = None

    def __len__(self) -> int:
        return len(self.turns)

    def __bool__(self) -> bool:
        return bool(self.turns or self.notes)


class ForgetOptions(TypedDict, total=False):
    """Conditions for the turns to forget: all that are given must hold.

    Attributes:
        user_id: Turns of this person: all sessions with all agents.
        agent_id: Turns with this agent.
        entity: Turns that mean this, or name it.
        before: Turns before this moment.
        preview: Return what would go, and erase nothing; default False.
    """

    user_id: str | None
    agent_id: str | None
    entity: str | None
    before: datetime | None
    preview: bool


def forget_turns(
    memory: MemorySettings,
    session: SessionKey | str | None = None,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    entity: str | None = None,
    before: datetime | None = None,
    preview: bool = False,
) -> Operation[Forgotten]:
    """Erase the turns that meet all given conditions, from the files too, and report them.

    With ``preview``, return which would go.

    Raises:
        ArgumentError: If ``entity``, ``preview`` or ``before`` has the wrong type.
        DocumentError: If nothing is given, a user or agent cannot be stored, or ``before`` has no time zone.
    """
    if all(condition is None for condition in (session, user_id, agent_id, entity, before)):
        raise DocumentError("forget() needs to know what: a session, user_id, agent_id, entity or before")
    check_parts(**omit_none(user_id=user_id, agent_id=agent_id))
    require(str, "a string", **omit_none(entity=entity))
    require(bool, "True or False", preview=preview)
    key = None if session is None else SessionKey.of(session)
    moment = None if before is None else format_time(before)
    backend = memory.store.backend
    documents: list[StoredDocument] = []
    if key is None:
        documents = yield from memory.read(read_session_documents(user_id, agent_id))
    elif user_id in {None, key.user_id} and agent_id in {None, key.agent_id}:
        documents = yield from memory.read(read_documents([key.path]))
    turns: dict[str, str] = {}
    notes: list[str] = []
    for at in range(0, len(documents), _SESSIONS_AT_ONCE):
        some = documents[at : at + _SESSIONS_AT_ONCE]
        session_turns = yield from memory.read(read_all(some))
        early = {turn.id for turn in session_turns if moment is None or format_time(turn.time) < moment}
        gone = {id: why for id, why in _select_meant(session_turns, entity).items() if id in early}
        removed = _find_notes(session_turns, gone, entity, early)
        turns |= gone
        notes += sorted(removed)
        if not preview:
            kept = {
                turn.session.path for turn in session_turns if turn.id not in gone and turn.id not in removed
            }
            empty = [document for document in some if document.id not in kept]
            yield from _remove_turns(memory, sorted(removed), sorted(gone), empty)
    if not preview:
        yield from call_engine(backend, backend.compact())
    owner = {"user_id": user_id, "agent_id": agent_id} if key is None else asdict(key)
    conditions = omit_none(**owner, entity=entity, before=moment)
    named = ", ".join(f"{name} {value!r}" for name, value in conditions.items())
    reason = None if turns or notes else f"no stored turn has {named}"
    return Forgotten(turns=turns, notes=tuple(notes), reason=reason)


def _remove_turns(
    memory: MemorySettings, notes: list[str], turns: list[str], sessions: list[StoredDocument]
) -> Operation[None]:
    """Remove notes and turns, then the documents of sessions that have none left."""
    for ids in (notes, turns, [session.id for session in sessions]):
        if ids:
            yield from delete_documents(memory.store, ids)
    if sessions:  # what was written meanwhile may have relied on the document of its session
        filled = {turn.session.path for turn in (yield from memory.read(read_all(sessions)))}
        heads = [as_document(session) for session in sessions if session.id in filled]
        if heads:
            yield from add_documents(memory.store, heads)


def delete_turns(memory: MemorySettings, ids: list[str]) -> Operation[Forgotten]:
    """Remove turns or notes by id, with the notes made from them, and erase them from the files."""
    require_list("ids of turns", ids=ids)
    backend = memory.store.backend
    documents = yield from memory.read(read_documents(ids))
    meant = [read_turn(document) for document in documents if "ordinal" in document.metadata]
    paths = list(dict.fromkeys(turn.session.path for turn in meant))
    turns = yield from memory.read(read_all((yield from memory.read(read_documents(paths)))))
    gone = {turn.id: "asked" for turn in meant if not turn.is_note}
    removed = _find_notes(turns, gone, None, set()) | {turn.id for turn in meant if turn.is_note}
    for some in (sorted(removed), sorted(gone)):
        if some:
            yield from delete_documents(memory.store, some)
    if meant:
        yield from call_engine(backend, backend.compact())
    return Forgotten(turns=gone, notes=tuple(sorted(removed)))


def _select_meant(known: Iterable[Turn], entity: str | None) -> dict[str, str]:
    """Return the turns that are about an entity, and why; all of them without one."""
    spoken = sorted((turn for turn in known if not turn.is_note), key=attrgetter("session.path", "order"))
    if entity is None:
        return {turn.id: "asked" for turn in spoken}
    gone: dict[str, str] = {}
    sessions: dict[str, list[Turn]] = {}
    for turn in spoken:
        sessions.setdefault(turn.session.path, []).append(turn)
    parts = _name_parts(entity)
    for turns in sessions.values():
        named = {turn.id: why for turn in turns if (why := _find_mention(turn, entity)) is not None}
        for turn in turns:
            if turn.id in named:
                gone[turn.id] = named[turn.id]
            elif named and any(_has_words(turn, entity, part) for part in parts):
                gone[turn.id] = "named"
    return gone


def _find_mention(turn: Turn, entity: str) -> str | None:
    """Say how a turn mentions an entity in full: as what it means, or in its words; None if it does not."""
    if fold(entity) in map(fold, (*turn.entities, *turn.focus)):
        return "meant"
    return "named" if _has_words(turn, entity, tokenize(entity)) else None


def _has_words(turn: Turn, entity: str, words: tuple[str, ...]) -> bool:
    """Say whether a turn has these words of an entity next to each other, in either number.

    "A biscuit" is none called Biscuit.
    """
    wanted, text = tuple(map(strip_word, words)), f"{turn.query}\n{turn.text}"
    if entity.isalpha() and entity.istitle():
        text = _COMMON_NOUN.sub(" ", text)
    return bool(wanted) and has_part(tuple(map(strip_word, tokenize(text))), wanted)


def _name_parts(entity: str) -> list[tuple[str, ...]]:
    """Return the parts of a name that stand for it: a surname, a given name, the noun at its end."""
    words = [word for word in entity.split() if word[0].isupper() or word == entity.split()[-1]]
    titles = {"mr", "mrs", "ms", "dr", "professor", "prof", "the", "project", "lake", "new", "saint"}
    alone = [tokenize(word) for word in words if len(word) > 3 and fold(word).rstrip(".") not in titles]
    return alone if len(entity.split()) > 1 else []


def _find_notes(
    known: Iterable[Turn], gone: Mapping[str, str], entity: str | None, meant: Container[str]
) -> set[str]:
    """Return the ids of the notes made from turns that go, and of notes meant and about the entity."""
    return {
        note.id
        for note in known
        if note.is_note
        and (
            not gone.keys().isdisjoint(note.sources)
            or (note.id in meant and (entity is None or _find_mention(note, entity) is not None))
        )
    }
