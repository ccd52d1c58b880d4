"""The derived data of one process: columns and usearch's graph, loaded, brought up to date, and written.

A snapshot is all of it in one file that the next process can map, ``index-*.bin``: usearch's graph, and
behind it the columns. The file is named by its hash. The database row that describes a snapshot is written
last, so it never names an incomplete file. What was changed since is read from the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.processes import Lock, infrequent_gc
from linkstore.engines.embedded.files import map_file, name_file, remove_others
from linkstore.engines.embedded.filters import FilterCache, StoreView
from linkstore.engines.embedded.memory import MEMORY
from linkstore.engines.embedded.mirror import (
    Mirror,
    advance_mirror,
    collect_columns,
    is_sparse,
    make_empty_mirror,
    pack_mirror,
)
from linkstore.engines.embedded.schema import (
    FLOOR,
    SNAPSHOT,
    convert_row_errors,
    read_settings,
    write_settings,
)
from linkstore.engines.embedded.vectors import EXPANSION_SEARCH, LEAST_RECALL, AnnIndex, choose_expansion

SNAPSHOT_FORMAT: Final = 1
"""The format of the file. It changes with what it holds and what ``verify`` compares it with.
A file of another format is not damaged, and is made anew when a store is opened."""
REBUILD_SHARE: Final = 0.5
"""The graph is made anew if it has more nodes without a document than this share of the documents."""
_ROWS_AT_ONCE: Final = 4096
_LOG: Final = logging.getLogger("linkstore.index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The record of a snapshot in the database.

    Args:
        change: The change at which it was taken.
        last_key: The largest document key given out until then.
        documents: How many documents existed.
        dimension: The length of the vectors.
        digest: Hash of the file, which names it.
        format: The format of the file.
        recall: How much the index found of the ten nearest documents of a sample.
        unused: How many nodes of the graph have removed documents alone.
        expansion: How many candidates a search of the graph keeps while it runs.
    """

    change: int
    last_key: int
    documents: int
    dimension: int
    digest: str
    recall: float
    format: int
    unused: int = 0
    expansion: int = EXPANSION_SEARCH


def parse_snapshot(settings: Mapping[str, Any]) -> Snapshot | None:
    """Return the snapshot that the settings record, or None if this version can use none.

    Another one is then made, as if its file were damaged.
    """
    try:
        made = Snapshot(**orjson.loads(settings.get(SNAPSHOT) or "null"))
    except (TypeError, ValueError):
        return None
    values = [(getattr(made, field.name), field.type) for field in fields(made)]
    if any(type(value).__name__ != kind or (kind == "int" and value < 0) for value, kind in values):
        return None
    usable = made.format == SNAPSHOT_FORMAT and made.dimension == settings.get("dimension")
    return made if usable else None


def record_snapshot(connection: apsw.Connection, snapshot: Snapshot) -> None:
    """Make a snapshot the current one, in an open write transaction."""
    write_settings(connection, {SNAPSHOT: orjson.dumps(snapshot).decode()})


def forget_snapshot(connection: apsw.Connection) -> None:
    """Delete the record of the snapshot, in an open write transaction."""
    write_settings(connection, {SNAPSHOT: None})


class StaleStateError(Exception):
    """The read transaction is older than the loaded mirror; begin a new transaction."""


@dataclass(frozen=True, slots=True)
class LoadedData:
    """The data that a process has loaded; always replaced as a whole.

    Args:
        mirror: The columns.
        cache: What filters said, by the mirror's rows and entries.
        followed: The record of the last snapshot that was loaded; None if none was.
        ann: The index of that snapshot; None if there is none, or it was damaged or finds too little.
    """

    mirror: Mirror
    cache: FilterCache
    followed: object = None
    ann: AnnIndex | None = None

    def with_rows_of(self, mirror: Mirror) -> LoadedData:
        """Return the same data with another mirror, which has different row numbers."""
        return replace(self, mirror=mirror, cache=FilterCache())


