"""Stores: documents with their links, kept by a backend, searched by strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.store.linkstore import LinkStore
    from linkstore.store.migration import Batch, MigrationReport, Source, migrate
    from linkstore.store.retriever import LinkRetriever
    from linkstore.store.schema import Mode, Problem, Relation, Schema
    from linkstore.store.schema_graph import Reach, SchemaReport, TypeConnectivity, TypedGraph

__all__ = [
    "Batch",
    "LinkRetriever",
    "LinkStore",
    "MigrationReport",
    "Mode",
    "Problem",
    "Reach",
    "Relation",
    "Schema",
    "SchemaReport",
    "Source",
    "TypeConnectivity",
    "TypedGraph",
    "migrate",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.store.linkstore": "LinkStore",
        "linkstore.store.migration": "Batch MigrationReport Source migrate",
        "linkstore.store.retriever": "LinkRetriever",
        "linkstore.store.schema": "Mode Problem Relation Schema",
        "linkstore.store.schema_graph": "Reach SchemaReport TypeConnectivity TypedGraph",
    },
)
