"""Reads the entries of indexed pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from linkstore.backends.base import PageEntry
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

_WHAT: Final = "read page entries"
Name = tuple[str, str]
"""Source and url of an entry."""
_URLS_AT_ONCE: Final = 100
"""URLs per statement."""


def read_entries(
    tables: Tables, source: str | None, urls: Sequence[str] | None
) -> Operation[list[PageEntry]]:
    """Read the entries of a source (None: all sources) with these urls (None: all), by source and url."""
    if urls is None:
        every = Statement(cql=cql.read_all_pages(tables))
        one = Statement(cql=cql.read_pages(tables), values=(source,))
        statements: tuple[Statement, ...] = (every if source is None else one,)
    else:
        sources = (yield from _sources(tables)) if source is None else [source]
        statements = tuple(_named(tables, sources, list(dict.fromkeys(urls))))
    answers = (yield Requests(statements=statements, what=_WHAT)) if statements else ()
    entries = [
        PageEntry(source=of, url=url, digest=digest, ids=tuple(ids or ()))
        for rows in answers
        for of, url, digest, ids in rows
    ]
    return sorted(entries, key=lambda entry: (entry.source, entry.url))


def written(tables: Tables, names: Iterable[Name]) -> Operation[dict[Name, int]]:
    """Read the write times of the page entries that exist."""
    urls: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for source, url in names:
        urls[source][url] = None
    text = cql.read_page_times(tables)
    statements = tuple(
        statement for source, of in urls.items() for statement in _named(tables, [source], list(of), text)
    )
    answers = (yield Requests(statements=statements, what=_WHAT)) if statements else ()
    return {(source, url): at for rows in answers for source, url, at in rows}


def _sources(tables: Tables) -> Operation[list[str]]:
    (rows,) = yield Requests(statements=(Statement(cql=cql.read_sources(tables)),), what=_WHAT)
    return [source for (source,) in rows]


def _named(
    tables: Tables, sources: Sequence[str], urls: list[str], text: str | None = None
) -> Iterator[Statement]:
    for source in sources:
        for start in range(0, len(urls), _URLS_AT_ONCE):
            values = (source, urls[start : start + _URLS_AT_ONCE])
            yield Statement(cql=text or cql.read_named_pages(tables), values=values)
