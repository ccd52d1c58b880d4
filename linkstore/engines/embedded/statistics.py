"""Counts over a whole store, and the names that its documents have.

Counts over a whole store, computed on the mirror's columns: links by kind, dangling links, linked pages.

The tables have no index by link group, so the same counts in SQL would sort all links. That takes a minute
for a million documents.

Looks up which kinds of link, fields of metadata and fields of link data the documents have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools, Ints, is_member, match_equal
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.vocabulary import Vocabulary, collect_names
from linkstore.engines.contract import LinkedPage, Survey
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.filters import DATA_FIELD
from linkstore.engines.embedded.mirror import IN, OUT, Array
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.refresh import find_repeats
from linkstore.engines.embedded.schema import convert_row_errors, read_metadata

_COUNT_PAGES: Final = "SELECT count(*) FROM page"
_SELECT_PAGE: Final = "SELECT source, url FROM page ORDER BY source, url LIMIT 1 OFFSET ?"
_SELECT_OWNED: Final = """
SELECT document.key, number
FROM (SELECT ids, row_number() OVER (ORDER BY source, url) - 1 AS number FROM page)
CROSS JOIN json_each(ids) CROSS JOIN document ON document.id = value
"""
# A document may have several links with one tag; the mirror merges them where it can.
_COUNT_FURTHER: Final = (
    "SELECT link_group, count(*) - 1 FROM link GROUP BY document, link_group HAVING count(*) > 1"
)


@dataclass(frozen=True, slots=True)
class LinkEntries:
    """Link entries of existing documents, ordered by document, then by the link group's key.

    Args:
        document: (m,) rows of documents.
        group: (m,) rows of link groups.
        bits: (m,) sides: see :data:`~linkstore.engines.embedded.mirror.SIDE_BITS`.
    """

    document: Array
    group: Array
    bits: Array

    @classmethod
    def of(cls, view: StoreView) -> LinkEntries:
        """Return all entries that the view sees."""
        mirror, stamp = view.mirror, view.stamp
        end = int(mirror.links_at.take(np.array([mirror.rows_seen(stamp)]))[0])
        columns = mirror.link_document, mirror.link_group, mirror.link_bits
        found = cls(*(column.rows(0, end) for column in columns))
        there = mirror.visible(found.document, stamp)
        return found if there is None else found.where(there)

    def where(self, chosen: Bools) -> LinkEntries:
        """Return the chosen entries."""
        return LinkEntries(self.document[chosen], self.group[chosen], self.bits[chosen])

    def on(self, side: int) -> LinkEntries:
        """Return the entries on one side, without repeats of the same document and group."""
        found = self.where((self.bits & side) != 0)
        return found.where(found.first())

    def first(self) -> Bools:
        """Say whether each entry (m,) is the first of its document and group."""
        first = np.ones(len(self.group), np.bool_)
        first[1:] = ~find_repeats(self.document, self.group)
        return first


def survey_store(view: StoreView) -> Survey:
    """Count what is stored."""
    mirror, connection, groups = view.mirror, view.connection, len(view.mirror.group_keys)
    entries = LinkEntries.of(view)
    members = np.bincount(entries.group[entries.first()], minlength=groups)
    links = members.copy()
    for key, more in connection.execute(_COUNT_FURTHER):
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
        pages=connection.execute(_COUNT_PAGES).get,
        links={kind: int(count) for kind, count in sorted(zip(mirror.kinds, by_kind, strict=True)) if count},
        groups=int(np.count_nonzero(members)),
        dangling=tuple(sorted((mirror.kinds[kind], tag, count) for kind, tag, count in named)),
    )


def find_most_linked(view: StoreView, kind: str, take: int) -> list[LinkedPage]:
    """Return the pages with the most incoming links of a kind from other pages, most first."""
    mirror, connection, groups = view.mirror, view.connection, len(view.mirror.group_keys)
    if kind not in mirror.kinds or not (pages := connection.execute(_COUNT_PAGES).get):
        return []
    entries = LinkEntries.of(view)
    entries = entries.where((mirror.group_kind.rows(0, groups) == mirror.kinds.index(kind))[entries.group])
    owned = _find_owned(view, pages)
    answered = np.unique(_number_answers(entries.on(IN), owned, pages))
    asking = entries.on(OUT)
    askers = np.bincount(asking.group, minlength=groups)[answered // pages]
    links = np.bincount(answered % pages, weights=askers, minlength=pages).astype(np.int64)
    own = _number_answers(asking, owned, pages)
    links -= np.bincount(own[is_member(own, answered)] % pages, minlength=pages)
    best = np.argsort(-links, kind="stable")[:take]
    return [_make_linked_page(connection, int(page), int(links[page])) for page in best if links[page]]


def _make_linked_page(connection: apsw.Connection, page: int, links: int) -> LinkedPage:
    ((source, url),) = fetch_rows(connection, _SELECT_PAGE, (page,))
    return LinkedPage(source=source, url=url, links=links)


def _find_owned(view: StoreView, pages: int) -> tuple[Ints, Ints]:
    """Return pairs of a document's row and the number of a page that contains it, in ascending order."""
    rows = fetch_rows(view.connection, _SELECT_OWNED)
    flat = np.fromiter(chain.from_iterable(rows), np.int64, 2 * len(rows)).reshape(-1, 2)
    at, found = view.mirror.keys.find(flat[:, 0])
    codes = np.unique(at[found] * pages + flat[found, 1])
    return codes // pages, codes % pages


