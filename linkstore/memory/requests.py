"""The requests that operations of a memory yield, and the two drivers that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.drivers import arun, in_thread, run
from linkstore.filters import Filter
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.strategies import Strategy
from linkstore.strategies.reranking import Judge
from linkstore.twins import Twin, awaited, wait

T = TypeVar("T")


def search(store: LinkStore, question: str, strategy: Strategy, k: int, filter: Filter | None = None) -> Twin:
    """Request the hits of a question from a store: Hits."""
    options = {"k": k, "strategy": strategy, "filter": filter}
    return Twin(store.search, store.asearch, (question,), options)


def add(store: LinkStore, documents: list[Document]) -> Twin:
    """Request that a store adds documents in one change: their ids."""
    options = {"batch_size": len(documents)}
    return Twin(store.add_documents, store.aadd_documents, (documents,), options)


def delete(store: LinkStore, ids: list[str]) -> Twin:
    """Request that a store removes documents by id: True."""
    return Twin(store.delete, store.adelete, (ids,))


def embed(store: LinkStore, text: str) -> Twin:
    """Request the vector of a text."""
    return Twin(store.embeddings.embed_query, store.embeddings.aembed_query, (text,))


def written(futures: Sequence[Future[Any]]) -> Twin:
    """Request a wait for writes in the background, which raises what one of them raised."""
    return Twin(_results, _aresults, (futures,))


def think(model: BaseLanguageModel[Any], prompt: str) -> Operation[str]:
    """Ask a language model for its answer to a prompt."""
    answer: Any = yield Twin(model.invoke, model.ainvoke, (prompt,))
    return str(answer if isinstance(answer, str) else answer.text).strip()


def drive(operation: Operation[T]) -> T:
    """Carry out an operation of a memory, blocking."""
    return run(operation, _wait)


async def adrive(operation: Operation[T]) -> T:
    """Carry out an operation of a memory without blocking the event loop."""
    return await arun(operation, _await)


def _wait(request: Twin | Judge) -> Any:
    if isinstance(request, Judge):
        return request.reranker(request.question, request.texts)
    return wait(request)


async def _await(request: Twin | Judge) -> Any:
    if isinstance(request, Judge):
        return await in_thread(request.reranker, request.question, request.texts)
    return await awaited(request)


def _results(futures: Sequence[Future[Any]]) -> list[Any]:
    return [future.result() for future in futures]


async def _aresults(futures: Sequence[Future[Any]]) -> list[Any]:
    # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
    return [await asyncio.shield(asyncio.wrap_future(future)) for future in futures]
