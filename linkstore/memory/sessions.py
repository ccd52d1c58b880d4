"""Sessions: their keys, and how their turns are found in a store.

The turns of a session lie in pages of a hundred, each a link group; the session's document names a late page.
So the end of a session is found at a cost that does not grow with the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final
from urllib.parse import quote, unquote

import numpy as np
from langchain_core.documents import Document

from linkstore.core.arguments import omit_none
from linkstore.core.arrays import Ints
from linkstore.core.filters import Filter
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import Documents, Ids, Plan, StoredDocument, read_documents
from linkstore.core.text import is_unicode
from linkstore.errors import DocumentError
from linkstore.memory.turns import NOTE, PAGE, TURN, Turn, read_turn
from linkstore.strategies.traversal import NO_REFS, follow_tags

LONGEST_KEY_PART: Final = 500
"""Characters of each part of a key."""
ANY_OWNER: Final = "*"
"""Stands for any user and any agent; a name with this sign is quoted."""
PAGE_TURNS: Final = 100
"""How many positions in a session a page has."""
PROBED_PAGES: Final = 16
"""How many pages are looked for at once."""
HAS_SESSION: Final = "has_session"
HAS_NOTE: Final = "has_note"
_ALL: Final = 2**31 - 2
"""More documents than a group has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Names a session: a conversation of a user with an agent. The names are those that mem0 uses.

    Sessions that differ in any part are different sessions. At least one part is needed: without ``run_id``,
    a key names what is known of a user (or an agent) whatever the conversation.

    Args:
        run_id: The conversation.
        user_id: Who speaks with the agent; None where there is only one user.
        agent_id: The agent; None where there is only one.

    Raises:
        DocumentError: If no part is given, or a part is not a string, is empty, has more than 500 characters,
            a NUL or a lone surrogate.
    """

    run_id: str | None = None
    user_id: str | None = None
    agent_id: str | None = None

    def __post_init__(self) -> None:
        given = omit_none(run_id=self.run_id, user_id=self.user_id, agent_id=self.agent_id)
        if not given:
            raise DocumentError("a session needs a run_id, a user_id or an agent_id")
        check_parts(**given)

    @property
    def owner(self) -> str:
        """The user and the agent, whose sessions may be recalled together."""
        return f"{_quote_part(self.user_id)}/{_quote_part(self.agent_id)}"

    @property
    def path(self) -> str:
        """The id of the session's document: its parts, percent-encoded, joined by slashes."""
        return f"{self.owner}/{_quote_part(self.run_id)}"

    def scope(self, *, everywhere: bool = False) -> Filter:
        """Return the filter that what is remembered of this session passes, and nothing else.

        Args:
            everywhere: Also that of the other sessions of the same user and agent; without a user, nobody
                knows whose they are, and it is this session alone.
        """
        wide = self.user_id is not None and (everywhere or self.run_id is None)
        known: Filter = {"owner": self.owner} if wide else {"session": self.path}
        return {**known, "type": {"$in": [TURN, NOTE]}}

    @property
    def reach(self) -> str:
        """What facts are compared within: the user and the agent, or this session if there is no user."""
        return self.owner if self.user_id is not None else self.path

    @property
    def groups(self) -> tuple[str, ...]:
        """The tags of the groups of sessions that this one belongs to: see :func:`make_group_tag`."""
        users = dict.fromkeys((None, self.user_id))
        return tuple(
            make_group_tag(user, agent) for user in users for agent in dict.fromkeys((None, self.agent_id))
        )

    @classmethod
    def of(cls, session: SessionKey | str) -> SessionKey:
        """Return a key. A string names a conversation without user and agent."""
        if isinstance(session, SessionKey):
            return session
        check_parts(run_id=session)
        return cls(run_id=session)

    @classmethod
    def from_path(cls, path: str) -> SessionKey:
        """Return the key that has this path."""
        user, agent, run = (unquote(part) or None for part in path.split("/"))
        return cls(run_id=run, user_id=user, agent_id=agent)

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


