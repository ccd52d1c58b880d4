"""What all methods of a store share: its engine, its embedding, and what it records for its searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol, Self

import orjson

from linkstore.core.arguments import omit_none, require_at_least, require_within
from linkstore.core.calls import arun, call_engine, run
from linkstore.core.plans import Operation
from linkstore.embeddings.names import DEFAULT_EMBEDDING, get_encoder
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import StoreBusyError, StoreFormatError
from linkstore.store.embedding import StoreEmbedding
from linkstore.strategies.observers import GuardedObserver, Observer

if TYPE_CHECKING:
    from linkstore.store.embedding import Embedding

FLOOR_NOTE: Final = "min_similarity"
"""The note that holds the minimum similarity of a store."""


class StoreBase:
    """A store: see :class:`~linkstore.LinkStore`, whose methods are in the classes derived from this one."""

    def __init__(
        self, backend: Backend, embedding: Embedding | None = None, max_depth: int | None = None
    ) -> None:
        self.backend = backend
        require_at_least(0, **omit_none(max_depth=max_depth))
        self._max_depth = max_depth
        self._observers: tuple[Observer, ...] = ()
        self._observing = Lock()
        manifest = backend.run(backend.manifest())
        model = embedding or self._embedding_by_name(manifest.embedding or DEFAULT_EMBEDDING)
        self._embedding = StoreEmbedding(backend, model, manifest)
        self._floor = _parse_floor(backend.run(backend.note(FLOOR_NOTE)))

    @staticmethod
    def _embedding_by_name(name: str) -> Embedding:
        """Return the embedding of a store that was opened without one."""
        return get_encoder(name)

    def close(self) -> None:
        """Close the store and release its resources. Later use raises StoreClosedError."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def max_depth(self) -> int | None:
        """The number of links in a row that a search of this store may follow, or None for any number."""
        return self._max_depth

    @property
    def min_similarity(self) -> float | None:
        """The minimum similarity of the documents that searches of this store start from, None without one.

        It is the one that the store had when it was opened, or that this object set since.
        """
        return self._floor

    def set_min_similarity(self, floor: float | None) -> None:
        """Record a minimum similarity in the store, for searches that set none of their own.

        :func:`linkstore.evaluate.calibrate_floor` proposes one. Strategies that follow links take it for
        their ``min_similarity`` if that is None. Plain similarity search does not use it. Other clients use
        it when they open the store the next time.

        Args:
            floor: In [-1, 1]. None removes it.

        Raises:
            StrategyError: If it is not in this range.
            StoreBusyError: If another client sets one at the same time.
        """
        self._floor = run(self._record_floor(floor))

    async def aset_min_similarity(self, floor: float | None) -> None:
        """Record a minimum similarity: see :meth:`set_min_similarity`."""
        self._floor = await arun(self._record_floor(floor))

    def _record_floor(self, floor: float | None) -> Operation[float | None]:
        if floor is not None:
            require_within(-1, 1, min_similarity=floor)
        value = None if floor is None else orjson.dumps(float(floor)).decode()
        backend = self.backend
        before: str | None = yield call_engine(backend, backend.note(FLOOR_NOTE))
        if (yield call_engine(backend, backend.set_note(FLOOR_NOTE, value, before))) != value:
            raise StoreBusyError("another client set the minimum similarity at the same time; try again")
        return _parse_floor(value)

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Report each search from now on to an observer, whether a method, a retriever or a tool asked it.

        If the observer fails, the search goes on, and the first failure is logged.

        Args:
            observer: Such as a :class:`~linkstore.evaluate.Watch`, which calls this itself.

        Returns:
            A function that ends the reports. Calling it again does nothing.
        """
        guarded = GuardedObserver(observer)
        with self._observing:
            self._observers = (*self._observers, guarded)

        def end() -> None:
            with self._observing:
                self._observers = tuple(one for one in self._observers if one is not guarded)

        return end


def _parse_floor(text: str | None) -> float | None:
    """Return the minimum similarity that a note holds, or None without one.

    Raises:
        StoreFormatError: If the note is not one that linkstore wrote.
    """
    if text is None:
        return None
    try:
        floor = orjson.loads(text)
    except ValueError:
        floor = None
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not -1 <= floor <= 1:
        raise StoreFormatError(
            f"the note {FLOOR_NOTE!r} of the store is {text[:60]!r}, not a number from -1 to 1; restore the"
            f" store from a copy, or remove the row 'note {FLOOR_NOTE}' from its table of settings"
        )
    return float(floor)


class Closable(Protocol):
    """An object that can be closed."""

    def close(self) -> object:
        """Release everything."""
        ...


@contextmanager
def close_on_failure(opened: Closable) -> Iterator[None]:
    """Close what was opened if the block raises anything, an interrupt included."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
