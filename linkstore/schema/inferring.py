"""Drafts a schema from the documents of a store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from langchain_core.documents import Document

from linkstore.arguments import require_list
from linkstore.errors import SchemaError
from linkstore.links import links_in
from linkstore.schema.graph import TypedGraph
from linkstore.schema.model import TYPE_FIELD, Schema


class Scanned(Protocol):
    """A store, or anything else that can be read document by document."""

    def scan(self) -> Iterator[Document]:
        """Iterate over all documents."""
        ...


def infer(source: Scanned | Iterable[Document], type_field: str = TYPE_FIELD) -> Schema:
    """Draft a schema from documents: see :meth:`~linkstore.schema.Schema.infer`."""
    if not hasattr(source, "scan"):
        require_list("documents, or a store", source=source)
    documents = source if isinstance(source, Iterable) else source.scan()
    graph = TypedGraph(type_field)
    for document in documents:
        graph.add(document.id or "", document.metadata, links_in(document.metadata, document.id))
    if not graph.types():
        raise SchemaError(
            f"no document has a type: give documents metadata[{type_field!r}], or name the field that holds"
            " it as type_field"
        )
    return Schema(types=graph.types(), relations=graph.relations(), type_field=type_field)
