"""The mirror: ids, vectors and links as columns, which queries read instead of the tables.

A mirror is a value: the store up to some change. :mod:`~linkstore.backends.embedded.advancing` makes the
next mirror from it, which shares its columns. The holder of the current mirror replaces it by a single
assignment; so even after an interrupt, no reader sees one column more advanced than another. A removed
document keeps its row, marked with the change that removed it, until the mirror is packed. A reader that
knows its own change and last key sees exactly its state in any mirror of that change or a later one, unless
the mirror was packed at a later change.

Rows are numbered in the order in which documents came into the mirror. A reader returns row numbers as refs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.arrays import ranges
from linkstore.backends.embedded.columns import Array, Column, Strings
from linkstore.backends.embedded.runs import Run, Runs
from linkstore.vectors import Bools, Ints

ALIVE: Final = np.iinfo(np.int64).max
OUT, IN = 1, 2
SIDE_BITS: Final = {"out": OUT, "in": IN}


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which state of the store a reader sees.

    Args:
        change: Number of the last change.
        last_key: Largest document key given out.
        last_group: Largest link group key given out.
        documents: How many documents there are.
        epoch: How many times link groups have been deleted.
    """

    change: int
    last_key: int
    last_group: int
    documents: int
    epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Columns over rows of documents, link entries and rows of link groups.

    Args:
        dimension: The length of the vectors.
        oldest: The mirror cannot serve readers of states before this change.
        change: The last change that the mirror includes.
        last_key: The largest document key at that change.
        last_group: The largest link group key at that change.
        epoch: The epoch (see :class:`Stamp`) in which its link groups were last compared with the table.
        lineage: The vector file that has the same row numbers; None if there is none.
        dead: How many of its documents have been removed.
        keys: Document keys, ascending.
        ids: Document ids.
        vectors: Document vectors.
        removed_at: The change that removed each document.
        links_at: Where the link entries of each document begin, and the end of the last.
        link_group: Rows of link groups, by entry.
        link_document: Rows of documents, by entry.
        link_bits: Sides, by entry.
        link_weight: Weights, by entry.
        group_keys: Link group keys, ascending.
        group_kind: Positions in ``kinds``, by link group.
        tags: Tags of the link groups.
        kinds: The kinds that occur.
        sides: Entries by link group, for each side.
    """

    dimension: int
    oldest: int
    change: int
    last_key: int
    last_group: int
    epoch: int
    lineage: int | None
    dead: int
    keys: Column
    ids: Strings
    vectors: Column
    removed_at: Column
    links_at: Column
    link_group: Column
    link_document: Column
    link_bits: Column
    link_weight: Column
    group_keys: Column
    group_kind: Column
    tags: Strings
    kinds: tuple[str, ...]
    sides: Mapping[int, Runs]

    @classmethod
    def of(
        cls, arrays: Mapping[str, Array], vectors: Array, stamp: Stamp, lineage: int | None = None
    ) -> Mirror:
        """Make a mirror of columns in the state of ``stamp``.

        The columns are those of :func:`~linkstore.backends.embedded.mirror.nothing`.
        """
        alive = arrays["alive"]
        kinds = arrays["kinds"]
        return cls(
            dimension=vectors.shape[1],
            oldest=stamp.change,
            change=stamp.change,
            last_key=stamp.last_key,
            last_group=stamp.last_group,
            epoch=stamp.epoch,
            lineage=lineage,
            dead=int(len(alive) - np.count_nonzero(alive)),
            keys=Column.of(arrays["keys"]),
            ids=Strings.of(arrays["id_offsets"], arrays["id_blob"]),
            vectors=Column.of(vectors),
            removed_at=Column.of(np.where(alive, ALIVE, 0).astype(np.int64)),
            links_at=Column.of(arrays["links_at"]),
            link_group=Column.of(arrays["link_group"]),
            link_document=Column.of(arrays["link_document"]),
            link_bits=Column.of(arrays["link_bits"]),
            link_weight=Column.of(arrays["link_weight"]),
            group_keys=Column.of(arrays["group_keys"]),
            group_kind=Column.of(arrays["group_kind"]),
            tags=Strings.of(arrays["tag_offsets"], arrays["tag_blob"]),
            kinds=tuple(str(kinds.tobytes(), "utf-8").split("\0")) if kinds.size else (),
            sides={bit: Runs(_run(arrays, bit)) for bit in (OUT, IN)},
        )

    @property
    def living(self) -> int:
        """The number of documents that have not been removed."""
        return len(self.keys) - self.dead

    def rows_seen(self, stamp: Stamp) -> int:
        """Return how many rows existed in the state of ``stamp``. The rows after them were added later."""
        return len(self.keys) if stamp.last_key >= self.last_key else self.keys.count_up_to(stamp.last_key)

    def visible(self, rows: Ints, stamp: Stamp) -> Bools | None:
        """Say which documents exist in the state of ``stamp``. Return None if all do."""
        seen = self.rows_seen(stamp)
        if not self.dead and (seen == len(self.keys) or not len(rows) or rows.max() < seen):
            return None
        known = rows < seen
        known[known] = self.removed_at.take(rows[known]) > stamp.change
        return known

    def all_visible(self, stamp: Stamp, start: int = 0) -> Ints:
        """Return the rows, from ``start`` on, of the documents that exist in the state of ``stamp``."""
        seen = self.rows_seen(stamp)
        if not self.dead:
            return np.arange(start, seen)
        return start + np.flatnonzero(self.removed_at.rows(start, seen) > stamp.change)

    def links_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the link entries of documents, and for each the position of its document in ``rows``."""
        starts, ends = self.links_at.take(rows), self.links_at.take(rows + 1)
        counts = ends - starts
        return np.repeat(np.arange(len(rows)), counts), ranges(starts, counts)


def nothing() -> dict[str, Array]:
    """Make a snapshot's columns of an empty store, in which ``alive`` marks documents not removed."""
    empty32, empty64, one = np.empty(0, np.int32), np.empty(0, np.int64), np.zeros(1, np.int64)
    arrays: dict[str, Array] = {
        "keys": empty64,
        "id_offsets": one,
        "id_blob": np.empty(0, np.uint8),
        "alive": np.empty(0, np.bool_),
        "links_at": one,
        "link_group": empty32,
        "link_document": empty32,
        "link_bits": np.empty(0, np.uint8),
        "link_weight": np.empty(0, np.float32),
        "group_keys": empty64,
        "group_kind": empty32,
        "tag_offsets": one,
        "tag_blob": np.empty(0, np.uint8),
        "kinds": np.empty(0, np.uint8),
    }
    for bit in (OUT, IN):
        arrays |= {f"run{bit}_groups": empty32, f"run{bit}_starts": one, f"run{bit}_entries": empty32}
    return arrays


def empty(dimension: int) -> Mirror:
    """Make the mirror of a store before its first change."""
    return Mirror.of(nothing(), np.empty((0, dimension), np.float32), Stamp(0, 0, 0, 0))


def _run(arrays: Mapping[str, Array], bit: int) -> tuple[Run, ...]:
    run = Run(arrays[f"run{bit}_groups"], arrays[f"run{bit}_starts"], arrays[f"run{bit}_entries"])
    return (run,) if len(run) else ()
