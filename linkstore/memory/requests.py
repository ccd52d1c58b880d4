"""The parts of a memory, as its operations get them, and the calls that they make."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.core.calls import Call
from linkstore.core.filters import Filter
from linkstore.core.plans import Operation
from linkstore.memory.entities import EntityFinder
from linkstore.store.linkstore import LinkStore
from linkstore.strategies.base import Reranker, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """The stores and settings of a memory; see :class:`~linkstore.memory.ConversationMemory`."""

    store: LinkStore
    knowledge: LinkStore | None
    window: int
    model: BaseLanguageModel[Any] | None
    reranker: Reranker | None
    entities: EntityFinder
    strategy: Strategy
    ttl: timedelta | None = None


T = TypeVar("T")


def request_search(
    store: LinkStore, question: str, strategy: Strategy, k: int, filter: Filter | None = None
) -> Call:
    """Request the hits of a question from a store: Hits."""
    options = {"k": k, "strategy": strategy, "filter": filter}
    return Call(store.search, store.asearch, (question,), options)


def request_add(store: LinkStore, documents: list[Document]) -> Call:
    """Request that a store adds documents in one change: their ids."""
    options = {"batch_size": len(documents)}
    return Call(store.add_documents, store.aadd_documents, (documents,), options)


def request_delete(store: LinkStore, ids: list[str]) -> Call:
    """Request that a store removes documents by id: True."""
    return Call(store.delete, store.adelete, (ids,))


def request_embedding(store: LinkStore, text: str) -> Call:
    """Request the vector of a text."""
    return Call(store.embeddings.embed_query, store.embeddings.aembed_query, (text,))


def request_writes(futures: Sequence[Future[Any]]) -> Call:
    """Request a wait for writes in the background, which raises what one of them raised."""
    return Call(_wait_for_writes, _await_writes, (futures,))


def ask_model(model: BaseLanguageModel[Any], prompt: str) -> Operation[str]:
    """Ask a language model for its answer to a prompt."""
    answer: Any = yield Call(model.invoke, model.ainvoke, (prompt,))
    return str(answer if isinstance(answer, str) else answer.text).strip()


def _wait_for_writes(futures: Sequence[Future[Any]]) -> list[Any]:
    return [future.result() for future in futures]


async def _await_writes(futures: Sequence[Future[Any]]) -> list[Any]:
    # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
    return [await asyncio.shield(asyncio.wrap_future(future)) for future in futures]
