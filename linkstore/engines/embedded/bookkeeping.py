"""What a store keeps and tells beside its documents: notes, indexed pages, access times, counts, and names.

Notes are short texts in the table of settings. Access times have a table of their own, so that recording one
rewrites nothing else. Counts over a whole store are computed on the mirror's columns: the tables have no
index by link group, so the same counts in SQL would sort all links, which takes a minute for a million
documents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import apsw
import numpy as np
import orjson

from linkstore.core.arrays import Bools, Ints, is_member, match_equal
from linkstore.core.links import LINKS_KEY, parse_links
from linkstore.core.vocabulary import Vocabulary, collect_names
from linkstore.engines.contract import LinkedPage, PageEntry, Survey
from linkstore.engines.embedded.database import fetch_rows
from linkstore.engines.embedded.filters import DATA_FIELD
from linkstore.engines.embedded.mirror import IN, OUT, Array
from linkstore.engines.embedded.reader import StoreView
from linkstore.engines.embedded.refresh import find_repeats
from linkstore.engines.embedded.schema import convert_row_errors, read_metadata
from linkstore.errors import StoreFormatError

_NOTE_PREFIX: Final = "note "
_SELECT_NOTE: Final = "SELECT value FROM setting WHERE name = ?"
_ENTRIES: Final = "SELECT source, url, digest, ids FROM page"
_OF_SOURCE: Final = f"{_ENTRIES} WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
_OF_SOURCE_NAMED: Final = (
    f"{_ENTRIES} WHERE source = ?1 AND url IN (SELECT value FROM json_each(?2)) ORDER BY source, url"
)
_DIGESTS: Final = "SELECT url, digest FROM page WHERE ?1 IS NULL OR source = ?1 ORDER BY source, url"
# Enumerates the sources by jumps through the table's primary key, so that the entries are not all scanned.
_NAMED: Final = f"""
WITH RECURSIVE of(name) AS (
  SELECT min(source) FROM page
  UNION ALL
  SELECT (SELECT min(source) FROM page WHERE source > name) FROM of WHERE name IS NOT NULL
)
{_ENTRIES} WHERE source IN (SELECT name FROM of WHERE name IS NOT NULL)
  AND url IN (SELECT value FROM json_each(?1)) ORDER BY source, url
"""
_TOUCH: Final = (
    "INSERT INTO access SELECT document.id, ? FROM document WHERE document.id = ?"
    " ON CONFLICT (id) DO UPDATE SET at = max(at, excluded.at)"
)
_ACCESSED: Final = "SELECT id, at FROM access WHERE id IN (SELECT value FROM json_each(?))"
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
MOST_KNOWN_FIELDS: Final = 10_000
"""How many field names a process caches."""
_HAS_KIND: Final = "SELECT 1 FROM link_group WHERE kind = ? LIMIT 1"
_NEXT_KIND: Final = "SELECT min(kind) FROM link_group WHERE kind > ?"
# JSON writes a field as its quoted name and a colon. A value may contain the same, so each match is parsed.
_WITH: Final = "SELECT metadata FROM document WHERE instr(metadata, ?)"
_LINKED_WITH: Final = "SELECT links FROM document WHERE instr(links, ?)"
_HAS_LINKS: Final = "SELECT 1 FROM document WHERE links IS NOT NULL LIMIT 1"


def read_note(connection: apsw.Connection, name: str) -> str | None:
    """Return the note of this name, or None if there is none.

    Raises:
        StoreFormatError: If the note is not a text.
    """
    rows = fetch_rows(connection, _SELECT_NOTE, (_NOTE_PREFIX + name,))
    if not rows:
        return None
    ((value,),) = rows
    if not isinstance(value, str):
        raise StoreFormatError(
            f"{connection.filename}: the setting {_NOTE_PREFIX + name!r} is {value!r}, not a text"
        )
    return value


def exchange_note(
    connection: apsw.Connection, name: str, value: str | None, expected: str | None
) -> str | None:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards."""
    noted = read_note(connection, name)
    if noted != expected or noted == value:
        return noted
    if value is None:
        connection.execute("DELETE FROM setting WHERE name = ?", (_NOTE_PREFIX + name,))
    else:
        connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (_NOTE_PREFIX + name, value))
    return value


