"""The derived data of one process: columns and usearch's graph, loaded, brought up to date, and written.

A snapshot is all of it in one file that the next process can map, ``index-N.bin``: usearch's graph, and
behind it the columns. The database row that describes a snapshot is written last, so it never names an
incomplete file. What was changed since is read from the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools
from linkstore.core.processes import Lock, slow_collector
from linkstore.engines.embedded.files import remove_others
from linkstore.engines.embedded.filters import FilterCache
from linkstore.engines.embedded.memory import MEMORY
from linkstore.engines.embedded.mirror import Mirror, make_empty_mirror
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.refresh import (
    advance_mirror,
    collect_columns,
    find_living_groups,
    is_sparse,
    pack_mirror,
)
from linkstore.engines.embedded.schema import (
    FLOOR,
    GENERATION,
    SNAPSHOT,
    convert_row_errors,
    read_settings,
    write_settings,
)
from linkstore.engines.embedded.vectors import LEAST_RECALL, AnnIndex, estimate_recall
from linkstore.errors import StoreFormatError

SNAPSHOT_FORMAT: Final = 5
"""The format of the file. It changes with what it holds and what ``verify`` compares it with.
A file of another format is not damaged, but older, and is made anew when a store is opened."""
REBUILD_SHARE: Final = 0.5
"""The graph is made anew if it has more nodes without a document than this share of the documents."""
_ROWS_AT_ONCE: Final = 4096
_LOG: Final = logging.getLogger("linkstore.index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The record of a snapshot in the database.

    Args:
        generation: Number of the snapshot; part of the file's name.
        change: The change at which it was taken.
        last_key: The largest document key given out until then.
        documents: How many documents existed.
        dimension: The length of the vectors.
        digest: Hash of the file.
        format: The format of the file.
        recall: How much the index found of the ten nearest documents of a sample.
        unused: How many nodes of the graph have removed documents alone.
    """

    generation: int
    change: int
    last_key: int
    documents: int
    dimension: int
    digest: str
    recall: float
    format: int
    unused: int = 0


def read_snapshot(settings: dict[str, Any]) -> Snapshot | None:
    """Return the recorded snapshot, or None if there is none, or its file has another format.

    Raises:
        StoreFormatError: If the record cannot be read.
    """
    text = settings.get(SNAPSHOT)
    if text is None:
        return None
    with convert_row_errors("settings"):
        given = orjson.loads(text)
        if given.get("format", 1) != SNAPSHOT_FORMAT and {"generation", "documents"} <= given.keys():
            return None
        made = Snapshot(**given)
    for one in fields(made):
        value = getattr(made, one.name)
        if type(value).__name__ != one.type or (one.type == "int" and value < 0):
            raise StoreFormatError(f"the setting {SNAPSHOT!r} is not a record of a snapshot: {text!r}")
    if made.dimension != settings.get("dimension"):
        raise StoreFormatError(f"the snapshot is of vectors of another dimension: {made.dimension}")
    return made


def parse_snapshot(settings: dict[str, Any]) -> Snapshot | None:
    """Return the snapshot that the settings record, or None if there is none that this version can use."""
    try:
        return read_snapshot(settings)
    except StoreFormatError:
        return None  # the snapshot is made again, like any damaged derived file; verify reports it


def record_snapshot(connection: apsw.Connection, snapshot: Snapshot) -> None:
    """Make a snapshot the current one, in an open write transaction."""
    record = {SNAPSHOT: orjson.dumps(snapshot).decode(), GENERATION: snapshot.generation}
    write_settings(connection, record)


def forget_snapshot(connection: apsw.Connection) -> None:
    """Delete the record of the snapshot, in an open write transaction. Its number is not used again."""
    write_settings(connection, {SNAPSHOT: None})


@dataclass(frozen=True, slots=True)
class StoreState:
    """A state of a store to make a snapshot of; it needs no transaction, so others may write meanwhile.

    Args:
        mirror: A mirror of that state.
        last_key: The largest document key given out until then.
        groups: (g,) whether each link group of the mirror was in the table.
        before: The snapshot that was recorded.
        generation: The number of the last snapshot that was ever recorded; 0 if there was none.
    """

    mirror: Mirror
    last_key: int
    groups: Bools
    before: Snapshot | None
    generation: int

    @classmethod
    def of(cls, view: StoreView) -> StoreState:
        """Return the state that a view sees."""
        settings = read_settings(view.connection)
        groups = find_living_groups(view.mirror, view.connection)
        generation = int(settings.get(GENERATION) or 0)
        return cls(view.mirror, settings["last_key"], groups, parse_snapshot(settings), generation)


class StaleStateError(Exception):
    """The read transaction is older than the loaded mirror; begin a new transaction."""


