"""Chunks of one page: which page a document belongs to, and what its chunks say for it together."""

from __future__ import annotations

from typing import Final

import numpy as np

from linkstore.order import places, ranked
from linkstore.plans import Groups, Memberships, Plan, Tags
from linkstore.vectors import Floats, Ints

SECTIONS: Final = frozenset({"section"})
"""The kind of link that names a chunk by its page and section: ``/guide#install``."""
POWER: Final = 3.0
"""Of the first-stage scores that are added up: weak matches, of which a long page has many, hardly count."""
MOST: Final = 20
"""How many chunks of a page are added up."""
SPREAD: Final = 4
"""First so many times the documents wanted are asked for their page, then each time so many times more."""


def pages_of(refs: Ints) -> Plan[Ints]:
    """(n,) the number of each document's page; a document that no page claims is a page of its own.

    A chunk is named by an incoming ``section`` link; its page is the tag before the ``#``. Numbers follow
    the order of the names, so they are the same on every engine.

    Args:
        refs: (n,) documents.
    """
    named: Memberships = yield Groups(refs=refs, side="in", kinds=SECTIONS)
    groups, at = np.unique(named.group, return_inverse=True)
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    names = [tag.partition("#")[0] for _, tag in tags]
    number = {name: place for place, name in enumerate(sorted(set(names)))}
    numbers = np.array([number[name] for name in names], dtype=np.int64)
    pages = len(number) + np.arange(len(refs))
    np.minimum.at(pages, named.document, numbers[at])
    return pages


def evidence(pages: Ints, matches: Floats) -> Floats:
    """(n,) how well the other chunks of each document's page match: the sum without the best one.

    Args:
        pages: (n,) the page of each document.
        matches: (n,) first-stage scores in [0, 1]; 0 for documents that the first stage did not find.
    """
    strength = matches.astype(np.float64) ** POWER
    order = np.lexsort((-strength, pages))
    place = places(pages[order])
    counted = strength[order] * ((place >= 1) & (place <= MOST))
    return np.bincount(pages[order], counted)[pages].astype(np.float32)


def spread(refs: Ints, k: int, per_page: int) -> Plan[Ints]:
    """(m,) positions of the first ``k`` of ranked documents, in order, at most ``per_page`` of one page.

    Only as many documents are asked for their page as it takes to find ``k``.

    Args:
        refs: (n,) documents, best first.
        k: How many at most.
        per_page: How many of one page at most.
    """
    looked = SPREAD * k
    while True:
        pages = yield from pages_of(refs[:looked])
        order = np.argsort(pages, kind="stable")
        place = np.empty(len(pages), dtype=np.int64)
        place[order] = places(pages[order])
        kept = np.flatnonzero(place < per_page)
        if len(kept) >= k or looked >= len(refs):
            return kept[:k]
        looked *= SPREAD


def standing(refs: Ints, pages: Ints, scores: Floats) -> Plan[Ints]:
    """(n,) the place of each document among those of its page, from 0, by score, then id."""
    order = yield from ranked(refs, scores, len(refs))
    order = order[np.argsort(pages[order], kind="stable")]
    place = np.empty(len(refs), dtype=np.int64)
    place[order] = places(pages[order])
    return place
