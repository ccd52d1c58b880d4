"""What the operations of a memory wait for, and the two drivers that wait."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel

from linkstore.context import ContextCompiler
from linkstore.drivers import arun, in_thread, run
from linkstore.filters import EVERYTHING, Condition, Filter
from linkstore.plans import Operation, Plan
from linkstore.store import LinkStore
from linkstore.strategies import Strategy
from linkstore.strategies.reranking import Judge

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Asks a store for the hits of a question: Hits."""

    store: LinkStore
    question: str
    strategy: Strategy
    k: int
    filter: Filter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Asks a store to add documents in one change: their ids."""

    store: LinkStore
    documents: list[Document]


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """Asks a store for documents by id: those that it has."""

    store: LinkStore
    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Asks a store to remove documents by id: True."""

    store: LinkStore
    ids: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Asks a store to carry out a plan within a scope: its result."""

    store: LinkStore
    plan: Plan[Any] = field(repr=False)
    scope: Condition = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class OfBackend:
    """Asks the backend of a store to carry out one of its own operations: its result."""

    store: LinkStore
    operation: Operation[Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """Asks for the vector of a text."""

    store: LinkStore
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Asks to wait for writes in the background; raises what one of them raised."""

    futures: tuple[Future[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Think:
    """Asks a language model for its answer to a prompt: str."""

    model: BaseLanguageModel[Any]
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile:
    """Asks a context compiler for the context of a question."""

    compiler: ContextCompiler
    question: str


def drive(operation: Operation[T]) -> T:
    """Carry out an operation of a memory, blocking."""
    return run(operation, _wait)


async def adrive(operation: Operation[T]) -> T:
    """Carry out an operation of a memory without blocking the event loop."""
    return await arun(operation, _await)


def _wait(request: object) -> Any:
    match request:
        case Search(store=store):
            return store.search(
                request.question, k=request.k, strategy=request.strategy, filter=request.filter
            )
        case Add(store=store, documents=documents):
            return store.add_documents(documents, batch_size=len(documents))
        case Get(store=store, ids=ids):
            return store.get_by_ids(ids)
        case Delete(store=store, ids=ids):
            return store.delete(ids)
        case Fetched(store=store, plan=plan, scope=scope):
            return store.backend.run(store.backend.answer(plan, scope))
        case OfBackend(store=store, operation=operation):
            return store.backend.run(operation)
    return _wait_for_others(request)


def _wait_for_others(request: object) -> Any:
    match request:
        case Embed(store=store, text=text):
            return store.embeddings.embed_query(text)
        case Written(futures=futures):
            return [future.result() for future in futures]
        case Think(model=model, prompt=prompt):
            return said(model.invoke(prompt))
        case Compile(compiler=compiler, question=question):
            return compiler.compile(question)
        case Judge():
            return request.reranker(request.question, request.texts)
    raise TypeError(f"no way to answer {request!r}")


async def _await(request: object) -> Any:
    match request:
        case Search(store=store):
            return await store.asearch(
                request.question, k=request.k, strategy=request.strategy, filter=request.filter
            )
        case Add(store=store, documents=documents):
            return await store.aadd_documents(documents, batch_size=len(documents))
        case Get(store=store, ids=ids):
            return await store.aget_by_ids(ids)
        case Delete(store=store, ids=ids):
            return await store.adelete(ids)
        case Fetched(store=store, plan=plan, scope=scope):
            return await store.backend.arun(store.backend.answer(plan, scope))
        case OfBackend(store=store, operation=operation):
            return await store.backend.arun(operation)
    return await _await_others(request)


async def _await_others(request: object) -> Any:
    match request:
        case Embed(store=store, text=text):
            return await store.embeddings.aembed_query(text)
        case Written(futures=futures):
            # Shielded: a reader that is cancelled must not cancel a write that waits for its turn.
            return [await asyncio.shield(asyncio.wrap_future(future)) for future in futures]
        case Think(model=model, prompt=prompt):
            return said(await model.ainvoke(prompt))
        case Compile(compiler=compiler, question=question):
            return await compiler.acompile(question)
        case Judge():
            return await in_thread(request.reranker, request.question, request.texts)
    raise TypeError(f"no way to answer {request!r}")


def said(answer: Any) -> str:
    """The text of a model's answer: a string, or a message."""
    return str(answer if isinstance(answer, str) else answer.text).strip()
