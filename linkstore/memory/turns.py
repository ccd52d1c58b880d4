"""Turns and notes of a conversation: as values, as documents, and read from a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

import numpy as np
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage

from linkstore.context.compiled import is_from_user
from linkstore.core.arguments import omit_none, require
from linkstore.core.arrays import Ints
from linkstore.core.documents import MEMORY_KEY
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import Documents, Ids, Plan, Side, StoredDocument, ask, read_documents
from linkstore.core.text import fold
from linkstore.errors import DocumentError
from linkstore.memory.names import SPEAKER, make_speaker_tags, read_speaker
from linkstore.memory.sessions import (
    HAS_NOTE,
    HAS_SESSION,
    NOTE,
    PAGE,
    TURN,
    SessionKey,
    get_page,
    make_group_tag,
    make_page_tag,
)
from linkstore.strategies.traversal import NO_REFS, follow_tags

NEXT_TURN: Final = "next_turn"
MENTIONS: Final = "mentions"
SOURCED_FROM: Final = "sourced_from"
SUPERSEDES: Final = "supersedes"
STATES: Final = "states"
WRITTEN: Final = "written"
"""The kind of link whose tag names the message of a turn."""
_KEYED_PREFIX: Final = "m"
"""How what names a message begins; it is no hexadecimal digit, as what is random begins with."""
ASKING_WEIGHT: Final = 0.9
BACK_WEIGHT: Final = 0.4
ANSWERED_WEIGHT: Final = 0.1
"""Weights of ``next_turn``: of a turn that asks, of any other and backwards, of one with an answer."""
PROBED_PAGES: Final = 16
"""How many pages of a session are looked for at once."""
_ALL: Final = 2**31 - 2
"""More documents than a group has."""
EXCERPT_CHARACTERS: Final = 300
"""Characters of a turn's query or response that the conversation part of a prompt shows."""
WORDLESS: Final = "(nothing was said)"
"""The text of a turn without any word or sign, which no embedding takes."""
_PLAIN: Final = ("ordinal", "query", "response", "meaning", "follows")
_LISTED: Final = ("entities", "focus", "sources", "supersedes", "statements")
"""The fields of a turn that its document has under the same names, as they are, or as lists."""
_OWN_KEYS: Final = frozenset(
    (*_PLAIN, *_LISTED, "type", "session", "owner", "time", SPEAKER, MEMORY_KEY, LINKS_KEY)
)
"""The keys of metadata that a memory writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One exchange of a conversation, or a note: a fact, an event, a rule or a summary made from some.

    Args:
        id: Of its document.
        session: The conversation.
        ordinal: Its position in the conversation, from 1; two writers at once may give one twice. 0: a note.
        query: What the user said, or the text of a note.
        response: What was answered; None if there was no answer.
        time: When, in UTC.
        meaning: The query so that it stands alone; None where that is the same or not known.
        entities: What it means, as it is written there.
        focus: What the query is about, the first most: what it names, or else what a word that refers back
            means.
        sources: Ids of the chunks of knowledge that the answer came from, or of the turns of a note.
        supersedes: Ids of turns and notes that state what is no longer so.
        statements: What it states that may change, such as "my phone number".
        follows: The id of the turn before; None for the first of a session.
        memory: ``"semantic"``, ``"episodic"`` or ``"procedural"`` for a fact, an event or a rule.
        metadata: What the application keeps with it.
        until: When what it states ceased to be so, as far as a recall knows; None if it holds.
    """

    id: str
    session: SessionKey
    ordinal: int
    query: str
    response: str | None
    time: datetime
    meaning: str | None = None
    entities: tuple[str, ...] = ()
    focus: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    follows: str | None = None
    memory: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    until: datetime | None = None

    @property
    def text(self) -> str:
        """The text to search: the meaning of the query, and the response."""
        meant = self.meaning or self.query
        content = meant if self.response is None else f"{meant}\n{self.response}"
        return content if content.strip() else WORDLESS

    @property
    def is_note(self) -> bool:
        """Whether it is a note."""
        return self.ordinal == 0

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
        return {"id": self.id, **self.fields, "memory": self.memory, "metadata": dict(self.metadata)}

    @property
    def fields(self) -> dict[str, Any]:
        """What its document has under the names of the fields, as plain JSON."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            **{name: list(getattr(self, name)) for name in _LISTED},
            "time": format_time(self.time),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message of the user, and the answer to it.

    Args:
        query: Its text.
        key: Its id; None without one.
        response: The text of the last answer after it that calls no tool; None without one.
    """

    query: str
    key: str | None = None
    response: str | None = None

    @property
    def name(self) -> str:
        """What names the message: its id, else its text."""
        return self.key or self.query


