"""Snapshots: what is derived from the tables, as files that the next process can map.

A snapshot has three files: ``graph-N.bin`` (ids and links), ``vectors.f32`` (all vectors, shared by
all snapshots) and ``ann-N.usearch``. The database row that describes them is written last, so it
never names a file that is not whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.backends.embedded.ann import LiveIndex, SavedIndex
from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.files import map_arrays, matches, remove_others, write_arrays, write_file
from linkstore.backends.embedded.matrix import BLOCK_ROWS, append_blocks, map_sealed, sealed_rows
from linkstore.backends.embedded.mirror import Mirror, Stamp
from linkstore.vectors import Ints

SETTING: Final = "snapshot"
REBUILD_SHARE: Final = 0.25
"""When more than this share of the indexed documents is gone, the index is built anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the database records of a snapshot.

    Args:
        generation: Counts snapshots; part of the file names.
        change: The change it was taken at.
        last_key: The largest document key it covers.
        dimension: Of the vectors.
        graph: Hash of the graph file.
        ann: Hash of the index file.
        blocks: Hashes of the sealed blocks of the vector file.
        floor: Removals up to this change are no longer listed.
    """

    generation: int
    change: int
    last_key: int
    dimension: int
    graph: str
    ann: str
    blocks: tuple[str, ...]
    floor: int

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        """Read what :meth:`to_json` wrote."""
        fields = orjson.loads(text)
        return cls(**{**fields, "blocks": tuple(fields["blocks"])})

    def to_json(self) -> str:
        """As stored in the table of settings."""
        return orjson.dumps(self).decode()


class SnapshotFiles:
    """The files of the snapshots of one store.

    Args:
        folder: Where the store lies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.vectors = folder / "vectors.f32"

    def graph(self, generation: int) -> Path:
        """Where a generation's ids and links lie."""
        return self._folder / f"graph-{generation}.bin"

    def ann(self, generation: int) -> Path:
        """Where a generation's index lies."""
        return self._folder / f"ann-{generation}.usearch"

    def problems(self, snapshot: Snapshot) -> list[str]:
        """Which files are not what the database records."""
        checks = {
            self.graph(snapshot.generation).name: matches(self.graph(snapshot.generation), snapshot.graph),
            self.ann(snapshot.generation).name: matches(self.ann(snapshot.generation), snapshot.ann),
            self.vectors.name: not snapshot.blocks or self.map_vectors(snapshot) is not None,
        }
        return [name for name, sound in checks.items() if not sound]

    def load_mirror(self, snapshot: Snapshot) -> Mirror | None:
        """A mirror in the state of the snapshot; None if its graph is damaged."""
        path = self.graph(snapshot.generation)
        if not matches(path, snapshot.graph):
            return None
        vectors = self.map_vectors(snapshot)
        return Mirror(snapshot.dimension, map_arrays(path), vectors, snapshot.change)

    def map_vectors(self, snapshot: Snapshot) -> Array | None:
        """The sealed vectors; None if there are none or they are damaged."""
        return map_sealed(self.vectors, snapshot.dimension, snapshot.blocks)

    def map_ann(self, snapshot: Snapshot) -> SavedIndex | None:
        """The index; None if it is damaged."""
        return SavedIndex.load(
            self.ann(snapshot.generation), snapshot.ann, snapshot.last_key, snapshot.change
        )

    def remove_older(self, snapshot: Snapshot) -> None:
        """Delete files of generations before the last; another process may still open that one."""
        kept = (snapshot.generation, snapshot.generation - 1)
        remove_others(self._folder, "graph-*.bin", {self.graph(g).name for g in kept})
        remove_others(self._folder, "ann-*.usearch", {self.ann(g).name for g in kept})
        remove_others(self._folder, ".*.tmp", set())


class Builder:
    """Makes snapshots, keeping the index in memory so that it only takes in what is new.

    Args:
        files: Where snapshots lie.
    """

    def __init__(self, files: SnapshotFiles) -> None:
        self._files = files
        self.live = LiveIndex()

    def build(
        self, mirror: Mirror, stamp: Stamp, before: Snapshot | None, *, afresh: bool = False
    ) -> Snapshot:
        """Write the files of a new snapshot; the caller records it.

        Args:
            mirror: Up to at least ``stamp``.
            stamp: The state to take.
            before: The snapshot recorded now, if any.
            afresh: Trust no file that is there.
        """
        generation = before.generation + 1 if before else 1
        blocks = self._vectors(mirror, stamp, None if afresh else before)
        graph = write_file(
            self._files.graph(generation), lambda path: write_arrays(path, mirror.arrays(stamp))
        )
        self.extend(mirror, stamp, before, afresh=afresh)
        ann = self.live.save(self._files.ann(generation), mirror.vectors)
        return Snapshot(
            generation=generation,
            change=stamp.change,
            last_key=stamp.last_key,
            dimension=mirror.dimension,
            graph=graph,
            ann=ann,
            blocks=blocks,
            floor=before.change if before else 0,
        )

    def _vectors(self, mirror: Mirror, stamp: Stamp, before: Snapshot | None) -> tuple[str, ...]:
        sealed = before.blocks if before and self._files.map_vectors(before) is not None else ()
        start, stop = len(sealed) * BLOCK_ROWS, sealed_rows(stamp.last_key + 1)
        if start >= stop:
            return sealed
        if not sealed and self._files.vectors.exists():
            self._files.vectors.unlink()  # a damaged file may still be mapped by another process
        return (*sealed, *append_blocks(self._files.vectors, start, mirror.vectors.rows(start, stop)))

    def extend(self, mirror: Mirror, stamp: Stamp, before: Snapshot | None, *, afresh: bool = False) -> None:
        """Bring the index in memory up to ``stamp``, from that of the last snapshot if that helps."""
        live = self.live
        if afresh or len(live) > (1 + REBUILD_SHARE) * stamp.documents:
            live.start(mirror.dimension)
        elif before and before.last_key > live.covered:
            live.load(self._files.ann(before.generation), before.ann, before.last_key, before.change)
        if not len(live):
            live.start(mirror.dimension)
        if stamp.last_key > live.covered:
            alive = _alive(mirror, live.covered, stamp)
            live.extend(mirror.vectors, alive, stamp.last_key, stamp.change)


def _alive(mirror: Mirror, after: int, stamp: Stamp) -> Ints:
    keys = np.arange(after + 1, stamp.last_key + 1)
    visible = mirror.visible(keys, stamp)
    return keys if visible is None else keys[visible]


def record(connection: apsw.Connection, snapshot: Snapshot) -> None:
    """Make a snapshot the current one, in an open write transaction."""
    connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (SETTING, snapshot.to_json()))
    connection.execute("DELETE FROM departed WHERE change <= ?", (snapshot.floor,))
