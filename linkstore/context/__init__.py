"""The best context for a question that fits a budget of tokens, in the order it must be read.

:class:`ContextCompiler` searches a store and returns a :class:`Compiled`: the text, its documents, and the
bill of what was taken, left out, and why. :class:`Ingestor` classifies documents as facts, events or rules
before they are stored.
"""

from __future__ import annotations

from linkstore.context.compiled import Compiled, Item, LeftOut
from linkstore.context.compiler import ContextCompiler
from linkstore.context.decay import Decay
from linkstore.context.ingestor import Classified, Ingestor, Related, classified_by_rules
from linkstore.context.order import PRECEDENCE
from linkstore.context.settings import source_header
from linkstore.context.tokens import TokenCounter, counter_of
from linkstore.context.value import OPEN_SETS, Calibrated, Value, WeightedSum

__all__ = [
    "OPEN_SETS",
    "PRECEDENCE",
    "Calibrated",
    "Classified",
    "Compiled",
    "ContextCompiler",
    "Decay",
    "Ingestor",
    "Item",
    "LeftOut",
    "Related",
    "TokenCounter",
    "Value",
    "WeightedSum",
    "classified_by_rules",
    "counter_of",
    "source_header",
]
