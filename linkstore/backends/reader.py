"""Readers: a storage engine answers plans with a reader, which has a method for each kind of fetch.

A method is a generator of whatever the engine waits for. An engine that computes its answers in place writes
plain methods and marks them :func:`immediate`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from linkstore.errors import CapabilityError
from linkstore.plans import (
    Candidates,
    Documents,
    Fetch,
    Find,
    Groups,
    Ids,
    Lexical,
    Matching,
    Members,
    Memberships,
    Nearest,
    Operation,
    Reached,
    Resolve,
    Stored,
    Tags,
    Vectors,
    Worded,
)
from linkstore.vectors import Bools, Floats, Ints

T = TypeVar("T")
P = ParamSpec("P")
Self_ = TypeVar("Self_")


class Reader(ABC):
    """A view of a store in which no document changes, and in which only documents of the scope exist.

    The refs that it returns are valid while it is open.
    """

    @abstractmethod
    def nearest(self, fetch: Nearest) -> Operation[Candidates]:
        """Answer a :class:`linkstore.plans.Nearest`."""

    @abstractmethod
    def find(self, fetch: Find) -> Operation[Candidates]:
        """Answer a :class:`linkstore.plans.Find`."""

    @abstractmethod
    def groups(self, fetch: Groups) -> Operation[Memberships]:
        """Answer a :class:`linkstore.plans.Groups`."""

    @abstractmethod
    def resolve(self, fetch: Resolve) -> Operation[Ints]:
        """Answer a :class:`linkstore.plans.Resolve`."""

    @abstractmethod
    def members(self, fetch: Members) -> Operation[Reached]:
        """Answer a :class:`linkstore.plans.Members`."""

    @abstractmethod
    def matching(self, fetch: Matching) -> Operation[Bools]:
        """Answer a :class:`linkstore.plans.Matching`."""

    @abstractmethod
    def vectors(self, fetch: Vectors) -> Operation[Floats]:
        """Answer a :class:`linkstore.plans.Vectors`."""

    @abstractmethod
    def ids(self, fetch: Ids) -> Operation[list[str]]:
        """Answer a :class:`linkstore.plans.Ids`."""

    @abstractmethod
    def tags(self, fetch: Tags) -> Operation[list[tuple[str, str]]]:
        """Answer a :class:`linkstore.plans.Tags`."""

    @abstractmethod
    def documents(self, fetch: Documents) -> Operation[list[Stored]]:
        """Answer a :class:`linkstore.plans.Documents`."""

    def lexical(self, fetch: Lexical) -> Operation[Worded]:
        """Refuse: a reader that can search by words is a :class:`LexicalReader`.

        Raises:
            CapabilityError: Always.
        """
        yield from ()
        raise CapabilityError(
            f"{type(self).__name__} has no lexical search; use a strategy that does not need it,"
            " such as Eager"
        )

    def answer(self, fetch: Fetch) -> Operation[Any]:
        """Return the operation that answers a fetch."""
        operation: Callable[[Any], Operation[Any]] = getattr(self, _METHOD_OF[type(fetch)])
        return operation(fetch)


class LexicalReader(Reader):
    """A reader that can also search by words."""

    @abstractmethod
    def lexical(self, fetch: Lexical) -> Operation[Worded]:
        """Answer a :class:`linkstore.plans.Lexical`."""


_METHOD_OF: Mapping[type, str] = {
    Nearest: "nearest",
    Find: "find",
    Groups: "groups",
    Resolve: "resolve",
    Members: "members",
    Lexical: "lexical",
    Matching: "matching",
    Vectors: "vectors",
    Ids: "ids",
    Tags: "tags",
    Documents: "documents",
}


def immediate(
    method: Callable[Concatenate[Self_, P], T],
) -> Callable[Concatenate[Self_, P], Operation[T]]:
    """Make an operation of a method that computes its answer without waiting."""

    @functools.wraps(method)
    def operation(self: Self_, /, *args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, T]:
        yield from ()
        return method(self, *args, **kwargs)

    return operation
