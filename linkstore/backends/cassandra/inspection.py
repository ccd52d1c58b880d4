"""What a store holds as a whole: counted, compared, mended. All of it reads every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from linkstore.backends.base import Finding, Report, Survey
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.requests import Requests, Statement
from linkstore.backends.cassandra.rows import DocumentRow, Membership, StoredLink, memberships
from linkstore.backends.cassandra.writing import bucket
from linkstore.plans import Operation

_EXAMPLES: Final = 5
Key = tuple[Membership, int, str]
"""A row of members: the side of a link group, the bucket, the document."""


class Inspection:
    """Looks at all rows of a store.

    Args:
        tables: Of the store.
        buckets: Into how many partitions a side of a link group is split.
    """

    def __init__(self, tables: Tables, buckets: int) -> None:
        self._tables = tables
        self._buckets = buckets

    def survey(self, pages: int) -> Operation[Survey]:
        """Count documents and links."""
        (rows,) = yield self._all(cql.read_all_links(self._tables))
        links: list[StoredLink] = [link for _, of in rows for link in of or ()]
        lying = {key for _, of in rows for key in memberships(of or ())}
        asked = Counter((kind, tag) for kind, tag, direction, _ in links if direction != "in")
        dangling = sorted(tag for tag in asked if (*tag, "in") not in lying)
        return Survey(
            documents=len(rows),
            pages=pages,
            links=dict(sorted(Counter(kind for kind, *_ in links).items())),
            groups=len({(kind, tag) for kind, tag, _ in lying}),
            dangling=tuple((*tag, asked[tag]) for tag in dangling),
        )

    def compare(self) -> Operation[tuple[set[Key], set[Key]]]:
        """Members that no document stands behind, and members that are missing."""
        links, members = yield Requests(
            statements=(
                Statement(cql=cql.read_all_links(self._tables)),
                Statement(cql=cql.read_all_members(self._tables)),
            ),
            what="compare members with documents",
        )
        right = {
            (key, bucket(name, self._buckets), name) for name, of in links for key in memberships(of or ())
        }
        there = {((kind, tag, side), at, name) for kind, tag, side, at, name in members}
        return there - right, right - there

    def deletions(self, strays: Iterable[Key], at: int) -> Iterator[Statement]:
        """Statements that delete members."""
        for (kind, tag, side), of, name in strays:
            values = (at, kind, tag, side, of, name)
            yield Statement(cql=cql.delete_member(self._tables), values=values, level="write")

    def insertions(self, missing: Iterable[Key], rows: Iterable[DocumentRow], at: int) -> Iterator[Statement]:
        """Statements that write members of documents that were read."""
        by_id = {row.id: row for row in rows}
        for (kind, tag, side), of, name in missing:
            row = by_id.get(name)
            weight = memberships(row.links).get((kind, tag, side)) if row else None
            if row and weight is not None:
                (code,) = codes.encode(row.vector[None])
                values = (kind, tag, side, of, name, weight, code, at)
                text = cql.write_members(self._tables, 1, lifetime=False)
                yield Statement(cql=text, values=values, level="write")

    def _all(self, text: str) -> Requests:
        return Requests(statements=(Statement(cql=text),), what="read all documents")


def report_of(strays: set[Key], missing: set[Key]) -> Report:
    """What a comparison found, in words."""
    problems = {
        "members of link groups without a document that has the link": strays,
        "links of documents that are missing from their link group": missing,
    }
    return Report(
        findings=tuple(
            Finding(problem=problem, count=len(keys), examples=tuple(map(_shown, sorted(keys)[:_EXAMPLES])))
            for problem, keys in problems.items()
            if keys
        )
    )


def _shown(key: Key) -> str:
    (kind, tag, side), _, name = key
    return f"{kind} {tag} ({side}) {name}"