def _number_answers(entries: LinkEntries, owned: tuple[Ints, Ints], pages: int) -> Ints:
    """Return one number for each entry and each page of its document: ``group * pages + page``."""
    rows, page = owned
    entry, owner = match_equal(entries.document, rows)
    return entries.group[entry].astype(np.int64) * pages + page[owner]


MOST_KNOWN_FIELDS: Final = 10_000
"""How many field names a process caches."""
_HAS_KIND: Final = "SELECT 1 FROM link_group WHERE kind = ? LIMIT 1"
_NEXT_KIND: Final = "SELECT min(kind) FROM link_group WHERE kind > ?"
# JSON writes a field as its quoted name and a colon. A value may contain the same, so each match is parsed.
_WITH: Final = "SELECT metadata FROM document WHERE instr(metadata, ?)"
_LINKED_WITH: Final = "SELECT links FROM document WHERE instr(links, ?)"
_HAS_LINKS: Final = "SELECT 1 FROM document WHERE links IS NOT NULL LIMIT 1"


class KnownFields:
    """A cache of the fields of metadata and of link data that some document was found to have.

    A field that most documents have is found in the first ones. A rare field takes one scan of all documents
    in each process.
    """

    def __init__(self) -> None:
        self._known = Vocabulary()

    def among(self, asked: Vocabulary, connection: apsw.Connection) -> Vocabulary:
        """Return the requested fields that a document has, or had when this process last looked."""
        known = self._known
        found = Vocabulary(
            fields=_filter_names(asked.fields, known.fields, connection, _has_field),
            link_fields=_filter_names(asked.link_fields, known.link_fields, connection, _has_link_field),
        )
        if found - known:
            self._known = (known if len(known) < MOST_KNOWN_FIELDS else Vocabulary()) | found
        return found


def look_up_vocabulary(
    connection: apsw.Connection, known: KnownFields, asked: Vocabulary | None
) -> Vocabulary:
    """Return the requested names that a document has, or with None all names, read from every document."""
    if asked is None:
        found = Vocabulary(kinds=_read_all_kinds(connection), fields=_read_all_fields(connection))
        return found.checkable | Vocabulary(link_fields=_read_all_link_fields(connection))
    kinds = frozenset(kind for kind in asked.kinds if fetch_rows(connection, _HAS_KIND, (kind,)))
    return Vocabulary(kinds=kinds) | known.among(asked, connection)


def _filter_names(
    asked: frozenset[str],
    known: frozenset[str],
    connection: apsw.Connection,
    has: Callable[[apsw.Connection, str], bool],
) -> frozenset[str]:
    return frozenset(name for name in asked if name in known or has(connection, name))


def _has_field(connection: apsw.Connection, name: str) -> bool:
    if name == LINKS_KEY:
        return bool(fetch_rows(connection, _HAS_LINKS))
    with convert_row_errors("documents"):
        return any(
            name in orjson.loads(metadata) for (metadata,) in connection.execute(_WITH, (_quote_field(name),))
        )


def _has_link_field(connection: apsw.Connection, name: str) -> bool:
    with convert_row_errors("documents"):
        return any(
            name in _parse_link_fields(links)
            for (links,) in connection.execute(_LINKED_WITH, (_quote_field(name),))
        )


def _quote_field(name: str) -> str:
    return orjson.dumps(name).decode() + ":"


def _parse_link_fields(links: str) -> frozenset[str]:
    return collect_names({}, parse_links(read_metadata("{}", links))).link_fields


def _read_all_kinds(connection: apsw.Connection) -> frozenset[str]:
    """Find all kinds with one index lookup for each."""
    found: list[str] = []
    while (kind := connection.execute(_NEXT_KIND, (found[-1] if found else "",)).get) is not None:
        found.append(kind)
    return frozenset(found)


def _read_all_fields(connection: apsw.Connection) -> frozenset[str]:
    found: set[str] = {LINKS_KEY} if fetch_rows(connection, _HAS_LINKS) else set()
    with convert_row_errors("documents"):
        for (metadata,) in connection.execute("SELECT metadata FROM document"):
            found.update(orjson.loads(metadata))
    return frozenset(found)


def _read_all_link_fields(connection: apsw.Connection) -> frozenset[str]:
    found: set[str] = set()
    with convert_row_errors("documents"):
        for (links,) in connection.execute(_LINKED_WITH, (DATA_FIELD,)):
            found.update(_parse_link_fields(links))
    return frozenset(found)
