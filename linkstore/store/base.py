"""What all methods of a store share: its engine, its embedding, its records, and how changes are repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import uniform
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypedDict, TypeVar, Unpack

import orjson

from linkstore.core.arguments import omit_none, require_at_least, require_within
from linkstore.core.calls import Operation, arun, call_engine, run
from linkstore.core.processes import Lock
from linkstore.embeddings.names import (
    DEFAULT_EMBEDDING,
    DEFAULT_LEXICAL_WEIGHT,
    LEXICAL_WEIGHT,
    find_encoder,
    get_encoder,
)
from linkstore.engines.bookkeeping import Backend
from linkstore.errors import StoreBusyError, StoreFormatError, StoreUnavailableError
from linkstore.store.embedding import StoreEmbedding
from linkstore.strategies.observers import GuardedObserver, Observer

if TYPE_CHECKING:
    from linkstore.store.embedding import Embedding

MIN_SIMILARITY_NOTE: Final = "min_similarity"
"""The note that holds the minimum similarity of a store."""
LEXICAL_NOTE: Final = "lexical_weight"
"""The note that holds the weight of words."""
_NOTE_RANGES: Final = {MIN_SIMILARITY_NOTE: (-1, 1), LEXICAL_NOTE: (0, 100)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What searches of a store do where they set nothing.

    Args:
        min_similarity: The minimum similarity of the documents they start from, None without one.
        lexical_weight: The weight of words, where similarity has weight 1: the recorded one, or that of the
            embedding (:data:`~linkstore.embeddings.names.LEXICAL_WEIGHT`), or 1.
        max_depth: How many links in a row they may follow, None for any number.
    """

    min_similarity: float | None
    lexical_weight: float
    max_depth: int | None


class RecordedSettings(TypedDict, total=False):
    """The arguments of ``configure``."""

    min_similarity: float | None
    lexical_weight: float | None


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
        model = embedding or find_encoder(
            manifest.embedding or DEFAULT_EMBEDDING, manifest.dimension or 1, self._get_named_embedding
        )
        self._embedding = StoreEmbedding(backend, model, manifest)
        self._min_similarity = _parse_number(
            MIN_SIMILARITY_NOTE, backend.run(backend.note(MIN_SIMILARITY_NOTE))
        )
        self._lexical = self._weigh_words(
            _parse_number(LEXICAL_NOTE, backend.run(backend.note(LEXICAL_NOTE)))
        )

    @staticmethod
    def _get_named_embedding(name: str) -> Embedding:
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
    def search_settings(self) -> SearchSettings:
        """What searches of this store do where they set nothing: as recorded when it was opened, or since."""
        return SearchSettings(
            min_similarity=self._min_similarity, lexical_weight=self._lexical, max_depth=self._max_depth
        )

    def configure(self, **settings: Unpack[RecordedSettings]) -> None:
        """Record settings in the store, for searches that set none of their own.

        :mod:`linkstore.evaluate` proposes both. Other clients use them when they next open the store.

        Keyword Args:
            min_similarity (float | None): The minimum similarity of the documents that searches start
                from, in [-1, 1]. None removes it. Plain similarity search does not use it.
            lexical_weight (float | None): The weight of words, where similarity has weight 1, in [0, 100].
                None removes it.

        Raises:
            TypeError: If there is no such setting.
            StrategyError: If a value is not in its range.
            StoreBusyError: If another client sets one at the same time.
        """
        run(self._configure(settings))

    async def aconfigure(self, **settings: Unpack[RecordedSettings]) -> None:
        """Record settings in the store: see :meth:`configure`."""
        await arun(self._configure(settings))

    def _configure(self, settings: RecordedSettings) -> Operation[None]:
        numbers: dict[str, Any] = {**settings}
        for name, number in numbers.items():
            if name not in _NOTE_RANGES:
                raise TypeError(f"configure() has no argument {name!r}; it has {', '.join(_NOTE_RANGES)}")
            require_within(*_NOTE_RANGES[name], **omit_none(**{name: number}))
        for name, number in numbers.items():
            recorded = yield from self._record(name, number)
            if name == MIN_SIMILARITY_NOTE:
                self._min_similarity = recorded
            else:
                self._lexical = self._weigh_words(recorded)

    def _weigh_words(self, recorded: float | None) -> float:
        default = LEXICAL_WEIGHT.get(self._embedding.name, DEFAULT_LEXICAL_WEIGHT)
        return default if recorded is None else recorded

    def _record(self, note: str, number: float | None) -> Operation[float | None]:
        value = None if number is None else orjson.dumps(float(number)).decode()
        backend = self.backend
        before = yield from call_engine(backend, backend.note(note))
        if (yield from call_engine(backend, backend.set_note(note, value, before))) != value:
            raise StoreBusyError(f"another client set {note} at the same time; try again")
        return _parse_number(note, value)

    def _observe(self, observer: GuardedObserver) -> Callable[[], None]:
        with self._observing:
            self._observers = (*self._observers, observer)

        def end() -> None:
            with self._observing:
                self._observers = tuple(other for other in self._observers if other is not observer)

        return end


def observe_searches(store: StoreBase, observer: Observer) -> Callable[[], None]:
    """Report each search from now on to an observer, whether a method, a retriever or a tool asked it.

    If the observer fails, the search goes on, and the first failure is logged.

    Args:
        store: The store.
        observer: Such as a :class:`~linkstore.evaluate.Telemetry`, which calls this itself.

    Returns:
        A function that ends the reports. Calling it again does nothing.
    """
    return store._observe(GuardedObserver(observer))  # noqa: SLF001 (the store's own module)


def _parse_number(note: str, text: str | None) -> float | None:
    """Return the number that a note holds, or None without one.

    Raises:
        StoreFormatError: If the note is not one that linkstore wrote.
    """
    if text is None:
        return None
    low, high = _NOTE_RANGES[note]
    try:
        number = orjson.loads(text)
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or not low <= number <= high:
        raise StoreFormatError(
            f"the note {note!r} of the store is {text[:60]!r}, not a number from {low} to {high}; restore the"
            f" store from a copy, or remove the row 'note {note}' from its table of settings"
        )
    return float(number)


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


T = TypeVar("T")
PATIENCE: Final = 300.0
"""Seconds for which those that write at the same time wait for each other, or for a server."""
_LONGEST_PAUSE: Final = 10.0


def retry(attempt: Callable[[], T], patience: float = PATIENCE) -> T:
    """Return the result of an attempt, repeated for so many seconds.

    Raises:
        StoreBusyError: If others write for longer.
        StoreUnavailableError: If no server answers for longer.
    """
    end, pause = monotonic() + patience, 0.1
    while True:
        try:
            return attempt()
        except (StoreBusyError, StoreUnavailableError):
            if monotonic() + pause > end:
                raise
        sleep(uniform(0.5, 1) * pause)  # noqa: S311 - so that not all come back at once
        pause = min(2 * pause, _LONGEST_PAUSE)
