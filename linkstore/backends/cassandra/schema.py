"""Creates the tables of a store, and reads and checks its settings.

Several clients may create a store at once. Lightweight transactions choose one value for each setting. The
clients first agree on the embedding, then create the tables for its vectors, and then record its dimension.
So a client that reads the dimension can rely on the tables. If a client stops between these steps, the next
one completes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import orjson

from linkstore.backends.base import Manifest
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.skew import MOST_NODES
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.backends.cassandra.vocabulary import Names, names_of_documents
from linkstore.errors import BackendError, StoreFormatError, StoreNotFoundError
from linkstore.plans import Operation

_CLAIM: Final = "claim"
"""The setting with the agreed embedding: dimension and name, as JSON."""
VERSION: Final = 6
"""2 added the table of words; 3 the column of links, and sets of states in rows of members and words; 4
settings with the names of link kinds and metadata fields; 5 the table of accesses; 6 the columns of
replaced links and of when a document was added."""
_WITHOUT_NAMES: Final = 3
_CAN_MIGRATE: Final = (_WITHOUT_NAMES, 4, 5)
_READ: Final = ["version", "embedding", "dimension", "buckets", "words"]
"""The settings about the store itself; others are names, of which there may be thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The settings of a store.

    Args:
        version: Version of the schema, None in a new store.
        manifest: The embedding.
        buckets: Number of partitions of one side of a link group, and of a word.
        lexical: Whether words are indexed.
    """

    version: int | None
    manifest: Manifest
    buckets: int
    lexical: bool


def set_up(tables: Tables, *, create: bool, buckets: int, lexical: bool) -> Operation[Recorded]:
    """Create the small tables if they do not exist, and read the settings.

    Args:
        tables: The tables of the store.
        create: Whether to create them.
        buckets: The setting of a new store.
        lexical: Whether a new store indexes words.

    Raises:
        BackendError: If the keyspace has tables with its names that are not a store's.
        StoreNotFoundError: If the store does not exist, or was not completed, and ``create`` is False.
        StoreFormatError: If it is of a version that this linkstore does not know.
    """
    existing = tables.all_names & (yield from _table_names(tables))
    begun = tables.settings_name in existing
    recorded = (yield from read(tables)) if begun else None
    if recorded is None or recorded.version is None:
        if not create:
            raise StoreNotFoundError(f"the keyspace {tables.keyspace!r} has no store named {tables.name!r}")
        if existing and not begun:
            raise BackendError(
                f"the keyspace {tables.keyspace!r} has tables of something else that a store named"
                f" {tables.name!r} would use: {', '.join(sorted(existing))}. Take another name for the store,"
                " or drop them"
            )
        yield from _schema(cql.create_small_tables(tables))
        words = "built" if lexical else "none"
        values = {"buckets": str(buckets), "words": words, "version": str(VERSION)}
        yield from _settle(tables, values)
        recorded = yield from read(tables)
    if recorded.version in _CAN_MIGRATE:
        yield from _migrate(tables, recorded, recorded.version)
        recorded = yield from read(tables)
    if recorded.version != VERSION:
        older = recorded.version is not None and recorded.version < VERSION
        remedy = "drop its tables and index its sources again" if older else "upgrade linkstore"
        raise StoreFormatError(
            f"the linkstore {tables.name!r} in the keyspace {tables.keyspace!r} has schema version"
            f" {recorded.version}; this linkstore reads version {VERSION}: {remedy}"
        )
    return recorded


def read(tables: Tables) -> Operation[Recorded]:
    """Read the settings."""
    statement = Statement(cql=cql.read_named_settings(tables), values=(_READ,))
    (rows,) = yield Requests(statements=(statement,), what="read what the store records of itself")
    found: dict[str, str] = dict(rows)
    dimension = found.get("dimension")
    return Recorded(
        version=int(found["version"]) if "version" in found else None,
        manifest=Manifest(
            embedding=found.get("embedding"), dimension=int(dimension) if dimension is not None else None
        ),
        buckets=int(found.get("buckets", "1")),
        lexical=found.get("words") == "built",
    )


def claim(tables: Tables, manifest: Manifest, nodes: int) -> Operation[Manifest]:
    """Record an embedding if none is recorded, create the tables for it, and return the recorded one.

    The dimension, on which clients rely, is recorded when each of up to 8 nodes answers from the indexes.
    """
    recorded = yield from read(tables)
    if recorded.manifest.dimension is not None or manifest.dimension is None:
        return recorded.manifest
    wanted = orjson.dumps([manifest.dimension, manifest.embedding]).decode()
    settled = yield from _settle(tables, {_CLAIM: wanted})
    dimension, embedding = orjson.loads(settled[_CLAIM])
    yield from _schema(cql.create_tables(tables, dimension))
    if recorded.lexical:
        yield from _schema((cql.create_words(tables),))
    yield from _use_indexes(tables, dimension, nodes)
    values = {} if embedding is None else {"embedding": embedding}
    yield from _settle(tables, {**values, "dimension": str(dimension)})
    return (yield from read(tables)).manifest


def _migrate(tables: Tables, recorded: Recorded, version: int) -> Operation[None]:
    """Migrate a store of version 3, 4 or 5: add columns and a table, record the names its documents use.

    The version is written last. If a client stops before, the next one starts again.
    """
    if recorded.manifest.dimension is not None:
        yield from _schema((cql.add_columns(tables),))
        if version == _WITHOUT_NAMES:
            names, _ = yield from names_of_documents(tables)
            yield from Names(tables).learn(names)
    yield from _schema((cql.create_accesses(tables),))
    values = (str(VERSION), "version", str(version))
    statement = Statement(cql=cql.exchange_setting(tables), values=values, level="write")
    yield Requests(statements=(statement,), what="record what the store is")


def _settle(tables: Tables, values: Mapping[str, str]) -> Operation[dict[str, str]]:
    """Record settings in this order, except those already recorded, and return the recorded values."""
    text = cql.settle_setting(tables)
    settled = {}
    for name, value in values.items():
        statement = Statement(cql=text, values=(name, value), level="write")
        ((answer,),) = yield Requests(statements=(statement,), what="record what the store is")
        settled[name] = value if answer[0] else answer[-1]
    return settled


def _schema(texts: tuple[str, ...]) -> Operation[None]:
    """Run statements that change the schema, one after another."""
    for text in texts:
        yield Requests(statements=(Statement(cql=text, level="schema"),), what="make the tables")


def _use_indexes(tables: Tables, dimension: int, nodes: int) -> Operation[None]:
    """Search by both indexes, once by each node, as the driver sends each statement to another one.

    A node can answer from an index some time after it was created. Until then the search is repeated.
    """
    vector = np.eye(1, dimension, dtype=np.float32)[0]
    search = Statement(
        cql=cql.nearest(tables, 1, whole=False), values=("", "", vector, 1), level="one", page_limit=1
    )
    yield Requests(statements=(search,) * min(nodes, MOST_NODES), what="use the new indexes")


def _table_names(tables: Tables) -> Operation[set[str]]:
    statement = Statement(cql=cql.TABLES_THERE, values=(tables.keyspace,), level="one")
    (rows,) = yield Requests(statements=(statement,), what="look for the tables")
    return {name for (name,) in rows}
