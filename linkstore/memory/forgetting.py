"""Forgetting: turns are removed with all that was made from them, and erased from the files of the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from langchain_core.documents import Document

from linkstore.arguments import given, require
from linkstore.errors import DocumentError
from linkstore.links import LINKS_KEY
from linkstore.memory.belonging import belonging, sessions_of
from linkstore.memory.keys import SessionKey, check_owner
from linkstore.memory.parts import Parts
from linkstore.memory.requests import add, delete
from linkstore.memory.turns import RELATED_TO, Turn, turn_of, written_time
from linkstore.memory.unfinished import Unfinished, unfinished
from linkstore.memory.writing import segment_document, session_document
from linkstore.plans import Operation, Plan, Stored
from linkstore.text import fold, tokens
from linkstore.twins import answered_by, any_vector, of_backend
from linkstore.vectors import Floats

_BATCH: Final = 100
"""How many sessions are read at once."""
_TURNS: Final = 50_000
"""How many turns one document names, so that it does not become larger than a server accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgettable:
    """The turns to forget: those to which all the given conditions apply.

    Args:
        session: Turns of this session.
        user_id: Turns of this person.
        agent_id: Turns with this agent.
        entity: Turns that mention this.
        before: Turns before this moment.

    Raises:
        ArgumentError: If ``entity`` or ``before`` has the wrong type.
        DocumentError: If nothing is given, a user or agent cannot be stored, or ``before`` has no time zone.
    """

    session: SessionKey | None = None
    user_id: str | None = None
    agent_id: str | None = None
    entity: str | None = None
    before: datetime | None = None

    def __post_init__(self) -> None:
        fields = (self.session, self.user_id, self.agent_id, self.entity, self.before)
        if all(field is None for field in fields):
            raise DocumentError("forget() needs to know what: a session, user_id, agent_id, entity or before")
        check_owner(self.user_id, self.agent_id)
        require(str, "a string", **given(entity=self.entity))
        if self.before is not None:
            written_time(self.before)

    def sessions(self, vector: Floats) -> Plan[list[SessionKey]]:
        """Return the sessions that turns may be forgotten of."""
        if self.session is None:
            found = yield from sessions_of(self.user_id, self.agent_id, vector)
            return [SessionKey.from_path(one.id) for one in found]
        others = (self.user_id not in {None, self.session.user_id}) or (
            self.agent_id not in {None, self.session.agent_id}
        )
        return [] if others else [self.session]

    def chooses(self) -> Callable[[Turn], bool]:
        """Return a function that says whether a turn of such a session is to be forgotten."""
        moment = None if self.before is None else written_time(self.before)
        words = tokens(self.entity) if self.entity is not None else ()
        name = None if self.entity is None else fold(self.entity)

        def chosen(turn: Turn) -> bool:
            if moment is not None and written_time(turn.time) >= moment:
                return False
            return name is None or name in map(fold, turn.entities) or _has(turn.text, words)

        return chosen


def forgotten(parts: Parts, what: Forgettable) -> Operation[int]:
    """Remove turns and what was made from them, erase them from the store's files, and return how many.

    All that is to be removed is written down first, so that :func:`finished`, or the next call, finishes a
    call that was interrupted.
    """
    yield from finished(parts)
    vector = yield from any_vector(parts.store)
    if vector is None:
        return 0
    begun = yield from _begun(parts, what, vector)
    yield from _carried_out(parts, begun, vector)
    return sum(len(one.turns) for one in begun)


def finished(parts: Parts, among: Collection[str] | None = None) -> Operation[frozenset[str]]:
    """Finish what calls of :func:`forgotten` that were interrupted have begun.

    Args:
        parts: Of the memory.
        among: The ids of those to finish, if they are there; None: all.

    Returns:
        The ids of those that are there and were not to be finished.
    """
    vector = yield from any_vector(parts.store)
    if vector is None:
        return frozenset()
    begun: list[Unfinished] = yield answered_by(parts.store, unfinished(vector))
    chosen = [one for one in begun if among is None or one.id in among]
    if chosen:
        yield from _carried_out(parts, chosen, vector)
    return frozenset(one.id for one in begun) - {one.id for one in chosen}


