"""Bringing a mirror up to date with the tables, at the cost of what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import apsw
import numpy as np

from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.loading import (
    DocumentRows,
    LinkRows,
    load_documents,
    load_groups,
    load_links,
)
from linkstore.backends.embedded.mirror import ALIVE, Mirror, Stamp
from linkstore.errors import BackendError

_MOST_ENTRIES: Final = np.iinfo(np.int32).max


def advanced(mirror: Mirror, connection: apsw.Connection, stamp: Stamp) -> Mirror:
    """Return a mirror with everything committed up to ``stamp``, or ``mirror`` itself if it has all of that.

    What ``mirror`` shows does not change, and an interrupt at any point is harmless. (Removals are marked
    in rows that both mirrors share. A mark is the number of the change, and readers of ``mirror`` ignore
    later changes. Setting a mark twice has no further effect.)
    """
    if mirror.change >= stamp.change:
        return mirror
    mirror = _with_groups(mirror, connection, stamp)
    documents = load_documents(connection, mirror.last_key, stamp.last_key, mirror.dimension)
    links = _rowed(load_links(connection, mirror.last_key, stamp.last_key), mirror, documents.keys)
    mirror = _with_links(_with_documents(mirror, documents), links, len(documents.keys))
    jumped = stamp.last_key - mirror.last_key > len(documents.keys)
    return replace(
        mirror,
        dead=mirror.dead + _mark_removals(mirror, connection),
        # A skipped key belonged to a document that was added and removed; states in between had it.
        oldest=stamp.change if jumped else mirror.oldest,
        change=stamp.change,
        last_key=stamp.last_key,
        last_group=stamp.last_group,
    )


def _with_groups(mirror: Mirror, connection: apsw.Connection, stamp: Stamp) -> Mirror:
    rows = load_groups(connection, mirror.last_group, stamp.last_group)
    kinds = tuple(dict.fromkeys((*mirror.kinds, *rows.kinds)))
    codes = _positions(kinds, rows.kinds)
    return replace(
        mirror,
        kinds=kinds,
        group_keys=mirror.group_keys.extended(rows.keys),
        group_kind=mirror.group_kind.extended(codes[rows.codes]),
        tags=mirror.tags.extended(rows.tags),
    )


def _positions(kinds: Sequence[str], wanted: Sequence[str]) -> Array:
    at = {kind: code for code, kind in enumerate(kinds)}
    return np.array([at[kind] for kind in wanted], dtype=np.int32)


def _rowed(links: LinkRows, mirror: Mirror, keys: Array) -> LinkRows:
    """Convert keys of links to rows, and drop links without a document or link group (damaged store)."""
    documents = np.searchsorted(keys, links.document)
    groups, known = mirror.group_keys.find(links.group)
    known &= np.isin(links.document, keys)
    return LinkRows(
        (len(mirror.keys) + documents[known]).astype(np.int32),
        groups[known].astype(np.int32),
        links.bits[known],
        links.weight[known],
    )


def _with_documents(mirror: Mirror, rows: DocumentRows) -> Mirror:
    return replace(
        mirror,
        keys=mirror.keys.extended(rows.keys),
        ids=mirror.ids.extended(rows.ids),
        vectors=mirror.vectors.extended(rows.vectors),
        removed_at=mirror.removed_at.extended(np.full(len(rows.keys), ALIVE)),
    )


def _with_links(mirror: Mirror, links: LinkRows, documents: int) -> Mirror:
    """Add the link entries of the mirror's last ``documents`` documents."""
    start, first = len(mirror.link_group), len(mirror.keys) - documents
    if start + len(links.group) > _MOST_ENTRIES:
        raise BackendError(
            f"the store holds more than {_MOST_ENTRIES} links; an embedded store cannot follow so many:"
            " split it, or use Cassandra"
        )
    entries = np.arange(start, start + len(links.group), dtype=np.int32)
    counts = np.bincount(links.document - first, minlength=documents)
    chosen = {bit: (links.bits & bit) != 0 for bit in mirror.sides}
    return replace(
        mirror,
        link_group=mirror.link_group.extended(links.group),
        link_document=mirror.link_document.extended(links.document),
        link_bits=mirror.link_bits.extended(links.bits),
        link_weight=mirror.link_weight.extended(links.weight),
        links_at=mirror.links_at.extended(start + np.cumsum(counts)),
        sides={
            bit: runs.extended(links.group[chosen[bit]], entries[chosen[bit]])
            for bit, runs in mirror.sides.items()
        },
    )


def _mark_removals(mirror: Mirror, connection: apsw.Connection) -> int:
    """Mark documents that were removed after the mirror's change, and return how many the mirror contains."""
    if not mirror.last_key:  # the mirror is empty, so there is nothing to mark
        return 0
    query = "SELECT key, change FROM departed WHERE change > ? AND key <= ?"
    bindings = mirror.change, mirror.last_key
    rows = np.array(rows_of(connection, query, bindings), dtype=np.int64).reshape(-1, 2)
    at, found = mirror.keys.find(rows[:, 0])
    mirror.removed_at.put(at[found], rows[found, 1])
    return int(np.count_nonzero(found))
