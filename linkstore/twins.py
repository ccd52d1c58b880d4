"""Calls that have a blocking and an async form, which memories and agents wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextvars import copy_context
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from linkstore.backends.base import Manifest
from linkstore.filters import EVERYTHING, Condition
from linkstore.plans import Operation, Plan
from linkstore.store import LinkStore
from linkstore.vectors import Floats, some_vector


@dataclass(frozen=True, slots=True)
class Twin:
    """Asks for the result of a call.

    Args:
        blocking: What is called where waiting may block.
        awaiting: What is called on an event loop.
        arguments: Of either.
        options: Keyword arguments of either.
    """

    blocking: Callable[..., Any]
    awaiting: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class OutOfTimeError(Exception):
    """A call was not done in time, and is not waited for any longer."""


def within(seconds: float, call: Twin) -> Twin:
    """The same call, waited for so long at most; then it raises OutOfTimeError.

    A blocking call that is late goes on in a thread of its own, which does not keep the process from ending.
    """

    def blocking(*arguments: Any, **options: Any) -> Any:
        context, done = copy_context(), Future[Any]()

        def work() -> None:
            try:
                done.set_result(context.run(call.blocking, *arguments, **options))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                done.set_exception(error)

        Thread(target=work, name="linkstore-call", daemon=True).start()
        if not wait_for([done], timeout=max(0.0, seconds)).done:
            raise OutOfTimeError
        return done.result()

    async def awaiting(*arguments: Any, **options: Any) -> Any:
        limit = asyncio.timeout(max(0.0, seconds))
        try:
            async with limit:
                return await call.awaiting(*arguments, **options)
        except TimeoutError as error:
            if limit.expired():
                raise OutOfTimeError from error
            raise

    return Twin(blocking, awaiting, call.arguments, call.options)


def answered_by(store: LinkStore, plan: Plan[Any], scope: Condition = EVERYTHING) -> Twin:
    """Asks a store to carry out a plan within a scope: its result."""
    return of_backend(store, store.backend.answer(plan, scope))


def of_backend(store: LinkStore, operation: Operation[Any]) -> Twin:
    """Asks the backend of a store to carry out one of its own operations: its result."""
    return Twin(store.backend.run, store.backend.arun, (operation,))


def any_vector(store: LinkStore) -> Operation[Floats | None]:
    """Some unit vector of a store's dimension, for plans that rank nothing; None for an empty store."""
    manifest: Manifest = yield of_backend(store, store.backend.manifest())
    if manifest.dimension is None:
        return None
    return some_vector(manifest.dimension)


def wait(request: Twin) -> Any:
    """The result of a call, blocking."""
    return request.blocking(*request.arguments, **request.options)


async def awaited(request: Twin) -> Any:
    """The result of a call, without blocking the event loop."""
    return await request.awaiting(*request.arguments, **request.options)
