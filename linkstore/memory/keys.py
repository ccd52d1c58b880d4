"""The key of a session (user, agent and run), and the ids of everything in a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from linkstore.errors import DocumentError
from linkstore.filters import Filter
from linkstore.text import fold, is_unicode

LONGEST: Final = 500
"""Characters of each part of a key."""

ANY: Final = "*"
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
        return f"{_quoted(self.user_id)}/{_quoted(self.agent_id)}"

    @property
    def path(self) -> str:
        """The id of the session's document: its parts, percent-encoded, joined by slashes."""
        return f"{self.owner}/{_quoted(self.run_id)}"

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
        """The tags of the groups of sessions that this one belongs to: see :func:`group_of`."""
        users = dict.fromkeys((None, self.user_id))
        return tuple(
            group_of(user, agent) for user in users for agent in dict.fromkeys((None, self.agent_id))
        )

    def segment(self, number: int) -> str:
        """Return the id of a segment of this session."""
        return f"{self.path}/{number:05d}"

    def turn(self, ordinal: int, writing: str) -> str:
        """Return the id of a turn. ``writing`` differs for each write, so that two writers never collide."""
        return f"{self.path}/{ordinal:07d}-{writing}"

    def entity(self, segment: int, name: str) -> str:
        """Return the id of an entity as a segment of this session mentions it."""
        return f"{self.segment(segment)}#{_quoted(fold(name)[:LONGEST])}"

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


def group_of(user_id: str | None, agent_id: str | None) -> str:
    """Return the tag of the sessions of a user, with an agent. None is any, also none."""
    user, agent = (ANY if part is None else _quoted(part) for part in (user_id, agent_id))
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
    if not isinstance(part, str) or not 0 < len(part) <= LONGEST:
        raise DocumentError(f"{name} must be a string of 1 to {LONGEST} characters, not {str(part)[:80]!r}")
    if "\0" in part or not is_unicode(part):
        raise DocumentError(f"{name} must not have NUL characters or lone surrogates: {part[:80]!r}")


def _quoted(part: str | None) -> str:
    return "" if part is None else quote(part, safe="")
