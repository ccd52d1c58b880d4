"""Makes records ready to be written: serialises them, checks their sizes, and packs them into statements.

The values are packed here in the format of the native protocol, which takes a fifth of the driver's time. A
statement has as many documents as fit into a batch that the server does not warn about. Each is still written
atomically, and on its own.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.backends.base import Record
from linkstore.backends.cassandra import codes, cql
from linkstore.backends.cassandra.batching import batches, packed_batch
from linkstore.backends.cassandra.cql import Tables
from linkstore.backends.cassandra.reading import Fetcher
from linkstore.backends.cassandra.rows import attributes_of, digest_of, link_cell, packed_cell, searchable
from linkstore.backends.cassandra.states import packed_map
from linkstore.backends.cassandra.transport.requests import Statement
from linkstore.errors import DocumentError

BATCH_SIZES: Final = (3, 2, 1)
"""Numbers of documents in a statement. There are few of them, because each needs a prepared statement."""
DELETED_AT_ONCE: Final = 10
"""Number of documents that one statement deletes."""
_OF_KEYS: Final = 200_000
"""Upper limit of the bytes of an id and a vector."""
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A record ready to be written."""

    record: Record
    attributes: str
    links: str
    digest: bytes
    code: bytes


def prepare(records: Sequence[Record]) -> list[Prepared]:
    """Serialise records before anything is written. The last record of each id counts.

    Raises:
        DocumentError: If metadata is not JSON. The message names the document.
    """
    last = list({record.id: record for record in records}.values())
    if not last:
        return []
    packed = codes.encode(np.stack([record.vector for record in last]))
    return [_prepared(record, code) for record, code in zip(last, packed, strict=True)]


def check_sizes(prepared: Iterable[Prepared], limit: int) -> None:
    """Check that each document fits into one write.

    Raises:
        DocumentError: If a document is larger than the limit. The message names the document.
    """
    for item in prepared:
        record = item.record
        if 8 * (len(record.text) + len(item.attributes) + len(item.links)) + _OF_KEYS < limit:
            continue  # even if each character were one of four bytes, and all were stored twice
        parts = [record.id, record.text, item.attributes, item.links, item.links]
        parts += itertools.chain.from_iterable(searchable(record.metadata).items())
        size = record.vector.nbytes + sum(len(part.encode()) for part in parts)
        if size > limit:
            raise DocumentError(
                f"document {record.id[:60]!r} takes {size:,} bytes in Cassandra, and {limit:,} are allowed"
                " (max_document_bytes): split it; or raise the limits of the server, commitlog_segment_size"
                " and native_transport_max_frame_size, and then this one"
            )


def _prepared(record: Record, code: bytes) -> Prepared:
    attributes, links = attributes_of(record)
    digest = digest_of(record, attributes)
    return Prepared(record=record, attributes=attributes, links=links, digest=digest, code=code)


class DocumentStatements:
    """Statements that write and delete documents.

    Args:
        tables: The tables of the store.
        fetcher: Finds the nodes of documents.
        lifetime: Seconds until documents expire. None: never.
    """

    def __init__(self, tables: Tables, fetcher: Fetcher, lifetime: int | None) -> None:
        self._tables = tables
        self._fetcher = fetcher
        self._lifetime = () if lifetime is None else (_INT.pack(lifetime),)

    def write(
        self, items: Sequence[Prepared], at: int, born: Mapping[str, int | None]
    ) -> Iterator[Statement]:
        """Write documents with one timestamp.

        Args:
            items: The documents.
            at: The timestamp.
            born: When those of them that exist were added.
        """
        for share in self._fetcher.by_replica(self._tables.name, [(item.record.id,) for item in items]):
            part_of = [items[position] for position in share.positions]
            rows = [(*_packed_row(one, born.get(one.record.id, at)), *self._lifetime) for one in part_of]
            for part in batches(rows, BATCH_SIZES):
                text = cql.write_documents(self._tables, len(part), lifetime=bool(self._lifetime))
                yield packed_batch(text, at, part, routing=part[0][0])

    def delete(self, ids: Sequence[str], at: int) -> Iterator[Statement]:
        """Delete documents that were written before ``at``."""
        text = cql.delete_documents(self._tables)
        for share in self._fetcher.by_replica(self._tables.name, [(id,) for id in ids]):
            for start in range(0, len(share.positions), DELETED_AT_ONCE):
                part = [ids[position] for position in share.positions[start : start + DELETED_AT_ONCE]]
                yield Statement(cql=text, values=(at, part), level="write", routing=part[0].encode())


def _packed_row(item: Prepared, born: int | None) -> tuple[bytes | None, ...]:
    record = item.record
    return (
        record.id.encode(),
        record.text.encode(),
        item.attributes.encode(),
        packed_map(searchable(record.metadata)),
        packed_cell(link_cell(item.links, record.links)),
        item.digest,
        record.vector.astype(">f4").tobytes(),
        None if born is None else _LONG.pack(born),
    )
