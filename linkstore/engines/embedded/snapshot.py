"""Snapshots: derived data in files that the next process can map.

A snapshot has three files: ``graph-N.bin`` (ids and links), ``vectors-M.f32`` and ``ann-N.usearch``. Later
snapshots append to the same file of vectors. When too many of its documents have been removed, a snapshot
begins a new file of vectors, with new row numbers. The database row that describes a snapshot is written
last, so it never names an incomplete file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools, Floats, Ints
from linkstore.engines.embedded.location import (
    has_digest,
    map_arrays,
    remove_others,
    write_arrays,
    write_file,
)
from linkstore.engines.embedded.mirror import Array, Mirror, Stamp
from linkstore.engines.embedded.recall import estimate_recall
from linkstore.engines.embedded.refresh import KeptRows, collect_columns, find_living_groups
from linkstore.engines.embedded.schema import convert_row_errors, read_settings
from linkstore.engines.embedded.vectors import (
    BLOCK_ROWS,
    LEAST_RECALL,
    LiveIndex,
    SavedIndex,
    map_rows,
    write_rows,
)
from linkstore.errors import StoreFormatError

SNAPSHOT_SETTING: Final = "snapshot"
SNAPSHOT_FORMAT: Final = 2
"""The format of the three files. It changes with what they hold and what ``verify`` compares them with.
Files of another format are not damaged, but older, and are made anew when a store is opened."""
GENERATION_SETTING: Final = "generation"
_LOG: Final = logging.getLogger("linkstore.index")
REBUILD_SHARE: Final = 0.25
"""If the removed documents in a file exceed this share of the stored ones, the file is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The record of a snapshot in the database.

    Args:
        generation: Number of the snapshot; part of the file names.
        change: The change at which it was taken.
        last_key: The largest document key at that change.
        last_group: The largest link group key at that change.
        epoch: How many times link groups had been deleted.
        documents: How many documents existed.
        rows: How many rows the snapshot has; some may be of removed documents.
        dimension: The length of the vectors.
        lineage: The generation that began the file of vectors.
        graph: Hash of the graph file.
        ann: Hash of the index file.
        blocks: Hashes of the blocks of the vector file.
        format: The format of the files; records of the first do not name it.
        recall: How much the index found of the ten nearest documents of a sample.
    """

    generation: int
    change: int
    last_key: int
    last_group: int
    epoch: int
    documents: int
    rows: int
    dimension: int
    lineage: int
    graph: str
    ann: str
    blocks: tuple[str, ...]
    format: int = 1
    recall: float = 0.0

    @property
    def stamp(self) -> Stamp:
        """The state at which the snapshot was taken."""
        return Stamp(self.change, self.last_key, self.last_group, self.documents, self.epoch)

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        """Parse the result of :meth:`to_json`.

        Raises:
            StoreFormatError: If the text is anything else.
        """
        with convert_row_errors("settings"):
            given = orjson.loads(text)
            made = cls(**{**given, "blocks": tuple(given["blocks"])})
        numbers = [getattr(made, one.name) for one in fields(cls) if one.type == "int"]
        names = (made.graph, made.ann, *made.blocks)
        if not all(type(one) is int and one >= 0 for one in numbers) or not all(
            type(one) is str for one in names
        ):
            raise StoreFormatError(
                f"the setting {SNAPSHOT_SETTING!r} is not a record of a snapshot: {text!r}"
            )
        return made

    def to_json(self) -> str:
        """Return the record as stored in the table of settings."""
        return orjson.dumps(self).decode()


class SnapshotFiles:
    """The files of the snapshots of one store.

    Args:
        folder: Where the store lies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def graph(self, generation: int) -> Path:
        """Return the path of a generation's ids and links."""
        return self._folder / f"graph-{generation}.bin"

    def ann(self, generation: int) -> Path:
        """Return the path of a generation's index."""
        return self._folder / f"ann-{generation}.usearch"

    def vectors(self, lineage: int) -> Path:
        """Return the path of the file of vectors that a generation began."""
        return self._folder / f"vectors-{lineage}.f32"

    def problems(self, snapshot: Snapshot) -> list[str]:
        """Return the names of files that do not match their hashes, or hold an index of other scalars."""
        checks = {
            self.graph(snapshot.generation): has_digest(self.graph(snapshot.generation), snapshot.graph),
            self.ann(snapshot.generation): self.map_ann(snapshot) is not None,
            self.vectors(snapshot.lineage): self.map_vectors(snapshot) is not None,
        }
        return [path.name for path, sound in checks.items() if not sound]

    def load_mirror(self, snapshot: Snapshot) -> Mirror | None:
        """Load a mirror in the state of the snapshot. Return None if its files are damaged or gone."""
        path = self.graph(snapshot.generation)
        vectors = self.map_vectors(snapshot)
        if vectors is None or not has_digest(path, snapshot.graph):
            return None
        try:
            arrays = map_arrays(path)
        except FileNotFoundError:  # another process has taken two more snapshots since
            return None
        return Mirror.of(arrays, vectors, snapshot.stamp, snapshot.lineage)

    def map_vectors(self, snapshot: Snapshot) -> Array | None:
        """Map the vectors of the snapshot. Return None if they are damaged."""
        return map_rows(self.vectors(snapshot.lineage), snapshot.rows, snapshot.dimension, snapshot.blocks)

    def map_ann(self, snapshot: Snapshot) -> SavedIndex | None:
        """Map the index of the snapshot. Return None if it is damaged, gone, or not of int8 vectors."""
        path, made = self.ann(snapshot.generation), snapshot
        return SavedIndex.load(path, made.ann, made.last_key, made.change, recall=made.recall)

    def remove_others(self, kept: Iterable[Snapshot]) -> None:
        """Delete the files of all snapshots but these."""
        snapshots = list(kept)
        remove_others(self._folder, "graph-*.bin", {self.graph(s.generation).name for s in snapshots})
        remove_others(self._folder, "ann-*.usearch", {self.ann(s.generation).name for s in snapshots})
        remove_others(self._folder, "vectors*.f32", {self.vectors(s.lineage).name for s in snapshots})
        remove_others(self._folder, ".*.tmp", set())


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A state of a store to make a snapshot of; it needs no transaction, so others may write meanwhile.

    Args:
        mirror: A mirror of that state or a later one.
        stamp: The state.
        groups: (g,) whether each link group of the mirror was in the table.
        before: The snapshot that was recorded.
        generation: The number of the last snapshot that was ever recorded; 0 if there was none.
    """

    mirror: Mirror
    stamp: Stamp
    groups: Bools
    before: Snapshot | None
    generation: int

    @classmethod
    def of(cls, connection: apsw.Connection, mirror: Mirror, stamp: Stamp) -> SnapshotState:
        """Return the state that a transaction sees."""
        settings = read_settings(connection)
        return cls(
            mirror,
            stamp,
            find_living_groups(mirror, connection, stamp),
            parse_snapshot(settings),
            int(settings.get(GENERATION_SETTING) or 0),
        )


class SnapshotBuilder:
    """Makes snapshots, and keeps the index in memory, so that only new documents are added to it.

    Args:
        files: Where snapshots lie.
        told: See :class:`~linkstore.engines.embedded.vectors.LiveIndex`.
    """

    def __init__(self, files: SnapshotFiles, told: Callable[[int], None] | None = None) -> None:
        self._files = files
        self.live = LiveIndex(told)

    def build(self, state: SnapshotState, *, afresh: bool = False) -> Snapshot:
        """Write the files of a new snapshot, which the caller records.

        Args:
            state: The state to make a snapshot of.
            afresh: Whether to use no existing file, and leave out every removed document.
        """
        mirror, stamp = state.mirror, state.stamp
        before = None if afresh else state.before
        generation = state.generation + 1
        grows = before is not None and self._can_append(mirror, stamp, before)
        rows = np.arange(mirror.rows_seen(stamp)) if grows else mirror.all_visible(stamp)
        lineage = before.lineage if before and grows else generation
        blocks = self._write_vectors(mirror, rows, lineage, before if grows else None)
        arrays = collect_columns(mirror, stamp, KeptRows(rows, state.groups))
        graph = write_file(self._files.graph(generation), lambda path: write_arrays(path, arrays))
        self.extend(state, afresh=afresh)
        ann = self.live.save(self._files.ann(generation))
        recall = self.live.used(lambda index: estimate_recall(index, mirror, stamp)) or 0.0
        self.live.judge(recall)
        _log_poor_recall(recall, self._files.ann(generation))
        return Snapshot(
            generation=generation,
            change=stamp.change,
            last_key=stamp.last_key,
            last_group=stamp.last_group,
            epoch=stamp.epoch,
            documents=stamp.documents,
            rows=len(rows),
            dimension=mirror.dimension,
            lineage=lineage,
            graph=graph,
            ann=ann,
            blocks=blocks,
            format=SNAPSHOT_FORMAT,
            recall=recall,
        )

    def _can_append(self, mirror: Mirror, stamp: Stamp, before: Snapshot) -> bool:
        """Say whether to append to the file of vectors.

        This requires that the vectors of the snapshot before are the mirror's first rows, that few of the
        documents have been removed, and that the file is undamaged.
        """
        seen = mirror.rows_seen(stamp)
        gone = seen - len(mirror.all_visible(stamp))
        return (
            mirror.lineage == before.lineage
            and seen >= before.rows
            and gone <= REBUILD_SHARE * stamp.documents
            and self._files.map_vectors(before) is not None
        )

    def _write_vectors(
        self, mirror: Mirror, rows: Ints, lineage: int, before: Snapshot | None
    ) -> tuple[str, ...]:
        path, start = self._files.vectors(lineage), before.rows if before else 0
        if not start:
            path.unlink(missing_ok=True)  # left by an interrupted attempt
        fresh = write_rows(path, lambda first, last: mirror.vectors.take(rows[first:last]), start, len(rows))
        return (*(before.blocks if before else ())[: start // BLOCK_ROWS], *fresh)

    def extend(self, state: SnapshotState, *, afresh: bool = False) -> None:
        """Bring the index in memory up to a state, starting from the last snapshot's if that is newer."""
        live, mirror, stamp, before = self.live, state.mirror, state.stamp, state.before
        if afresh or len(live) > (1 + REBUILD_SHARE) * stamp.documents:
            live.start(mirror.dimension)
        elif before and before.last_key > live.covered:
            path = self._files.ann(before.generation)
            live.load(path, before.ann, before.last_key, before.change, before.recall)
        if not len(live):
            live.start(mirror.dimension)
        if stamp.last_key > live.covered:
            rows = mirror.all_visible(stamp, mirror.keys.count_up_to(live.covered))
            live.extend(mirror.keys.take(rows), _make_vector_lookup(mirror), stamp.last_key, stamp.change)


