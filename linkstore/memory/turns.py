"""Turns and sessions: what was said, as a value and as documents of a store, and the keys of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, unquote

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require
from linkstore.core.filters import Filter
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.text import fold, is_unicode
from linkstore.errors import DocumentError
from linkstore.memory.entities import SPEAKER, read_speaker

LONGEST_KEY_PART: Final = 500
"""Characters of each part of a key."""
ANY_OWNER: Final = "*"
"""Stands for any user and any agent; a name with this sign is quoted."""
HAS_SESSION: Final = "has_session"
HAS_SEGMENT: Final = "has_segment"
HAS_ENTITY: Final = "has_entity"
HAS_TURN: Final = "has_turn"
NEXT_TURN: Final = "next_turn"
MENTIONS: Final = "mentions"
SOURCED_FROM: Final = "sourced_from"
RELATED_TO: Final = "related_to"
SUMMARISES: Final = "summarises"
WRITTEN: Final = "written"
"""The kind of link whose tag names the message of a turn."""
_KEYED_PREFIX: Final = "m"
"""How what names a message begins; it is no hexadecimal digit, as what is random begins with."""
ASKING_WEIGHT: Final = 0.9
BACK_WEIGHT: Final = 0.4
ANSWERED_WEIGHT: Final = 0.1
"""Weights of ``next_turn``: of a turn that asks, of any other and backwards, of one with an answer."""
EXCERPT_CHARACTERS: Final = 300
"""Characters of a turn's query or response that the conversation part of a prompt shows."""
WORDLESS: Final = "(nothing was said)"
"""The text of a turn without any word or sign, which no embedding takes."""
OPENING_CHARACTERS: Final = 400
"""How many characters of its first query the text of a segment has."""
MOST_RELATED: Final = 8
"""How many entities an entity is related to, of those that the same turn mentions first."""
FADING: Final = 0.8
"""Factor by which a mention counts less with each later turn."""
ELSEWHERE: Final = 0.5
"""Weight of a mention in a topic segment other than the last one."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SessionKey:
    """Names a session: a conversation of a user with an agent. The names are those that mem0 uses.

    Sessions that differ in any part are different sessions.

    Args:
        run_id: The conversation.
        user_id: Who speaks with the agent; None where there is only one user.
        agent_id: The agent; None where there is only one.

    Raises:
        DocumentError: If a part is not a string, is empty, has more than 500 characters, a NUL or a lone
            surrogate.
    """

    run_id: str
    user_id: str | None = None
    agent_id: str | None = None

    def __post_init__(self) -> None:
        check_parts(run_id=self.run_id, **omit_none(user_id=self.user_id, agent_id=self.agent_id))

    @property
    def owner(self) -> str:
        """The user and the agent, whose sessions may be recalled together."""
        return f"{_quote_part(self.user_id)}/{_quote_part(self.agent_id)}"

    @property
    def path(self) -> str:
        """The id of the session's document: its parts, percent-encoded, joined by slashes."""
        return f"{self.owner}/{_quote_part(self.run_id)}"

    @property
    def scope(self) -> Filter:
        """The filter that the turns of this session pass, and nothing else."""
        return {"session": self.path, "type": "turn"}

    @property
    def owners_scope(self) -> Filter:
        """The filter that the turns of all sessions of this user with this agent pass, and nothing else."""
        return {"owner": self.owner, "type": "turn"}

    @property
    def groups(self) -> tuple[str, ...]:
        """The tags of the groups of sessions that this one belongs to: see :func:`make_group_tag`."""
        users = dict.fromkeys((None, self.user_id))
        return tuple(
            make_group_tag(user, agent) for user in users for agent in dict.fromkeys((None, self.agent_id))
        )

    def segment(self, number: int) -> str:
        """Return the id of a segment of this session."""
        return f"{self.path}/{number:05d}"

    def turn(self, ordinal: int, writing: str) -> str:
        """Return the id of a turn. ``writing`` differs for each write, so that two writers never collide."""
        return f"{self.path}/{ordinal:07d}-{writing}"

    def entity(self, segment: int, name: str) -> str:
        """Return the id of an entity as a segment of this session mentions it."""
        return f"{self.segment(segment)}#{_quote_part(fold(name)[:LONGEST_KEY_PART])}"

    def summary(self, segment: int) -> str:
        """Return the id of the summary of a segment."""
        return f"{self.segment(segment)}/summary"

    @classmethod
    def of(cls, session: SessionKey | str) -> SessionKey:
        """Return a key. A string names a conversation without user and agent."""
        return session if isinstance(session, SessionKey) else cls(run_id=session)

    @classmethod
    def from_path(cls, path: str) -> SessionKey:
        """Return the key that has this path."""
        user, agent, run = (unquote(part) or None for part in path.split("/"))
        return cls(run_id=str(run), user_id=user, agent_id=agent)

    def __str__(self) -> str:
        return self.path


def make_group_tag(user_id: str | None, agent_id: str | None) -> str:
    """Return the tag of the sessions of a user, with an agent. None is any, also none."""
    user, agent = (ANY_OWNER if part is None else _quote_part(part) for part in (user_id, agent_id))
    return f"{user}/{agent}"


