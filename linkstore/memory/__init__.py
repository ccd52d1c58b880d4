"""Conversation memory: stores and recalls what was said, about what, and from which source.

:class:`ConversationMemory` writes turns and recalls those that answer a question, with the chunks of a
knowledge store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.memory.conversation import ConversationMemory
    from linkstore.memory.forgetting import Forgotten
    from linkstore.memory.recall import Recall, RecallOptions
    from linkstore.memory.sessions import SessionKey
    from linkstore.memory.turns import Turn
    from linkstore.memory.writing import TurnFields

__all__ = ["ConversationMemory", "Forgotten", "Recall", "RecallOptions", "SessionKey", "Turn", "TurnFields"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.memory.conversation": "ConversationMemory",
        "linkstore.memory.forgetting": "Forgotten",
        "linkstore.memory.recall": "Recall RecallOptions",
        "linkstore.memory.sessions": "SessionKey",
        "linkstore.memory.turns": "Turn",
        "linkstore.memory.writing": "TurnFields",
    },
)