def _begun(parts: Parts, what: Forgettable, vector: Floats) -> Operation[list[Unfinished]]:
    """Write down what is to be removed, and return it."""
    sessions: list[SessionKey] = yield answered_by(parts.store, what.sessions(vector))
    begun: list[Unfinished] = []
    chosen = what.chooses()
    for at in range(0, len(sessions), _BATCH):
        some = sessions[at : at + _BATCH]
        documents: list[Stored] = yield answered_by(parts.store, belonging(some, vector))
        gone = [turn.id for turn in _turns(documents) if chosen(turn)]
        if documents:
            starts = range(0, max(1, len(gone)), _TURNS)
            begun += (Unfinished.begun(some, gone[start : start + _TURNS]) for start in starts)
    if begun:
        yield add(parts.store, [one.document() for one in begun])
    return begun


def _carried_out(parts: Parts, begun: Sequence[Unfinished], vector: Floats) -> Operation[None]:
    """Remove what is written down, and erase it from the files of the store, with the names written down."""
    for one in begun:
        yield from _removed(parts, one, vector)
    if begun:
        yield add(parts.store, [one.emptied.document() for one in begun])
    yield of_backend(parts.store, parts.store.backend.compact())
    if begun:
        yield delete(parts.store, [one.id for one in begun])


def _removed(parts: Parts, one: Unfinished, vector: Floats) -> Operation[None]:
    """Remove the turns of some sessions that are written down, with what was made from them.

    Turns are removed after what was made from them, and documents of sessions at the end, since they tell
    what else must go.
    """
    if not one.sessions:
        return
    documents: list[Stored] = yield answered_by(parts.store, belonging(one.sessions, vector))
    turns = _turns(documents)
    gone = {turn.id for turn in turns if turn.id in one.turns}
    kept = [turn for turn in turns if turn.id not in gone]
    removed, changed = _consequences(documents, kept, gone)
    if changed:
        yield add(parts.store, changed)
    sessions = {one.id for one in documents if one.metadata["type"] == "session"}
    for ids in (removed - sessions, gone, removed & sessions):
        if ids:
            yield delete(parts.store, sorted(ids))


def _turns(documents: Sequence[Stored]) -> list[Turn]:
    return [turn_of(one.id, one.metadata) for one in documents if one.metadata["type"] == "turn"]


def _consequences(
    documents: Iterable[Stored], kept: list[Turn], gone: set[str]
) -> tuple[set[str], list[Document]]:
    """Return the documents that go with turns, and those that stay but say something else."""
    kept = sorted(kept, key=lambda turn: turn.order)
    last = {turn.session.path: turn for turn in sorted(kept, key=lambda turn: turn.segment)}
    first = {turn.session.segment(turn.segment): turn for turn in reversed(kept)}
    named = {turn.session.entity(turn.segment, name) for turn in kept for name in turn.entities}
    touched = {_segment_of(one) for one in documents if one.id in gone}
    removed: set[str] = set()
    changed: list[Document] = []
    for one in documents:
        kind, segment = one.metadata["type"], _segment_of(one)
        if kind == "turn":
            continue
        stays = {
            "session": one.metadata["session"] in last,
            "segment": segment in first,
            "entity": one.id in named,
            "summary": segment in first and segment not in touched,
        }[kind]
        if not stays:
            removed.add(one.id)
        elif kind == "session":
            changed += _naming_its_last_segment(one, last[one.id])
        elif kind == "segment" and segment in touched:
            changed.append(segment_document(first[segment]))
        elif kind == "entity":
            changed += _without_relations(one, named)
    return removed, changed


def _naming_its_last_segment(one: Stored, last: Turn) -> Iterator[Document]:
    """Yield a session's document anew if it names a segment without turns."""
    if one.metadata["segment"] > last.segment:
        yield session_document(last)


def _without_relations(one: Stored, named: set[str]) -> Iterator[Document]:
    """Yield an entity without relations to entities that are gone, if it has any."""
    links = [
        link
        for link in one.metadata[LINKS_KEY]
        if link["kind"] != RELATED_TO or link["direction"] == "in" or link["tag"] in named
    ]
    if len(links) != len(one.metadata[LINKS_KEY]):
        yield Document(id=one.id, page_content=one.text, metadata={**one.metadata, LINKS_KEY: links})


def _segment_of(one: Stored) -> str:
    number = one.metadata.get("segment", 0)
    return SessionKey.from_path(one.metadata["session"]).segment(number)


def _has(text: str, words: tuple[str, ...]) -> bool:
    """Say whether a text has these words next to each other."""
    if not words:
        return False
    said = tokens(text)
    return any(said[at : at + len(words)] == words for at in range(len(said) - len(words) + 1))
