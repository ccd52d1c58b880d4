"""Divides what is handed over in parts, as ``itertools.batched`` of Python 3.12 does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def split_batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of this size, of which the last one may be shorter."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
