"""The postings of a store held against its documents, and mended. It reads every row, but keeps little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from linkstore.backends.base import Finding
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.nearest import SCAN_PAGE, scan_page
from linkstore.backends.cassandra.postings import (
    HEAD,
    DocumentWords,
    Partition,
    PostingKey,
    PostingStatements,
)
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.plans import Operation

_EXAMPLES: Final = 5
_AT_ONCE: Final = 8
"""So many partitions are read at once: of 256, so a small part of all rows is held at a time."""
_WHAT: Final = "compare words with documents"
_STAMP: Final = slice(HEAD.fields["stamp"][1], HEAD.itemsize)  # type: ignore[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordComparison:
    """How postings differ from the words of documents.

    Args:
        strays: Postings that no document stands behind.
        incomplete: Ids of documents of which postings are missing.
    """

    strays: Sequence[PostingKey]
    incomplete: Sequence[str]

    def findings(self) -> tuple[Finding, ...]:
        """The same in words."""
        strays = [f"{word!r} of {name}" for _, _, word, _, name in self.strays[:_EXAMPLES]]
        found = (
            ("words without a document that has them", len(self.strays), strays),
            ("documents whose words are not all indexed", len(self.incomplete), self.incomplete[:_EXAMPLES]),
        )
        return tuple(
            Finding(problem=problem, count=count, examples=tuple(examples))
            for problem, count, examples in found
            if count
        )


class WordInspection:
    """Looks at all postings.

    A posting follows from the state that its stamp names. So of each document no more is kept than its stamp
    and how many postings it has.

    Args:
        tables: Of the store.
        fetcher: Reads documents.
        buckets: Into how many partitions a word is split.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, buckets: int) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._buckets = buckets
        self._statements = PostingStatements(tables, fetcher)

    def compare(self) -> Operation[WordComparison]:
        """Count the postings of each document."""
        right: dict[str, tuple[bytes, int]] = {}
        after: str | None = None
        while page := (yield from scan_page(self._tables, after, SCAN_PAGE)):
            for row in page:
                words = DocumentWords.of(row.id, row.text, row.metadata())
                right[row.id] = words.stamp.to_bytes(8, "big"), len(words.counts) + 1
            after = page[-1].id
        missing, strays = {name: count for name, (_, count) in right.items()}, []
        whole = Statement(cql=cql.read_partitions_of_words(self._tables))
        (partitions,) = yield Requests(statements=(whole,), what=_WHAT)
        for requests in self._reading(partitions):
            answers = yield requests
            for statement, rows in zip(requests.statements, answers, strict=True):
                for word, head, name in rows:
                    if name in right and right[name][0] == head[_STAMP]:
                        missing[name] -= 1
                    else:
                        strays.append((*statement.values, word, head, name))
        return WordComparison(strays=strays, incomplete=[name for name, count in missing.items() if count])

    def mend(self, comparison: WordComparison, now: int) -> Operation[None]:
        """Delete strays, and write the postings of documents that lack some."""
        yield from self._run(tuple(self._statements.delete(comparison.strays, now)))
        names = comparison.incomplete
        for start in range(0, len(names), SCAN_PAGE):
            documents = yield from self._fetcher.documents(names[start : start + SCAN_PAGE])
            words = (DocumentWords.of(row.id, row.text, row.metadata()) for row in documents)
            keys = (key for each in words for key in each.keys(self._buckets))
            yield from self._run(tuple(self._statements.write(keys, now)))

    def _reading(self, partitions: Sequence[Partition]) -> Iterator[Requests]:
        """All partitions, a few at a time."""
        text = cql.read_partition_of_words(self._tables)
        for start in range(0, len(partitions), _AT_ONCE):
            keys = partitions[start : start + _AT_ONCE]
            yield Requests(statements=tuple(Statement(cql=text, values=key) for key in keys), what=_WHAT)

    def _run(self, statements: tuple[Statement, ...]) -> Operation[None]:
        if statements:
            yield Requests(statements=statements, what="mend words")
