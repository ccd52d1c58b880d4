"""What a client has learned about equalities of filters. It affects only how documents are found."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeVar

REMEMBERED: Final = 1_000
"""For how many combinations of equalities."""
SECONDS: Final = 60.0
"""How long it is remembered that few of the nearest documents satisfy them."""
Equalities = tuple[tuple[str, str], ...]
K = TypeVar("K")
V = TypeVar("V")


class Experience:
    """Remembers how many documents satisfy equalities, and whether most of the nearest ones do.

    Threads may use it without a lock. At worst, something that was learned is forgotten.
    """

    def __init__(self) -> None:
        self._more_than: OrderedDict[Equalities, int] = OrderedDict()
        self._few_near: OrderedDict[Equalities, float] = OrderedDict()

    def more_than(self, asked: Mapping[str, str]) -> int:
        """Return a number that the documents satisfying the equalities exceed, 0 if none is known.

        The number is that of the last listing of these documents, which was not complete.
        """
        return self._more_than.get(_key(asked), 0)

    def learn_more_than(self, asked: Mapping[str, str], number: int) -> None:
        """Remember that a listing of this many documents was not complete."""
        remember(self._more_than, _key(asked), number, REMEMBERED)

    def may_be_near(self, asked: Mapping[str, str]) -> bool:
        """Say whether enough of the nearest documents may satisfy the equalities."""
        return time.monotonic() >= self._few_near.get(_key(asked), 0.0)

    def learn_few_near(self, asked: Mapping[str, str]) -> None:
        """Remember that too few of the nearest documents satisfied the equalities."""
        remember(self._few_near, _key(asked), time.monotonic() + SECONDS, REMEMBERED)


def _key(asked: Mapping[str, str]) -> Equalities:
    return tuple(sorted(asked.items()))


def remember(known: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Store a value, and forget the oldest one if there are too many. Other threads may do so as well."""
    known[key] = value
    with suppress(KeyError):
        known.move_to_end(key)
        if len(known) > most:
            known.popitem(last=False)