def read_page_entries(
    connection: apsw.Connection, source: str | None, urls: Sequence[str] | None
) -> list[PageEntry]:
    """Return the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        rows = fetch_rows(connection, _OF_SOURCE, (source,))
    elif source is None:
        rows = fetch_rows(connection, _NAMED, (_urls_to_json(urls),))
    else:
        rows = fetch_rows(connection, _OF_SOURCE_NAMED, (source, _urls_to_json(urls)))
    with convert_row_errors("pages"):
        return [
            PageEntry(source=of, url=url, digest=digest, ids=tuple(orjson.loads(ids)))
            for of, url, digest, ids in rows
        ]


def read_page_digests(connection: apsw.Connection, source: str | None) -> dict[str, str]:
    """Return the digests of a source's pages (None: all sources), by url, without reading their ids."""
    with convert_row_errors("pages"):
        return dict(connection.execute(_DIGESTS, (source,)))


def _urls_to_json(urls: Sequence[str]) -> str:
    return orjson.dumps(list(urls)).decode()


def record_accesses(connection: apsw.Connection, times: Mapping[str, int]) -> int:
    """Record access times, keep the latest of each document, and return how many documents are stored."""
    before = connection.total_changes()
    connection.executemany(_TOUCH, [(at, id) for id, at in times.items()])
    return connection.total_changes() - before


def read_accesses(connection: apsw.Connection, ids: Sequence[str]) -> dict[str, int]:
    """Return the access times of the given documents, without documents that have none."""
    return dict(fetch_rows(connection, _ACCESSED, (orjson.dumps(list(ids)).decode(),)))


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
        mirror = view.mirror
        end = len(mirror.link_group)
        columns = mirror.link_document, mirror.link_group, mirror.link_bits
        found = cls(*(column.rows(0, end) for column in columns))
        there = mirror.visible(found.document)
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
        documents=mirror.living,
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


class KnownFields:
    """A cache of the fields of metadata and of link data that some document was found to have.

    A field that most documents have is found in the first ones. A rare field takes one scan of all documents
    in each process.
    """

    def __init__(self) -> None:
        self._known = Vocabulary()

    def look_up(self, connection: apsw.Connection, asked: Vocabulary | None) -> Vocabulary:
        """Return the requested names that a document has, or had when this process last looked.

        With None, these are all names, read from every document.
        """
        known = self._known
        with convert_row_errors("documents"):
            if asked is None:
                fields = set().union(*_read_fields(connection, ""), [LINKS_KEY] * _has_links(connection))
                found = Vocabulary(kinds=_read_kinds(connection), fields=frozenset(fields)).checkable
                link_fields = frozenset[str]().union(*_read_link_fields(connection, DATA_FIELD))
                return found | Vocabulary(link_fields=link_fields)
            found = Vocabulary(
                fields=frozenset(
                    name for name in asked.fields if name in known.fields or _has_field(connection, name)
                ),
                link_fields=frozenset(
                    name
                    for name in asked.link_fields
                    if name in known.link_fields or _has_link_field(connection, name)
                ),
            )
        if found - known:
            self._known = (known if len(known) < MOST_KNOWN_FIELDS else Vocabulary()) | found
        kinds = frozenset(kind for kind in asked.kinds if fetch_rows(connection, _HAS_KIND, (kind,)))
        return Vocabulary(kinds=kinds) | found


def _has_field(connection: apsw.Connection, name: str) -> bool:
    if name == LINKS_KEY:
        return _has_links(connection)
    return any(name in names for names in _read_fields(connection, _quote_field(name)))


def _has_link_field(connection: apsw.Connection, name: str) -> bool:
    return any(name in names for names in _read_link_fields(connection, _quote_field(name)))


def _quote_field(name: str) -> str:
    return orjson.dumps(name).decode() + ":"


def _has_links(connection: apsw.Connection) -> bool:
    return bool(fetch_rows(connection, _HAS_LINKS))


def _read_fields(connection: apsw.Connection, text: str) -> Iterator[Collection[str]]:
    """Yield the names of the fields of each document whose metadata as JSON contain a text."""
    for (metadata,) in connection.execute(_WITH, (text,)):
        yield orjson.loads(metadata).keys()


def _read_link_fields(connection: apsw.Connection, text: str) -> Iterator[Collection[str]]:
    """Yield the names of the fields of link data of each document whose links as JSON contain a text."""
    for (links,) in connection.execute(_LINKED_WITH, (text,)):
        yield collect_names({}, parse_links(read_metadata("{}", links))).link_fields


def _read_kinds(connection: apsw.Connection) -> frozenset[str]:
    """Find all kinds with one index lookup for each."""
    found: list[str] = []
    while (kind := connection.execute(_NEXT_KIND, (found[-1] if found else "",)).get) is not None:
        found.append(kind)
    return frozenset(found)
