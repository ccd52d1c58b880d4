"""The tables of a store, and the small ones: settings, notes, pages, access times, names.

Several clients may create a store at once. Lightweight transactions choose one value for each setting. The
clients first agree on the embedding, then create the tables for its vectors, and then record its dimension.
So a client that reads the dimension can rely on the tables. If a client stops between these steps, the next
one completes them.

Access times of documents are in a table of their own, so that recording one rewrites nothing else. The key of
a row is a document and when it was added, so a document that is removed and added again has no access,
whatever the clocks say. The time of an access is also the timestamp of its row, so the latest one stays, in
whatever order they arrive.

The page entries of a source are in several partitions, by a hash of their urls, so that neither millions of
entries nor deleted ones make a partition that cannot be read. The sources are in one more partition.

Notes lie in the table of settings. Those that record names are never removed: another writer may be relying
on them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Final

import numpy as np
import orjson
import xxhash

from linkstore.core.calls import split_batches
from linkstore.core.plans import EngineOperation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.derived import SHARDS
from linkstore.engines.cassandra.listing import mark_list
from linkstore.engines.cassandra.reading import RowFetcher, make_search
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import (
    DerivedTable,
    Requests,
    Row,
    Statement,
    Tables,
    ask,
    run_each,
    run_writes,
    send,
)
from linkstore.engines.contract import Manifest, PageEntry
from linkstore.errors import BackendError, ClockSkewError, StoreFormatError, StoreNotFoundError

_READING_ENTRIES: Final = "read page entries"
EntryName = tuple[str, str]
"""Source and url of an entry."""
_URLS_PER_STATEMENT: Final = 100
"""URLs per statement."""
PAGE_SHARDS: Final = 16
"""Number of partitions with the page entries of a source."""
_ACCESSES_PER_STATEMENT: Final = 50
"""Number of documents whose accesses one statement deletes."""
_READING_SETTINGS: Final = "read settings"
_SETTINGS_PER_READ: Final = 50
"""How many settings one statement reads."""
_SETTINGS_PER_WRITE: Final = (10, 1)
"""Numbers of settings that one statement writes; the server warns about more than 10 partitions."""
_CLAIM_SETTING: Final = "claim"
"""The setting with the agreed embedding: dimension and name, as JSON."""
SCHEMA_VERSION: Final = 1
"""The layout of the tables."""
_FIXED: Final = "buckets", "shards", "words", "ttl"
_STORE_SETTINGS: Final = ["version", "embedding", "dimension", *_FIXED, _CLAIM_SETTING]
"""The settings about the store itself; the others are notes, of which there may be thousands."""
MAX_CHECKED_NODES: Final = 8
"""As many nodes are asked something on their own."""


def read_notes(names: Sequence[str] | None) -> EngineOperation[dict[str, str]]:
    """Return the notes with these names (None: all)."""
    if names is None:
        rows = yield from ask(_READING_SETTINGS, cql.READ_SETTINGS)
        return {name: value for name, value in rows if value is not None and name not in _STORE_SETTINGS}
    statements = tuple(
        Statement(cql=cql.READ_NAMED_SETTINGS, values=(part,), limit=len(part))
        for part in split_batches(names, _SETTINGS_PER_READ)
    )
    answers = yield from send(Requests(statements=statements, what=_READING_SETTINGS))
    return {name: value for rows in answers for name, value in rows if value is not None}


def add_notes(names: Iterable[str]) -> EngineOperation[None]:
    """Add notes without a text."""
    parts = codec.split_rows([(name.encode(),) for name in names], _SETTINGS_PER_WRITE)
    statements = (
        Statement(cql=cql.write_settings(len(part)), values=[*chain(*part)], packed=True, level="write")
        for part in parts
    )
    return run_writes("record the names of kinds and fields", statements)


def exchange_note(name: str, value: str | None, expected: str | None) -> EngineOperation[str | None]:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards.

    This is a lightweight transaction, for which a note that does not exist has the value null. If the driver
    repeats one that the server had applied, the second does not apply. So success is determined by reading
    the note afterwards.
    """
    if value != expected:
        yield from ask("write a note", cql.EXCHANGE_SETTING, value, name, expected, level="write")
    return (yield from read_notes([name])).get(name)


