"""Which postings a change writes before its documents, and which it deletes after them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from linkstore.backends.base import Record
from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.corpus import Corpus
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.postings import DocumentWords, PostingKey, PostingStatements
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.transport.requests import Statement
from linkstore.plans import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChange:
    """How the words of a store change; by default not at all.

    Args:
        statements: Make the statements; None if there are none to make.
        new: Postings that are written.
        gone: Postings that are deleted.
        corpus: Is told of it.
        documents: How many documents more there are.
        words: How many words more they have in all.
    """

    statements: PostingStatements | None = None
    new: Sequence[PostingKey] = ()
    gone: Sequence[PostingKey] = ()
    corpus: Corpus | None = None
    documents: int = 0
    words: int = 0

    def before(self, at: int) -> Iterator[Statement]:
        """What is written before the documents, with this timestamp."""
        return self.statements.write(self.new, at) if self.statements else iter(())

    def after(self, at: int) -> Iterator[Statement]:
        """What is deleted after them."""
        return self.statements.delete(self.gone, at) if self.statements else iter(())

    def note(self) -> None:
        """Count what was written."""
        if self.corpus:
            self.corpus.add(self.documents, self.words)


class WordWriter:
    """Finds out how words change.

    Args:
        tables: Of the store.
        fetcher: Reads what was stored.
        corpus: Learns of what is written.
        buckets: Into how many partitions a word is split.
        lifetime: Seconds until what is written expires; None: never.
    """

    def __init__(
        self, tables: Tables, fetcher: Fetcher, corpus: Corpus, buckets: int, lifetime: int | None
    ) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._corpus = corpus
        self._buckets = buckets
        self._renew = lifetime is not None
        self._statements = PostingStatements(tables, fetcher, lifetime)

    def change(self, put: Sequence[Record], known: Sequence[str]) -> Operation[WordChange]:
        """Hold what is put against what is stored.

        Args:
            put: What is written, one of each id.
            known: Ids of stored documents that are replaced or removed.
        """
        text = cql.read_texts(self._tables)
        rows = yield from self._fetcher.by_id(text, known, "read documents")
        old = {
            name: DocumentWords.of(name, body or "", orjson.loads(attributes))
            for name, body, attributes in rows
            if attributes is not None
        }
        new = {record.id: DocumentWords.of(record.id, record.text, record.metadata) for record in put}
        same = {name for name in old.keys() & new.keys() if old[name].stamp == new[name].stamp}
        return WordChange(
            statements=self._statements,
            new=self._keys(words for name, words in new.items() if self._renew or name not in same),
            gone=self._keys(words for name, words in old.items() if name not in same),
            corpus=self._corpus,
            documents=len(new) - len(old),
            words=sum(words.length for words in new.values()) - sum(words.length for words in old.values()),
        )

    def _keys(self, states: Iterable[DocumentWords]) -> list[PostingKey]:
        return [key for words in states for key in words.keys(self._buckets)]