def make_session_document(session: SessionKey, page: int) -> Document:
    """Make the document of a session, which names a page that it has."""
    links = [Link.incoming(kind=HAS_SESSION, tag=tag) for tag in session.groups]
    metadata: dict[str, Any] = {
        "type": "session",
        "session": session.path,
        "owner": session.owner,
        "page": page,
    }
    metadata[LINKS_KEY] = [link.to_dict() for link in links]
    named = session.run_id or session.path
    text = named if any(map(str.isalnum, named)) else session.path
    return Document(id=session.path, page_content=text, metadata=metadata)


def get_page(ordinal: int) -> int:
    """Return the number of the page that has a position in a session."""
    return (ordinal - 1) // PAGE_TURNS + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The end of a session.

    Args:
        recorded: The page that its document names; 0 without one.
        recent: Its latest turns, the last one last.
    """

    recorded: int = 0
    recent: tuple[Turn, ...] = ()


def read_head(session: SessionKey, take: int) -> Plan[SessionHead]:
    """Return the end of a session, with up to ``take`` turns."""
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
    return SessionHead(recorded=recorded, recent=tuple(recent))


def _read_pages(session: SessionKey, pages: Sequence[int]) -> Plan[tuple[Ints, Ints]]:
    """Return the turns of pages: positions in ``pages``, and refs."""
    tags = [(PAGE, make_page_tag(session.path, page)) for page in pages]
    hop = yield from follow_tags(tags, "in", take=_ALL, cap=_ALL)
    return hop.edges.source, hop.edges.target


def make_page_tag(path: str, page: int) -> str:
    """Return the tag of a page of a session."""
    return f"{path}/{page:05d}"


def read_linked(tags: Sequence[tuple[str, str]], side: str = "in") -> Plan[list[StoredDocument]]:
    """Return all documents that link groups have on one side."""
    hop = yield from follow_tags(tags, "out" if side == "out" else "in", take=_ALL, cap=_ALL)
    return (yield Documents(refs=np.unique(hop.edges.target)))  # type: ignore[no-any-return]


def _read_latest(refs: Ints, take: int) -> Plan[list[Turn]]:
    """Return the ``take`` latest of some turns, in order."""
    ids: list[str] = yield Ids(refs=refs)
    order = sorted(range(len(ids)), key=ids.__getitem__)[-take:] if take else []
    stored: list[StoredDocument] = yield Documents(refs=refs[np.asarray(order, np.int64)])
    return sorted((read_turn(one.id, one.metadata) for one in stored), key=attrgetter("order"))


def read_session_documents(user_id: str | None, agent_id: str | None) -> Plan[list[StoredDocument]]:
    """Return the documents of the sessions of a user, with an agent, both, or all."""
    return (yield from read_linked([(HAS_SESSION, make_group_tag(user_id, agent_id))]))


def _list_tags(sessions: Iterable[StoredDocument], further: int) -> list[tuple[str, str]]:
    """Return the tags of the pages that sessions name, of so many further ones, and of their notes."""
    tags: list[tuple[str, str]] = []
    for one in sessions:
        pages = range(1, int(one.metadata["page"]) + further + 1)
        tags += [(HAS_NOTE, one.id), *((PAGE, make_page_tag(one.id, page)) for page in pages)]
    return tags


def read_all(sessions: Iterable[StoredDocument]) -> Plan[list[StoredDocument]]:
    """Return all turns and notes of sessions, given by their documents, in order of their ids."""
    found = yield from read_linked(_list_tags(sessions, PROBED_PAGES))
    return sorted(found, key=attrgetter("id"))


def select_filled(sessions: Iterable[StoredDocument]) -> Plan[list[SessionKey]]:
    """Return the keys of the sessions that have a turn or a note, sorted."""
    tags = _list_tags(sessions, 0)
    hop = yield from follow_tags(tags, "in", take=1, cap=1)
    filled = {tags[at] for at in hop.source[hop.size > 0].tolist()}
    paths = {tag.rpartition("/")[0] if kind == PAGE else tag for kind, tag in filled}
    return [SessionKey.from_path(path) for path in sorted(paths)]
