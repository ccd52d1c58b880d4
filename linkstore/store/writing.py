"""Adding, replacing and removing documents, by LangChain's methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.documents import Document

from linkstore.core.arguments import make_argument_error, omit_none, quote_value, require_list
from linkstore.core.calls import run_in_thread
from linkstore.core.documents import keep_storable
from linkstore.core.plans import Operation, Plan, read_documents
from linkstore.engines.contract import Written
from linkstore.errors import ArgumentError, DocumentError
from linkstore.store import operations
from linkstore.store.driving import DrivenStore, close_on_failure
from linkstore.store.operations import BATCH_SIZE

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

Made = TypeVar("Made", bound=DrivenStore)


class WriteMethods(DrivenStore):
    """Methods that change a store, and that read documents by id."""

    def add_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int = BATCH_SIZE,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents with their links, replacing those with the same id.

        If one document is invalid, none is written. Each batch is one change, in an embedded store one
        transaction.

        Args:
            documents: Documents, with links in ``metadata["links"]``. They are not modified.
            ids: One id for each document. Default its own id, else ``metadata["content_id"]``, else a
                new UUID.
            batch_size: Number of documents embedded and written at once.
            kwargs: Not supported. Any argument raises TypeError.

        Returns:
            The ids, in order.

        Raises:
            LinkError: If a link is invalid. The message names the document and the link.
            DocumentError: If an id, text, metadata or vector cannot be stored, or ``batch_size`` is below 1.
            EmbeddingError: If the embedding does not match the store.
            StoreBusyError: If another writer holds the store for more than 5 s.
            StoreFullError: If the disk is full.
            StoreUnavailableError: If a server does not answer. Repeat the call to complete the change.
        """
        _refuse_arguments("add_documents", kwargs)
        return self._run(self._add(documents, ids, batch_size))

    async def aadd_documents(
        self,
        documents: list[Document],
        *,
        ids: Sequence[str | None] | None = None,
        batch_size: int = BATCH_SIZE,
        **kwargs: Any,
    ) -> list[str]:
        """Add documents with their links: see :meth:`add_documents`."""
        _refuse_arguments("aadd_documents", kwargs)
        return await self._arun(self._add(documents, ids, batch_size))

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts: see :meth:`add_documents`."""
        _refuse_arguments("add_texts", kwargs)
        return self._run(self._add(_make_documents(texts, metadatas), ids, BATCH_SIZE))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts: see :meth:`add_documents`."""
        _refuse_arguments("aadd_texts", kwargs)
        return await self._arun(self._add(_make_documents(texts, metadatas), ids, BATCH_SIZE))

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their links by id. Unknown ids are ignored.

        The next run of a source restores deleted documents that the source still has. Use
        :meth:`delete_pages` to remove whole pages.

        Raises:
            ArgumentError: If no ids are given, or one is not a string.
        """
        _refuse_arguments("delete", kwargs)
        return self._run(self._delete(ids))

    def delete_pages(self, urls: Sequence[str]) -> Written:
        """Remove indexed pages of any source with all their documents. Unknown pages are ignored.

        The next run of :func:`linkstore.ingest.index` restores the pages that their source still has.

        Args:
            urls: Pages, as in ``metadata["page"]`` of their documents.
        """
        return self._run(operations.delete_pages(self.backend, urls))

    async def adelete_pages(self, urls: Sequence[str]) -> Written:
        """Remove indexed pages: see :meth:`delete_pages`."""
        return await self._arun(operations.delete_pages(self.backend, urls))

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their links: see :meth:`delete`."""
        _refuse_arguments("adelete", kwargs)
        return await self._arun(self._delete(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in the order of ``ids``. Unknown ids are omitted.

        Raises:
            ArgumentError: If the ids are not a list of strings.
        """
        return self._run(self._read_by_ids(ids))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids: see :meth:`get_by_ids`."""
        return await self._arun(self._read_by_ids(ids))

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
        with _close_unless_filled(cls._made(embedding, **kwargs), kwargs) as store:
            store.add_texts(texts, metadatas, ids=ids)
            return store

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
        """Make a store with these texts in it: see :meth:`from_texts`."""
        with _close_unless_filled(await run_in_thread(cls._made, embedding, **kwargs), kwargs) as store:
            await store.aadd_texts(texts, metadatas, ids=ids)
            return store

    @classmethod
    def from_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these documents in it: see :meth:`from_texts`."""
        with _close_unless_filled(cls._made(embedding, **kwargs), kwargs) as store:
            store.add_documents(documents, ids=ids)
            return store

    @classmethod
    async def afrom_documents(
        cls,
        documents: list[Document],
        embedding: Embeddings | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store with these documents in it: see :meth:`from_texts`."""
        with _close_unless_filled(await run_in_thread(cls._made, embedding, **kwargs), kwargs) as store:
            await store.aadd_documents(documents, ids=ids)
            return store

    @classmethod
    def _made(cls, embedding: Embeddings | None, **kwargs: Any) -> Self:
        """Make the empty store that :meth:`from_texts` and similar methods fill."""
        raise NotImplementedError

    def _add(
        self, documents: Sequence[Document], ids: Sequence[str | None] | None, batch_size: int
    ) -> Operation[list[str]]:
        listed = _check_documents(documents)
        require_list("strings", **omit_none(ids=ids))
        named = [document.id for document in listed] if ids is None else list(ids)
        return operations.add(self.backend, self._embedding, listed, named, batch_size)

    def _read_by_ids(self, ids: Sequence[str]) -> Operation[list[Document]]:
        return operations.run_plan(self.backend, _read_documents_by_id(tuple(keep_storable("ids", ids))))

    def _delete(self, ids: Sequence[str] | None) -> Operation[bool]:
        if ids is None:
            raise ArgumentError(
                "delete() needs a list of ids; to delete everything, remove the store's folder or tables"
            )
        yield from operations.delete(self.backend, ids)
        return True


@contextmanager
def _close_unless_filled(store: Made, arguments: Mapping[str, Any]) -> Iterator[Made]:
    """Close a store that could not be filled, unless its backend is the caller's."""
    with nullcontext() if "backend" in arguments else close_on_failure(store.backend):
        yield store


def _check_documents(documents: Iterable[Document] | Document) -> list[Document]:
    if isinstance(documents, Document):  # iterating over one gives its fields
        raise ArgumentError("documents must be a list of documents, not a single document")
    return _check_items(Document, "documents", "a list of documents", documents)


def _check_items(kind: type, name: str, what: str, given: Iterable[Any]) -> list[Any]:
    """Return the items of an argument, which must all be of one class.

    Raises:
        ArgumentError: If it is not a list, or an item is something else.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise make_argument_error(name, what, given)
    listed = list(given)
    for one in listed:
        if not isinstance(one, kind):
            raise ArgumentError(f"{name} must be {what}; {quote_value(one)[:200]} is not one")
    return listed


def _read_documents_by_id(ids: tuple[str, ...]) -> Plan[list[Document]]:
    stored = yield from read_documents(ids)
    return [Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in stored]


def _make_documents(texts: Iterable[str], metadatas: list[dict[str, Any]] | None) -> list[Document]:
    listed: list[str] = _check_items(str, "texts", "a list of strings", texts)
    fields: list[dict[str, Any]] = [{}] * len(listed)
    if metadatas is not None:
        fields = _check_items(Mapping, "metadatas", "a list of dicts", metadatas)
    if len(fields) != len(listed):
        raise DocumentError(
            f"got {len(listed)} texts and {len(fields)} metadatas; pass one dict for each text"
        )
    return [Document(page_content=text, metadata=dict(own)) for text, own in zip(listed, fields, strict=True)]


def _refuse_arguments(method: str, unknown: dict[str, Any]) -> None:
    """Raise TypeError for unknown names, which LangChain's signature allows."""
    for name in unknown:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
