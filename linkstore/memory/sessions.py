"""Sessions as they are stored: their segments, turns and summaries, and which sessions there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

import numpy as np

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.arrays import Floats, Ints
from linkstore.core.calls import call_plan
from linkstore.core.links import LINKS_KEY
from linkstore.core.plans import (
    Candidates,
    Documents,
    Find,
    Ids,
    Operation,
    Plan,
    StoredDocument,
    read_documents,
)
from linkstore.core.text import tokenize
from linkstore.memory.references import depends_on_history
from linkstore.memory.requests import MemoryParts
from linkstore.memory.turns import (
    HAS_ENTITY,
    HAS_SEGMENT,
    HAS_SESSION,
    HAS_TURN,
    MENTIONS,
    WRITTEN,
    SessionKey,
    Summary,
    Turn,
    format_time,
    is_open_question,
    make_group_tag,
    make_written_tag,
    read_turn,
)
from linkstore.strategies.traversal import NO_REFS, follow_tags

PROBED_SEGMENTS: Final = 16
"""How many segments are looked for at once."""
_ALL: Final = 2**31 - 2
"""More documents than a group has."""
MOST_SUMMARIES: Final = 3
"""How many summaries a recall gives, those of the latest closed segments."""
COMPARED_TURNS: Final = 4
"""Number of previous turns that a turn is compared with."""
LEAST_SIMILARITY: Final = 0.2
"""A turn less similar than this to all of them may begin a new subject.

On the 4,092 utterances of TIAGE's training set, a turn that shares no word of an entity with the four before
and is less similar than this is a shift in 28 % of cases, where 21 % of all turns are one; that it does not
depend on the history raises this to 30 %, and leaves 16 % of the turns.
"""


def is_new_topic(query: str, entities: Sequence[str], before: Sequence[Turn], similarity: float) -> bool:
    """Say whether a turn begins a new subject: it says what it is about, and nothing of it was said lately.

    Args:
        query: What the user said.
        entities: What it mentions.
        before: The last turns, in order.
        similarity: Of the turn to the most similar of the last :data:`COMPARED_TURNS`.
    """
    if not before or not entities or similarity >= LEAST_SIMILARITY or depends_on_history(query):
        return False
    if is_open_question(before[-1]) and "?" not in query:
        return False  # it is the answer
    return not _collect_words(entities) & _collect_words(
        [name for turn in before[-COMPARED_TURNS:] for name in turn.entities]
    )


def _collect_words(names: Sequence[str]) -> frozenset[str]:
    return frozenset(word for name in names for word in tokenize(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The end of a session.

    Args:
        known: Whether the session has a document.
        recorded: The number of the last segment that its document names; 0 without one.
        segment: The number of its last segment; 0 if it has none.
        count: How many turns that segment has.
        recent: Its latest turns, the last one last; older ones may be of the segments before.
        similarity: Of the vector asked for to the most similar of the last turns of that segment, or 0.
    """

    known: bool = False
    recorded: int = 0
    segment: int = 0
    count: int = 0
    recent: tuple[Turn, ...] = ()
    similarity: float = 1.0


def read_head(session: SessionKey, vector: Floats | None, take: int) -> Plan[SessionHead]:
    """Return the end of a session, with up to ``take`` turns.

    Its cost does not depend on the length of the session: the session's document names a late segment, and
    segments after it are looked for by their tags.
    """
    documents = yield from read_documents([session.path])
    recorded = int(documents[0].metadata["segment"]) if documents else 0
    last, refs = yield from _find_last_segment(session, max(recorded, 1))
    count = len(refs)
    recent = yield from _read_latest(refs, take)
    compared: Candidates = yield Find(ids=tuple(turn.id for turn in recent[-COMPARED_TURNS:]), vector=vector)
    before = last - 1
    while len(recent) < take and before > 0 and before > last - PROBED_SEGMENTS:
        _, earlier = yield from _read_members(session, range(before, before + 1))
        recent = [*(yield from _read_latest(earlier, take - len(recent))), *recent]
        before -= 1
    return SessionHead(
        known=bool(documents),
        recorded=recorded,
        segment=last,
        count=count,
        recent=tuple(recent[-take:]),
        similarity=float(compared.similarity.max(initial=-1.0)),
    )