class DerivedData:
    """Loads derived data once per process, brings them up to date for each reader, and writes snapshots.

    The loaded data are replaced by a single assignment once the new ones are complete, so an interrupt leaves
    them unchanged.

    Args:
        folder: Where the store lies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._held: LoadedData | None = None

    def view(self, connection: apsw.Connection) -> StoreView:
        """Return the view for a reader in this read transaction.

        Raises:
            StaleStateError: If the transaction must begin anew.
        """
        settings = read_settings(connection)
        change, dimension = settings["change"], int(settings.get("dimension") or 0)
        held, state = self._held, (change, dimension, settings.get(SNAPSHOT))
        if held is None or (held.mirror.change, held.mirror.dimension, held.followed) != state:
            with self._lock:
                held = self._update(connection, settings, dimension)
        if held.mirror.change > change:
            raise StaleStateError
        return StoreView(connection, held.mirror, held.cache, held.ann)

    def forget(self) -> None:
        """Discard all loaded data, which the next read loads again."""
        self._held = None

    def _update(self, connection: apsw.Connection, settings: Mapping[str, Any], dimension: int) -> LoadedData:
        """Bring the loaded data up to this state, and return them."""
        change, floor, held = settings["change"], int(settings.get(FLOOR) or 0), self._held
        if held is None or held.mirror.dimension != dimension:
            held = LoadedData(make_empty_mirror(dimension), FilterCache())
        if held.followed != settings.get(SNAPSHOT) and held.mirror.change <= change:
            snapshot, mirror, index = parse_snapshot(settings), None, None
            if snapshot is not None:
                mirror, index = self.load(snapshot) or (None, None)
                if mirror is not None and snapshot.change >= floor:
                    held = held.with_rows_of(mirror)
                index = index if snapshot.recall >= LEAST_RECALL else None
            held = replace(held, followed=settings.get(SNAPSHOT), ann=index)
        if held.mirror.change < min(floor, change):
            held = held.with_rows_of(make_empty_mirror(dimension))
        with convert_row_errors("documents and links"), infrequent_gc():
            mirror = advance_mirror(held.mirror, connection, change)
            held = self._held = replace(held, mirror=mirror)
            if is_sparse(mirror):
                try:
                    held = self._held = held.with_rows_of(pack_mirror(mirror))
                except MemoryError:
                    _LOG.info("no memory to pack the columns of %s; they are used as they are", self._folder)
        return held

    def load(self, snapshot: Snapshot, *, view: bool = True) -> tuple[Mirror | None, AnnIndex] | None:
        """Map the file of a snapshot, or read its graph into memory to add to it.

        Return the mirror in the state of the snapshot, and the index. Return None if the file is damaged or
        gone. A store in memory has no mirror but the one that is loaded.
        """
        raw = map_file(self._folder / name_file(snapshot.digest), snapshot.digest)
        if raw is None:
            return None
        index, arrays = AnnIndex.load(raw, snapshot.last_key, view=view)
        index.index.expansion_search = snapshot.expansion
        return Mirror.of(arrays, snapshot.change), index

    def remove_others(self, *kept: Snapshot | None) -> None:
        """Delete the files of all snapshots but these."""
        remove_others(self._folder, {name_file(snapshot.digest) for snapshot in kept if snapshot})

    def write(self, mirror: Mirror, settings: Mapping[str, Any], *, afresh: bool = False) -> Snapshot:
        """Write the file of a new snapshot, which the caller records.

        Args:
            mirror: The state to make a snapshot of; it needs no transaction, so others may write meanwhile.
            settings: Those of that state.
            afresh: Whether to make the graph without an existing one.
        """
        living = mirror.keys.take(mirror.find_living())
        index = self._extend(mirror, settings["last_key"], None if afresh else parse_snapshot(settings))
        index = index.without_removed(living)
        digest = self._save(index, mirror)
        expansion, recall = choose_expansion(index, mirror)
        if recall < LEAST_RECALL:
            _LOG.info(
                "the index of %s finds %.0f %% of the ten nearest of a sample, so searches compare with all"
                " documents",
                self._folder,
                100 * recall,
            )
        return Snapshot(
            change=mirror.change,
            last_key=settings["last_key"],
            documents=mirror.living,
            dimension=mirror.dimension,
            digest=digest,
            recall=recall,
            format=SNAPSHOT_FORMAT,
            unused=index.count_unused(living),
            expansion=expansion,
        )

    def _save(self, index: AnnIndex, mirror: Mirror) -> str:
        rows = mirror.find_living()
        starts = range(0, max(1, len(rows)), _ROWS_AT_ONCE)
        vectors = (mirror.vectors.take(rows[start : start + _ROWS_AT_ONCE]) for start in starts)
        columns = {name: [column] for name, column in collect_columns(mirror).items()}
        return index.save(self._folder, {**columns, "vectors": vectors})

    def _extend(self, mirror: Mirror, last_key: int, before: Snapshot | None) -> AnnIndex:
        """Return an index with all documents of a mirror: the last snapshot's, extended, or a new one."""
        loaded = None
        if before is not None and before.unused <= REBUILD_SHARE * before.documents:
            loaded = self.load(before, view=False)
        index = loaded[1] if loaded else AnnIndex.make(mirror.dimension)
        keys = mirror.keys.take(mirror.find_living(mirror.keys.count_up_to(index.covered)))
        return index.extend(keys, lambda wanted: mirror.vectors.take(mirror.keys.find(wanted)[0]), last_key)


class MemoryDerivedData(DerivedData):
    """The derived data of a store in memory. A snapshot of it is an index, and nothing is written.

    A child may be forked while an index is made and measured, so searches get it once it is recorded.
    """

    def __init__(self) -> None:
        super().__init__(Path(MEMORY))
        self._indexes: dict[str, AnnIndex] = {}

    def load(self, snapshot: Snapshot, *, view: bool = True) -> tuple[Mirror | None, AnnIndex] | None:
        """Return the index, or a copy to add to."""
        index = self._indexes.get(snapshot.digest)
        return None if index is None else (None, index if view else index.copy())

    def _save(self, index: AnnIndex, mirror: Mirror) -> str:
        index.mend(np.frombuffer(index.index.save(), np.uint8))
        self._indexes[digest := f"{id(index):x}"] = index
        return digest

    def remove_others(self, *kept: Snapshot | None) -> None:
        """Forget the indexes of all snapshots but the first. Those who search another one have it."""
        self._indexes = {snapshot.digest: self._indexes[snapshot.digest] for snapshot in kept[:1] if snapshot}
