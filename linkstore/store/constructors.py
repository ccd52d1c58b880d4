"""The ways to make a store: opened in a folder or cluster, and filled with documents or pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from linkstore.core.arguments import require, require_list
from linkstore.core.calls import run, run_in_thread
from linkstore.core.links import LINKS_KEY
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings
from linkstore.errors import ArgumentError, warn
from linkstore.extract.protocol import LinkExtractor
from linkstore.store.base import close_on_failure
from linkstore.store.core import CoreStore
from linkstore.store.document_links import ChosenLinks, extract_links, is_linked
from linkstore.store.documents import BATCH_SIZE
from linkstore.store.search import check_argument_names

if TYPE_CHECKING:
    from linkstore.engines.cassandra.driver import Session
    from linkstore.engines.cassandra.settings import CassandraSettings

_NO_LINKS: Final = (
    "no link leads from one of the documents to another, so searches have none to follow: give the documents"
    " titles, or the sources that their texts link to; write links by add_links(); name extractors by links=;"
    " or index pages by LinkStore.from_folder()"
)
_OF_CASSANDRA: Final = frozenset({"session", "keyspace", "table"})
"""Arguments that only :meth:`LinkStore.cassandra` takes."""
_OF_FOLDER: Final = frozenset({"path", "create", "max_depth", "settings"})
"""Arguments of :meth:`LinkStore.open` besides the embedding."""
_OF_PLACES: Final = _OF_CASSANDRA | _OF_FOLDER | {"backend"}
IndexedLinks = Sequence[str | LinkExtractor[Any]]
"""Extractors of links, by name or as objects."""


class StoreConstructors(CoreStore, VectorStore):  # type: ignore[misc]  # LinkStore defines the search
    """The constructors of a :class:`~linkstore.LinkStore`."""

    def __init__(
        self,
        embedding: Embeddings | None = None,
        *,
        path: str | Path = ":memory:",
        backend: Backend | None = None,
        max_depth: int | None = None,
    ) -> None:
        if isinstance(embedding, type) or (embedding is not None and not hasattr(embedding, "embed_query")):
            raise ArgumentError(
                f"an embedding must be an object such as get_embedding('wordllama'), not {embedding!r}:"
                " LinkStore(embedding, path=...) or LinkStore.open(path, embedding)"
            )
        if backend is not None:
            require(Backend, "a Backend; a folder is opened by LinkStore.open(path)", backend=backend)
            super().__init__(backend, embedding, max_depth)
            return
        own = EmbeddedBackend(path)
        with close_on_failure(own):
            super().__init__(own, embedding, max_depth)

    @classmethod
    def open(
        cls,
        path: str | Path,
        embedding: Embeddings | None = None,
        create: bool = True,
        *,
        max_depth: int | None = None,
        settings: EmbeddedSettings | None = None,
    ) -> Self:
        """Open the embedded store in a folder.

        Args:
            path: The folder. ``":memory:"`` keeps the store in memory until ``close``.
            embedding: See :class:`LinkStore`.
            create: Create the store if it does not exist.
            max_depth: See :class:`LinkStore`.
            settings: Advanced settings, see :class:`EmbeddedSettings`.

        Raises:
            StoreNotFoundError: If the store does not exist and ``create`` is False.
            StoreFormatError: If the folder contains something else, or a store of a newer version.
            EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
                same dimension is refused when it first embeds something.
        """
        backend = EmbeddedBackend(path, create=create, settings=settings)
        with close_on_failure(backend):
            return cls(embedding, backend=backend, max_depth=max_depth)

    @classmethod
    async def aopen(
        cls,
        path: str | Path,
        embedding: Embeddings | None = None,
        create: bool = True,
        *,
        max_depth: int | None = None,
        settings: EmbeddedSettings | None = None,
    ) -> Self:
        """Open the embedded store in a folder without blocking the event loop: see :meth:`LinkStore.open`."""
        return await run_in_thread(cls.open, path, embedding, create, max_depth=max_depth, settings=settings)

    @classmethod
    def cassandra(
        cls,
        embedding: Embeddings | None = None,
        *,
        table: str = "linkstore",
        session: Session | None = None,
        keyspace: str | None = None,
        create: bool = True,
        max_depth: int | None = None,
        settings: CassandraSettings | None = None,
    ) -> Self:
        """Open a store in Apache Cassandra 5.0 or Astra DB, which any number of clients may use.

        Pass a session and a keyspace, or call ``cassio.init(...)`` first. Closing the store leaves the
        session open. Needs the extra ``cassandra``.

        Args:
            embedding: See :class:`LinkStore`.
            table: The store's name in the keyspace: a letter and up to 37 letters, digits and underscores,
                not ending as the names of its other tables do, such as ``_members``.
                The store consists of the table of this name and five whose names begin with it.
            session: A session of cassandra-driver. None: the one made by ``cassio.init``.
            keyspace: None: the session's own, else the one given to ``cassio.init``.
            create: Create the tables if they do not exist.
            max_depth: See :class:`LinkStore`.
            settings: Consistency, timeouts, lifetime, lexical search or not, see
                :class:`linkstore.engines.cassandra.settings.CassandraSettings`.

        Raises:
            MissingExtraError: If the extra is not installed.
            BackendError: If the session or the keyspace is missing, or the name is not valid for tables.
            StoreNotFoundError: If the store does not exist and ``create`` is False.
            StoreFormatError: If this version of linkstore cannot read the store.
            StoreUnavailableError: If no server answers.
            EmbeddingError: If the store was built with an embedding of another dimension. Another one of the
                same dimension is refused when it first embeds something.
        """
        from linkstore.store.cassandra import make_session_backend

        backend = make_session_backend(session, keyspace, table, create=create, settings=settings)
        with close_on_failure(backend):
            return cls(embedding, backend=backend, max_depth=max_depth)

    @classmethod
    async def acassandra(cls, embedding: Embeddings | None = None, **kwargs: Any) -> Self:
        """Open a store in Cassandra without blocking the event loop: see :meth:`cassandra`.

        Args:
            embedding: See :class:`LinkStore`.
            kwargs: The other arguments of :meth:`cassandra`.
        """
        return await run_in_thread(cls.cassandra, embedding, **kwargs)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these texts in it.

        Args:
            texts: The texts to add.
            embedding: Turns texts into vectors; default the built-in wordllama.
            metadatas: One dict for each text.
            ids: One id for each text.
            kwargs: ``path``, the folder of the store (default: in memory), and other arguments of
                :meth:`LinkStore.open`; or ``session``, ``keyspace``, ``table`` and other arguments of
                :meth:`LinkStore.cassandra`; or ``backend``.

        Raises:
            TypeError: If no way to make a store takes an argument.
            DocumentError: If a text, metadata or id cannot be stored.
        """
        return cls._make_filled(embedding, kwargs, lambda store: store.add_texts(texts, metadatas, ids=ids))

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these texts in it, in a thread: see :meth:`from_texts`."""
        return await run_in_thread(cls.from_texts, texts, embedding, metadatas, ids=ids, **kwargs)

    @classmethod
    def from_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        links: ChosenLinks = "auto",
        **kwargs: Any,
    ) -> Self:
        """Make a store with these documents in it, linked with each other.

        Warns if no link leads from one to another, since searches have none to follow.

        Args:
            documents: The documents to add. They are not modified.
            embedding: See :meth:`from_texts`.
            ids: One id for each document.
            links: Extractors of links, by name or as objects. ``"auto"``, the default, adds none if a
                document has links already, else ``"hyperlink"``, the links in HTML and Markdown to the
                ``source`` or ``url`` of others, and ``"mention"``, the titles of others. Empty: none.
            kwargs: See :meth:`from_texts`.

        Raises:
            TypeError: If no way to make a store takes an argument.
            DocumentError: If a text, metadata or id cannot be stored.
            ExtractionError: If an extractor is not installed, or does not read documents.
        """
        require_list("documents", documents=documents)
        linked = extract_links(documents, links)
        own = any(LINKS_KEY in document.metadata for document in documents)
        if linked and links and not own and not is_linked(linked):
            warn(_NO_LINKS)

        def fill(store: Self) -> None:
            run(store._add(linked, ids, BATCH_SIZE, None))

        return cls._make_filled(embedding, kwargs, fill)

    @classmethod
    async def afrom_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        links: ChosenLinks = "auto",
        **kwargs: Any,
    ) -> Self:
        """Make a store with these documents in it, in a thread: see :meth:`from_documents`."""
        return await run_in_thread(cls.from_documents, documents, embedding, ids=ids, links=links, **kwargs)

    @classmethod
    def from_folder(
        cls,
        folder: str | Path,
        embedding: Embeddings | None = None,
        *,
        links: IndexedLinks | None = None,
        **kwargs: Any,
    ) -> Self:
        """Index a folder of HTML, Markdown, text or notebooks, and return the store.

        Shows a bar in a terminal or notebook. With a store that is in a folder, a later call reads only what
        changed. :func:`linkstore.ingest.index` does the same with an open store, and returns a summary.

        Args:
            folder: The folder of the pages.
            embedding: See :class:`LinkStore`.
            links: Names of link extractors, or extractors; default hyperlinks, sections and citations.
            kwargs: ``path``, the folder of the store (default: in memory), and the other arguments of
                :meth:`from_texts`; settings of :class:`~linkstore.ingest.FolderSource`.

        Raises:
            TypeError: If neither the store nor the source takes an argument.
            SourceNotFoundError: If there is no such folder.
            NothingIndexedError: If there is nothing in it that can be indexed.
        """
        return cls._make_indexed("FolderSource", folder, embedding, links, kwargs)

    @classmethod
    def from_vault(
        cls,
        folder: str | Path,
        embedding: Embeddings | None = None,
        *,
        links: IndexedLinks | None = None,
        **kwargs: Any,
    ) -> Self:
        """Index a vault of Markdown notes, and return the store: see :meth:`from_folder`.

        Args:
            folder: The folder of the notes.
            embedding: See :class:`LinkStore`.
            links: See :meth:`from_folder`.
            kwargs: Those of :meth:`from_folder`; settings of :class:`~linkstore.ingest.VaultSource`.
        """
        return cls._make_indexed("VaultSource", folder, embedding, links, kwargs)

    @classmethod
    def from_website(
        cls,
        url: str,
        embedding: Embeddings | None = None,
        *,
        links: IndexedLinks | None = None,
        **kwargs: Any,
    ) -> Self:
        """Index a website, and return the store: see :meth:`from_folder`.

        Args:
            url: Where to start: a page, a sitemap, or an ``llms.txt``.
            embedding: See :class:`LinkStore`.
            links: See :meth:`from_folder`.
            kwargs: Those of :meth:`from_folder`; settings of :class:`~linkstore.ingest.WebsiteSource`, such
                as ``max_pages`` and ``allow``.

        Raises:
            SiteUnavailableError: If the site does not answer.
            ForbiddenUrlError: If the URL may not be requested, such as a private address.
        """
        return cls._make_indexed("WebsiteSource", url, embedding, links, kwargs)

    @classmethod
    def _make_indexed(
        cls,
        kind: Literal["FolderSource", "VaultSource", "WebsiteSource"],
        place: str | Path,
        embedding: Embeddings | None,
        links: IndexedLinks | None,
        options: dict[str, Any],
    ) -> Self:
        """Make a store and index a source into it; warn of pages that could not be read."""
        from linkstore import ingest  # above this folder: see docs/architecture.md
        from linkstore.ingest.pipeline import DEFAULT_LINKS

        made: type[Any] = getattr(ingest, kind)
        of_store = {name: options.pop(name) for name in [*options] if name in _OF_PLACES}
        settings = {setting.name for setting in fields(made)} - {"url"}
        check_argument_names(f"{cls.__name__} of a {kind}", options, settings | _OF_PLACES)
        source: ingest.Source = made(place, **options)

        def fill(store: Self) -> None:
            summary = ingest.index(store, source, links=DEFAULT_LINKS if links is None else links)
            if summary.skipped:
                (name, reason), more = next(iter(summary.skipped.items())), len(summary.skipped) - 1
                others = f", and {more:,} more" if more else ""
                warn(f"not indexed: {name}: {reason}{others}; linkstore.ingest.index() returns all of them")

        return cls._make_filled(embedding, of_store, fill)

    @classmethod
    def _make_filled(
        cls, embedding: Embeddings | None, place: dict[str, Any], fill: Callable[[Self], object]
    ) -> Self:
        """Make a store at a place and fill it; close it if that fails, unless its backend is the caller's."""
        if "backend" in place:
            store = cls(embedding, **place)
            fill(store)
            return store
        if not _OF_CASSANDRA.isdisjoint(place):
            store = cls.cassandra(embedding, **place)
        else:
            check_argument_names(f"{cls.__name__}.open()", place, _OF_FOLDER)
            store = cls.open(place.pop("path", ":memory:"), embedding, **place)
        with close_on_failure(store.backend):
            fill(store)
        return store
