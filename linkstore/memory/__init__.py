"""Conversation memory: stores and recalls what was said, about what, and from which source.

:class:`ConversationMemory` writes turns and recalls those that answer a question, with the chunks of a
knowledge store. :class:`GraphStore` keeps the long-term memory of LangGraph's agents; it needs the extra
``agents``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkstore.memory.conversation import ConversationMemory
from linkstore.memory.keys import SessionKey
from linkstore.memory.recalled import Recall
from linkstore.memory.turns import Turn

if TYPE_CHECKING:
    from linkstore.memory.graphstore.store import GraphStore

__all__ = ["ConversationMemory", "GraphStore", "Recall", "SessionKey", "Turn"]


def __getattr__(name: str) -> Any:
    """Import what needs an extra when it is first used.

    Raises:
        MissingExtraError: If the extra is not installed.
    """
    if name == "GraphStore":
        from linkstore.memory.graphstore.store import GraphStore

        return GraphStore
    raise AttributeError(f"module 'linkstore.memory' has no attribute {name!r}")
