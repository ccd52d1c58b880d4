"""Loads rows of SQLite as arrays, for a mirror."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

import apsw
import numpy as np

from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import decoding
from linkstore.vectors import Bools, Floats, Ints

_BITS: Final = {"out": 1, "in": 2, "bidir": 3}


@dataclass(frozen=True, slots=True)
class DocumentRows:
    """Documents, ascending by key.

    Args:
        keys: (n,) their keys.
        ids: (n,) their ids.
        vectors: (n, d) their vectors.
    """

    keys: Ints
    ids: list[str]
    vectors: Floats


@dataclass(frozen=True, slots=True)
class LinkRows:
    """Link entries ordered by document; a document is on each side of a group at most once.

    Args:
        document: (m,) document keys, int32.
        group: (m,) link group keys, int32.
        bits: (m,) 1 for the out side, 2 for the in side, 3 for both, uint8.
        weight: (m,) float32.
    """

    document: Array
    group: Array
    bits: Array
    weight: Array


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Link groups, ascending by key.

    Args:
        keys: (g,) their keys.
        kinds: The kinds that occur.
        codes: (g,) positions in ``kinds``.
        tags: (g,) their tags.
    """

    keys: Ints
    kinds: list[str]
    codes: Array
    tags: list[str]


def load_documents(connection: apsw.Connection, after: int, last: int, dimension: int) -> DocumentRows:
    """Load documents with keys from ``after + 1`` to ``last``, except those without a whole vector."""
    rows = rows_of(
        connection,
        "SELECT document.key, id, embedding FROM document JOIN vector USING (key)"
        " WHERE document.key > ? AND document.key <= ? AND length(embedding) = ? ORDER BY document.key",
        (after, last, 4 * dimension),
    )
    if not rows:
        return DocumentRows(np.empty(0, np.int64), [], np.empty((0, dimension), np.float32))
    keys, ids, blobs = zip(*rows, strict=True)
    with decoding("documents"):
        found = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(rows), dimension)
        _check_text(ids)
    return DocumentRows(np.array(keys, dtype=np.int64), list(ids), found)


def load_links(connection: apsw.Connection, after: int, last: int) -> LinkRows:
    """Load the link entries of documents with keys from ``after + 1`` to ``last``."""
    rows = rows_of(
        connection,
        "SELECT document, link_group,"
        " CASE direction WHEN 'out' THEN 1 WHEN 'in' THEN 2 ELSE 3 END, weight"
        " FROM link WHERE document > ? AND document <= ?",
        (after, last),
    )
    with decoding("links"):
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.float64, count=4 * len(rows)).reshape(-1, 4)
    return once_per_side(
        LinkRows(
            flat[:, 0].astype(np.int32),
            flat[:, 1].astype(np.int32),
            flat[:, 2].astype(np.uint8),
            flat[:, 3].astype(np.float32),
        )
    )


def once_per_side(rows: LinkRows) -> LinkRows:
    """Merge entries of the same document and group, so that the document counts once on each side.

    A document may have, say, an incoming and a bidirectional link with the same tag. Each side then
    gets the highest weight of the links on that side.
    """
    repeated = repeats(rows.document, rows.group)
    if not repeated.any():
        return rows
    pair = np.concatenate(([0], np.cumsum(~repeated)))
    first = np.flatnonzero(np.concatenate(([True], ~repeated)))
    out, into = (_highest(pair, rows, bit) for bit in (1, 2))
    both = (out == into).nonzero()[0]
    sides = [(both, 3, out)] + [
        (np.flatnonzero((mine != other) & (mine >= 0)), bit, mine)
        for bit, mine, other in ((1, out, into), (2, into, out))
    ]
    at = np.concatenate([pairs for pairs, _, _ in sides])
    order = np.argsort(at, kind="stable")
    kept = first[at[order]]
    return LinkRows(
        rows.document[kept],
        rows.group[kept],
        np.concatenate([np.full(len(pairs), bit, np.uint8) for pairs, bit, _ in sides])[order],
        np.concatenate([weights[pairs] for pairs, _, weights in sides])[order],
    )


def repeats(document: Array, group: Array) -> Bools:
    """Say for each entry but the first (m - 1,) whether it repeats its predecessor's document and group."""
    same: Bools = (document[1:] == document[:-1]) & (group[1:] == group[:-1])
    return same


def _highest(pair: Array, rows: LinkRows, bit: int) -> Array:
    """Return the highest weight of each pair of document and group on one side, or -1 if it is not there."""
    highest = np.full(int(pair[-1]) + 1, -1, dtype=np.float32)
    np.maximum.at(highest, pair, np.where(rows.bits & bit, rows.weight, np.float32(-1)))
    return highest


def load_groups(connection: apsw.Connection, after: int, last: int) -> GroupRows:
    """Load link groups with keys from ``after + 1`` to ``last``."""
    query = "SELECT key, kind, tag FROM link_group WHERE key > ? AND key <= ? ORDER BY key"
    rows = rows_of(connection, query, (after, last))
    with decoding("link groups"):
        _check_text(chain.from_iterable(row[1:] for row in rows))
    codes: dict[str, int] = {}
    values = [codes.setdefault(kind, len(codes)) for _, kind, _ in rows]
    return GroupRows(
        np.array([key for key, _, _ in rows], dtype=np.int64),
        list(codes),
        np.array(values, dtype=np.int32),
        [tag for _, _, tag in rows],
    )


def _check_text(values: Iterable[object]) -> None:
    for value in values:
        if type(value) is not str:
            raise TypeError(f"{value!r} is not a text")
