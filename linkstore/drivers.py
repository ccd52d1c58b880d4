"""Drivers: the only places that wait.

:func:`answered` joins a plan with a backend's operations into one operation; :func:`run` drives an operation
blocking, :func:`arun` without blocking the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from linkstore.errors import CapabilityError
from linkstore.plans import Fetch, Operation, Plan

P = ParamSpec("P")
T = TypeVar("T")


def answered(plan: Plan[T], answer: Callable[[Fetch], Operation[Any]]) -> Operation[T]:
    """Join a plan with the operations that answer its fetches.

    A CapabilityError of the backend is raised in the plan, which may continue without the answer. All other
    errors end the plan.
    """
    try:
        fetch = next(plan)
        while True:
            try:
                reply = yield from answer(fetch)
            except CapabilityError as error:
                fetch = plan.throw(error)
            else:
                fetch = plan.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        plan.close()


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a blocking call that is made in a worker thread."""
    import asyncio  # late: importing it takes 30 ms, and sync commands do not need it

    return await asyncio.to_thread(call, *args, **kwargs)


def overheard(plan: Plan[T], asked: Callable[[Fetch], None], told: Callable[[Fetch, Any], None]) -> Plan[T]:
    """Run a plan with a listener: ``asked`` gets each fetch before it is answered, ``told`` each answer."""
    try:
        fetch = next(plan)
        while True:
            asked(fetch)
            try:
                answer = yield fetch
            except CapabilityError as error:
                fetch = plan.throw(error)
            else:
                told(fetch, answer)
                fetch = plan.send(answer)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        plan.close()


def run(operation: Operation[T], wait: Callable[[Any], Any]) -> T:
    """Drive an operation, blocking in ``wait`` for whatever it yields."""
    try:
        request = next(operation)
        while True:
            try:
                reply = wait(request)
            except Exception as error:  # noqa: BLE001 - handed to the operation, which may recover
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        operation.close()


async def arun(operation: Operation[T], wait: Callable[[Any], Awaitable[Any]]) -> T:
    """Drive an operation, awaiting ``wait`` for whatever it yields."""
    try:
        request = next(operation)
        while True:
            try:
                reply = await wait(request)
            except Exception as error:  # noqa: BLE001 - handed to the operation, which may recover
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    finally:
        operation.close()
