"""What operations wait for, and the drivers that wait, blocking or with asyncio.

Drivers: the only places that wait.

:func:`answer_plan` joins a plan with a backend's operations into one; :func:`run` drives an operation
blocking, :func:`arun` without blocking the event loop.

What the operations of a store wait for: embeddings, and operations of the backend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from linkstore.core.plans import Fetch, Operation, Plan
from linkstore.errors import CapabilityError

P = ParamSpec("P")
T = TypeVar("T")


def answer_plan(plan: Plan[T], answer: Callable[[Fetch], Operation[Any]]) -> Operation[T]:
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


async def run_in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a blocking call that is made in a worker thread."""
    import asyncio  # late: importing it takes 30 ms, and sync commands do not need it

    return await asyncio.to_thread(call, *args, **kwargs)


def observe_plan(
    plan: Plan[T], asked: Callable[[Fetch], None], told: Callable[[Fetch, Any], None]
) -> Plan[T]:
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
class EngineRequest:
    """Asks the backend to carry out one of its operations: its result."""

    operation: Operation[Any]
