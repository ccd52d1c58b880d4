"""Turns and sessions: what was said, as a value and as a document, and its keys.

The key of a session (user, agent and run), and the ids of everything in a session.

Turns: what was said, as a value and as a document of a store.

The salience of entities: how often and how recently they were mentioned; derived from turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote, unquote

from langchain_core.documents import Document

from linkstore.core.arguments import require
from linkstore.core.filters import Filter
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.text import fold, is_unicode
from linkstore.errors import DocumentError
from linkstore.memory.entities import SPEAKER, read_speaker

LONGEST_KEY_PART: Final = 500
"""Characters of each part of a key."""

ANY_OWNER: Final = "*"
"""Stands for any user and any agent; a name with this sign is quoted."""


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
        check_part("run_id", self.run_id)
        check_owner(self.user_id, self.agent_id)

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


def check_owner(user_id: object, agent_id: object) -> None:
    """Raise unless a user and an agent can be stored. None is no user, or no agent.

    Raises:
        DocumentError: Naming the one.
    """
    for name, part in (("user_id", user_id), ("agent_id", agent_id)):
        if part is not None:
            check_part(name, part)


def check_part(name: str, part: object) -> None:
    """Raise unless a part of a key can be stored.

    Raises:
        DocumentError: Naming the part.
    """
    if not isinstance(part, str) or not 0 < len(part) <= LONGEST_KEY_PART:
        raise DocumentError(
            f"{name} must be a string of 1 to {LONGEST_KEY_PART} characters, not {str(part)[:80]!r}"
        )
    if "\0" in part or not is_unicode(part):
        raise DocumentError(f"{name} must not have NUL characters or lone surrogates: {part[:80]!r}")


def _quote_part(part: str | None) -> str:
    return "" if part is None else quote(part, safe="")


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
WORDLESS: Final = "(nothing was said)"
"""The text of a turn without any word or sign, which no embedding takes."""


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
    links = [
        Link.incoming(kind=HAS_TURN, tag=turn.session.segment(turn.segment)),
        Link.outgoing(kind=NEXT_TURN, tag=turn.id, weight=weigh_next_turn(turn)),
    ]
    if turn.follows is not None:
        links.append(Link.incoming(kind=NEXT_TURN, tag=turn.follows, weight=BACK_WEIGHT))
    links += (
        Link.outgoing(kind=MENTIONS, tag=turn.session.entity(turn.segment, name), label=name)
        for name in turn.entities
    )
    links += (Link.outgoing(kind=SOURCED_FROM, tag=id) for id in turn.sources)
    if turn.writing.startswith(_KEYED_PREFIX):
        links.append(Link.incoming(kind=WRITTEN, tag=make_written_tag(turn.session, turn.writing)))
    metadata = {
        **make_metadata("turn", turn.session),
        "segment": turn.segment,
        "ordinal": turn.ordinal,
        "time": format_time(turn.time),
        "query": turn.query,
        "response": turn.response,
        SPEAKER: read_speaker(turn.query),
        LINKS_KEY: [link.to_dict() for link in links],
    }
    return Document(id=turn.id, page_content=turn.text, metadata=metadata)


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


def make_metadata(type: str, session: SessionKey) -> dict[str, Any]:
    """Return the metadata of every document of a session."""
    return {
        "type": type,
        "session": session.path,
        "owner": session.owner,
        "user_id": session.user_id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
    }


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


FADING: Final = 0.8
"""Factor by which a mention counts less with each later turn."""
ELSEWHERE: Final = 0.5
"""Weight of a mention in a topic segment other than the last one."""


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
