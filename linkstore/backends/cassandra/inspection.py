"""What a store holds as a whole: counted, compared, mended. All of it reads every row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from linkstore.backends.base import Finding, LinkedPage, PageEntry, Survey
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.members import MemberKey, bucket
from linkstore.backends.cassandra.rows import DocumentRow, StoredLink, is_whole, links_of, memberships
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How members differ from the links of documents.

    Args:
        strays: Members that no document stands behind.
        missing: Those that are not there.
        unfinished: Those that a write was to change and did not.
    """

    strays: AbstractSet[MemberKey]
    missing: AbstractSet[MemberKey]
    unfinished: AbstractSet[MemberKey]

    def findings(self) -> tuple[Finding, ...]:
        """The same in words."""
        problems = {
            "members of link groups without a document that has the link": self.strays,
            "links of documents that are missing from their link group": self.missing,
            "members of link groups that an interrupted write left unfinished": self.unfinished,
        }
        found = ((problem, keys) for problem, keys in problems.items() if keys)
        return tuple(_finding(problem, keys) for problem, keys in found)


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
        rows = yield from self._links()
        links: list[StoredLink] = [link for _, of in rows for link in links_of(of)]
        lying = {key for _, of in rows for key in memberships(links_of(of))}
        asked = Counter((kind, tag) for kind, tag, direction, _ in links if direction != "in")
        dangling = sorted(tag for tag in asked if (*tag, "in") not in lying)
        return Survey(
            documents=len(rows),
            pages=pages,
            links=dict(sorted(Counter(kind for kind, *_ in links).items())),
            groups=len({(kind, tag) for kind, tag, _ in lying}),
            dangling=tuple((*tag, asked[tag]) for tag in dangling),
        )

    def linked(self, entries: Iterable[PageEntry], kind: str, take: int) -> Operation[list[LinkedPage]]:
        """The pages that most links of a kind lead to."""
        rows = yield from self._links()
        owners: dict[str, set[PageEntry]] = defaultdict(set)
        for entry in entries:
            for name in entry.ids:
                owners[name].add(entry)
        asking: dict[str, list[str]] = defaultdict(list)
        answering: dict[str, set[PageEntry]] = defaultdict(set)
        for name, of in rows:
            for found, tag, side in memberships(links_of(of)):
                if found == kind and side == "out":
                    asking[tag].append(name)
                elif found == kind:
                    answering[tag].update(owners.get(name, ()))
        counts = Counter(
            (page.source, page.url)
            for tag, pages in answering.items()
            for page in pages
            for name in asking.get(tag, ())
            if page not in owners.get(name, ())
        )
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:take]
        return [LinkedPage(source=source, url=url, links=links) for (source, url), links in ranked]

    def compare(self) -> Operation[Comparison]:
        """Hold the members against the links of the documents."""
        links, members = yield Requests(
            statements=(
                Statement(cql=cql.read_all_links(self._tables)),
                Statement(cql=cql.read_all_members(self._tables)),
            ),
            what="compare members with documents",
        )
        right = {
            (*key, bucket(name, self._buckets), name): weight
            for name, of, digest in links
            if digest is not None
            for key, weight in memberships(links_of(of)).items()
        }
        there = {tuple(key): weight for *key, weight in members}
        return Comparison(
            strays=there.keys() - right.keys(),
            missing=right.keys() - there.keys(),
            unfinished={key for key, weight in right.items() if there.get(key, weight) != weight},
        )

    def rows(
        self, wanted: Iterable[MemberKey], documents: Iterable[DocumentRow]
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of members of documents that were read."""
        by_id = {row.id: row for row in documents}
        for kind, tag, side, at, name in wanted:
            row = by_id.get(name)
            weight = memberships(row.links).get((kind, tag, side)) if row else None
            if row and weight is not None:
                (code,) = codes.encode(row.vector[None])
                yield kind, tag, side, at, name, weight, code

    def _links(self) -> Operation[list[tuple[str, bytes | None]]]:
        statement = Statement(cql=cql.read_all_links(self._tables))
        (rows,) = yield Requests(statements=(statement,), what="read all documents")
        return [row[:2] for row in rows if is_whole(row)]


def _finding(problem: str, keys: AbstractSet[MemberKey]) -> Finding:
    examples = tuple(map(_shown, sorted(keys)[:_EXAMPLES]))
    return Finding(problem=problem, count=len(keys), examples=examples)


def _shown(key: MemberKey) -> str:
    kind, tag, side, _, name = key
    return f"{kind} {tag} ({side}) {name}"