def find_exchanges(messages: Sequence[BaseMessage]) -> list[Exchange]:
    """Return all exchanges in messages, in order. Answers before any message have no query."""
    exchanges: list[Exchange] = []
    for message in messages:
        text = str(message.text).strip()
        if is_from_user(message):
            exchanges.append(Exchange(key=message.id, query=text))
        elif isinstance(message, AIMessage) and not message.tool_calls and text:
            before = exchanges.pop() if exchanges else Exchange(query="")
            exchanges.append(replace(before, response=text))
    return exchanges


def make_document(turn: Turn) -> Document:
    """Make the document that stores a turn or a note, whole."""
    path, speaker = turn.session.path, read_speaker(turn.query)
    if turn.is_note:
        links = [Link.incoming(kind=HAS_NOTE, tag=path)]
    else:
        links = [
            Link.incoming(kind=PAGE, tag=make_page_tag(path, get_page(turn.ordinal))),
            Link.outgoing(kind=NEXT_TURN, tag=turn.id, weight=_weigh_next_turn(turn)),
        ]
    if turn.follows is not None:
        links.append(Link.incoming(kind=NEXT_TURN, tag=turn.follows, weight=BACK_WEIGHT))
    links += (Link.bidir(kind=MENTIONS, tag=fold(name), label=name) for name in turn.entities)
    links += (Link.outgoing(kind=SOURCED_FROM, tag=id) for id in turn.sources)
    links += (Link.outgoing(kind=SUPERSEDES, tag=id) for id in turn.supersedes)
    links += (
        Link.incoming(kind=STATES, tag=f"{turn.session.reach}#{statement}", label=statement)
        for statement in turn.statements
    )
    links += (Link.incoming(kind=SPEAKER, tag=tag) for tag in make_speaker_tags(turn.session.owner, speaker))
    if turn.writing.startswith(_KEYED_PREFIX):
        links.append(Link.incoming(kind=WRITTEN, tag=make_written_tag(turn.session, turn.writing)))
    metadata = {
        **turn.metadata,
        **turn.fields,
        "type": NOTE if turn.is_note else TURN,
        "session": path,
        "owner": turn.session.owner,
        SPEAKER: speaker,
        LINKS_KEY: [link.to_dict() for link in links],
        **omit_none(**{MEMORY_KEY: turn.memory}),
    }
    return Document(id=turn.id, page_content=turn.text, metadata=metadata)


def read_turn(document: StoredDocument | Document) -> Turn:
    """Return the turn or note that a document stores."""
    metadata = document.metadata
    fields: dict[str, Any] = {name: metadata[name] for name in _PLAIN}
    fields |= {name: tuple(metadata[name]) for name in _LISTED}
    return Turn(
        **fields,
        id=str(document.id),
        session=SessionKey.from_path(metadata["session"]),
        time=datetime.fromisoformat(metadata["time"]),
        memory=metadata.get(MEMORY_KEY),
        metadata={key: value for key, value in metadata.items() if key not in _OWN_KEYS},
    )


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise unless an application may keep this with a turn.

    Raises:
        DocumentError: If a key is one that a memory writes itself.
    """
    require(Mapping, "a dict", metadata=metadata)
    taken = sorted(_OWN_KEYS & metadata.keys())
    if taken:
        raise DocumentError(
            f"metadata must not have the keys {', '.join(taken)}, which a memory writes itself"
        )


def name_writing(key: str, query: str) -> str:
    """Return a name for a message, by its key and its text.

    An edited message is another message.
    """
    return _KEYED_PREFIX + sha256(f"{key}\0{query}".encode(errors="surrogatepass")).hexdigest()[:16]


def make_written_tag(session: SessionKey, writing: str) -> str:
    """Return the tag of the link by which the turn of a message is found."""
    return f"{session.path}#{writing}"


def _weigh_next_turn(turn: Turn) -> float:
    """Return how much a turn says of the one after it: most if it asks without an answer, little with one.

    Where each turn has a long answer, neighbours of it would be neighbours of everything.
    """
    if turn.response is not None:
        return ANSWERED_WEIGHT
    return ASKING_WEIGHT if "?" in turn.query else BACK_WEIGHT


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
    """Format a turn for a prompt: date, until when it holds, query and response, long ones cut."""
    holds = f", until {turn.until:%Y-%m-%d}" if turn.until else ", since then" if turn.supersedes else ""
    speaker = "Note" if turn.is_note else "User"
    line = f"[{turn.time:%Y-%m-%d %H:%M}{holds}] {speaker}: {cut_excerpt(turn.query)}"
    return line if turn.response is None else f"{line}\nAssistant: {cut_excerpt(turn.response)}"


def cut_excerpt(text: str) -> str:
    """Return a text on one line, cut if it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT_CHARACTERS else f"{flat[:EXCERPT_CHARACTERS]}…"


