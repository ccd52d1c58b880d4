"""The parts of a memory, as its operations get them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from langchain_core.language_models import BaseLanguageModel

from linkstore.memory.entities import EntityFinder
from linkstore.store import LinkStore
from linkstore.strategies import Reranker, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The stores and settings of a memory; see :class:`~linkstore.memory.ConversationMemory`."""

    store: LinkStore
    knowledge: LinkStore | None
    window: int
    model: BaseLanguageModel[Any] | None
    reranker: Reranker | None
    entities: EntityFinder
    strategy: Strategy
    ttl: timedelta | None = None
