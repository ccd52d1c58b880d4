"""The kinds of link, metadata fields and link data fields of documents, recorded in the table of settings.

The server cannot list them without reading every document, so a writer records a name before it writes the
first document that has it. Names are never removed: another writer may be relying on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import orjson

from linkstore.backends.base import Finding, Record
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.batching import batches
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.rounds import Row, documents_after
from linkstore.backends.cassandra.rows import (
    current_links,
    has_link_data,
    is_whole,
    links_of,
    read_links,
    written_links,
)
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.links import LINKS_KEY, Link
from linkstore.plans import Operation
from linkstore.vocabulary import Vocabulary, names_in

REMEMBERED: Final = 10_000
"""How many names a client caches."""
_AT_ONCE: Final = 50
"""How many settings one statement reads."""
_SIZES: Final = (10, 1)
"""Numbers of settings that one statement writes; the server warns about more than 10 partitions."""
_KIND: Final = "kind "
_FIELD: Final = "field "
_LINK_FIELD: Final = "link field "
_EXAMPLES: Final = 3


class Names:
    """The names that documents of a store have or had.

    Threads may use it without a lock: at worst a name is recorded or read once more.

    Args:
        tables: The tables of the store.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known = Vocabulary()

    def learn(self, names: Vocabulary) -> Operation[None]:
        """Record names, before a document that has them is written."""
        new = names - self._known
        if not new:
            return
        parts = batches([(key,) for key in _keys(new)], _SIZES)
        statements = (
            Statement(
                cql=cql.write_settings(self._tables, len(part)),
                values=[key for (key,) in part],
                level="write",
            )
            for part in parts
        )
        yield Requests(statements=tuple(statements), what="record the names of kinds and fields")
        self._remember(new)

    def among(self, asked: Vocabulary | None) -> Operation[Vocabulary]:
        """Return the requested names that are recorded, or all recorded names for None."""
        if asked is None:
            (rows,) = yield from self._read([Statement(cql=cql.read_settings(self._tables))])
            return _names(name for name, _ in rows)
        unknown = list(_keys(asked - self._known))
        if unknown:
            text = cql.read_named_settings(self._tables)
            parts = (unknown[at : at + _AT_ONCE] for at in range(0, len(unknown), _AT_ONCE))
            read = yield from self._read([Statement(cql=text, values=(part,)) for part in parts])
            found = _names(name for rows in read for name, _ in rows)
            self._remember(found)
            return asked & (self._known | found)
        return asked

    def _read(self, statements: Sequence[Statement]) -> Operation[list[list[tuple[str, str]]]]:
        found: list[list[tuple[str, str]]] = yield Requests(
            statements=tuple(statements), what="read the names of kinds and fields"
        )
        return found

    def _remember(self, names: Vocabulary) -> None:
        known = self._known
        self._known = known | names if len(known) < REMEMBERED else names


def names_of(records: Iterable[Record]) -> Vocabulary:
    """Return the names that records use."""
    fields = dict[str, None]()
    links: list[Link] = []
    for record in records:
        fields.update(dict.fromkeys(record.metadata))
        links += record.links
    return names_in(fields, links)


def names_of_links(links: Iterable[Sequence[Link]]) -> Vocabulary:
    """Return the names that documents use once they have these links."""
    return names_in({}, (link for some in links for link in some))


def names_of_documents(tables: Tables) -> Operation[tuple[Vocabulary, list[str]]]:
    """Return the names that stored documents use, and the ids of parts of documents.

    All documents are read, some at a time.
    """
    kinds, fields, link_fields = set[str](), set[str](), set[str]()
    parts: list[str] = []
    rows = yield from documents_after(tables, None)
    while rows:
        parts += (row[0] for row in rows if _is_part(row))
        for row in filter(is_whole, rows):
            id, _, stored, _, attributes, *_, relinked = row
            links = current_links(stored, relinked)
            fields.update(orjson.loads(attributes))
            kinds.update(kind for kind, *_ in links_of(links))
            if written_links(links):
                fields.add(LINKS_KEY)
            if has_link_data(links):
                link_fields |= names_in({}, read_links(links, id)).link_fields
        rows = yield from documents_after(tables, rows[-1][0])
    names = Vocabulary(kinds=frozenset(kinds), fields=frozenset(fields), link_fields=frozenset(link_fields))
    return names.checkable, parts


def _is_part(row: Row) -> bool:
    """Say whether a row has some columns of a document and lacks others.

    Links alone do not count, because they may outlive the other columns.
    """
    _, written, _, text, attributes, vector, *_ = row
    return not is_whole(row) and any(column is not None for column in (written, text, attributes, vector))


def findings(missing: Vocabulary, parts: Sequence[str]) -> Iterator[Finding]:
    """Yield what ``verify`` says of names that are not recorded, and of parts of documents."""
    problems = {
        "names of link kinds and metadata fields that are not recorded": sorted(_keys(missing)),
        "documents that lack a column and so are not found; add them again, or delete them": sorted(parts),
    }
    for problem, found in problems.items():
        if found:
            yield Finding(problem=problem, count=len(found), examples=tuple(found[:_EXAMPLES]))


def _keys(names: Vocabulary) -> Iterator[str]:
    """Yield the settings that record names."""
    yield from (_KIND + name for name in sorted(names.kinds))
    yield from (_FIELD + name for name in sorted(names.fields))
    yield from (_LINK_FIELD + name for name in sorted(names.link_fields))


def _names(keys: Iterable[str]) -> Vocabulary:
    keys = list(keys)

    def after(prefix: str) -> frozenset[str]:
        return frozenset(key.removeprefix(prefix) for key in keys if key.startswith(prefix))

    return Vocabulary(kinds=after(_KIND), fields=after(_FIELD), link_fields=after(_LINK_FIELD))
