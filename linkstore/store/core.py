"""A store without LangChain's base classes, whose import takes four times as long as all of linkstore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self, runtime_checkable

from linkstore.engines.bookkeeping import Backend
from linkstore.engines.embedded.backend import EmbeddedBackend
from linkstore.errors import CapabilityError
from linkstore.store.driving import close_on_failure
from linkstore.store.maintenance import MaintenanceMethods, PageMethods, SchemaMethods
from linkstore.store.searching import SearchMethods
from linkstore.store.writing import WriteMethods

if TYPE_CHECKING:
    from linkstore.store.linkstore import LinkStore


class CoreStore(SearchMethods, WriteMethods, PageMethods, SchemaMethods, MaintenanceMethods):
    """The methods of a :class:`~linkstore.LinkStore` that do not belong to a VectorStore.

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

    def close(self) -> None:
        """Close the store and release its resources. Later use raises StoreClosedError."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_core_in_folder(path: str | Path, *, create: bool = False) -> CoreStore:
    """Open the store in a folder, with the embedding that it was built with.

    Args:
        path: The folder.
        create: Create the store if it does not exist.

    Raises:
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreFormatError: If the folder contains something else, or a store of a newer version.
        EmbeddingError: If the embedding cannot be made by its name.
    """
    backend = EmbeddedBackend(path, create=create)
    with close_on_failure(backend):
        return CoreStore(backend)


def make_folder_backend(path: str | Path, *, create: bool = True) -> EmbeddedBackend:
    """Make a backend without an embedding, for work that embeds nothing.

    Args:
        path: The folder.
        create: Create the store if it does not exist.

    Raises:
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreFormatError: If the folder contains something else, or a store of a newer version.
    """
    return EmbeddedBackend(path, create=create)


FACTS_SUFFIX: Final = "facts"
"""The name of the store of facts of a store of chunks."""


@runtime_checkable
class SupportsStoresBeside(Protocol):
    """A backend that can keep further stores next to its own."""

    def beside(self, name: str, *, create: bool) -> Backend:
        """Open the backend of the store with this name.

        Raises:
            StoreNotFoundError: If there is none and ``create`` is False.
        """
        ...


def open_store_beside(store: LinkStore, name: str, *, create: bool = True) -> LinkStore:
    """Open a further store that belongs to a store. Close it before that store.

    Args:
        store: The store whose engine and embedding the further one has.
        name: Lower-case letters.
        create: Whether to make it if there is none.

    Raises:
        CapabilityError: If the backend keeps no further stores.
        StoreNotFoundError: If there is none and ``create`` is False.
    """
    from linkstore.store.linkstore import (
        LinkStore,  # late: commands that use no LangChain take the name above
    )

    backend = store.backend
    if not isinstance(backend, SupportsStoresBeside):
        raise CapabilityError(
            f"{type(backend).__name__} cannot keep a second store; pass one, such as LinkStore()"
        )
    further = backend.beside(name, create=create)
    with close_on_failure(further):
        return LinkStore(store.embeddings, backend=further)
