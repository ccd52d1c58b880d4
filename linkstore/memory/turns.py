"""Turns: what was said, as a value and as a document of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.arguments import require
from linkstore.errors import DocumentError
from linkstore.links import LINKS_KEY, Link
from linkstore.memory.keys import SessionKey
from linkstore.memory.speakers import SPEAKER, speaker_of

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
_KEYED: Final = "m"
"""How what names a message begins; it is no hexadecimal digit, as what is random begins with."""
ASKS: Final = 0.9
BACK: Final = 0.4
ANSWERED: Final = 0.1
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
            "time": written_time(self.time),
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


def turn_document(turn: Turn) -> Document:
    """Make the document that stores a turn, whole."""
    links = [
        Link.incoming(kind=HAS_TURN, tag=turn.session.segment(turn.segment)),
        Link.outgoing(kind=NEXT_TURN, tag=turn.id, weight=lead(turn)),
    ]
    if turn.follows is not None:
        links.append(Link.incoming(kind=NEXT_TURN, tag=turn.follows, weight=BACK))
    links += (
        Link.outgoing(kind=MENTIONS, tag=turn.session.entity(turn.segment, name), label=name)
        for name in turn.entities
    )
    links += (Link.outgoing(kind=SOURCED_FROM, tag=id) for id in turn.sources)
    if turn.writing.startswith(_KEYED):
        links.append(Link.incoming(kind=WRITTEN, tag=written_tag(turn.session, turn.writing)))
    metadata = {
        **common_metadata("turn", turn.session),
        "segment": turn.segment,
        "ordinal": turn.ordinal,
        "time": written_time(turn.time),
        "query": turn.query,
        "response": turn.response,
        SPEAKER: speaker_of(turn.query),
        LINKS_KEY: [link.to_dict() for link in links],
    }
    return Document(id=turn.id, page_content=turn.text, metadata=metadata)


def writing_of(key: str, query: str) -> str:
    """Return what names a message by its key and its text. One that is edited is another message."""
    return _KEYED + sha256(f"{key}\0{query}".encode(errors="surrogatepass")).hexdigest()[:16]


def written_tag(session: SessionKey, writing: str) -> str:
    """Return the tag of the link by which the turn of a message is found."""
    return f"{session.path}#{writing}"


def lead(turn: Turn) -> float:
    """Return how much a turn says of the one after it: most if it asks without an answer, little with one.

    Where each turn has a long answer, neighbours of it would be neighbours of everything.
    """
    if turn.response is not None:
        return ANSWERED
    return ASKS if asks(turn) else BACK


def asks(turn: Turn) -> bool:
    """Say whether the answer to a turn is the turn after it."""
    return turn.response is None and "?" in turn.query


def common_metadata(type: str, session: SessionKey) -> dict[str, Any]:
    """Return the metadata of every document of a session."""
    return {
        "type": type,
        "session": session.path,
        "owner": session.owner,
        "user_id": session.user_id,
        "agent_id": session.agent_id,
        "run_id": session.run_id,
    }


def turn_of(id: str, metadata: Mapping[str, Any]) -> Turn:
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


def written_time(time: datetime) -> str:
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
