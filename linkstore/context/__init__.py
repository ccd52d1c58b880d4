"""The best context for a question that fits a budget of tokens, in the order it must be read.

:class:`ContextCompiler` searches a store and returns a :class:`Compiled`: the text, its documents, and the
bill of what was taken, left out, and why. :class:`Ingestor` classifies documents as facts, events or rules
before they are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.context.compiled import Compiled, Item, LeftOut, TokenCounter, counter_of
    from linkstore.context.compiler import ContextCompiler
    from linkstore.context.entries import source_header
    from linkstore.context.ingestor import Classified, Ingestor, Related, classified_by_rules
    from linkstore.context.selection import PRECEDENCE
    from linkstore.context.value import OPEN_SETS, Calibrated, Decay, Value, WeightedSum

__all__ = [
    "Calibrated",
    "Classified",
    "Compiled",
    "ContextCompiler",
    "Decay",
    "Ingestor",
    "Item",
    "LeftOut",
    "OPEN_SETS",
    "PRECEDENCE",
    "Related",
    "TokenCounter",
    "Value",
    "WeightedSum",
    "classified_by_rules",
    "counter_of",
    "source_header",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.context.compiled": "Compiled Item LeftOut TokenCounter counter_of",
        "linkstore.context.compiler": "ContextCompiler",
        "linkstore.context.entries": "source_header",
        "linkstore.context.ingestor": "Classified Ingestor Related classified_by_rules",
        "linkstore.context.selection": "PRECEDENCE",
        "linkstore.context.value": "Calibrated Decay OPEN_SETS Value WeightedSum",
    },
)
