"""Conversation memory: stores and recalls what was said, about what, and from which source.

:class:`ConversationMemory` writes turns and recalls those that answer a question, with the chunks of a
knowledge store.
"""

from linkstore.memory.conversation import ConversationMemory
from linkstore.memory.keys import SessionKey
from linkstore.memory.recalled import Recall
from linkstore.memory.turns import Turn

__all__ = ["ConversationMemory", "Recall", "SessionKey", "Turn"]
