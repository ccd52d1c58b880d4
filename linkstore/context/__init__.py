"""The best context for a question that fits a budget of tokens, in the order it must be read.

:class:`ContextCompiler` searches a store and returns a :class:`Compiled`: the text, its documents, and the
bill of what was taken, left out, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.context.candidates import source_header
    from linkstore.context.compiled import Compiled, Item, LeftOut, TokenCounter, counter_of
    from linkstore.context.compiler import ContextCompiler
    from linkstore.context.decay import Decay
    from linkstore.context.ordering import PRECEDENCE

__all__ = [
    "PRECEDENCE",
    "Compiled",
    "ContextCompiler",
    "Decay",
    "Item",
    "LeftOut",
    "TokenCounter",
    "counter_of",
    "source_header",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.context.candidates": "source_header",
        "linkstore.context.compiled": "Compiled Item LeftOut TokenCounter counter_of",
        "linkstore.context.compiler": "ContextCompiler",
        "linkstore.context.decay": "Decay",
        "linkstore.context.ordering": "PRECEDENCE",
    },
)
