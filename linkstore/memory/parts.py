"""What a memory is made of, as its operations get it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from langchain_core.language_models import BaseLanguageModel

from linkstore.backends.base import Manifest
from linkstore.memory.entities import EntityFinder
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.strategies import Reranker, Strategy
from linkstore.twins import of_backend
from linkstore.vectors import Floats, unit_vector


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


def any_vector(store: LinkStore) -> Operation[Floats | None]:
    """Some unit vector of a store's dimension, for plans that rank nothing; None for an empty store."""
    manifest: Manifest = yield of_backend(store, store.backend.manifest())
    if manifest.dimension is None:
        return None
    return unit_vector(np.ones(manifest.dimension, dtype=np.float32))
