"""What the operations of a store wait for: embeddings, and operations of the backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkstore.plans import Operation


@dataclass(frozen=True, slots=True)
class EmbedQuery:
    """Asks for the embedding of a question: a vector."""

    text: str


@dataclass(frozen=True, slots=True)
class EmbedDocuments:
    """Asks for the embeddings of texts: (n, d) vectors."""

    texts: list[str]


@dataclass(frozen=True, slots=True)
class EmbedProbe:
    """Asks for the embedding of a text that is stored with its vector, to compare both: (1, d) vectors."""

    text: str


@dataclass(frozen=True, slots=True)
class Engine:
    """Asks the backend to carry out one of its operations: its result."""

    operation: Operation[Any]
