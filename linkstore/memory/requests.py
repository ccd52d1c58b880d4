"""The parts of a memory, what its operations wait for, and their drivers.

The parts of a memory, as its operations get them.

The requests that operations of a memory yield, and the two drivers that wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.core.calls import arun, run, run_in_thread
from linkstore.core.filters import Filter
from linkstore.core.plans import Operation
from linkstore.memory.entities import EntityFinder
from linkstore.store.linkstore import DualCall, LinkStore, await_call, wait_for_call
from linkstore.strategies.base import Reranker, RerankRequest, Strategy


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
) -> DualCall:
    """Request the hits of a question from a store: Hits."""
    options = {"k": k, "strategy": strategy, "filter": filter}
    return DualCall(store.search, store.asearch, (question,), options)


def request_add(store: LinkStore, documents: list[Document]) -> DualCall:
    """Request that a store adds documents in one change: their ids."""
    options = {"batch_size": len(documents)}
    return DualCall(store.add_documents, store.aadd_documents, (documents,), options)


def request_delete(store: LinkStore, ids: list[str]) -> DualCall:
    """Request that a store removes documents by id: True."""
    return DualCall(store.delete, store.adelete, (ids,))


def request_embedding(store: LinkStore, text: str) -> DualCall:
    """Request the vector of a text."""
    return DualCall(store.embeddings.embed_query, store.embeddings.aembed_query, (text,))


def request_writes(futures: Sequence[Future[Any]]) -> DualCall:
    """Request a wait for writes in the background, which raises what one of them raised."""
    return DualCall(_wait_for_writes, _await_writes, (futures,))


def ask_model(model: BaseLanguageModel[Any], prompt: str) -> Operation[str]:
    """Ask a language model for its answer to a prompt."""
    answer: Any = yield DualCall(model.invoke, model.ainvoke, (prompt,))
    return str(answer if isinstance(answer, str) else answer.text).strip()


def run_operation(operation: Operation[T]) -> T:
    """Carry out an operation of a memory, blocking."""
    return run(operation, _wait_for_request)


async def arun_operation(operation: Operation[T]) -> T:
    """Carry out an operation of a memory without blocking the event loop."""
    return await arun(operation, _await_request)


def _wait_for_request(request: DualCall | RerankRequest) -> Any:
    if isinstance(request, RerankRequest):
        return request.reranker(request.question, request.texts)
    return wait_for_call(request)


async def _await_request(request: DualCall | RerankRequest) -> Any:
    if isinstance(request, RerankRequest):
        return await run_in_thread(request.reranker, request.question, request.texts)
    return await await_call(request)


def _wait_for_writes(futures: Sequence[Future[Any]]) -> list[Any]:
    return [future.result() for future in futures]


async def _await_writes(futures: Sequence[Future[Any]]) -> list[Any]:
    # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
    return [await asyncio.shield(asyncio.wrap_future(future)) for future in futures]
