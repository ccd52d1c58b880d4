"""Chunks of one page: the page of each document, and the joint evidence of a page's chunks."""

from __future__ import annotations

from typing import Final

import numpy as np

from linkstore.order import places, ranked
from linkstore.plans import Groups, Memberships, Plan, Tags
from linkstore.vectors import Floats, Ints

SECTIONS: Final = frozenset({"section"})
"""The kind of link that names a chunk by its page and section: ``/guide#install``."""
POWER: Final = 3.0
"""Power of the first-stage scores that are added: the many weak matches of long pages hardly count."""
MOST: Final = 20
"""Maximum number of chunks of a page that are added."""
SPREAD: Final = 4
"""Pages are looked up for this many times ``k`` documents, then for this many times more, and so on."""


def pages_of(refs: Ints) -> Plan[Ints]:
    """Return the (n,) number of each document's page. A document without a page is a page of its own.

    An incoming ``section`` link names a chunk. Its page is the tag up to the ``#``. Numbers follow the order
    of the names, so they are the same on every engine.

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
    """Return (n,) how well the other chunks of each document's page match: the sum without the best one.

    Args:
        pages: (n,) the page of each document.
        matches: (n,) first-stage scores in [0, 1], 0 for documents that the first stage did not find.
    """
    strength = matches.astype(np.float64) ** POWER
    order = np.lexsort((-strength, pages))
    place = places(pages[order])
    counted = strength[order] * ((place >= 1) & (place <= MOST))
    return np.bincount(pages[order], counted)[pages].astype(np.float32)


def spread(refs: Ints, k: int, per_page: int) -> Plan[Ints]:
    """Select the first ``k`` of ranked documents with at most ``per_page`` of one page.

    Returns their (m,) positions in order. Looks up the pages of only as many documents as needed to find
    ``k``.

    Args:
        refs: (n,) documents, best first.
        k: Maximum number of positions.
        per_page: Maximum number of one page.
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


def faded(pages: Ints, scores: Floats, place: Ints, fade: float) -> Floats:
    """Return (n,) factors for the scores of chunks: ``(fade * sqrt(score / best of the page)) ** place``.

    So a chunk that matches almost as well as the best one of its page keeps more than a weak one.

    Args:
        pages: (n,) the page of each document.
        scores: (n,) of the documents, at least 0.
        place: (n,) see :func:`standing`.
        fade: Factor for a second chunk that is as good as the first.
    """
    best = np.zeros(int(pages.max(initial=-1)) + 1, dtype=np.float32)
    np.maximum.at(best, pages, scores)
    part = scores / np.maximum(best, np.finfo(np.float32).tiny)[pages]
    factor: Floats = (np.float32(fade) * np.sqrt(part)) ** place.astype(np.float32)
    return factor


def standing(refs: Ints, pages: Ints, scores: Floats) -> Plan[Ints]:
    """Return the (n,) place of each document among those of its page, from 0, by score, then id."""
    order = yield from ranked(refs, scores, len(refs))
    order = order[np.argsort(pages[order], kind="stable")]
    place = np.empty(len(refs), dtype=np.int64)
    place[order] = places(pages[order])
    return place
