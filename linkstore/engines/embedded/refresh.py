"""Bringing a mirror up to date with the tables, at the cost of what changed, and packing it.

To pack a mirror is to make new columns without the rows of removed documents.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Final

import apsw
import numpy as np

from linkstore.core.arrays import Bools
from linkstore.engines.embedded.lexical import read_lengths
from linkstore.engines.embedded.mirror import (
    NEVER_REMOVED,
    SIDES,
    Array,
    Mirror,
    SortedRun,
    compute_offsets,
)
from linkstore.engines.embedded.schema import check_texts, convert_row_errors, fetch_rows
from linkstore.errors import BackendError

_MOST_ENTRIES: Final = np.iinfo(np.int32).max
_LINKS: Final = (
    "SELECT document, link_group, CASE direction WHEN 'out' THEN 1 WHEN 'in' THEN 2 ELSE 3 END, weight"
    " FROM link WHERE document > ? ORDER BY document, link_group"
)
LEAST_REMOVED: Final = 500
"""A mirror with at most this many removed documents is not packed."""
REMOVED_SHARE: Final = 0.5
"""A mirror is packed when its removed documents exceed this share of the existing ones."""


def load_links(connection: apsw.Connection, after: int) -> Array:
    """Load the link entries of documents with keys greater than ``after``, by document, then by link group.

    A document may have, say, an incoming and a bidirectional link with the same tag, which are one entry.

    Returns:
        (m, 4) float64: document key, link group key, and for each side the highest weight of the links that
        are on it, or -1 if none is.
    """
    rows = fetch_rows(connection, _LINKS, (after,))
    with convert_row_errors("links"):
        flat = np.fromiter(chain.from_iterable(rows), np.float64, 4 * len(rows)).reshape(-1, 4)
    sides, weight = flat[:, 2].astype(np.int64), flat[:, 3]
    entries = np.column_stack((flat[:, :2], *(np.where(sides & bit, weight, -1) for bit in (1, 2))))
    first = np.ones(len(entries), np.bool_)
    first[1:] = (entries[1:, :2] != entries[:-1, :2]).any(axis=1)
    return np.maximum.reduceat(entries, np.flatnonzero(first)) if len(entries) else entries


def advance_mirror(mirror: Mirror, connection: apsw.Connection, change: int) -> Mirror:
    """Return a mirror with everything up to a change, or ``mirror`` itself if it has all of that.

    Keys only grow, so what ``mirror`` lacks has greater keys than what it has.

    What ``mirror`` shows does not change, and an interrupt at any point is harmless. (Removals are marked
    in rows that both mirrors share. A mark is the number of the change, and readers of ``mirror`` ignore
    later changes. Setting a mark twice has no further effect.)
    """
    if mirror.change >= change:
        return mirror
    added = _add_documents(_add_groups(mirror, connection), connection)
    removed = _mark_removals(added, connection, mirror.keys.last)
    return replace(added, dead=mirror.dead + removed, change=change)


def _add_groups(mirror: Mirror, connection: apsw.Connection) -> Mirror:
    """Add the link groups with greater keys."""
    query = "SELECT key, kind FROM link_group WHERE key > ? ORDER BY key"
    rows = fetch_rows(connection, query, (mirror.group_keys.last,))
    with convert_row_errors("link groups"):
        check_texts(kind for _, kind in rows)
    kinds = tuple(dict.fromkeys((*mirror.kinds, *(kind for _, kind in rows))))
    codes = {kind: code for code, kind in enumerate(kinds)}
    return replace(
        mirror,
        kinds=kinds,
        group_keys=mirror.group_keys.extended(np.array([key for key, _ in rows], dtype=np.int64)),
        group_kind=mirror.group_kind.extended(np.array([codes[kind] for _, kind in rows], dtype=np.int32)),
    )


def _add_documents(mirror: Mirror, connection: apsw.Connection) -> Mirror:
    """Add the documents with greater keys, except those without a whole vector."""
    after = mirror.keys.last
    rows = fetch_rows(
        connection,
        "SELECT document.key, embedding FROM document JOIN vector USING (key)"
        " WHERE document.key > ? AND length(embedding) = ? ORDER BY document.key",
        (after, 4 * mirror.dimension),
    )
    if not rows:
        return mirror
    numbers, blobs = zip(*rows, strict=True)
    keys = np.array(numbers, dtype=np.int64)
    with convert_row_errors("documents"):
        vectors = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(rows), mirror.dimension)
    links = load_links(connection, after)
    document, group = links[:, :2].T.astype(np.int64)
    group, known = mirror.group_keys.find(group)
    known &= np.isin(document, keys)  # all of them, unless the store is damaged
    document = np.searchsorted(keys, document[known])
    start, counts = len(mirror.link_group), np.bincount(document, minlength=len(keys))
    if start + len(document) > _MOST_ENTRIES:
        raise BackendError(
            f"the store holds more than {_MOST_ENTRIES} links; an embedded store cannot follow so many:"
            " split it, or use Cassandra"
        )
    group, weights = group[known].astype(np.int32), links[known, 2:].astype(np.float32).T
    return replace(
        mirror,
        keys=mirror.keys.extended(keys),
        vectors=mirror.vectors.extended(vectors),
        words=mirror.words.extended(_load_lengths(connection, after, keys)),
        removed_at=mirror.removed_at.extended(np.full(len(rows), NEVER_REMOVED)),
        links_at=mirror.links_at.extended(start + np.cumsum(counts)),
        link_group=mirror.link_group.extended(group),
        link_document=mirror.link_document.extended((len(mirror.keys) + document).astype(np.int32)),
        sides={
            side: mirror.sides[side].extended(weight, group)
            for side, weight in zip(SIDES, weights, strict=True)
        },
    )


def _load_lengths(connection: apsw.Connection, after: int, keys: Array) -> Array:
    """Load how many words the documents with these keys have, all greater than ``after``."""
    found, counts = read_lengths(connection, after)
    lengths = np.zeros(len(keys), np.int32)
    lengths[np.isin(keys, found)] = counts[np.isin(found, keys)]
    return lengths


def _mark_removals(mirror: Mirror, connection: apsw.Connection, last: int) -> int:
    """Mark documents with keys up to ``last`` that were removed after the mirror's change, and count them."""
    if not last:  # the mirror was empty, so there is nothing to mark
        return 0
    query = "SELECT key, change FROM departed WHERE change > ? AND key <= ?"
    rows = np.array(fetch_rows(connection, query, (mirror.change, last)), dtype=np.int64).reshape(-1, 2)
    at, found = mirror.keys.find(rows[:, 0])
    mirror.removed_at.put(at[found], rows[found, 1])
    return int(np.count_nonzero(found))


