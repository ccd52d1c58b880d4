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
    """A request for the result of a call.

    Args:
        blocking: The form that is called where waiting may block.
        awaiting: The form that is called on an event loop.
        arguments: Positional arguments of both forms.
        options: Keyword arguments of both forms.
    """

    blocking: Callable[..., Any]
    awaiting: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class OutOfTimeError(Exception):
    """A call was not done in time, and is not waited for any longer."""


def within(seconds: float, call: Twin) -> Twin:
    """Return the same call with a time limit, past which it raises OutOfTimeError.

    A blocking call that is late continues in its own thread, which does not keep the process from ending.
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
    """Request that a store carries out a plan within a scope, for the plan's result."""
    return of_backend(store, store.backend.answer(plan, scope))


def of_backend(store: LinkStore, operation: Operation[Any]) -> Twin:
    """Request that the backend of a store carries out one of its own operations, for its result."""
    return Twin(store.backend.run, store.backend.arun, (operation,))


def any_vector(store: LinkStore) -> Operation[Floats | None]:
    """Return a unit vector of a store's dimension, for plans without ranking, or None for an empty store."""
    manifest: Manifest = yield of_backend(store, store.backend.manifest())
    if manifest.dimension is None:
        return None
    return some_vector(manifest.dimension)


def wait(request: Twin) -> Any:
    """Make a call, blocking, and return its result."""
    return request.blocking(*request.arguments, **request.options)


async def awaited(request: Twin) -> Any:
    """Make a call without blocking the event loop, and return its result."""
    return await request.awaiting(*request.arguments, **request.options)
