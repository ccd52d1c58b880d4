"""The base of observers of a store, which end when they are closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Self

from linkstore.observing import Searched
from linkstore.store.checking import require_store

if TYPE_CHECKING:
    from linkstore.store import LinkStore


class Observation(ABC):
    """An observer of the searches of a store, until it is closed or its ``with`` block ends.

    Args:
        store: The store.

    Raises:
        ArgumentError: If ``store`` is not a store.
    """

    def __init__(self, store: LinkStore) -> None:
        require_store(store=store)
        self._end: Final = store.observe(self)

    @abstractmethod
    def search_begins(self, question: str, strategy: str) -> Callable[[Searched], None]:
        """Note that a search begins: see :class:`~linkstore.observing.Observer`."""

    def close(self) -> None:
        """End the observation, whose counts stay. Closing twice is allowed."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
