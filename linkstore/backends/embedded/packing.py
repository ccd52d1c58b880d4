"""Packing of a mirror: new columns without the rows of removed documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np

from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.mirror import Mirror, Stamp
from linkstore.backends.embedded.runs import Run
from linkstore.vectors import Bools, Ints

FLOOR: Final = 500
"""A mirror with at most this many removed documents is not packed."""
SHARE: Final = 0.5
"""A mirror is packed when its removed documents exceed this share of the existing ones."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of a mirror that packing keeps.

    Args:
        rows: Rows of documents, ascending.
        groups: (g,) whether each link group is kept.
    """

    rows: Ints
    groups: Bools


def sparse(mirror: Mirror) -> bool:
    """Say whether the mirror has enough removed documents to be worth packing."""
    return mirror.dead > max(FLOOR, SHARE * mirror.living)


def packed(mirror: Mirror, connection: apsw.Connection, stamp: Stamp) -> Mirror:
    """Return a mirror of the same state without deleted documents and link groups, with new row numbers.

    Args:
        mirror: In the state of ``stamp``.
        connection: In a transaction that sees that state.
        stamp: The state.
    """
    rows = mirror.all_visible(stamp)
    groups = living_groups(mirror, connection, stamp)
    return Mirror.of(columns(mirror, stamp, Kept(rows, groups)), mirror.vectors.take(rows), stamp)


def living_groups(mirror: Mirror, connection: apsw.Connection, stamp: Stamp) -> Bools:
    """Say whether each link group (g,) is still in the table."""
    count = mirror.group_keys.count_up_to(stamp.last_group)
    if mirror.epoch == stamp.epoch:
        return np.ones(count, np.bool_)
    keys = np.fromiter((row[0] for row in connection.execute("SELECT key FROM link_group")), np.int64)
    return np.isin(mirror.group_keys.rows(0, count), keys)


def columns(mirror: Mirror, stamp: Stamp, kept: Kept) -> dict[str, Array]:
    """Return all columns except the vectors in the state of ``stamp``, as a snapshot stores them.

    Args:
        mirror: Of that state or a later one.
        stamp: The state.
        kept: The documents and link groups to include.
    """
    seen = mirror.rows_seen(stamp)
    alive = mirror.removed_at.rows(0, seen) > stamp.change
    chosen = np.zeros(seen, np.bool_)
    chosen[kept.rows] = True
    end = int(mirror.links_at.take(np.array([seen]))[0])
    document, group = mirror.link_document.rows(0, end), mirror.link_group.rows(0, end)
    entries = chosen[document] & kept.groups[group]
    groups = np.flatnonzero(kept.groups)
    id_offsets, id_blob = mirror.ids.packed(kept.rows)
    tag_offsets, tag_blob = mirror.tags.packed(groups)
    codes, kind = np.unique(mirror.group_kind.take(groups), return_inverse=True)
    new_row, new_group, new_entry = _numbers(chosen), _numbers(kept.groups), _numbers(entries)
    new_document = new_row[document[entries]]
    arrays: dict[str, Array] = {
        "keys": mirror.keys.take(kept.rows),
        "id_offsets": id_offsets,
        "id_blob": id_blob,
        "alive": alive[kept.rows],
        "links_at": _offsets(new_document, len(kept.rows)),
        "link_group": new_group[group[entries]],
        "link_document": new_document,
        "link_bits": mirror.link_bits.rows(0, end)[entries],
        "link_weight": mirror.link_weight.rows(0, end)[entries],
        "group_keys": mirror.group_keys.take(groups),
        "group_kind": kind.astype(np.int32),
        "tag_offsets": tag_offsets,
        "tag_blob": tag_blob,
        "kinds": np.frombuffer("\0".join(mirror.kinds[code] for code in codes).encode(), dtype=np.uint8),
    }
    for bit, runs in mirror.sides.items():
        of, at = runs.flat()
        there = at < end
        there[there] = (entries & alive[document])[at[there]]
        run = Run.of(new_group[of[there]], new_entry[at[there]])
        arrays |= {
            f"run{bit}_groups": run.groups,
            f"run{bit}_starts": run.starts,
            f"run{bit}_entries": run.entries,
        }
    return arrays


def _numbers(chosen: Bools) -> Array:
    """Return the new number of each chosen position, counted among the chosen positions."""
    return (np.cumsum(chosen) - 1).astype(np.int32)


def _offsets(documents: Array, count: int) -> Array:
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(documents, minlength=count), out=offsets[1:])
    return offsets
