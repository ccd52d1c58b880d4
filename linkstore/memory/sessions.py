"""Sessions: their keys, their documents, and the pages that their turns lie in.

The turns of a session lie in pages of a hundred, each a link group; the session's document names a late page.
So the end of a session is found at a cost that does not grow with the session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none
from linkstore.core.filters import Filter
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.text import is_unicode
from linkstore.errors import DocumentError

LONGEST_KEY_PART: Final = 500
"""Characters of each part of a key."""
ANY_OWNER: Final = "*"
"""Stands for any user and any agent; a name with this sign is quoted."""
PAGE_TURNS: Final = 100
"""How many positions in a session a page has."""
TURN: Final = "turn"
NOTE: Final = "note"
HAS_SESSION: Final = "has_session"
HAS_NOTE: Final = "has_note"
PAGE: Final = "has_turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Names a session: a conversation of a user with an agent.

    The names of its parts are the ones mem0 uses.

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
        parts = omit_none(run_id=self.run_id, user_id=self.user_id, agent_id=self.agent_id)
        if not parts:
            raise DocumentError("a session needs a run_id, a user_id or an agent_id")
        check_parts(**parts)

    @property
    def owner(self) -> str:
        """The user and the agent, whose sessions may be recalled together."""
        return f"{_quote_part(self.user_id)}/{_quote_part(self.agent_id)}"

    @property
    def path(self) -> str:
        """The id of the session's document: its parts, percent-encoded, joined by slashes."""
        return f"{self.owner}/{_quote_part(self.run_id)}"

    def scope(self, *, everywhere: bool = False) -> Filter:
        """Return the filter for exactly the turns and notes of this session.

        Args:
            everywhere: Also that of the other sessions of the same user and agent; without a user, nobody
                knows whose they are, and it is this session alone.
        """
        wide = self._is_wide(everywhere=everywhere)
        limits: Filter = {"owner": self.owner} if wide else {"session": self.path}
        return {**limits, "type": {"$in": [TURN, NOTE]}}

    def sees(self, other: SessionKey, *, everywhere: bool = False) -> bool:
        """Say whether turns of another session are within :meth:`scope`."""
        return self.owner == other.owner if self._is_wide(everywhere=everywhere) else self == other

    def _is_wide(self, *, everywhere: bool) -> bool:
        return self.user_id is not None and (everywhere or self.run_id is None)

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
    """Make the document of a session, with the name of one of its pages."""
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


def make_page_tag(path: str, page: int) -> str:
    """Return the tag of a page of a session."""
    return f"{path}/{page:05d}"
