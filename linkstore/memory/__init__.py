"""Conversation memory: stores and recalls what was said, with its subjects and sources.

:class:`ConversationMemory` writes turns and recalls those that answer a question, with the chunks of a
knowledge store.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
