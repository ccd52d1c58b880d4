"""The view of a store that the tools have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from linkstore.backends.base import Backend
from linkstore.filters import Filter, parse_filter
from linkstore.plans import Operation, Plan
from linkstore.requests import Engine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class View:
    """The documents of a store that pass a filter.

    Args:
        backend: Of the store.
        filter: None: all documents.
    """

    backend: Backend
    filter: Filter | None = None

    def answer(self, plan: Plan[T]) -> Operation[T]:
        """Carry out a plan, for which there are no other documents."""
        return (yield Engine(self.backend.answer(plan, parse_filter(self.filter))))  # type: ignore[no-any-return]
