"""Calls that operations wait for, and the drivers to make them, blocking or with asyncio.

An operation is a generator: it yields a :class:`Call`, is sent the result, and returns an answer. It is
written with ``yield from call(…)``, which has the type of the result. :func:`run` and :func:`arun` drive it,
and are the only places that wait. The operations of an engine yield what only the engine understands, and it
drives them by :func:`drive` and :func:`adrive`; they are calls to everybody else. :func:`answer_plan` joins a
plan with an engine's operations into one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from linkstore.core.filters import EVERYTHING, Condition
from linkstore.errors import CapabilityError

if TYPE_CHECKING:
    from linkstore.core.plans import EngineOperation, Plan

F = TypeVar("F")
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request for the result of a call, which has a blocking form and may have one for an event loop.

    Args:
        blocking: The form that is called where waiting may block.
        awaiting: The form that is called on an event loop. None: the other one, in a worker thread.
        arguments: Positional arguments of both forms.
        options: Keyword arguments of both forms.
    """

    blocking: Callable[..., T]
    awaiting: Callable[..., Awaitable[T]] | None = None
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


Operation = Generator[Call[Any], Any, T]
"""Yields calls, receives their results, returns an answer."""


class Engine(Protocol):
    """What carries out the operations of a storage engine."""

    def run(self, operation: EngineOperation[T]) -> T:
        """Carry out an operation, blocking."""
        ...

    async def arun(self, operation: EngineOperation[T]) -> T:
        """Carry out an operation without blocking the event loop."""
        ...

    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> EngineOperation[T]:
        """Return the operation that carries out a plan within a scope."""
        ...


def request(requested: Call[T]) -> Operation[T]:
    """Return the result of a call, as an operation."""
    result: T = yield requested
    return result


def call(
    blocking: Callable[P, T], awaiting: Callable[P, Awaitable[T]] | None, *args: P.args, **kwargs: P.kwargs
) -> Operation[T]:
    """Return the result of a call in one of its two forms, as an operation; see :class:`Call`."""
    return request(Call(blocking, awaiting, args, kwargs))


def call_engine(engine: Engine, operation: EngineOperation[T]) -> Operation[T]:
    """Return what one of an engine's own operations returns, as an operation."""
    return request(Call(engine.run, engine.arun, (operation,)))


def call_plan(engine: Engine, plan: Plan[T], scope: Condition = EVERYTHING) -> Operation[T]:
    """Return what a plan within a scope returns, as an operation."""
    return call_engine(engine, engine.answer(plan, scope))


def make_call(requested: Call[T]) -> T:
    """Make a call, blocking, and return its result."""
    return requested.blocking(*requested.arguments, **requested.options)


async def await_call(requested: Call[T]) -> T:
    """Make a call without blocking the event loop, and return its result."""
    if requested.awaiting is None:
        return await run_in_thread(requested.blocking, *requested.arguments, **requested.options)
    return await requested.awaiting(*requested.arguments, **requested.options)


def answer_plan(
    plan: Generator[F, Any, T], answer: Callable[[F], Generator[S, Any, Any]]
) -> Generator[S, Any, T]:
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
        result: T = done.value
        return result
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


def run(operation: Operation[T]) -> T:
    """Drive an operation, blocking in its calls."""
    return drive(operation, make_call)


async def arun(operation: Operation[T]) -> T:
    """Drive an operation without blocking the event loop."""
    return await adrive(operation, await_call)


def drive(operation: Generator[S, Any, T], wait: Callable[[S], Any]) -> T:
    """Drive a generator, blocking in ``wait`` for whatever it yields."""
    try:
        pending = next(operation)
        while True:
            try:
                reply = wait(pending)
            except Exception as error:  # noqa: BLE001 - handed to the operation, which may recover
                pending = operation.throw(error)
            else:
                pending = operation.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        operation.close()


async def adrive(operation: Generator[S, Any, T], wait: Callable[[S], Awaitable[Any]]) -> T:
    """Drive a generator, awaiting ``wait`` for whatever it yields."""
    try:
        pending = next(operation)
        while True:
            try:
                reply = await wait(pending)
            except Exception as error:  # noqa: BLE001 - handed to the operation, which may recover
                pending = operation.throw(error)
            else:
                pending = operation.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        operation.close()


class Progress(Protocol):
    """Called after each page, question, or whatever is worked on."""

    def __call__(self, done: int, total: int, name: str, /) -> None:
        """Report that ``done`` of about ``total`` are done, the last of them ``name``.

        ``total`` is 0 where it is not known.
        """
        ...


def split_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of this size, of which the last one may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