def _log_poor_recall(recall: float, path: Path) -> None:
    if recall < LEAST_RECALL:
        _LOG.info(
            "%s finds %.0f %% of the ten nearest of a sample, so searches compare with all documents",
            path,
            100 * recall,
        )


def _make_vector_lookup(mirror: Mirror) -> Callable[[Ints], Floats]:
    """Return a function that looks up vectors by document key."""
    return lambda keys: mirror.vectors.take(mirror.keys.find(keys)[0])


def parse_snapshot(settings: dict[str, Any]) -> Snapshot | None:
    """Return the snapshot that the settings record, or None if there is none that this version can use."""
    try:
        return _parse_recorded(settings)
    except StoreFormatError:
        return None  # the snapshot is made again, like any damaged derived file; verify reports it


def find_snapshot_problem(settings: dict[str, Any]) -> str | None:
    """Say why the record of the snapshot cannot be read. Return None if it can, or there is none."""
    try:
        _parse_recorded(settings)
    except StoreFormatError as error:
        return error.message
    return None


def _parse_recorded(settings: dict[str, Any]) -> Snapshot | None:
    text = settings.get(SNAPSHOT_SETTING)
    made = Snapshot.from_json(text) if text is not None else None
    if made is not None and made.dimension != settings.get("dimension"):
        raise StoreFormatError(f"the snapshot is of vectors of another dimension: {made.dimension}")
    return made if made is None or made.format == SNAPSHOT_FORMAT else None


def record_snapshot(connection: apsw.Connection, snapshot: Snapshot) -> None:
    """Make a snapshot the current one, in an open write transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO setting VALUES (?, ?)",
        [(SNAPSHOT_SETTING, snapshot.to_json()), (GENERATION_SETTING, snapshot.generation)],
    )


def forget_snapshot(connection: apsw.Connection) -> None:
    """Delete the record of the snapshot, in an open write transaction. Its number is not used again."""
    connection.execute("DELETE FROM setting WHERE name = ?", (SNAPSHOT_SETTING,))
