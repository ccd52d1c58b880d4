"""Forgettings that have begun: written down before anything is removed, so that a killed one is finished.

What is written down names sessions and the turns chosen in them, and not what was asked for. So turns that
are written later stay, whatever they are about. When all is removed, a document without names takes its
place before the files are erased: then they have no byte of the names either.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.links import LINKS_KEY, Link
from linkstore.memory.keys import SessionKey
from linkstore.memory.reading import linked_at
from linkstore.plans import Documents, Plan, Stored
from linkstore.vectors import Floats

_FORGETTING: Final = "forgetting"
"""Link kind and tag of what is written down, and the name of its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
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
    def begun(cls, sessions: Sequence[SessionKey], turns: Collection[str]) -> Unfinished:
        """Make a new one."""
        return cls(id=f"{_FORGETTING} {uuid.uuid4()}", sessions=tuple(sessions), turns=frozenset(turns))

    @property
    def emptied(self) -> Unfinished:
        """The record when all is removed and the files are still to be erased."""
        return Unfinished(id=self.id, sessions=(), turns=frozenset())

    def document(self) -> Document:
        """Return the document in which it is written down."""
        metadata: dict[str, Any] = {
            "type": _FORGETTING,
            "sessions": [key.path for key in self.sessions],
            "turns": sorted(self.turns),
            LINKS_KEY: [Link.incoming(kind=_FORGETTING, tag=_FORGETTING).to_dict()],
        }
        return Document(id=self.id, page_content=_FORGETTING, metadata=metadata)


def unfinished(vector: Floats) -> Plan[list[Unfinished]]:
    """Read all that are written down: of calls that were killed, and of those that run now."""
    refs = yield from linked_at([(_FORGETTING, _FORGETTING)], vector)
    stored: list[Stored] = yield Documents(refs=refs)
    return [
        Unfinished(
            id=one.id,
            sessions=tuple(map(SessionKey.from_path, one.metadata["sessions"])),
            turns=frozenset(one.metadata["turns"]),
        )
        for one in stored
    ]