def is_sparse(mirror: Mirror) -> bool:
    """Say whether the mirror has enough removed documents to be worth packing."""
    return mirror.dead > max(LEAST_REMOVED, REMOVED_SHARE * mirror.living)


def pack_mirror(mirror: Mirror, connection: apsw.Connection) -> Mirror:
    """Return a mirror of the same state without deleted documents and link groups, with new row numbers.

    Args:
        mirror: The mirror.
        connection: In a transaction that sees its state.
    """
    columns = collect_columns(mirror, find_living_groups(mirror, connection))
    return Mirror.of({**columns, "vectors": mirror.vectors.take(mirror.all_visible())}, mirror.change)


def find_living_groups(mirror: Mirror, connection: apsw.Connection) -> Bools:
    """Say whether each link group (g,) is still in the table."""
    keys = np.fromiter(chain.from_iterable(connection.execute("SELECT key FROM link_group")), np.int64)
    return np.isin(mirror.group_keys.rows(0, len(mirror.group_keys)), keys)


def collect_columns(mirror: Mirror, living: Bools) -> dict[str, Array]:
    """Return all columns except the vectors, without removed documents, as a snapshot stores them.

    Args:
        mirror: The mirror.
        living: (g,) which link groups are included.
    """
    rows, groups, end = mirror.all_visible(), np.flatnonzero(living), len(mirror.link_group)
    chosen = np.zeros(len(mirror.keys), np.bool_)
    chosen[rows] = True
    document, group = mirror.link_document.rows(0, end), mirror.link_group.rows(0, end)
    entries = chosen[document] & living[group]
    document, group = _number_chosen(chosen)[document[entries]], _number_chosen(living)[group[entries]]
    number = _number_chosen(entries)
    kinds = sorted({mirror.kinds[code] for code in np.unique(mirror.group_kind.take(groups)).tolist()})
    codes = {kind: code for code, kind in enumerate(kinds)}
    new_code = np.array([codes.get(kind, 0) for kind in mirror.kinds], np.int32)
    arrays: dict[str, Array] = {
        "keys": mirror.keys.take(rows),
        "words": mirror.words.take(rows),
        "links_at": compute_offsets(np.bincount(document, minlength=len(rows))),
        "link_group": group,
        "link_document": document,
        "group_keys": mirror.group_keys.take(groups),
        "group_kind": new_code[mirror.group_kind.take(groups)],
        "kinds": np.frombuffer("\0".join(kinds).encode(), dtype=np.uint8),
    }
    for side in SIDES:
        arrays[side] = mirror.sides[side].weight.rows(0, end)[entries]
        owner, entry = mirror.sides[side].runs.gather(groups)
        kept = entries[entry]
        run = SortedRun.of(owner[kept].astype(np.int32), number[entry[kept]])
        arrays |= {f"{side}_groups": run.groups, f"{side}_starts": run.starts, f"{side}_entries": run.entries}
    return arrays


def _number_chosen(chosen: Bools) -> Array:
    """Return the new number of each chosen position, counted among the chosen positions."""
    return (np.cumsum(chosen) - 1).astype(np.int32)