def read_turns(session: SessionKey, segments: Sequence[int]) -> Plan[list[Turn]]:
    """Return all turns of some segments, in order."""
    _, refs = yield from _read_members(session, segments)
    return (yield from _read_latest(refs, len(refs)))


def find_written(session: SessionKey, writing: str) -> Plan[Turn | None]:
    """Return the turn that was written for a message, the first if several writers wrote one."""
    refs = yield from read_linked([(WRITTEN, make_written_tag(session, writing))])
    stored: list[StoredDocument] = yield Documents(refs=refs)
    return min((read_turn(one.id, one.metadata) for one in stored), key=attrgetter("order"), default=None)


def _find_last_segment(session: SessionKey, start: int) -> Plan[tuple[int, Ints]]:
    """Return the number of the last segment with turns, 0 if none has, and the refs of those turns."""
    last, refs = 0, NO_REFS
    while True:
        numbers = range(start, start + PROBED_SEGMENTS)
        owner, members = yield from _read_members(session, numbers)
        if not len(owner):
            return last, refs
        last, refs = numbers[int(owner.max())], members[owner == owner.max()]
        if last != numbers[-1]:
            return last, refs
        start = last + 1


def _read_members(session: SessionKey, segments: Sequence[int]) -> Plan[tuple[Ints, Ints]]:
    """Return the turns of segments: positions in ``segments``, and refs."""
    tags = [(HAS_TURN, session.segment(number)) for number in segments]
    hop = yield from follow_tags(tags, "in", take=_ALL, cap=_ALL)
    return hop.edges.source, hop.edges.target


def read_linked(tags: Sequence[tuple[str, str]]) -> Plan[Ints]:
    """Return the refs of all documents that link groups have on their side "in", unranked."""
    hop = yield from follow_tags(tags, "in", take=_ALL, cap=_ALL)
    return np.unique(hop.edges.target)


def _read_latest(refs: Ints, take: int) -> Plan[list[Turn]]:
    """Return the ``take`` latest of some turns, in order."""
    ids: list[str] = yield Ids(refs=refs)
    order = sorted(range(len(ids)), key=ids.__getitem__)[-take:] if take else []
    stored: list[StoredDocument] = yield Documents(refs=refs[np.asarray(order, np.int64)])
    return sorted((read_turn(one.id, one.metadata) for one in stored), key=attrgetter("order"))


def read_sessions(user_id: str | None, agent_id: str | None) -> Plan[list[StoredDocument]]:
    """Return the documents of the sessions of a user, with an agent, both, or all."""
    refs = yield from read_linked([(HAS_SESSION, make_group_tag(user_id, agent_id))])
    return (yield Documents(refs=refs))  # type: ignore[no-any-return]


def select_sessions_with_turns(sessions: Sequence[StoredDocument]) -> Plan[list[SessionKey]]:
    """Return the keys of the sessions that have a turn.

    A session's document names its last segment. Only where that has no turn, as after a write that was
    interrupted, the segments before it are looked at.
    """
    latest = yield from _check_for_turns([_list_segment_ids(one)[-1:] for one in sessions])
    doubtful = [one for one, filled in zip(sessions, latest, strict=True) if not filled]
    earlier = yield from _check_for_turns(list(map(_list_segment_ids, doubtful)))
    empty = {one.id for one, filled in zip(doubtful, earlier, strict=True) if not filled}
    return sorted(
        (SessionKey.from_path(one.id) for one in sessions if one.id not in empty), key=lambda key: key.path
    )


def read_session_documents(sessions: Sequence[SessionKey]) -> Plan[list[StoredDocument]]:
    """Return all documents of sessions: their own, and those of segments, turns, entities and summaries."""
    own = yield from read_documents(key.path for key in sessions)
    refs = yield from read_linked([(HAS_SEGMENT, key.path) for key in sessions])
    segments: list[StoredDocument] = yield Documents(refs=refs)
    recorded: dict[str, int] = {}
    for one in (*own, *segments):
        path = one.metadata["session"]
        recorded[path] = max(recorded.get(path, 0), int(one.metadata["segment"]))
    numbered = [
        (key, number)
        for key in sessions
        for number in range(1, recorded.get(key.path, 0) + PROBED_SEGMENTS + 1)
    ]
    ids = [id for key, number in numbered for id in (key.segment(number), key.summary(number))]
    around = yield from read_documents(ids)
    tags = [(kind, key.segment(number)) for key, number in numbered for kind in (HAS_TURN, HAS_ENTITY)]
    refs = yield from read_linked(tags)
    linked: list[StoredDocument] = yield Documents(refs=refs)
    return [*own, *around, *linked]


