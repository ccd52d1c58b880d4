"""What tests of migration between stores compare."""

from __future__ import annotations

import numpy as np

from linkstore.engines.contract import PageEntry, Record

PAGES = [PageEntry(source="s", url=f"p{n}", digest=f"h{n}", ids=(f"d{n}",)) for n in range(7)]


def every(store) -> dict[str, Record]:
    """All records of a backend, by id."""
    return {one.id: one for one in store.run(store.scan(None, 10_000))}


def same(first: Record, second: Record) -> bool:
    """Whether two records are equal, vectors bit for bit."""
    return (first.id, first.text, first.metadata, first.links) == (
        second.id,
        second.text,
        second.metadata,
        second.links,
    ) and np.array_equal(first.vector, second.vector)
