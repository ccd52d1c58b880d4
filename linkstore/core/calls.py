"""Calls, which operations wait for, and the drivers that make them, blocking or with asyncio.

An operation is a generator: it yields a :class:`Call`, is sent the result, and returns an answer. :func:`run`
and :func:`arun` drive it, and are the only places that wait. The operations of an engine yield what only the
engine understands; they are calls to everybody else. :func:`answer_plan` joins a plan with an engine's
operations into one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from linkstore.core.filters import EVERYTHING, Condition
from linkstore.errors import CapabilityError

if TYPE_CHECKING:
    from linkstore.core.plans import Fetch, Operation, Plan

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request for the result of a call, which has a blocking form and may have one for an event loop.

    Args:
        blocking: The form that is called where waiting may block.
        awaiting: The form that is called on an event loop. None: the other one, in a worker thread.
        arguments: Positional arguments of both forms.
        options: Keyword arguments of both forms.
    """

    blocking: Callable[..., Any]
    awaiting: Callable[..., Awaitable[Any]] | None = None
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """What carries out the operations of a storage engine."""

    def run(self, operation: Operation[T]) -> T:
        """Carry out an operation, blocking."""
        ...

    async def arun(self, operation: Operation[T]) -> T:
        """Carry out an operation without blocking the event loop."""
        ...

    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> Operation[T]:
        """Return the operation that carries out a plan within a scope."""
        ...


def call_engine(engine: Engine, operation: Operation[Any]) -> Call:
    """Request that an engine carries out one of its own operations, for its result."""
    return Call(engine.run, engine.arun, (operation,))


def call_plan(engine: Engine, plan: Plan[Any], scope: Condition = EVERYTHING) -> Call:
    """Request that an engine carries out a plan within a scope, for its result."""
    return call_engine(engine, engine.answer(plan, scope))


def make_call(call: Call) -> Any:
    """Make a call, blocking, and return its result."""
    return call.blocking(*call.arguments, **call.options)


async def await_call(call: Call) -> Any:
    """Make a call without blocking the event loop, and return its result."""
    if call.awaiting is None:
        return await run_in_thread(call.blocking, *call.arguments, **call.options)
    return await call.awaiting(*call.arguments, **call.options)


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


async def run_until_stopped(work: Callable[Concatenate[Event, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of long work in a worker thread.

    A task that is cancelled sets the event, which the work ends by as soon as it can, and waits for that.
    """
    import asyncio

    stop = Event()
    working = asyncio.ensure_future(run_in_thread(work, stop, *args, **kwargs))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([working])
        raise


def observe_plan(
    plan: Plan[T], asked: Callable[[Fetch], None], told: Callable[[Fetch, Any], None]
) -> Plan[T]:
    """Run a plan with a listener: ``asked`` gets each fetch before it is answered, ``told`` each answer."""

    def answer(fetch: Fetch) -> Plan[Any]:
        asked(fetch)
        reply = yield fetch
        told(fetch, reply)
        return reply

    return answer_plan(plan, answer)


def run(operation: Operation[T], wait: Callable[[Any], Any] = make_call) -> T:
    """Drive an operation, blocking in ``wait`` for whatever it yields; by default it yields calls."""
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


async def arun(operation: Operation[T], wait: Callable[[Any], Awaitable[Any]] = await_call) -> T:
    """Drive an operation, awaiting ``wait`` for whatever it yields; by default it yields calls."""
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


class Progress(Protocol):
    """Called after each page, question, or whatever is worked on."""

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Report that ``done`` of about ``total`` are done, the last of which was ``name``.

        ``total`` is 0 where it is not known.
        """
        ...


def split_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of this size, of which the last one may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