def _list_segment_ids(session: StoredDocument) -> list[str]:
    """Return the ids of the segments that a session has had, in order."""
    key = SessionKey.from_path(session.id)
    return [key.segment(number) for number in range(1, int(session.metadata["segment"]) + 1)]


def _check_for_turns(segments: Sequence[Sequence[str]]) -> Plan[Iterator[bool]]:
    """Say for each list of segments whether one has a turn."""
    tags = [(HAS_TURN, id) for ids in segments for id in ids]
    hop = yield from follow_tags(tags, "in", take=1, cap=1)
    filled = {tags[at][1] for at in hop.source[hop.size > 0].tolist()}
    return (any(id in filled for id in ids) for ids in segments)


def read_summaries(
    session: SessionKey, last_segment: int, most: int = MOST_SUMMARIES, since: datetime | None = None
) -> Plan[list[Summary]]:
    """Return the summaries of the latest closed segments, in order.

    Args:
        session: The conversation.
        last_segment: The segment that is not closed.
        most: How many segments are looked at.
        since: Leave out the summaries of segments with an earlier turn.
    """
    numbers = range(max(1, last_segment - most), last_segment)
    stored = yield from read_documents(map(session.summary, numbers))
    return [
        Summary(
            segment=one.metadata["segment"],
            text=one.text,
            entities=tuple(link["label"] for link in one.metadata[LINKS_KEY] if link["kind"] == MENTIONS),
        )
        for one in stored
        if since is None or one.metadata["time"] >= format_time(since)
    ]


def read_session_head(parts: MemoryParts, session: SessionKey, take: int) -> Operation[SessionHead]:
    """Return the end of a session, which is empty if the session has no turns."""
    return (yield call_plan(parts.store.backend, read_head(session, None, take)))  # type: ignore[no-any-return]


def list_turns(
    parts: MemoryParts, session: SessionKey, last: int | None = None, segment: int | None = None
) -> Operation[list[Turn]]:
    """Return the turns of a session or of one of its segments, in order.

    Raises:
        StrategyError: If ``last`` or ``segment`` is not an integer of at least 0.
    """
    require_at_least(0, **omit_none(last=last, segment=segment))
    if last is not None and segment is None:
        head = yield from read_session_head(parts, session, last)
        return list(head.recent)
    numbers = [segment] if segment is not None else []
    if segment is None:
        numbers = yield call_plan(parts.store.backend, list_segments(session))
    turns: list[Turn] = yield call_plan(parts.store.backend, read_turns(session, numbers))
    return turns if last is None else turns[-last:] if last else []


def list_segments(session: SessionKey) -> Plan[list[int]]:
    """Return the numbers of a session's segments, ascending."""
    refs = yield from read_linked([(HAS_SEGMENT, session.path)])
    ids: list[str] = yield Ids(refs=refs)
    return sorted(int(id.rpartition("/")[2]) for id in ids)


def list_sessions(
    parts: MemoryParts, user_id: str | None, agent_id: str | None
) -> Operation[list[SessionKey]]:
    """Return the sessions of a user, of an agent, of both, or of all, that have turns."""
    found: list[StoredDocument] = yield call_plan(parts.store.backend, read_sessions(user_id, agent_id))
    return (yield call_plan(parts.store.backend, select_sessions_with_turns(found)))  # type: ignore[no-any-return]


def export_session(parts: MemoryParts, session: SessionKey) -> Operation[dict[str, Any]]:
    """Return all that is stored of a session, as plain JSON."""
    turns = yield from list_turns(parts, session)
    summaries: list[Summary] = []
    if turns:
        plan = read_summaries(session, turns[-1].segment, most=turns[-1].segment)
        summaries = yield call_plan(parts.store.backend, plan)
    return {
        "user_id": session.user_id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
        "turns": [turn.to_dict() for turn in turns],
        "summaries": [{"segment": one.segment, "text": one.text} for one in summaries],
    }