def check_parts(**parts: object) -> None:
    """Raise unless these parts of a key can be stored.

    Raises:
        DocumentError: Naming the one that cannot.
    """
    for name, part in parts.items():
        if not isinstance(part, str) or not 0 < len(part) <= LONGEST_KEY_PART:
            raise DocumentError(
                f"{name} must be a string of 1 to {LONGEST_KEY_PART} characters, not {str(part)[:80]!r}"
            )
        if "\0" in part or not is_unicode(part):
            raise DocumentError(f"{name} must not have NUL characters or lone surrogates: {part[:80]!r}")


def _quote_part(part: str | None) -> str:
    return "" if part is None else quote(part, safe="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One exchange of a conversation.

    Args:
        id: Of its document.
        session: The conversation.
        ordinal: Its position in the conversation, from 1; two writers at once may give one twice.
        segment: The number of its topic segment, from 1.
        query: What the user said.
        response: What was answered; None if there was no answer.
        time: When, in UTC.
        entities: What it mentions, as it is written there.
        sources: Ids of the chunks of knowledge that the answer came from.
        follows: The id of the turn before; None for the first of a session.
    """

    id: str
    session: SessionKey
    ordinal: int
    segment: int
    query: str
    response: str | None
    time: datetime
    entities: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    follows: str | None = None

    @property
    def text(self) -> str:
        """The text that is searched: the query and the response."""
        said = self.query if self.response is None else f"{self.query}\n{self.response}"
        return said if said.strip() else WORDLESS

    @property
    def writing(self) -> str:
        """The part of the id that names the message, or is random if the message has no key."""
        return self.id.rpartition("-")[2]

    @property
    def order(self) -> tuple[int, datetime, str]:
        """The sort key of turns within a session."""
        return self.ordinal, self.time, self.id

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as plain JSON."""
        return {
            "id": self.id,
            "ordinal": self.ordinal,
            "segment": self.segment,
            "time": format_time(self.time),
            "query": self.query,
            "response": self.response,
            "entities": list(self.entities),
            "sources": list(self.sources),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of a closed topic segment.

    Args:
        segment: Its number; ``memory.turns(session, segment=...)`` gives the turns.
        text: The summary.
        entities: What the segment is about, most frequent first.
    """

    segment: int
    text: str
    entities: tuple[str, ...] = ()


def make_turn_document(turn: Turn) -> Document:
    """Make the document that stores a turn, whole."""
    session = turn.session
    links = [
        Link.incoming(kind=HAS_TURN, tag=session.segment(turn.segment)),
        Link.outgoing(kind=NEXT_TURN, tag=turn.id, weight=weigh_next_turn(turn)),
    ]
    if turn.follows is not None:
        links.append(Link.incoming(kind=NEXT_TURN, tag=turn.follows, weight=BACK_WEIGHT))
    links += _link_mentions(session, turn.segment, turn.entities)
    links += (Link.outgoing(kind=SOURCED_FROM, tag=id) for id in turn.sources)
    if turn.writing.startswith(_KEYED_PREFIX):
        links.append(Link.incoming(kind=WRITTEN, tag=make_written_tag(session, turn.writing)))
    said = {"query": turn.query, "response": turn.response, SPEAKER: read_speaker(turn.query)}
    placed = {"segment": turn.segment, "ordinal": turn.ordinal, "time": format_time(turn.time)}
    return _make_document("turn", session, turn.id, turn.text, links, {**placed, **said})


def make_session_document(turn: Turn) -> Document:
    """Make the document of a session, which names the last segment."""
    session = turn.session
    links = [Link.incoming(kind=HAS_SESSION, tag=tag) for tag in session.groups]
    links.append(Link.outgoing(kind=HAS_SEGMENT, tag=session.path))
    text = session.run_id if has_words(session.run_id) else session.path
    return _make_document("session", session, session.path, text, links, {"segment": turn.segment})


def make_segment_document(turn: Turn) -> Document:
    """Make the document of a topic segment, which the turn opens."""
    id = turn.session.segment(turn.segment)
    links = [Link.incoming(kind=HAS_SEGMENT, tag=turn.session.path), Link.outgoing(kind=HAS_TURN, tag=id)]
    opening = turn.query[:OPENING_CHARACTERS]
    placed = {"segment": turn.segment, "time": format_time(turn.time)}
    return _make_document("segment", turn.session, id, opening if has_words(opening) else id, links, placed)


def make_entity_documents(turn: Turn) -> list[Document]:
    """Make the documents of the entities of a turn, each as its segment mentions it."""
    session, time = turn.session, format_time(turn.time)
    ids = [session.entity(turn.segment, name) for name in turn.entities]
    documents = []
    for id, name in zip(ids, turn.entities, strict=True):
        related = [other for other in ids if other != id][:MOST_RELATED]
        links = [Link.incoming(kind=kind, tag=id) for kind in (MENTIONS, RELATED_TO)]
        links.append(Link.incoming(kind=HAS_ENTITY, tag=session.segment(turn.segment)))
        links += (Link.outgoing(kind=RELATED_TO, tag=other) for other in related)
        placed = {"segment": turn.segment, "name": fold(name), "time": time}
        documents.append(_make_document("entity", session, id, name, links, placed))
    return documents


def make_summary_document(turns: Sequence[Turn], names: Sequence[str], text: str) -> Document:
    """Make the document of a segment's summary, linked to the segment and to its key entities."""
    session, segment = turns[0].session, turns[0].segment
    links = [Link.outgoing(kind=SUMMARISES, tag=session.segment(segment))]
    links += _link_mentions(session, segment, names)
    placed = {"segment": segment, "time": format_time(min(turn.time for turn in turns))}
    return _make_document("summary", session, session.summary(segment), text, links, placed)


def _link_mentions(session: SessionKey, segment: int, names: Sequence[str]) -> list[Link]:
    return [Link.outgoing(kind=MENTIONS, tag=session.entity(segment, name), label=name) for name in names]


def _make_document(
    type: str, session: SessionKey, id: str, text: str, links: Sequence[Link], metadata: dict[str, Any]
) -> Document:
    owned = {
        "type": type,
        "session": session.path,
        "owner": session.owner,
        "user_id": session.user_id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
    }
    linked = {LINKS_KEY: [link.to_dict() for link in links]}
    return Document(id=id, page_content=text, metadata={**owned, **metadata, **linked})


def has_words(text: str) -> bool:
    """Say whether a text has anything to recall or to remember."""
    return any(map(str.isalnum, text))


def name_writing(key: str, query: str) -> str:
    """Return what names a message by its key and its text. One that is edited is another message."""
    return _KEYED_PREFIX + sha256(f"{key}\0{query}".encode(errors="surrogatepass")).hexdigest()[:16]


def make_written_tag(session: SessionKey, writing: str) -> str:
    """Return the tag of the link by which the turn of a message is found."""
    return f"{session.path}#{writing}"


def weigh_next_turn(turn: Turn) -> float:
    """Return how much a turn says of the one after it: most if it asks without an answer, little with one.

    Where each turn has a long answer, neighbours of it would be neighbours of everything.
    """
    if turn.response is not None:
        return ANSWERED_WEIGHT
    return ASKING_WEIGHT if is_open_question(turn) else BACK_WEIGHT


def is_open_question(turn: Turn) -> bool:
    """Say whether the answer to a turn is the turn after it."""
    return turn.response is None and "?" in turn.query


def read_turn(id: str, metadata: Mapping[str, Any]) -> Turn:
    """Return the turn that a document stores."""
    links = [(one["kind"], one["tag"], one["direction"], one.get("label")) for one in metadata[LINKS_KEY]]
    before = [tag for kind, tag, direction, _ in links if kind == NEXT_TURN and direction == "in"]
    return Turn(
        id=id,
        session=SessionKey.from_path(metadata["session"]),
        ordinal=metadata["ordinal"],
        segment=metadata["segment"],
        query=metadata["query"],
        response=metadata["response"],
        time=datetime.fromisoformat(metadata["time"]),
        entities=tuple(label for kind, _, _, label in links if kind == MENTIONS),
        sources=tuple(tag for kind, tag, _, _ in links if kind == SOURCED_FROM),
        follows=before[0] if before else None,
    )


def format_time(time: datetime) -> str:
    """Format a moment as it is stored: UTC, to the microsecond, so that texts sort as the moments do.

    Raises:
        ArgumentError: If it is not a datetime.
        DocumentError: If it has no time zone, or the calendar has no such time in UTC.
    """
    require(datetime, "a datetime", time=time)
    if time.tzinfo is None:
        raise DocumentError(f"a time needs a time zone: {time!r}; use datetime.now(UTC)")
    try:
        return time.astimezone(UTC).isoformat(timespec="microseconds")
    except OverflowError:
        raise DocumentError(f"the calendar has no such time in UTC: {time!r}") from None


def format_turn(turn: Turn) -> str:
    """Format a turn for a prompt: date, query and response, long ones cut."""
    line = f"[{turn.time:%Y-%m-%d %H:%M}] User: {_cut_excerpt(turn.query)}"
    return line if turn.response is None else f"{line}\nAssistant: {_cut_excerpt(turn.response)}"


def _cut_excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT_CHARACTERS else f"{flat[:EXCERPT_CHARACTERS]}…"


def rank_by_salience(turns: Sequence[Turn], most: int) -> tuple[str, ...]:
    """Return the distinct entities of turns, most salient first, the latest first among equals.

    Args:
        turns: In order.
        most: How many to return at most.
    """
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for age, turn in enumerate(reversed(turns)):
        share = 1.0 if turn.segment == turns[-1].segment else ELSEWHERE
        for name in turn.entities:
            key = fold(name)
            spelled.setdefault(key, name)
            weights[key] = weights.get(key, 0.0) + share * FADING**age
    ranked = sorted(weights, key=lambda key: -weights[key])
    return tuple(spelled[key] for key in ranked[:most])