def find_shard(url: str) -> int:
    """Return the partition of a page entry among those of its source."""
    return xxhash.xxh3_64_intdigest(url.encode()) % PAGE_SHARDS


def read_pages(source: str | None, urls: Sequence[str] | None) -> EngineOperation[list[PageEntry]]:
    """Read the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    sources = [source] if source is not None else []
    if source is None:
        sources += [name for (name,) in (yield from ask(_READING_ENTRIES, cql.READ_SOURCES))]
    if urls is None:
        statements = tuple(
            Statement(cql=cql.READ_PAGES, values=(of, shard))
            for of in sources
            for shard in range(PAGE_SHARDS)
        )
        answers = yield from send(Requests(statements=statements, what=_READING_ENTRIES))
        rows = list(chain.from_iterable(answers))
    else:
        rows = yield from _read_named(cql.READ_NAMED_PAGES, [(of, url) for of in sources for url in urls])
    entries = [
        PageEntry(source=of, url=url, digest=digest, ids=tuple(ids or ())) for of, url, digest, ids in rows
    ]
    return sorted(entries, key=lambda entry: (entry.source, entry.url))


def read_entry_times(names: Iterable[EntryName]) -> EngineOperation[dict[EntryName, int]]:
    """Read the write times of the page entries that exist."""
    rows = yield from _read_named(cql.READ_PAGE_TIMES, names)
    return {(source, url): at for source, url, at in rows}


def _read_named(text: str, names: Iterable[EntryName]) -> EngineOperation[list[Row]]:
    """Run a statement about a source, a shard, and a list of urls for these entries."""
    urls: defaultdict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for source, url in names:
        urls[source, find_shard(url)][url] = None
    statements = tuple(
        Statement(cql=text, values=(*place, part))
        for place, of in urls.items()
        for part in split_batches(of, _URLS_PER_STATEMENT)
    )
    answers = yield from send(Requests(statements=statements, what=_READING_ENTRIES))
    return [row for rows in answers for row in rows]


def make_access_key(id: str, born: int) -> str:
    """Return the key of a document's access: when the document was added, and its id."""
    return f"{born} {id}"


def forget_accesses(documents: Iterable[tuple[str, int]], at: int) -> EngineOperation[None]:
    """Delete the accesses of removed documents: ids, and when they were added.

    Accesses later than ``at`` remain, and are never read.
    """
    parts = split_batches((make_access_key(*document) for document in documents), _ACCESSES_PER_STATEMENT)
    yield from run_each("delete accesses", cql.DELETE_ACCESSES, ((at, part) for part in parts))


def record_accesses(fetcher: RowFetcher, times: Mapping[str, int], lifetime: int) -> EngineOperation[int]:
    """Record the access times of stored documents, and return the number of documents recorded.

    If a document is removed while its access is recorded, the access remains but is not read.
    """
    there = yield from fetcher.present(list(times))
    rows = ((make_access_key(id, born), times[id], times[id], lifetime) for id, born in there.items())
    yield from run_each("record accesses", cql.WRITE_ACCESS, rows)
    return len(there)


