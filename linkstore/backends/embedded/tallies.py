"""Counts over a whole store, computed on the mirror's columns: links by kind, dangling links, linked pages.

The tables have no index by link group, so the same counts in SQL would sort all links. That takes a minute
for a million documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final

import apsw
import numpy as np

from linkstore.arrays import contained, equals
from linkstore.backends.base import LinkedPage, Survey
from linkstore.backends.embedded.columns import Array
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.loading import repeats
from linkstore.backends.embedded.mirror import IN, OUT
from linkstore.backends.embedded.reader import View
from linkstore.vectors import Bools, Ints

_PAGES: Final = "SELECT count(*) FROM page"
_PAGE: Final = "SELECT source, url FROM page ORDER BY source, url LIMIT 1 OFFSET ?"
_OWNED: Final = """
SELECT document.key, number
FROM (SELECT ids, row_number() OVER (ORDER BY source, url) - 1 AS number FROM page)
CROSS JOIN json_each(ids) CROSS JOIN document ON document.id = value
"""
# A document may have several links with one tag; the mirror merges them where it can.
_FURTHER: Final = (
    "SELECT link_group, count(*) - 1 FROM link GROUP BY document, link_group HAVING count(*) > 1"
)


@dataclass(frozen=True, slots=True)
class Entries:
    """Link entries of existing documents, ordered by document, then by the link group's key.

    Args:
        document: (m,) rows of documents.
        group: (m,) rows of link groups.
        bits: (m,) sides: see :data:`~linkstore.backends.embedded.mirror.SIDE_BITS`.
    """

    document: Array
    group: Array
    bits: Array

    @classmethod
    def of(cls, view: View) -> Entries:
        """Return all entries that the view sees."""
        mirror, stamp = view.mirror, view.stamp
        end = int(mirror.links_at.take(np.array([mirror.rows_seen(stamp)]))[0])
        columns = mirror.link_document, mirror.link_group, mirror.link_bits
        found = cls(*(column.rows(0, end) for column in columns))
        there = mirror.visible(found.document, stamp)
        return found if there is None else found.where(there)

    def where(self, chosen: Bools) -> Entries:
        """Return the chosen entries."""
        return Entries(self.document[chosen], self.group[chosen], self.bits[chosen])

    def on(self, side: int) -> Entries:
        """Return the entries on one side, without repeats of the same document and group."""
        found = self.where((self.bits & side) != 0)
        return found.where(found.first())

    def first(self) -> Bools:
        """Say whether each entry (m,) is the first of its document and group."""
        first = np.ones(len(self.group), np.bool_)
        first[1:] = ~repeats(self.document, self.group)
        return first


def survey(view: View) -> Survey:
    """Count what is stored."""
    mirror, connection, groups = view.mirror, view.connection, len(view.mirror.group_keys)
    entries = Entries.of(view)
    members = np.bincount(entries.group[entries.first()], minlength=groups)
    links = members.copy()
    for key, more in connection.execute(_FURTHER):
        at, found = mirror.group_keys.find(np.array([key]))
        links[at[found]] += more
    kinds = mirror.group_kind.rows(0, groups)
    by_kind = np.bincount(kinds, weights=links, minlength=len(mirror.kinds))
    entered = np.zeros(groups, np.bool_)
    entered[entries.group[(entries.bits & IN) != 0]] = True
    dangling = np.flatnonzero((members > 0) & ~entered)
    named = zip(kinds[dangling].tolist(), mirror.tags.take(dangling), members[dangling].tolist(), strict=True)
    return Survey(
        documents=view.stamp.documents,
        pages=connection.execute(_PAGES).get,
        links={kind: int(count) for kind, count in sorted(zip(mirror.kinds, by_kind, strict=True)) if count},
        groups=int(np.count_nonzero(members)),
        dangling=tuple(sorted((mirror.kinds[kind], tag, count) for kind, tag, count in named)),
    )


def most_linked(view: View, kind: str, take: int) -> list[LinkedPage]:
    """Return the pages with the most incoming links of a kind from other pages, most first."""
    mirror, connection, groups = view.mirror, view.connection, len(view.mirror.group_keys)
    if kind not in mirror.kinds or not (pages := connection.execute(_PAGES).get):
        return []
    entries = Entries.of(view)
    entries = entries.where((mirror.group_kind.rows(0, groups) == mirror.kinds.index(kind))[entries.group])
    owned = _owned(view, pages)
    answered = np.unique(_answers(entries.on(IN), owned, pages))
    asking = entries.on(OUT)
    askers = np.bincount(asking.group, minlength=groups)[answered // pages]
    links = np.bincount(answered % pages, weights=askers, minlength=pages).astype(np.int64)
    own = _answers(asking, owned, pages)
    links -= np.bincount(own[contained(own, answered)] % pages, minlength=pages)
    best = np.argsort(-links, kind="stable")[:take]
    return [_linked(connection, int(page), int(links[page])) for page in best if links[page]]


def _linked(connection: apsw.Connection, page: int, links: int) -> LinkedPage:
    ((source, url),) = rows_of(connection, _PAGE, (page,))
    return LinkedPage(source=source, url=url, links=links)


def _owned(view: View, pages: int) -> tuple[Ints, Ints]:
    """Return pairs of a document's row and the number of a page that contains it, in ascending order."""
    rows = rows_of(view.connection, _OWNED)
    flat = np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2)
    at, found = view.mirror.keys.find(flat[:, 0])
    codes = np.unique(at[found] * pages + flat[found, 1])
    return codes // pages, codes % pages


def _answers(entries: Entries, owned: tuple[Ints, Ints], pages: int) -> Ints:
    """Return one number for each entry and each page of its document: ``group * pages + page``."""
    rows, page = owned
    entry, owner = equals(entries.document, rows)
    return entries.group[entry].astype(np.int64) * pages + page[owner]
