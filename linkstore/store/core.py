"""A store without LangChain's base classes, whose import takes four times as long as all of linkstore.

The command line opens this one where nothing of LangChain is needed but documents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

from linkstore.backends.embedded import EmbeddedBackend
from linkstore.store.opening import closed_on_failure
from linkstore.store.pages import Pages
from linkstore.store.schemas import Schemas
from linkstore.store.searching import Searching
from linkstore.store.upkeep import Upkeep
from linkstore.store.writing import Writing


class CoreStore(Searching, Writing, Pages, Schemas, Upkeep):
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


def core_in(path: str | Path, *, create: bool = False) -> CoreStore:
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
    with closed_on_failure(backend):
        return CoreStore(backend)