def read_accesses(fetcher: RowFetcher, ids: Sequence[str]) -> EngineOperation[dict[str, int]]:
    """Return the access times of the documents that are stored and have one."""
    there = yield from fetcher.present(list(dict.fromkeys(ids)))
    ids_of = {make_access_key(id, born): id for id, born in there.items()}
    rows = yield from fetcher.by_id(cql.READ_ACCESSES, list(ids_of), "read accesses")
    return {ids_of[key]: time for key, time in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """The settings of a store.

    Args:
        version: Version of the schema, None in a new store.
        manifest: The embedding.
        shards: Number of partitions of words.
        lexical: Whether words are indexed.
        expiring: Whether the tables are made for documents that expire.
    """

    version: int | None
    manifest: Manifest
    shards: int
    lexical: bool
    expiring: bool


def set_up_tables(
    tables: Tables, settings: CassandraSettings, *, create: bool
) -> EngineOperation[StoreSettings]:
    """Create the small tables if they do not exist, and read the settings.

    Args:
        tables: The tables of the store.
        settings: What is fixed when a store is created.
        create: Whether to create them.

    Raises:
        BackendError: If the keyspace has tables with its names that are not a store's, or the store was
            created with other settings of what is fixed then.
        StoreNotFoundError: If the store does not exist, or was not completed, and ``create`` is False.
        StoreFormatError: If it is of a version that this linkstore does not know.
    """
    there = yield from ask("look for the tables", cql.READ_TABLE_NAMES, tables.keyspace, level="one")
    existing = tables.all_names.intersection(name for (name,) in there)
    begun = f"{tables.name}_settings" in existing
    recorded = (yield from read_settings()) if begun else None
    if recorded is None or recorded.version is None:
        if not create:
            raise StoreNotFoundError(f"the keyspace {tables.keyspace!r} has no store named {tables.name!r}")
        if existing and not begun:
            raise BackendError(
                f"the keyspace {tables.keyspace!r} has tables of something else that a store named"
                f" {tables.name!r} would use: {', '.join(sorted(existing))}. Take another name for the store,"
                " or drop them"
            )
        yield from _run_schema_statements(cql.create_small_tables(expiring=settings.ttl is not None))
        values = {
            "shards": str(settings.shards or SHARDS),
            "words": "none" if settings.lexical is False else "built",
            "ttl": "none" if settings.ttl is None else str(settings.ttl),
            "version": str(SCHEMA_VERSION),
        }
        yield from _record_settings(values)
        recorded = yield from read_settings()
    if recorded.version != SCHEMA_VERSION:
        raise StoreFormatError(
            f"the linkstore {tables.name!r} in the keyspace {tables.keyspace!r} has schema version"
            f" {recorded.version}, and this linkstore reads version {SCHEMA_VERSION}: open it with the"
            " version that wrote it, or drop its tables and index its sources again"
        )
    _check_fixed_settings(tables, recorded, settings)
    return recorded


def _check_fixed_settings(tables: Tables, recorded: StoreSettings, settings: CassandraSettings) -> None:
    """Refuse settings that are fixed when a store is created, if they differ from the store's."""
    for name in ("shards", "lexical"):
        setting, fixed = getattr(settings, name), getattr(recorded, name)
        if setting is not None and setting != fixed:
            raise BackendError(
                f"the store {tables.name!r} in the keyspace {tables.keyspace!r} was created with"
                f" {name}={fixed!r}, and CassandraSettings has {name}={setting!r}. This is fixed when a store"
                " is created: leave it out, or take another name for a new store"
            )


def read_settings() -> EngineOperation[StoreSettings]:
    """Read the settings."""
    rows = yield from ask("read what the store records of itself", cql.READ_NAMED_SETTINGS, _STORE_SETTINGS)
    settings: dict[str, str] = dict(rows)
    names = "version", "dimension", "shards"
    try:
        version, dimension, shards = (int(settings[name]) if name in settings else None for name in names)
    except (TypeError, ValueError) as error:
        raise StoreFormatError(
            f"the store's table …_settings has a setting that linkstore did not write ({error}): restore it"
            " from a backup, or take another name for the store"
        ) from error
    if settings.get("buckets", "1") != "1":
        raise StoreFormatError(
            "the store was created with several buckets, which this linkstore does not read: it splits what"
            " becomes large. Drop its tables, and index its sources again"
        )
    return StoreSettings(
        version=version,
        manifest=Manifest(embedding=settings.get("embedding"), dimension=dimension),
        shards=shards or SHARDS,
        lexical=settings.get("words") == "built",
        expiring=settings.get("ttl", "none") != "none",
    )


def claim_embedding(manifest: Manifest, nodes: int, at: int) -> EngineOperation[Manifest]:
    """Record an embedding if none is recorded, create the tables for it, and return the recorded one.

    The dimension, on which clients rely, is recorded when each of up to 8 nodes answers from the indexes.

    Args:
        manifest: The embedding.
        nodes: Number of nodes.
        at: The timestamp of what is written to the tables.
    """
    recorded = yield from read_settings()
    if recorded.manifest.dimension is not None or manifest.dimension is None:
        return recorded.manifest
    wanted = orjson.dumps([manifest.dimension, manifest.embedding]).decode()
    settled = yield from _record_settings({_CLAIM_SETTING: wanted})
    dimension, embedding = orjson.loads(settled[_CLAIM_SETTING])
    yield from _run_schema_statements(cql.create_document_tables(dimension, expiring=recorded.expiring))
    yield from create_derived_tables(lexical=recorded.lexical)
    yield from mark_list(at)
    yield from _wait_for_indexes(dimension, nodes)
    values = {} if embedding is None else {"embedding": embedding}
    yield from _record_settings({**values, "dimension": str(dimension)})
    return (yield from read_settings()).manifest


def create_derived_tables(*, lexical: bool) -> EngineOperation[None]:
    """Create the tables that are derived from documents, with or without the table of words."""
    yield from _run_schema_statements(
        (cql.CREATE_MEMBER_TABLE, *((cql.CREATE_WORD_TABLE,) if lexical else ()))
    )


def find_missing_tables(tables: Tables, derived: Iterable[DerivedTable]) -> EngineOperation[list[str]]:
    """Return the names of derived tables that do not exist, as after a restore on another cluster."""
    there = yield from ask("look for the tables", cql.READ_TABLE_NAMES, tables.keyspace, level="one")
    names = {name for (name,) in there}
    wanted = (tables.name + table.name.replace("$", "_") for table in derived)
    return [name for name in wanted if name not in names]


def _record_settings(values: Mapping[str, str]) -> EngineOperation[dict[str, str]]:
    """Record settings in this order, except those already recorded, and return the recorded values."""
    settled = {}
    for name, value in values.items():
        insert = ask("record what the store is", cql.INSERT_SETTING, name, value, level="write")
        (answer,) = yield from insert
        settled[name] = value if answer[0] else answer[-1]
    return settled


def _run_schema_statements(texts: tuple[str, ...]) -> EngineOperation[None]:
    """Run statements that change the schema, one after another."""
    for text in texts:
        yield from ask("make the tables", text, level="schema")


def _wait_for_indexes(dimension: int, nodes: int) -> EngineOperation[None]:
    """Search by both indexes, once by each node, as the driver sends each statement to another one.

    A node can answer from an index some time after it was created. Until then the search is repeated.
    """
    vector = np.eye(1, dimension, dtype=np.float32)[0]
    search = make_search([""], vector, 1, whole=False)
    yield from send(
        Requests(statements=(search,) * min(nodes, MAX_CHECKED_NODES), what="use the new indexes")
    )


def check_clocks(nodes: int, bound: float) -> EngineOperation[None]:
    """Compare the clock of this machine with those of up to 8 nodes.

    Args:
        nodes: Number of nodes. The driver sends each statement to another one.
        bound: Maximum difference in seconds, in addition to the time until the answer.

    Raises:
        ClockSkewError: If the difference is larger. The message has both times.
    """
    for _ in range(min(nodes, MAX_CHECKED_NODES)):
        asked = _now()
        ((there, node),) = yield from ask("compare clocks", cql.READ_CLOCK, level="one")
        theirs = there.replace(tzinfo=UTC).timestamp()
        if not asked - bound <= theirs <= _now() + bound:
            raise ClockSkewError(
                f"the clock of this machine says {_format_time(asked)}, that of the Cassandra node {node}"
                f" says {_format_time(theirs)}: they differ by {abs(asked - theirs):,.1f} s, and {bound:g} s"
                " are allowed (max_clock_skew), for the later of two writes wins. Set the clocks, for"
                " instance by NTP"
            )


def _now() -> float:
    """Return the seconds since 1970."""
    return time.time()


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
