"""Conversation memory: stores and recalls what was said, about what, and from which source.

:class:`ConversationMemory` writes turns and recalls those that answer a question, with the chunks of a
knowledge store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory
    from linkstore.memory.recall import Recall
    from linkstore.memory.turns import SessionKey, Turn

__all__ = ["ConversationMemory", "Recall", "SessionKey", "Turn"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.memory.conversation": "ConversationMemory",
        "linkstore.memory.recall": "Recall",
        "linkstore.memory.turns": "SessionKey Turn",
    },
)
