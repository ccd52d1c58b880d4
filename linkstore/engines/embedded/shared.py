"""The data that the readers of one process share: the mirror, the index and cached results of filters."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import apsw

from linkstore.core.processes import run_without_collector
from linkstore.engines.embedded.filters import LinkVerdicts, ScopeCache, Verdicts
from linkstore.engines.embedded.mirror import Mirror, Stamp, make_empty_mirror
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.refresh import advance_mirror, is_sparse, pack_mirror
from linkstore.engines.embedded.schema import convert_row_errors, read_settings
from linkstore.engines.embedded.snapshot import Snapshot, SnapshotFiles, parse_snapshot
from linkstore.engines.embedded.vectors import AnnIndex, LiveIndex, SavedIndex

FLOOR: Final = "floor"
"""The setting with the last change whose removals are no longer listed."""


class StaleStateError(Exception):
    """The read transaction is older than the loaded mirror can serve; begin a new transaction."""


@dataclass(frozen=True, slots=True)
class LoadedData:
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
    scopes: ScopeCache
    links: LinkVerdicts
    followed: int = 0
    ann: SavedIndex | None = None

    def with_rows_of(self, mirror: Mirror) -> LoadedData:
        """Return the same data with another mirror, which has different row numbers."""
        verdicts = self.verdicts.carried(self.mirror.keys, mirror.keys)
        return replace(self, mirror=mirror, verdicts=verdicts, scopes=ScopeCache(), links=LinkVerdicts())


class SharedData:
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
        self._held: LoadedData | None = None

    def view(self, connection: apsw.Connection) -> StoreView:
        """Return the view for a reader in this read transaction.

        Raises:
            StaleStateError: If the transaction must begin anew.
        """
        settings = read_settings(connection)
        stamp, snapshot = make_stamp(settings), parse_snapshot(settings)
        held = self._held
        if held is None or not _can_serve(held, stamp, snapshot, settings):
            with self._lock:
                held = self._update(connection, stamp, snapshot, settings)
        if held.mirror.oldest > stamp.change:
            raise StaleStateError
        return StoreView(
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
    ) -> LoadedData:
        """Bring the loaded data up to this state, and return them."""
        dimension, floor = int(settings.get("dimension") or 0), int(settings.get(FLOOR) or 0)
        held = self._held
        if held is None or held.mirror.dimension != dimension:
            held = LoadedData(make_empty_mirror(dimension), Verdicts(), ScopeCache(), LinkVerdicts())
        if held.followed and snapshot is None:
            held = replace(held, ann=None)
        elif snapshot is not None and snapshot.generation > held.followed:
            held = self._follow_snapshot(held, snapshot, floor)
        if held.mirror.change < min(floor, stamp.change):
            held = held.with_rows_of(make_empty_mirror(dimension))
        with convert_row_errors("documents and links"):
            mirror = run_without_collector(partial(advance_mirror, held.mirror, connection, stamp))
            held = self._held = replace(held, mirror=mirror)
            if held.mirror.change == stamp.change and (
                is_sparse(held.mirror) or held.mirror.epoch != stamp.epoch
            ):
                held = self._held = _pack_loaded(held, connection, stamp)
        return held

    def _follow_snapshot(self, held: LoadedData, snapshot: Snapshot, floor: int) -> LoadedData:
        """Load a snapshot's files into the held data, but the mirror only if it can be updated from there."""
        mirror = self._files.load_mirror(snapshot) if snapshot.change >= floor else None
        if mirror is not None and mirror.dimension == held.mirror.dimension:
            held = held.with_rows_of(mirror)
        return replace(held, followed=snapshot.generation, ann=self._files.map_ann(snapshot))

    def _list_indexes(self, held: LoadedData) -> tuple[AnnIndex, ...]:
        """Return the available indexes, the most complete first."""
        live: tuple[AnnIndex, ...] = (self._live,) if len(self._live) else ()
        if held.ann is None:
            return live
        return (held.ann, *live) if held.ann.covered >= self._live.covered else (*live, held.ann)


def _can_serve(held: LoadedData, stamp: Stamp, snapshot: Snapshot | None, settings: dict[str, Any]) -> bool:
    """Say whether the loaded data can serve this state without an update."""
    return (
        held.mirror.change >= stamp.change
        and held.mirror.dimension == int(settings.get("dimension") or 0)
        and held.followed >= (snapshot.generation if snapshot else 0)
    )


def _pack_loaded(held: LoadedData, connection: apsw.Connection, stamp: Stamp) -> LoadedData:
    """Pack the mirror of the held data, or return them unchanged if memory does not suffice for that."""
    try:
        return held.with_rows_of(pack_mirror(held.mirror, connection, stamp))
    except MemoryError:
        return held


def make_stamp(settings: dict[str, Any]) -> Stamp:
    """Return the state that a table of settings describes."""
    return Stamp(
        change=settings["change"],
        last_key=settings["last_key"],
        last_group=settings["last_group"],
        documents=settings["documents"],
        epoch=settings.get("epoch", 0),
    )
