"""What the readers of one process share: the mirror, the index and the verdicts of filters."""

from __future__ import annotations

import threading
from typing import Any

import apsw

from linkstore.backends.embedded.ann import AnnIndex, LiveIndex, SavedIndex
from linkstore.backends.embedded.database import settings_of
from linkstore.backends.embedded.mirror import Mirror, Stamp
from linkstore.backends.embedded.reader import View
from linkstore.backends.embedded.scopes import Scopes
from linkstore.backends.embedded.snapshot import SETTING, Snapshot, SnapshotFiles
from linkstore.backends.embedded.verdicts import Verdicts


class StaleStateError(Exception):
    """The read transaction is older than what is loaded: begin another."""


class Shared:
    """Loads what is derived once for the process, and brings it up to date for each reader.

    Args:
        files: Where snapshots lie.
        live: The index in memory, if this process has one.
    """

    def __init__(self, files: SnapshotFiles, live: LiveIndex) -> None:
        self._files = files
        self._live = live
        self._lock = threading.Lock()
        self._verdicts = Verdicts()
        self._scopes = Scopes()
        self._mirror: Mirror | None = None
        self._ann: SavedIndex | None = None
        self._loaded: Snapshot | None = None
        self.damaged: set[int] = set()

    def view(self, connection: apsw.Connection) -> View:
        """What a reader in this read transaction reads from.

        Raises:
            StaleStateError: If the transaction must begin anew.
        """
        settings = settings_of(connection)
        stamp = stamp_of(settings)
        snapshot = snapshot_of(settings)
        dimension = int(settings.get("dimension") or 0)
        with self._lock:
            mirror = self._current_mirror(connection, snapshot, stamp, dimension)
            self._follow(snapshot, mirror)
            indexes = self._indexes_for(stamp)
        mirror.catch_up(connection, stamp)
        if mirror.oldest > stamp.change:
            raise StaleStateError
        return View(connection, stamp, mirror, self._verdicts, self._scopes, indexes)

    def replace(self, mirror: Mirror, snapshot: Snapshot) -> None:
        """Use a snapshot that this process has just written, freeing memory its files now hold."""
        vectors = self._files.map_vectors(snapshot)
        ann = self._files.map_ann(snapshot)
        with self._lock:
            if vectors is not None:
                mirror.use_vectors(vectors)
            self._mirror, self._ann, self._loaded = mirror, ann, snapshot

    def forget(self) -> None:
        """Load everything anew at the next read."""
        with self._lock:
            self._mirror = self._ann = self._loaded = None
            self.damaged.clear()

    def _current_mirror(
        self, connection: apsw.Connection, snapshot: Snapshot | None, stamp: Stamp, dimension: int
    ) -> Mirror:
        mirror = self._mirror
        lost = snapshot is not None and mirror is not None and mirror.change < snapshot.floor
        if mirror is None or lost or mirror.dimension != dimension:
            mirror = self._mirror = self._load_mirror(connection, snapshot, dimension)
        return mirror

    def _indexes_for(self, stamp: Stamp) -> tuple[AnnIndex, ...]:
        """Indexes, the most complete first; none newer than the state, whose documents it may lack."""
        found: list[AnnIndex] = [self._live] if len(self._live) else []
        if self._ann is not None and self._ann.covered >= self._live.covered:
            found.insert(0, self._ann)
        elif self._ann is not None:
            found.append(self._ann)
        return tuple(index for index in found if index.change <= stamp.change)

    def _load_mirror(self, connection: apsw.Connection, snapshot: Snapshot | None, dimension: int) -> Mirror:
        mirror = self._files.load_mirror(snapshot) if snapshot else None
        if mirror is None:
            if snapshot:
                self.damaged.add(snapshot.generation)
            return Mirror(dimension)
        mirror.fill_vectors(connection)
        return mirror

    def _follow(self, snapshot: Snapshot | None, mirror: Mirror) -> None:
        """Use the index of the recorded snapshot, once."""
        if snapshot is None or (self._loaded and self._loaded.generation >= snapshot.generation):
            return
        ann = self._files.map_ann(snapshot)
        if ann is None:
            self.damaged.add(snapshot.generation)
        self._ann, self._loaded = ann, snapshot
        vectors = self._files.map_vectors(snapshot)
        if vectors is not None and len(vectors) <= len(mirror.vectors):
            mirror.use_vectors(vectors)


def stamp_of(settings: dict[str, Any]) -> Stamp:
    """The state that a table of settings describes."""
    return Stamp(
        change=settings["change"],
        last_key=settings["last_key"],
        last_group=settings["last_group"],
        documents=settings["documents"],
    )


def snapshot_of(settings: dict[str, Any]) -> Snapshot | None:
    """The snapshot that a table of settings records, if any."""
    text = settings.get(SETTING)
    return Snapshot.from_json(text) if text else None
