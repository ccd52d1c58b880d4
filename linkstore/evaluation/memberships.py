"""The members of link groups, read from a store of any size in passes.

A pass holds the link groups of one part, chosen by a hash of kind and tag, as columns of some 30 bytes a
link: about 0.5 GiB at most while it is counted. A store with more links is read several times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import xxhash

from linkstore.backends.base import Backend, Record
from linkstore.links import Link
from linkstore.vectors import Bools, Ints

LINKS_AT_ONCE: Final = 5_000_000
"""How many links a pass holds, about."""
_BATCH: Final = 500
_OUT: Final = 1
_IN: Final = 2
_POSITIVE: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The memberships of some link groups, by group, then document; each document once in a group.

    Args:
        documents: How many documents the store has; they are numbered in the order read.
        kinds: The kinds that occur.
        group: (m,) a number for each link group: see :func:`group_key`.
        kind: (m,) positions in ``kinds``.
        document: (m,) documents.
        leaves: (m,) whether the document is on the out side.
        arrives: (m,) whether it lies on the in side.
    """

    documents: int
    kinds: tuple[str, ...]
    group: Ints
    kind: Ints
    document: Ints
    leaves: Bools
    arrives: Bools


def parts(backend: Backend, links: int) -> Iterator[Part]:
    """Return all memberships of a store with about this number of links, reading it once for each part."""
    count = max(1, -(-links // LINKS_AT_ONCE))
    return (_part(backend, number, count) for number in range(count))


def records(backend: Backend) -> Iterator[Record]:
    """Yield all records of a store, in the engine's order, read in batches."""
    after: str | None = None
    while batch := backend.run(backend.scan(after, _BATCH)):
        yield from batch
        after = batch[-1].id


def group_key(link: Link) -> int:
    """Return a number for a link's group. Of n groups, two share one with a probability of n² / 2⁶⁴."""
    return xxhash.xxh3_64_intdigest(f"{link.kind}\0{link.tag}".encode()) & _POSITIVE


def _part(backend: Backend, number: int, count: int) -> Part:
    kinds: dict[str, int] = {}
    blocks: list[Ints] = [np.zeros((0, 4), dtype=np.int64)]
    rows: list[tuple[int, int, int, int]] = []
    documents = 0
    for record in records(backend):
        for link in record.links:
            key = group_key(link)
            if key % count == number:
                side = (_OUT if link.leads_out else 0) | (_IN if link.leads_in else 0)
                rows.append((key, documents, kinds.setdefault(link.kind, len(kinds)), side))
        documents += 1
        if documents % _BATCH == 0 and rows:
            blocks.append(np.array(rows, dtype=np.int64))
            rows = []
    if rows:
        blocks.append(np.array(rows, dtype=np.int64))
    return _sorted(np.concatenate(blocks), documents, tuple(kinds))


def _sorted(rows: Ints, documents: int, kinds: tuple[str, ...]) -> Part:
    """Return rows of (group, document, kind, side) as a part, with one row for each document and group."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    starts = np.flatnonzero(fresh)
    side = np.bitwise_or.reduceat(rows[:, 3], starts) if len(starts) else rows[:, 3]
    return Part(
        documents=documents,
        kinds=kinds,
        group=rows[starts, 0],
        kind=rows[starts, 2],
        document=rows[starts, 1],
        leaves=(side & _OUT) > 0,
        arrives=(side & _IN) > 0,
    )
