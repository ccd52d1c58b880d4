"""What agents wait for: methods that have a blocking form and one for an event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from linkstore.plans import Plan
from linkstore.store import LinkStore


@dataclass(frozen=True, slots=True)
class Twin:
    """Asks for the result of a call.

    Args:
        blocking: What is called where waiting may block.
        awaiting: What is called on an event loop.
        arguments: Of either.
    """

    blocking: Callable[..., Any]
    awaiting: Callable[..., Awaitable[Any]]
    arguments: tuple[Any, ...] = ()


def answered_by(store: LinkStore, plan: Plan[Any]) -> Twin:
    """Asks a store to carry out a plan."""
    return Twin(store.backend.run, store.backend.arun, (store.backend.answer(plan),))


def wait(request: Twin) -> Any:
    """The result of a call, blocking."""
    return request.blocking(*request.arguments)


async def awaited(request: Twin) -> Any:
    """The result of a call, without blocking the event loop."""
    return await request.awaiting(*request.arguments)
