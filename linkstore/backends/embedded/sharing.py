"""What the readers of one process share: the mirror, the index and the verdicts of filters."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
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

FLOOR: Final = "floor"
"""The setting that tells up to which change removals are no longer listed."""


class StaleStateError(Exception):
    """The read transaction is older than what is loaded: begin another."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a process has loaded; replaced as one.

    Args:
        mirror: The columns.
        verdicts: Of filters, by the mirror's rows.
        scopes: What filters leave as a whole, by the mirror's rows.
        links: Verdicts of filters on links, by the mirror's entries.
        followed: The last snapshot that was looked at; 0 for none.
        ann: Its index; None if it was damaged, or there is none.
    """

    mirror: Mirror
    verdicts: Verdicts
    scopes: Scopes
    links: LinkVerdicts
    followed: int = 0
    ann: SavedIndex | None = None

    def with_rows_of(self, mirror: Mirror) -> Held:
        """The same with a mirror whose rows are others."""
        verdicts = self.verdicts.carried(self.mirror.keys, mirror.keys)
        return replace(self, mirror=mirror, verdicts=verdicts, scopes=Scopes(), links=LinkVerdicts())


class Shared:
    """Loads what is derived once for the process, and brings it up to date for each reader.

    What is held is replaced by one assignment when the next is whole, so an interrupt leaves it as it was.

    Args:
        files: Where snapshots lie.
        live: The index in memory, if this process has one.
    """

    def __init__(self, files: SnapshotFiles, live: LiveIndex) -> None:
        self._files = files
        self._live = live
        self._lock = threading.Lock()
        self._held: Held | None = None

    def view(self, connection: apsw.Connection) -> View:
        """What a reader in this read transaction reads from.

        Raises:
            StaleStateError: If the transaction must begin anew.
        """
        settings = settings_of(connection)
        stamp, snapshot = stamp_of(settings), snapshot_of(settings)
        held = self._held
        if held is None or not _serves(held, stamp, snapshot, settings):
            with self._lock:
                held = self._bring_up(connection, stamp, snapshot, settings)
        if held.mirror.oldest > stamp.change:
            raise StaleStateError
        return View(
            connection, stamp, held.mirror, held.verdicts, held.scopes, held.links, self._indexes(held)
        )

    def forget(self) -> None:
        """Load everything anew at the next read."""
        self._live.drop()
        self._held = None

    @property
    def mirror(self) -> Mirror | None:
        """The columns as they are held now; None before the first read."""
        held = self._held
        return None if held is None else held.mirror

    def _bring_up(
        self, connection: apsw.Connection, stamp: Stamp, snapshot: Snapshot | None, settings: dict[str, Any]
    ) -> Held:
        """Replace what is held by what serves this state."""
        dimension, floor = int(settings.get("dimension") or 0), int(settings.get(FLOOR) or 0)
        held = self._held
        if held is None or held.mirror.dimension != dimension:
            held = Held(empty(dimension), Verdicts(), Scopes(), LinkVerdicts())
        if held.followed and snapshot is None:
            held = replace(held, ann=None)
        elif snapshot is not None and snapshot.generation > held.followed:
            held = self._following(held, snapshot, floor)
        if held.mirror.change < min(floor, stamp.change):
            held = held.with_rows_of(empty(dimension))
        with decoding("documents and links"):
            held = self._held = replace(held, mirror=advanced(held.mirror, connection, stamp))
            if held.mirror.change == stamp.change and (
                sparse(held.mirror) or held.mirror.epoch != stamp.epoch
            ):
                held = self._held = _dense(held, connection, stamp)
        return held

    def _following(self, held: Held, snapshot: Snapshot, floor: int) -> Held:
        """With the files of a snapshot; the mirror only if it can be caught up from there."""
        mirror = self._files.load_mirror(snapshot) if snapshot.change >= floor else None
        if mirror is not None and mirror.dimension == held.mirror.dimension:
            held = held.with_rows_of(mirror)
        return replace(held, followed=snapshot.generation, ann=self._files.map_ann(snapshot))

    def _indexes(self, held: Held) -> tuple[AnnIndex, ...]:
        """Indexes, the most complete first."""
        live: tuple[AnnIndex, ...] = (self._live,) if len(self._live) else ()
        if held.ann is None:
            return live
        return (held.ann, *live) if held.ann.covered >= self._live.covered else (*live, held.ann)


def _serves(held: Held, stamp: Stamp, snapshot: Snapshot | None, settings: dict[str, Any]) -> bool:
    """Whether what is held needs nothing more for this state."""
    return (
        held.mirror.change >= stamp.change
        and held.mirror.dimension == int(settings.get("dimension") or 0)
        and held.followed >= (snapshot.generation if snapshot else 0)
    )


def _dense(held: Held, connection: apsw.Connection, stamp: Stamp) -> Held:
    """Without what is gone, if there is memory for it; else as it is."""
    try:
        return held.with_rows_of(packed(held.mirror, connection, stamp))
    except MemoryError:
        return held


def stamp_of(settings: dict[str, Any]) -> Stamp:
    """The state that a table of settings describes."""
    return Stamp(
        change=settings["change"],
        last_key=settings["last_key"],
        last_group=settings["last_group"],
        documents=settings["documents"],
        epoch=settings.get("epoch", 0),
    )
