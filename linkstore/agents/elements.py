"""Key elements as documents. Only those that several facts name have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from linkstore.agents.facts import ELEMENTS, KEY_ELEMENT, element_of_page, element_page
from linkstore.backends.base import Survey
from linkstore.gc_pause import collection_paused
from linkstore.pagedocuments import PageDocuments
from linkstore.plans import Members, Operation, Plan, Reached, Resolve
from linkstore.store import LinkStore
from linkstore.twins import Twin, answered_by, any_vector
from linkstore.vectors import Floats, Ints

SHARED: Final = 2
"""A key element that fewer facts name has no document: it leads to no other fact, and is found by its own."""
_BATCH: Final = 4096
_NONE: Final = np.empty(0, dtype=np.int64)


def settled(facts: LinkStore, *, count_only: bool = False) -> Operation[tuple[int, int]]:
    """Add the missing key elements that several facts mention, and remove those that too few mention.

    Args:
        facts: Holds the facts.
        count_only: Whether to write nothing.

    Returns:
        How many were added and removed, or would be.
    """
    known: dict[str, str] = yield Twin(facts.pages, facts.apages, (ELEMENTS,))
    single: list[str] = []
    for batch in _batches(sorted(known)):
        single += yield from _single(facts, [element_of_page(url) for url in batch])
    for batch in () if count_only else _batches(single):
        urls = [element_page(name).url for name in batch]
        yield Twin(facts.remove_pages, facts.aremove_pages, (ELEMENTS, urls))
    survey: Survey = yield Twin(facts.survey, facts.asurvey)
    missing = [tag for kind, tag, many in survey.dangling if kind == KEY_ELEMENT and many >= SHARED]
    for batch in () if count_only else _batches(missing):
        pages = collection_paused(partial(_pages, batch))
        yield Twin(facts.put_pages, facts.aput_pages, (ELEMENTS, pages))
    return len(missing), len(single)


def _pages(names: Sequence[str]) -> list[PageDocuments]:
    return [element_page(name) for name in names]


def _single(facts: LinkStore, names: Sequence[str]) -> Operation[list[str]]:
    """Return the key elements that too few facts mention."""
    vector = yield from any_vector(facts)
    if vector is None:
        return list(names)
    sizes: Ints = yield answered_by(facts, _sizes(names, vector))
    return [name for name, size in zip(names, sizes.tolist(), strict=True) if size < SHARED]


def _sizes(names: Sequence[str], vector: Floats) -> Plan[Ints]:
    """Count the facts that mention each key element, up to :data:`SHARED`."""
    groups: Ints = yield Resolve(tags=tuple((KEY_ELEMENT, name) for name in names))
    sizes = np.zeros(len(names), dtype=np.int64)
    there = np.flatnonzero(groups >= 0)
    reached: Reached = yield Members(
        groups=groups[there], side="out", vector=vector, take=1, cap=SHARED, exclude=_NONE
    )
    sizes[there] = reached.sizes
    return sizes


def _batches(items: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]
