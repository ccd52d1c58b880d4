"""Drives a store's operations: waits for embeddings, for the backend and for rerankers."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from linkstore.backends.base import Backend, Manifest
from linkstore.drivers import arun, in_thread, run
from linkstore.embeddings.encoder import Encoder
from linkstore.embeddings.names import embedding_name, get_encoder
from linkstore.floors import record_floor, recorded_floor
from linkstore.identity import check_opened, check_probe, is_told_by_name
from linkstore.observing import Guarded, Observer
from linkstore.plans import Operation
from linkstore.requests import EmbedDocuments, EmbedProbe, EmbedQuery, Engine
from linkstore.strategies.ceiling import check_ceiling
from linkstore.strategies.reranking import Judge

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    Embedding: TypeAlias = Encoder | Embeddings

T = TypeVar("T")
DEFAULT_EMBEDDING: Final = "wordllama"


class Driven:
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
        self._max_depth = check_ceiling(max_depth)
        self._observers: tuple[Observer, ...] = ()
        self._observing = Lock()
        manifest = backend.run(backend.manifest())
        self._embedding = embedding or self._embedding_by_name(manifest.embedding or DEFAULT_EMBEDDING)
        self._embedding_name = embedding_name(self._embedding)
        check_opened(manifest, self._embedding)
        self._is_recorded = is_told_by_name(manifest, self._embedding)
        self._found_empty = False
        self._floor = self._run(recorded_floor(backend))

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

        :func:`linkstore.evaluation.calibrate_floor` proposes one. Strategies that follow links take it for
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
            observer: Such as a :class:`~linkstore.watch.Watch`, which calls this itself.

        Returns:
            A function that ends the reports. Calling it again does nothing.
        """
        guarded = Guarded(observer)
        with self._observing:
            self._observers = (*self._observers, guarded)

        def end() -> None:
            with self._observing:
                self._observers = tuple(one for one in self._observers if one is not guarded)

        return end

    def _run(self, operation: Operation[T]) -> T:
        return run(operation, self._wait)

    async def _arun(self, operation: Operation[T]) -> T:
        return await arun(operation, self._await)

    def _wait(self, request: object) -> Any:
        match request:
            case EmbedQuery(text):
                self._run(self._checked())
                return self._embedding.embed_query(text)
            case EmbedDocuments(texts):
                self._run(self._checked())
                return self._embed_documents(texts)
            case EmbedProbe(text):
                return self._embed_documents([text])
            case Engine(operation):
                return self.backend.run(operation)
            case Judge():
                return request.reranker(request.question, request.texts)
        raise TypeError(f"no way to answer {request!r}")

    def _checked(self) -> Operation[None]:
        """Check that the store was built with its embedding, before this object first embeds something.

        The embedding need not be compared with itself if the store had none before, and now has this name.
        """
        if self._is_recorded:
            return
        manifest: Manifest = yield Engine(self.backend.manifest())
        if manifest.dimension is None:
            self._found_empty = True
        elif self._found_empty and manifest.embedding == self._embedding_name:
            self._is_recorded = True
        else:
            self._is_recorded = yield from check_probe(self.backend, manifest, self._embedding)

    def _embed_documents(self, texts: list[str]) -> Any:
        """Embed texts, as an array if the embedding can give one."""
        embed = getattr(self._embedding, "embed_array", self._embedding.embed_documents)
        return embed(texts)

    async def _await(self, request: object) -> Any:
        match request:
            case EmbedQuery() | EmbedDocuments():
                await self._arun(self._checked())
                return await self._embed(request)
            case EmbedProbe(text):
                return await self._embed(EmbedDocuments([text]))
            case Engine(operation):
                return await self.backend.arun(operation)
            case Judge():
                return await in_thread(request.reranker, request.question, request.texts)
        raise TypeError(f"no way to answer {request!r}")

    async def _embed(self, request: EmbedQuery | EmbedDocuments) -> Any:
        embedding = self._embedding
        if isinstance(request, EmbedQuery):
            if isinstance(embedding, Encoder):
                return await in_thread(embedding.embed_query, request.text)
            return await embedding.aembed_query(request.text)
        if isinstance(embedding, Encoder) or hasattr(embedding, "embed_array"):
            return await in_thread(self._embed_documents, request.texts)
        return await embedding.aembed_documents(request.texts)