@dataclass(frozen=True, slots=True)
class LoadedData:
    """The data that a process has loaded; always replaced as a whole.

    Args:
        mirror: The columns.
        cache: What filters said, by the mirror's rows and entries.
        followed: The generation of the last snapshot that was loaded; 0 if none was.
        ann: The index of that snapshot; None if there is none, or it was damaged or finds too little.
    """

    mirror: Mirror
    cache: FilterCache
    followed: int = 0
    ann: AnnIndex | None = None

    def with_rows_of(self, mirror: Mirror) -> LoadedData:
        """Return the same data with another mirror, which has different row numbers."""
        return replace(self, mirror=mirror, cache=FilterCache())

    def serves(self, change: int, snapshot: Snapshot | None, dimension: int) -> bool:
        """Say whether these data can serve a state without an update."""
        return (
            self.mirror.change >= change
            and self.mirror.dimension == dimension
            and self.followed >= (snapshot.generation if snapshot else 0)
        )


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
        change, snapshot = settings["change"], parse_snapshot(settings)
        held = self._held
        if held is None or not held.serves(change, snapshot, int(settings.get("dimension") or 0)):
            with self._lock:
                held = self._update(connection, snapshot, settings)
        if held.mirror.change > change:
            raise StaleStateError
        return StoreView(connection, held.mirror, held.cache, held.ann)

    def forget(self) -> None:
        """Discard all loaded data, which the next read loads again."""
        self._held = None

    def _update(
        self, connection: apsw.Connection, snapshot: Snapshot | None, settings: dict[str, Any]
    ) -> LoadedData:
        """Bring the loaded data up to this state, and return them."""
        change = settings["change"]
        dimension, floor = int(settings.get("dimension") or 0), int(settings.get(FLOOR) or 0)
        held = self._held
        if held is None or held.mirror.dimension != dimension:
            held = LoadedData(make_empty_mirror(dimension), FilterCache())
        if held.followed and snapshot is None:
            held = replace(held, ann=None)
        elif snapshot is not None and snapshot.generation > held.followed:
            mirror, index = self.load(snapshot) or (None, None)
            if mirror is not None and snapshot.change >= floor:
                held = held.with_rows_of(mirror)
            used = index if snapshot.recall >= LEAST_RECALL else None
            held = replace(held, followed=snapshot.generation, ann=used)
        if held.mirror.change < min(floor, change):
            held = held.with_rows_of(make_empty_mirror(dimension))
        with convert_row_errors("documents and links"), slow_collector():
            mirror = advance_mirror(held.mirror, connection, change)
            held = self._held = replace(held, mirror=mirror)
            if mirror.change == change and is_sparse(mirror):
                try:
                    held = self._held = held.with_rows_of(pack_mirror(mirror, connection))
                except MemoryError:
                    _LOG.info("no memory to pack the columns of %s; they are used as they are", self._folder)
        return held

    def path(self, generation: int) -> Path:
        """Return the path of the file of a snapshot."""
        return self._folder / f"index-{generation}.bin"

    def load(self, snapshot: Snapshot, *, view: bool = True) -> tuple[Mirror | None, AnnIndex] | None:
        """Map the file of a snapshot, or read its graph into memory to add to it.

        Return the mirror in the state of the snapshot, and the index. Return None if the file is damaged or
        gone, or its graph is not of int8. A store in memory has no mirror but the one that is loaded.
        """
        path = self.path(snapshot.generation)
        loaded = AnnIndex.load(path, snapshot.digest, snapshot.last_key, view=view)
        if loaded is None:
            return None
        index, arrays = loaded
        return Mirror.of(arrays, snapshot.change), index

    def remove_others(self, kept: Iterable[Snapshot]) -> None:
        """Delete the files of all snapshots but these."""
        remove_others(self._folder, {self.path(one.generation).name for one in kept})

    def write(self, state: StoreState, *, afresh: bool = False) -> Snapshot:
        """Write the file of a new snapshot, which the caller records.

        Args:
            state: The state to make a snapshot of.
            afresh: Whether to make the graph without an existing one.
        """
        mirror, before = state.mirror, None if afresh else state.before
        living = mirror.keys.take(mirror.all_visible())
        index = self._extend(state, before).without_removed(living)
        digest, recall = self._save(index, state), estimate_recall(index, mirror)
        if recall < LEAST_RECALL:
            _LOG.info(
                "the index of %s finds %.0f %% of the ten nearest of a sample, so searches compare with all"
                " documents",
                self._folder,
                100 * recall,
            )
        return Snapshot(
            generation=state.generation + 1,
            change=mirror.change,
            last_key=state.last_key,
            documents=mirror.living,
            dimension=mirror.dimension,
            digest=digest,
            recall=recall,
            format=SNAPSHOT_FORMAT,
            unused=index.count_unused(living),
        )

    def _save(self, index: AnnIndex, state: StoreState) -> str:
        mirror, rows = state.mirror, state.mirror.all_visible()
        starts = range(0, max(1, len(rows)), _ROWS_AT_ONCE)
        vectors = (mirror.vectors.take(rows[start : start + _ROWS_AT_ONCE]) for start in starts)
        columns = {name: [column] for name, column in collect_columns(mirror, state.groups).items()}
        return index.save(self.path(state.generation + 1), {**columns, "vectors": vectors})

    def _extend(self, state: StoreState, before: Snapshot | None) -> AnnIndex:
        """Return an index with all documents of a state: the last snapshot's, extended, or a new one."""
        mirror, loaded = state.mirror, None
        if before is not None and before.unused <= REBUILD_SHARE * before.documents:
            loaded = self.load(before, view=False)
        index = loaded[1] if loaded else AnnIndex.make(mirror.dimension)
        keys = mirror.keys.take(mirror.all_visible(mirror.keys.count_up_to(index.covered)))
        return index.extended(
            keys,
            lambda wanted: mirror.vectors.take(mirror.keys.find(wanted)[0]),
            state.last_key,
        )


class MemoryDerivedData(DerivedData):
    """The derived data of a store in memory. A snapshot of it is an index, and nothing is written."""

    def __init__(self) -> None:
        super().__init__(Path(MEMORY))
        self._index: AnnIndex | None = None

    def load(self, snapshot: Snapshot, *, view: bool = True) -> tuple[Mirror | None, AnnIndex] | None:
        """Return the index, or a copy to add to."""
        if self._index is None:
            return None
        return None, self._index if view else self._index.copied()

    def _save(self, index: AnnIndex, state: StoreState) -> str:
        index.mend(np.frombuffer(index.index.save(), np.uint8))
        self._index = index
        return ""

    def remove_others(self, kept: Iterable[Snapshot]) -> None:
        """Forget the index unless a snapshot is kept."""
        if not list(kept):
            self._index = None
