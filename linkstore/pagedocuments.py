"""A page of a source with its documents, in the form in which a store accepts it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # processes that only read pages need no NumPy
    from langchain_core.documents import Document

    from linkstore.vectors import Floats


@dataclass(frozen=True, slots=True)
class PageDocuments:
    """An indexed page and the documents made of it; their ids must be set.

    Args:
        url: The page within its source.
        digest: Hash of what was indexed.
        documents: In order.
        vectors: What the store's embedding gave for them, of shape (documents, dimension), if they were
            embedded beforehand: see :func:`linkstore.operations.embed_pages`.
    """

    url: str
    digest: str
    documents: tuple[Document, ...]
    vectors: Floats | None = field(default=None, compare=False, repr=False)
