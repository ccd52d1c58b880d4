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
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.rounds import documents_after
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
        text = cql.write_setting(self._tables)
        statements = (Statement(cql=text, values=(key, ""), level="write") for key in _keys(new))
        yield Requests(statements=tuple(statements), what="record the names of kinds and fields")
        self._remember(new)

    def among(self, asked: Vocabulary | None) -> Operation[Vocabulary]:
        """Those of the requested names that are recorded; with None, all recorded names."""
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

    def missing(self) -> Operation[Vocabulary]:
        """The names of documents that are not recorded; reads every document."""
        found = yield from names_of_documents(self._tables)
        return found - (yield from self.among(None))

    def _read(self, statements: Sequence[Statement]) -> Operation[list[list[tuple[str, str]]]]:
        found: list[list[tuple[str, str]]] = yield Requests(
            statements=tuple(statements), what="read the names of kinds and fields"
        )
        return found

    def _remember(self, names: Vocabulary) -> None:
        known = self._known
        self._known = known | names if len(known) < REMEMBERED else names


def names_of(records: Iterable[Record]) -> Vocabulary:
    """The names that records use."""
    fields = dict[str, None]()
    links: list[Link] = []
    for record in records:
        fields.update(dict.fromkeys(record.metadata))
        links += record.links
    return names_in(fields, links)


def names_of_links(links: Iterable[Sequence[Link]]) -> Vocabulary:
    """The names that documents use once they have these links."""
    return names_in({}, (link for some in links for link in some))


def names_of_documents(tables: Tables) -> Operation[Vocabulary]:
    """The names that stored documents use, from all of them, some at a time."""
    kinds, fields, link_fields = set[str](), set[str](), set[str]()
    rows = yield from documents_after(tables, None)
    while rows:
        for row in filter(is_whole, rows):
            id, *_, stored, relinked, _, attributes, _ = row
            links = current_links(stored, relinked)
            fields.update(orjson.loads(attributes))
            kinds.update(kind for kind, *_ in links_of(links))
            if written_links(links):
                fields.add(LINKS_KEY)
            if has_link_data(links):
                link_fields |= names_in({}, read_links(links, id)).link_fields
        rows = yield from documents_after(tables, rows[-1][0])
    return Vocabulary(
        kinds=frozenset(kinds), fields=frozenset(fields), link_fields=frozenset(link_fields)
    ).checkable


def findings(missing: Vocabulary) -> Iterator[Finding]:
    """What ``verify`` says of names that are not recorded."""
    keys = sorted(_keys(missing))
    if keys:
        problem = "names of link kinds and metadata fields that are not recorded"
        yield Finding(problem=problem, count=len(keys), examples=tuple(keys[:_EXAMPLES]))


def _keys(names: Vocabulary) -> Iterator[str]:
    """The settings that record names."""
    yield from (_KIND + name for name in sorted(names.kinds))
    yield from (_FIELD + name for name in sorted(names.fields))
    yield from (_LINK_FIELD + name for name in sorted(names.link_fields))


def _names(keys: Iterable[str]) -> Vocabulary:
    keys = list(keys)

    def after(prefix: str) -> frozenset[str]:
        return frozenset(key.removeprefix(prefix) for key in keys if key.startswith(prefix))

    return Vocabulary(kinds=after(_KIND), fields=after(_FIELD), link_fields=after(_LINK_FIELD))
