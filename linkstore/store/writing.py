"""Adding, replacing and removing documents, by LangChain's methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.documents import Document

from linkstore import operations
from linkstore.backends.base import Written
from linkstore.drivers import in_thread
from linkstore.errors import DocumentError
from linkstore.ids import is_storable
from linkstore.operations import BATCH_SIZE
from linkstore.plans import Candidates, Documents, Find, Operation, Plan, Stored
from linkstore.store.driving import Driven
from linkstore.store.opening import closed_on_failure

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

Made = TypeVar("Made", bound=Driven)


class Writing(Driven):
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

        If one document is invalid, none is written. Each batch is one change; in an embedded store, one
        transaction.

        Args:
            documents: Documents, with links in ``metadata["links"]``; they are not modified.
            ids: One id for each document; default its own id, else ``metadata["content_id"]``, else a
                new UUID.
            batch_size: Number of documents embedded and written at once.
            kwargs: Not supported; any argument raises TypeError.

        Returns:
            The ids, in order.

        Raises:
            LinkError: If a link is invalid; the message names the document and the link.
            DocumentError: If an id, text, metadata or vector cannot be stored, or ``batch_size`` is below 1.
            EmbeddingError: If the embedding does not match the store.
            StoreBusyError: If another writer holds the store for more than 5 s.
            StoreFullError: If the disk is full.
            StoreUnavailableError: If a server does not answer; repeat the call to complete the change.
        """
        _refuse("add_documents", kwargs)
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
        _refuse("aadd_documents", kwargs)
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
        _refuse("add_texts", kwargs)
        return self._run(self._add(_as_documents(texts, metadatas), ids, BATCH_SIZE))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts: see :meth:`add_documents`."""
        _refuse("aadd_texts", kwargs)
        return await self._arun(self._add(_as_documents(texts, metadatas), ids, BATCH_SIZE))

    def delete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their links by id; unknown ids are ignored.

        The next run of a source restores deleted documents that the source still has. Use
        :meth:`delete_pages` to remove whole pages.

        Raises:
            DocumentError: If no ids are given.
        """
        _refuse("delete", kwargs)
        return self._run(self._delete(ids))

    def delete_pages(self, urls: Sequence[str]) -> Written:
        """Remove indexed pages of any source with all their documents; unknown pages are ignored.

        The next run of :func:`linkstore.ingest.index_source` restores the pages that their source still has.

        Args:
            urls: Pages, as in ``metadata["page"]`` of their documents.
        """
        return self._run(operations.delete_pages(self.backend, _urls(urls)))

    async def adelete_pages(self, urls: Sequence[str]) -> Written:
        """Remove indexed pages: see :meth:`delete_pages`."""
        return await self._arun(operations.delete_pages(self.backend, _urls(urls)))

    async def adelete(self, ids: Sequence[str] | None = None, **kwargs: Any) -> bool:
        """Remove documents and their links: see :meth:`delete`."""
        _refuse("adelete", kwargs)
        return await self._arun(self._delete(ids))

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in the order of ``ids``; unknown ids are omitted."""
        return self._run(self._by_ids(ids))

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids: see :meth:`get_by_ids`."""
        return await self._arun(self._by_ids(ids))

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
        """A store with these texts in it.

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
        with _filled(cls._made(embedding, **kwargs), kwargs) as store:
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
        """A store with these texts in it: see :meth:`from_texts`."""
        with _filled(await in_thread(cls._made, embedding, **kwargs), kwargs) as store:
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
        """A store with these documents in it: see :meth:`from_texts`."""
        with _filled(cls._made(embedding, **kwargs), kwargs) as store:
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
        """A store with these documents in it: see :meth:`from_texts`."""
        with _filled(await in_thread(cls._made, embedding, **kwargs), kwargs) as store:
            await store.aadd_documents(documents, ids=ids)
            return store

    @classmethod
    def _made(cls, embedding: Embeddings | None, **kwargs: Any) -> Self:
        """The store that :meth:`from_texts` and its kin fill."""
        raise NotImplementedError

    def _add(
        self, documents: Sequence[Document], ids: Sequence[str | None] | None, batch_size: int
    ) -> Operation[list[str]]:
        listed = _listed(documents)
        _check_list("ids", [] if ids is None else ids)
        given = [document.id for document in listed] if ids is None else list(ids)
        return operations.add(self.backend, self._embedding_name, listed, given, batch_size)

    def _by_ids(self, ids: Sequence[str]) -> Operation[list[Document]]:
        _check_list("ids", ids)
        return operations.answer(self.backend, _documents(tuple(ids)))

    def _delete(self, ids: Sequence[str] | None) -> Operation[bool]:
        if ids is None:
            raise DocumentError(
                "delete() needs a list of ids; to delete everything, remove the store's folder or tables"
            )
        _check_list("ids", ids)
        yield from operations.delete(self.backend, list(filter(is_storable, ids)))
        return True


@contextmanager
def _filled(store: Made, given: Mapping[str, Any]) -> Iterator[Made]:
    """Close a store that could not be filled, unless its backend is the caller's."""
    with nullcontext() if "backend" in given else closed_on_failure(store.backend):
        yield store


def _urls(urls: Sequence[str]) -> list[str]:
    _check_list("pages", urls)
    return list(filter(is_storable, urls))


def _check_list(what: str, given: object) -> None:
    """Raise unless this is a list; a string is none, for its letters would be taken for the strings."""
    if isinstance(given, str):
        raise DocumentError(f"{what} must be a list, not the string {given[:200]!r}")
    if not isinstance(given, Iterable):
        raise DocumentError(f"{what} must be a list, not {given!r}")


def _listed(documents: Iterable[Document] | Document) -> list[Document]:
    if isinstance(documents, Document):  # iterating over one gives its fields
        raise DocumentError("documents must be a list of documents, not a single document")
    if not isinstance(documents, Iterable):
        raise DocumentError(f"documents must be a list of documents, not {documents!r}")
    listed = list(documents)
    for one in listed:
        if not isinstance(one, Document):
            raise DocumentError(f"documents must be a list of documents; {repr(one)[:200]} is not one")
    return listed


def _documents(ids: tuple[str, ...]) -> Plan[list[Document]]:
    found: Candidates = yield Find(ids=tuple(filter(is_storable, ids)))
    stored: list[Stored] = yield Documents(refs=found.refs)
    return [Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in stored]


def _as_documents(texts: Iterable[str], metadatas: list[dict[str, Any]] | None) -> list[Document]:
    _check_list("texts", texts)
    texts = list(texts)
    for text in texts:
        if not isinstance(text, str):
            raise DocumentError(f"texts must be a list of strings; {repr(text)[:200]} is not one")
    given = metadatas if metadatas is not None else [{}] * len(texts)
    if len(given) != len(texts):
        raise DocumentError(f"got {len(texts)} texts and {len(given)} metadatas; pass one dict for each text")
    for fields in given:
        if not isinstance(fields, Mapping):
            raise DocumentError(f"metadatas must be a list of dicts; {repr(fields)[:200]} is not one")
    return [
        Document(page_content=text, metadata=dict(fields)) for text, fields in zip(texts, given, strict=True)
    ]


def _refuse(method: str, unknown: dict[str, Any]) -> None:
    """Raise TypeError for unknown names, which LangChain's signature allows."""
    for name in unknown:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