def read_head(session: SessionKey, take: int) -> Plan[tuple[int, list[Turn]]]:
    """Return the end of a session.

    Returns:
        The page that its document names, 0 without one; and up to ``take`` latest turns, in order.
    """
    documents = yield from read_documents([session.path])
    recorded = int(documents[0].metadata["page"]) if documents else 0
    page, refs, start = 0, NO_REFS, max(recorded, 1)
    while True:
        numbers = range(start, start + PROBED_PAGES)
        owner, members = yield from _read_pages(session, numbers)
        if not len(owner):
            break
        page, refs = numbers[int(owner.max())], members[owner == owner.max()]
        start = page + 1
    recent = yield from _read_latest(refs, take)
    before = (page or start) - 1
    while len(recent) < take and before > 0 and before > start - 2 * PROBED_PAGES:
        _, earlier = yield from _read_pages(session, [before])
        recent = [*(yield from _read_latest(earlier, take - len(recent))), *recent]
        before -= 1
    return recorded, recent


def _read_pages(session: SessionKey, pages: Sequence[int]) -> Plan[tuple[Ints, Ints]]:
    """Return the turns of pages: positions in ``pages``, and refs."""
    tags = [(PAGE, make_page_tag(session.path, page)) for page in pages]
    hop = yield from follow_tags(tags, "in", take=_ALL, cap=_ALL)
    return hop.edges.source, hop.edges.target


def read_turns(tags: Sequence[tuple[str, str]], side: Side = "in") -> Plan[list[Turn]]:
    """Return all turns and notes that link groups have on one side, in order of their ids."""
    stored = yield from _read_linked(tags, side)
    return sorted(map(read_turn, stored), key=attrgetter("id"))


def _read_linked(tags: Sequence[tuple[str, str]], side: Side = "in") -> Plan[list[StoredDocument]]:
    hop = yield from follow_tags(tags, side, take=_ALL, cap=_ALL)
    return (yield from ask(Documents(refs=np.unique(hop.edges.target))))


def _read_latest(refs: Ints, take: int) -> Plan[list[Turn]]:
    """Return the ``take`` latest of some turns, in order."""
    ids = yield from ask(Ids(refs=refs))
    order = sorted(range(len(ids)), key=ids.__getitem__)[-take:] if take else []
    stored = yield from ask(Documents(refs=refs[np.asarray(order, np.int64)]))
    return sorted(map(read_turn, stored), key=attrgetter("order"))


def read_session_documents(user_id: str | None, agent_id: str | None) -> Plan[list[StoredDocument]]:
    """Return the documents of the sessions of a user, with an agent, both, or all."""
    return (yield from _read_linked([(HAS_SESSION, make_group_tag(user_id, agent_id))]))


def _list_tags(sessions: Iterable[StoredDocument], further: int) -> list[tuple[str, str]]:
    """Return the tags of the pages that sessions name, of so many further ones, and of their notes."""
    tags: list[tuple[str, str]] = []
    for session in sessions:
        pages = range(1, int(session.metadata["page"]) + further + 1)
        tags += [(HAS_NOTE, session.id), *((PAGE, make_page_tag(session.id, page)) for page in pages)]
    return tags


def read_all(sessions: Iterable[StoredDocument]) -> Plan[list[Turn]]:
    """Return all turns and notes of sessions, given by their documents, in order of their ids."""
    return (yield from read_turns(_list_tags(sessions, PROBED_PAGES)))


def select_filled(sessions: Iterable[StoredDocument]) -> Plan[list[SessionKey]]:
    """Return the keys of the sessions that have a turn or a note, sorted."""
    tags = _list_tags(sessions, 0)
    hop = yield from follow_tags(tags, "in", take=1, cap=1)
    filled = {tags[at] for at in hop.source[hop.size > 0].tolist()}
    paths = {tag.rpartition("/")[0] if kind == PAGE else tag for kind, tag in filled}
    return [SessionKey.from_path(path) for path in sorted(paths)]
