"""A store that drives its operations, and checks the names in a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

import numpy as np

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.arrays import Floats, normalize_vector
from linkstore.core.calls import arun, call_engine, call_plan, run
from linkstore.core.filters import Condition, Filter, parse_filter
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.plans import Candidates, Documents, Nearest, Operation, Plan, StoredDocument
from linkstore.core.vocabulary import (
    Vocabulary,
    collect_names,
    make_unknown_name_error,
    make_unknown_type_error,
)
from linkstore.embeddings.encoder import Encoder
from linkstore.embeddings.names import get_encoder
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Record
from linkstore.errors import FilterError
from linkstore.store.embedding import StoreEmbedding
from linkstore.store.operations import read_floor, record_floor, scan
from linkstore.store.schema_graph import read_schema
from linkstore.strategies.base import SearchOptions, Strategy
from linkstore.strategies.observers import GuardedObserver, Observer

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


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


if TYPE_CHECKING:
    Embedding: TypeAlias = Encoder | Embeddings

T = TypeVar("T")
DEFAULT_EMBEDDING: Final = "wordllama"


class DrivenStore:
    """A store whose methods are operations, driven sync or async.

    Args:
        backend: Where everything is kept.
        embedding: Turns texts into vectors. None: the recorded embedding if it is built in, else
            wordllama.
        max_depth: How many links in a row a search may follow, None for any number.

    Raises:
        EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
            same dimension is refused when it first embeds something.
        StrategyError: If ``max_depth`` is negative or not an integer.
    """

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
        self._floor = self._run(read_floor(backend))

    @staticmethod
    def _embedding_by_name(name: str) -> Embedding:
        """Return the embedding of a store that was opened without one."""
        return get_encoder(name)

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
        self._floor = self._run(record_floor(self.backend, floor))

    async def aset_min_similarity(self, floor: float | None) -> None:
        """Record a minimum similarity: see :meth:`set_min_similarity`."""
        self._floor = await self._arun(record_floor(self.backend, floor))

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

    def _run(self, operation: Operation[T]) -> T:
        return run(operation)

    async def _arun(self, operation: Operation[T]) -> T:
        return await arun(operation)

    def _scan_records(self) -> Iterator[Record]:
        """Yield all documents in batches, in the engine's order."""
        after: str | None = None
        while records := run(scan(self.backend, after)):
            yield from records
            after = records[-1].id


NAME_SAMPLE_SIZE: Final = 200
"""Number of documents that pass a filter from which names are suggested."""


def check_known_names(backend: Backend, strategy: Strategy, options: SearchOptions) -> Operation[None]:
    """Check that the store has the kinds and fields that a search names. An empty store may lack any.

    The names are looked up in the whole store, but alternatives are suggested only from documents that the
    caller may see.

    Raises:
        UnknownNameError: For the first name that the store lacks, with the most similar one that it has.
    """
    asked = Vocabulary(
        kinds=strategy.kinds_named, fields=options.fields_needed, link_fields=options.link_fields_needed
    ).checkable
    if not asked:
        return
    missing = asked - (yield call_engine(backend, backend.vocabulary(asked.storable)))
    if missing and (yield call_engine(backend, backend.scan(None, 1))):
        raise make_unknown_name_error(
            missing, (yield from _suggest_names(backend, options.filter, missing.fields))
        )


def check_known_types(backend: Backend, options: SearchOptions) -> Operation[None]:
    """Check that the schema of the store, if it has one, has the document types that filters ask for.

    Raises:
        UnknownNameError: For the first type that the schema lacks, with the most similar one that it has.
    """
    asked = [pair for one in options.document_filters for pair in one.equalities]
    recorded = (yield from read_schema(backend)) if asked else None
    if recorded is not None:
        schema = recorded.schema
        for field, value in asked:
            if field == schema.type_field and isinstance(value, str) and value not in schema.types:
                raise make_unknown_type_error(value, schema.types)


def _suggest_names(
    backend: Backend, filter: Filter | Condition | None, missing: frozenset[str]
) -> Operation[Vocabulary]:
    """Return the names of documents that pass what remains of a filter without the missing fields."""
    scope = _drop_fields(filter, missing)
    if scope is None:
        return Vocabulary()
    if scope.always:
        everything: Vocabulary = yield call_engine(backend, backend.vocabulary())
        return everything
    manifest: Manifest = yield call_engine(backend, backend.manifest())
    direction = normalize_vector(np.ones(manifest.dimension or 1, dtype=np.float32))
    try:
        found: Vocabulary = yield call_plan(backend, _read_nearest_names(direction), scope)
    except FilterError:  # too many documents to search: there is nothing to suggest
        return Vocabulary()
    return found


def _drop_fields(filter: Filter | Condition | None, missing: frozenset[str]) -> Condition | None:
    """Return a filter without the missing fields.

    The result is None if the filter's other conditions cannot be separated from these fields.
    """
    kept = filter
    if isinstance(filter, Mapping):
        kept = {name: value for name, value in filter.items() if name not in missing}
    rest = parse_filter(kept)
    return None if rest.needed & missing else rest


def _read_nearest_names(direction: Floats) -> Plan[Vocabulary]:
    near: Candidates = yield Nearest(vector=direction, k=NAME_SAMPLE_SIZE)
    stored: list[StoredDocument] = yield Documents(refs=near.refs)
    found = Vocabulary()
    for one in stored:
        links = parse_links({LINKS_KEY: one.metadata.get(LINKS_KEY)}, one.id)
        found |= collect_names(one.metadata, links)
    return found
