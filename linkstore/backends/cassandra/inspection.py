"""Counts the content of a store. Each count reads the links of all documents."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from linkstore.backends.base import LinkedPage, PageEntry, Survey
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.rows import StoredLink, current_links, is_whole, links_of, memberships
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation


class Inspection:
    """Counts documents, links and pages.

    Args:
        tables: The tables of the store.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def survey(self, pages: int) -> Operation[Survey]:
        """Count documents and links."""
        rows = yield from self._read_links()
        links: list[StoredLink] = [link for _, of in rows for link in links_of(of)]
        memberships_found = {key for _, of in rows for key in memberships(links_of(of))}
        asked = Counter((kind, tag) for kind, tag, direction, _ in links if direction != "in")
        dangling = sorted(tag for tag in asked if (*tag, "in") not in memberships_found)
        return Survey(
            documents=len(rows),
            pages=pages,
            links=dict(sorted(Counter(kind for kind, *_ in links).items())),
            groups=len({(kind, tag) for kind, tag, _ in memberships_found}),
            dangling=tuple((*tag, asked[tag]) for tag in dangling),
        )

    def linked(self, entries: Iterable[PageEntry], kind: str, take: int) -> Operation[list[LinkedPage]]:
        """Find the pages that most links of a kind lead to."""
        rows = yield from self._read_links()
        owners: dict[str, set[PageEntry]] = defaultdict(set)
        for entry in entries:
            for id in entry.ids:
                owners[id].add(entry)
        asking: dict[str, list[str]] = defaultdict(list)
        answering: dict[str, set[PageEntry]] = defaultdict(set)
        for id, of in rows:
            for found, tag, side in memberships(links_of(of)):
                if found == kind and side == "out":
                    asking[tag].append(id)
                elif found == kind:
                    answering[tag].update(owners.get(id, ()))
        counts = Counter(
            (page.source, page.url)
            for tag, pages in answering.items()
            for page in pages
            for id in asking.get(tag, ())
            if page not in owners.get(id, ())
        )
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:take]
        return [LinkedPage(source=source, url=url, links=links) for (source, url), links in ranked]

    def _read_links(self) -> Operation[list[tuple[str, bytes | None]]]:
        statement = Statement(cql=cql.read_all_links(self._tables))
        (rows,) = yield Requests(statements=(statement,), what="read all documents")
        return [(row[0], current_links(row[1], row[-1])) for row in rows if is_whole(row)]
