"""Long work in parts: batches, as ``itertools.batched`` of Python 3.12 makes them, and its progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol, TypeVar

T = TypeVar("T")


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
