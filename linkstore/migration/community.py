"""A table of langchain-community as a source. Importing this needs the extra ``cassandra``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from langchain_core.embeddings import Embeddings

from linkstore.backends.base import Manifest, PageEntry, Record
from linkstore.backends.cassandra.backend import CassandraBackend
from linkstore.backends.cassandra.settings import CassandraSettings
from linkstore.backends.cassandra.transport.driver import Session
from linkstore.backends.cassandra.transport.execution import Executor
from linkstore.backends.cassandra.transport.requests import Requests, Row, Statement
from linkstore.backends.cassandra.transport.session import connect, resolve_session
from linkstore.errors import DocumentError, EmbeddingError, LinkError, StoreFormatError, StoreNotFoundError
from linkstore.migration.community_rows import record_of
from linkstore.migration.layout import COLUMNS, ColumnRow, is_community, layout
from linkstore.migration.naming import recorded_name
from linkstore.migration.source import BackendSource, Batch, Source


class CommunityTable:
    """A table of ``CassandraGraphVectorStore`` or ``Cassandra`` from langchain-community, to be migrated.

    The columns are found in the schema: tables that are clustered (``partition_id``) are read too, and
    their ids have the partition before them, as in ``partition/row``. Vectors are scaled to unit length.
    Metadata values are strings, as langchain-community keeps them.

    Args:
        embedding: What the vectors were made with, or its name: the table does not say.
        table: As it is named in the schema, mostly in lower case.
        session: A session of cassandra-driver; None: the one made by ``cassio.init``.
        keyspace: None: the session's own, else the one given to ``cassio.init``.
        settings: Consistency and timeouts.

    Raises:
        StoreNotFoundError: If there is no such table.
        StoreFormatError: If its columns are not those that langchain-community makes.
        BackendError: If there is no session or no keyspace.
    """

    def __init__(
        self,
        embedding: Embeddings | str,
        *,
        table: str,
        session: Session | None = None,
        keyspace: str | None = None,
        settings: CassandraSettings | None = None,
    ) -> None:
        found, chosen = resolve_session(session, keyspace)
        self._executor = Executor(found, settings)
        self._layout = layout(chosen, table, _columns(self._executor, chosen, table))
        self._embedding = recorded_name(embedding)

    def manifest(self) -> Manifest:
        """The embedding that was named, and the dimension of the table's vectors."""
        return Manifest(embedding=self._embedding, dimension=self._layout.dimension)

    def batch(self, after: str | None, limit: int) -> Batch:
        """In the order of the ring, then of the partition."""
        rows = self._rows(after, limit)
        if not rows:
            return Batch(cursor=None)
        records: list[Record] = []
        refused: dict[str, str] = {}
        for row in rows:
            key, id = self._split(row)
            try:
                records.append(self._record(id, row[len(key) :]))
            except (DocumentError, LinkError) as error:
                refused[id] = error.message
        last, _ = self._split(rows[-1])
        cursor = orjson.dumps([str(part) for part in last]).decode()
        return Batch(cursor=cursor, records=records, refused=refused)

    def pages(self) -> Sequence[PageEntry]:
        """There are none."""
        return ()

    def _record(self, id: str, values: Sequence[Any]) -> Record:
        text, vector, *metadata = values
        named = dict(zip(self._layout.optional, metadata, strict=True))
        return record_of(id, text, vector, named.get("attributes_blob"), named.get("metadata_s"))

    def _split(self, row: Row) -> tuple[Row, str]:
        """A row's key, and the id that its document gets."""
        key = row[: len(self._layout.keys)]
        return key, self._layout.name(key)

    def _rows(self, after: str | None, limit: int) -> list[Row]:
        """The next rows: those left of the partition, then other partitions."""
        if after is None:
            return self._read(self._layout.first(), (), limit)
        key = self._layout.key(orjson.loads(after))
        rest: list[Row] = []
        if self._layout.clustering:
            rest = self._read(self._layout.rest_of_partition(), key, limit)
        if len(rest) == limit:
            return rest
        partition = key[: len(self._layout.partition)]
        return rest + self._read(self._layout.next_partitions(), partition, limit - len(rest))

    def _read(self, cql: str, values: tuple[Any, ...], limit: int) -> list[Row]:
        statement = Statement(cql=cql, values=(*values, limit), page_limit=limit)
        (rows,) = self._executor.run(Requests(statements=(statement,), what="read documents"))
        return rows


@contextmanager
def source_at(url: str, embedding: str | None = None) -> Iterator[Source]:
    """The store at a URL: a linkstore, or a table of langchain-community, by its columns.

    Args:
        url: ``cassandra://host:port/keyspace/table``.
        embedding: Name of what the vectors were made with; needed for a table of langchain-community.

    Raises:
        StoreNotFoundError: If there is neither.
        StoreFormatError: If there is another table of this name.
        EmbeddingError: If the embedding is not named and the table does not say.
        StoreUnavailableError: If no server answers.
    """
    connection = connect(url)
    try:
        session, keyspace, table = connection.session, connection.address.keyspace, connection.address.table
        columns = _columns(Executor(session), keyspace, table)
        if not is_community(columns):
            yield BackendSource(_linkstore(session, keyspace, table, columns))
        elif embedding is None:
            raise EmbeddingError(
                f"the table {table!r} was made by langchain-community, which does not record the embedding:"
                " name the embedding of its vectors, such as --embedding-name openai:text-embedding-3-small"
            )
        else:
            yield CommunityTable(embedding, table=table, session=session, keyspace=keyspace)
    finally:
        connection.close()


def check_free(url: str) -> None:
    """Make sure that a store can be made at a URL, or is there.

    Raises:
        StoreFormatError: If there is a table of langchain-community.
        StoreUnavailableError: If no server answers.
    """
    connection = connect(url)
    address = connection.address
    try:
        columns = _columns(Executor(connection.session), address.keyspace, address.table)
    finally:
        connection.close()
    if is_community(columns):
        raise StoreFormatError(
            f"the table {address.table!r} in the keyspace {address.keyspace!r} was made by"
            " langchain-community; name another one, which will be made"
        )


def _linkstore(session: Session, keyspace: str, table: str, columns: Sequence[ColumnRow]) -> CassandraBackend:
    try:
        return CassandraBackend(session, keyspace, table, create=False)
    except StoreNotFoundError as error:
        if not columns:
            raise
        names = ", ".join(sorted(name for name, *_ in columns))
        raise StoreFormatError(
            f"the table {table!r} in the keyspace {keyspace!r} was made neither by linkstore nor by"
            f" langchain-community; it has {names}"
        ) from error


def _columns(executor: Executor, keyspace: str, table: str) -> list[Any]:
    look = Statement(cql=COLUMNS, values=(keyspace, table), level="one")
    return executor.run(Requests(statements=(look,), what="look for the table"))[0]
