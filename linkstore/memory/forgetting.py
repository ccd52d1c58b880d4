"""Forgetting: turns are removed with all that was made from them; an interrupted one is finished.

Forgettings that have begun: written down before anything is removed, so that a killed one is finished.

What is written down names sessions and the turns chosen in them, and not what was asked for. So turns that
are written later stay, whatever they are about. When all is removed, a document without names takes its
place before the files are erased: then they have no byte of the names either.

Forgetting: turns are removed with all that was made from them, and erased from the files of the store.

Forgettings that were interrupted are finished by the memories that are open.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import Documents, Operation, Plan, StoredDocument
from linkstore.core.text import fold, tokenize
from linkstore.engines.contract import Manifest
from linkstore.errors import DocumentError, StoreBusyError, StoreReadOnlyError
from linkstore.memory.requests import MemoryParts, request_add, request_delete
from linkstore.memory.sessions import read_linked, read_session_documents, read_sessions
from linkstore.memory.turns import RELATED_TO, SessionKey, Turn, check_owner, format_time, read_turn
from linkstore.memory.writing import make_segment_document, make_session_document
from linkstore.store.linkstore import make_backend_call, make_plan_call

_FORGETTING: Final = "forgetting"
"""Link kind and tag of what is written down, and the name of its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgettingRecord:
    """Turns that are to be removed from some sessions.

    Args:
        id: Of the document that says so.
        sessions: That have the turns, or had.
        turns: The ids of the turns; no others are removed.
    """

    id: str
    sessions: tuple[SessionKey, ...]
    turns: frozenset[str]

    @classmethod
    def begun(cls, sessions: Sequence[SessionKey], turns: Collection[str]) -> ForgettingRecord:
        """Make a new one."""
        return cls(id=f"{_FORGETTING} {uuid.uuid4()}", sessions=tuple(sessions), turns=frozenset(turns))

    @property
    def emptied(self) -> ForgettingRecord:
        """The record when all is removed and the files are still to be erased."""
        return ForgettingRecord(id=self.id, sessions=(), turns=frozenset())

    def document(self) -> Document:
        """Return the document in which it is written down."""
        metadata: dict[str, Any] = {
            "type": _FORGETTING,
            "sessions": [key.path for key in self.sessions],
            "turns": sorted(self.turns),
            LINKS_KEY: [Link.incoming(kind=_FORGETTING, tag=_FORGETTING).to_dict()],
        }
        return Document(id=self.id, page_content=_FORGETTING, metadata=metadata)


def read_unfinished() -> Plan[list[ForgettingRecord]]:
    """Read all that are written down: of calls that were killed, and of those that run now."""
    refs = yield from read_linked([(_FORGETTING, _FORGETTING)])
    stored: list[StoredDocument] = yield Documents(refs=refs)
    return [
        ForgettingRecord(
            id=one.id,
            sessions=tuple(map(SessionKey.from_path, one.metadata["sessions"])),
            turns=frozenset(one.metadata["turns"]),
        )
        for one in stored
    ]


_SESSIONS_AT_ONCE: Final = 100
"""How many sessions are read at once."""
_TURNS_PER_RECORD: Final = 50_000
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
        require(str, "a string", **omit_none(entity=self.entity))
        if self.before is not None:
            format_time(self.before)

    def sessions(self) -> Plan[list[SessionKey]]:
        """Return the sessions that turns may be forgotten of."""
        if self.session is None:
            found = yield from read_sessions(self.user_id, self.agent_id)
            return [SessionKey.from_path(one.id) for one in found]
        others = (self.user_id not in {None, self.session.user_id}) or (
            self.agent_id not in {None, self.session.agent_id}
        )
        return [] if others else [self.session]

    def chooses(self) -> Callable[[Turn], bool]:
        """Return a function that says whether a turn of such a session is to be forgotten."""
        moment = None if self.before is None else format_time(self.before)
        words = tokenize(self.entity) if self.entity is not None else ()
        name = None if self.entity is None else fold(self.entity)

        def chosen(turn: Turn) -> bool:
            if moment is not None and format_time(turn.time) >= moment:
                return False
            return name is None or name in map(fold, turn.entities) or _has_phrase(turn.text, words)

        return chosen


def forget_turns(parts: MemoryParts, what: Forgettable) -> Operation[int]:
    """Remove turns and what was made from them, erase them from the store's files, and return how many.

    What goes is written down first, so that :func:`finish_forgetting`, or the next call, finishes a
    call that was interrupted.
    """
    yield from finish_forgetting(parts)
    manifest: Manifest = yield make_backend_call(parts.store, parts.store.backend.manifest())
    if manifest.dimension is None:
        return 0
    begun = yield from _record_forgetting(parts, what)
    yield from _carry_out(parts, begun)
    return sum(len(one.turns) for one in begun)


def finish_forgetting(parts: MemoryParts, among: Collection[str] | None = None) -> Operation[frozenset[str]]:
    """Finish what calls of :func:`forget_turns` that were interrupted have begun.

    Args:
        parts: Of the memory.
        among: The ids of those to finish, if they are there; None: all.

    Returns:
        The ids of those that are there and were not to be finished.
    """
    begun: list[ForgettingRecord] = yield make_plan_call(parts.store, read_unfinished())
    chosen = [one for one in begun if among is None or one.id in among]
    if chosen:
        yield from _carry_out(parts, chosen)
    return frozenset(one.id for one in begun) - {one.id for one in chosen}


