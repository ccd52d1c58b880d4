"""The data that the readers of one process share: the mirror, the index and cached results of filters."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import apsw

from linkstore.backends.embedded.advancing import advanced
from linkstore.backends.embedded.ann import AnnIndex, LiveIndex, SavedIndex
from linkstore.backends.embedded.linkverdicts import LinkVerdicts
from linkstore.backends.embedded.mirror import Mirror, Stamp, empty
from linkstore.backends.embedded.packing import packed, sparse
from linkstore.backends.embedded.reader import View
from linkstore.backends.embedded.recorded import decoding, settings_of
from linkstore.backends.embedded.scopes import Scopes
from linkstore.backends.embedded.snapshot import Snapshot, SnapshotFiles, snapshot_of
from linkstore.backends.embedded.verdicts import Verdicts
from linkstore.gc_pause import collection_paused

FLOOR: Final = "floor"
"""The setting with the last change whose removals are no longer listed."""


class StaleStateError(Exception):
    """The read transaction is older than the loaded mirror can serve; begin a new transaction."""


@dataclass(frozen=True, slots=True)
class Held:
    """The data that a process has loaded; always replaced as a whole.

    Args:
        mirror: The columns.
        verdicts: Cached verdicts of filters, by the mirror's rows.
        scopes: Cached documents of scopes, as the mirror's rows.
        links: Cached verdicts of filters on links, by the mirror's entries.
        followed: The generation of the last snapshot that was loaded; 0 if none was.
        ann: The index of that snapshot; None if it was damaged, or there is none.
    """

    mirror: Mirror
    verdicts: Verdicts
    scopes: Scopes
    links: LinkVerdicts
    followed: int = 0
    ann: SavedIndex | None = None

    def with_rows_of(self, mirror: Mirror) -> Held:
        """Return the same data with another mirror, which has different row numbers."""
        verdicts = self.verdicts.carried(self.mirror.keys, mirror.keys)
        return replace(self, mirror=mirror, verdicts=verdicts, scopes=Scopes(), links=LinkVerdicts())


class Shared:
    """Loads derived data once per process, and brings them up to date for each reader.

    The loaded data are replaced by a single assignment once the new ones are complete, so an interrupt leaves
    them unchanged.

    Args:
        files: The files of the snapshots.
        live: The index in memory; it may be empty.
    """

    def __init__(self, files: SnapshotFiles, live: LiveIndex) -> None:
        self._files = files
        self._live = live
        self._lock = threading.Lock()
        self._held: Held | None = None

    def view(self, connection: apsw.Connection) -> View:
        """Return the view for a reader in this read transaction.

        Raises:
            StaleStateError: If the transaction must begin anew.
        """
        settings = settings_of(connection)
        stamp, snapshot = stamp_of(settings), snapshot_of(settings)
        held = self._held
        if held is None or not _serves(held, stamp, snapshot, settings):
            with self._lock:
                held = self._update(connection, stamp, snapshot, settings)
        if held.mirror.oldest > stamp.change:
            raise StaleStateError
        return View(
            connection, stamp, held.mirror, held.verdicts, held.scopes, held.links, self._list_indexes(held)
        )

    def forget(self) -> None:
        """Discard all loaded data, which the next read loads again."""
        self._live.drop()
        self._held = None

    @property
    def mirror(self) -> Mirror | None:
        """The mirror as it is loaded now, or None before the first read."""
        held = self._held
        return None if held is None else held.mirror

    def _update(
        self, connection: apsw.Connection, stamp: Stamp, snapshot: Snapshot | None, settings: dict[str, Any]
    ) -> Held:
        """Bring the loaded data up to this state, and return them."""
        dimension, floor = int(settings.get("dimension") or 0), int(settings.get(FLOOR) or 0)
        held = self._held
        if held is None or held.mirror.dimension != dimension:
            held = Held(empty(dimension), Verdicts(), Scopes(), LinkVerdicts())
        if held.followed and snapshot is None:
            held = replace(held, ann=None)
        elif snapshot is not None and snapshot.generation > held.followed:
            held = self._follow_snapshot(held, snapshot, floor)
        if held.mirror.change < min(floor, stamp.change):
            held = held.with_rows_of(empty(dimension))
        with decoding("documents and links"):
            mirror = collection_paused(partial(advanced, held.mirror, connection, stamp))
            held = self._held = replace(held, mirror=mirror)
            if held.mirror.change == stamp.change and (
                sparse(held.mirror) or held.mirror.epoch != stamp.epoch
            ):
                held = self._held = _dense(held, connection, stamp)
        return held

    def _follow_snapshot(self, held: Held, snapshot: Snapshot, floor: int) -> Held:
        """Load a snapshot's files into the held data, but the mirror only if it can be updated from there."""
        mirror = self._files.load_mirror(snapshot) if snapshot.change >= floor else None
        if mirror is not None and mirror.dimension == held.mirror.dimension:
            held = held.with_rows_of(mirror)
        return replace(held, followed=snapshot.generation, ann=self._files.map_ann(snapshot))

    def _list_indexes(self, held: Held) -> tuple[AnnIndex, ...]:
        """Return the available indexes, the most complete first."""
        live: tuple[AnnIndex, ...] = (self._live,) if len(self._live) else ()
        if held.ann is None:
            return live
        return (held.ann, *live) if held.ann.covered >= self._live.covered else (*live, held.ann)


def _serves(held: Held, stamp: Stamp, snapshot: Snapshot | None, settings: dict[str, Any]) -> bool:
    """Say whether the loaded data can serve this state without an update."""
    return (
        held.mirror.change >= stamp.change
        and held.mirror.dimension == int(settings.get("dimension") or 0)
        and held.followed >= (snapshot.generation if snapshot else 0)
    )


def _dense(held: Held, connection: apsw.Connection, stamp: Stamp) -> Held:
    """Pack the mirror of the held data, or return them unchanged if memory does not suffice for that."""
    try:
        return held.with_rows_of(packed(held.mirror, connection, stamp))
    except MemoryError:
        return held


def stamp_of(settings: dict[str, Any]) -> Stamp:
    """Return the state that a table of settings describes."""
    return Stamp(
        change=settings["change"],
        last_key=settings["last_key"],
        last_group=settings["last_group"],
        documents=settings["documents"],
        epoch=settings.get("epoch", 0),
    )