def _record_forgetting(parts: MemoryParts, what: Forgettable) -> Operation[list[ForgettingRecord]]:
    """Write down what is to be removed, and return it."""
    sessions: list[SessionKey] = yield make_plan_call(parts.store, what.sessions())
    begun: list[ForgettingRecord] = []
    chosen = what.chooses()
    for at in range(0, len(sessions), _SESSIONS_AT_ONCE):
        some = sessions[at : at + _SESSIONS_AT_ONCE]
        documents: list[StoredDocument] = yield make_plan_call(parts.store, read_session_documents(some))
        gone = [turn.id for turn in _select_turns(documents) if chosen(turn)]
        if documents:
            starts = range(0, max(1, len(gone)), _TURNS_PER_RECORD)
            begun += (
                ForgettingRecord.begun(some, gone[start : start + _TURNS_PER_RECORD]) for start in starts
            )
    if begun:
        yield request_add(parts.store, [one.document() for one in begun])
    return begun


def _carry_out(parts: MemoryParts, begun: Sequence[ForgettingRecord]) -> Operation[None]:
    """Remove what is written down, and erase it from the files of the store, with the names written down."""
    for one in begun:
        yield from _remove_turns(parts, one)
    if begun:
        yield request_add(parts.store, [one.emptied.document() for one in begun])
    yield make_backend_call(parts.store, parts.store.backend.compact())
    if begun:
        yield request_delete(parts.store, [one.id for one in begun])


def _remove_turns(parts: MemoryParts, one: ForgettingRecord) -> Operation[None]:
    """Remove the turns of some sessions that are written down, with what was made from them.

    Turns are removed after what was made from them, and documents of sessions at the end, since they tell
    what else must go.
    """
    if not one.sessions:
        return
    documents: list[StoredDocument] = yield make_plan_call(parts.store, read_session_documents(one.sessions))
    turns = _select_turns(documents)
    gone = {turn.id for turn in turns if turn.id in one.turns}
    kept = [turn for turn in turns if turn.id not in gone]
    removed, changed = _find_consequences(documents, kept, gone)
    if changed:
        yield request_add(parts.store, changed)
    sessions = {one.id for one in documents if one.metadata["type"] == "session"}
    for ids in (removed - sessions, gone, removed & sessions):
        if ids:
            yield request_delete(parts.store, sorted(ids))


def _select_turns(documents: Sequence[StoredDocument]) -> list[Turn]:
    return [read_turn(one.id, one.metadata) for one in documents if one.metadata["type"] == "turn"]


def _find_consequences(
    documents: Iterable[StoredDocument], kept: list[Turn], gone: set[str]
) -> tuple[set[str], list[Document]]:
    """Return the documents that go with turns, and those that stay but say something else."""
    kept = sorted(kept, key=lambda turn: turn.order)
    last = {turn.session.path: turn for turn in sorted(kept, key=lambda turn: turn.segment)}
    first = {turn.session.segment(turn.segment): turn for turn in reversed(kept)}
    named = {turn.session.entity(turn.segment, name) for turn in kept for name in turn.entities}
    touched = {_read_segment_id(one) for one in documents if one.id in gone}
    removed: set[str] = set()
    changed: list[Document] = []
    for one in documents:
        kind, segment = one.metadata["type"], _read_segment_id(one)
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
            changed += _correct_session(one, last[one.id])
        elif kind == "segment" and segment in touched:
            changed.append(make_segment_document(first[segment]))
        elif kind == "entity":
            changed += _drop_relations(one, named)
    return removed, changed


def _correct_session(one: StoredDocument, last: Turn) -> Iterator[Document]:
    """Yield a session's document anew if it names a segment without turns."""
    if one.metadata["segment"] > last.segment:
        yield make_session_document(last)


def _drop_relations(one: StoredDocument, named: set[str]) -> Iterator[Document]:
    """Yield an entity without relations to entities that are gone, if it has any."""
    links = [
        link
        for link in one.metadata[LINKS_KEY]
        if link["kind"] != RELATED_TO or link["direction"] == "in" or link["tag"] in named
    ]
    if len(links) != len(one.metadata[LINKS_KEY]):
        yield Document(id=one.id, page_content=one.text, metadata={**one.metadata, LINKS_KEY: links})


def _read_segment_id(one: StoredDocument) -> str:
    number = one.metadata.get("segment", 0)
    return SessionKey.from_path(one.metadata["session"]).segment(number)


def _has_phrase(text: str, words: tuple[str, ...]) -> bool:
    """Say whether a text has these words next to each other."""
    if not words:
        return False
    said = tokenize(text)
    return any(said[at : at + len(words)] == words for at in range(len(said) - len(words) + 1))


LOOK_SECONDS: Final = 60.0
"""How often an open memory looks for forgettings that were interrupted."""
_LOG: Final = logging.getLogger("linkstore.memory")


class ForgettingFinisher:
    """Finishes forgettings that were interrupted: at the first operation of a memory all that there are.

    Then it looks again with the first operation after each minute, and finishes those that it found the last
    time as well: the others may be under way in other processes.

    Args:
        parts: Of the memory.
    """

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts
        self._looks_at = 0.0
        self._found: frozenset[str] | None = None

    def look(self) -> Operation[None]:
        """Finish what is to be finished now, if it is time to look.

        If the store is read-only or busy, this is logged, and the next look tries again.
        """
        if time.monotonic() < self._looks_at:
            return
        try:
            self._found = yield from finish_forgetting(self._parts, self._found)
        except (StoreReadOnlyError, StoreBusyError) as error:
            _LOG.warning("turns that are to be forgotten may be there for now: %s", error)
        self._looks_at = time.monotonic() + LOOK_SECONDS
