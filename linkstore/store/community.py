"""A table of langchain-community as a source. Importing this needs the extra ``cassandra``."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote

import orjson
from langchain_core.embeddings import Embeddings

from linkstore.core.arrays import normalize_vectors
from linkstore.core.documents import check_id
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.engines.cassandra.backend import CassandraBackend
from linkstore.engines.cassandra.codec import unpack_vector
from linkstore.engines.cassandra.driver import Session
from linkstore.engines.cassandra.execution import Executor
from linkstore.engines.cassandra.session import connect_session, resolve_session
from linkstore.engines.cassandra.settings import CassandraSettings
from linkstore.engines.cassandra.statements import Requests, Row, Statement, quote_identifier
from linkstore.engines.contract import Manifest, PageEntry, Record
from linkstore.errors import DocumentError, EmbeddingError, LinkError, StoreFormatError, StoreNotFoundError
from linkstore.store.migration import BackendSource, Batch, MigrationSource, find_recorded_name

READ_COLUMNS: Final = (
    "SELECT column_name, type, kind, position, clustering_order FROM system_schema.columns"
    " WHERE keyspace_name = ? AND table_name = ?"
)
"""The columns of a table; values: keyspace, table."""
_LINKED: Final = "link"
"""The value of the entries that langchain-community adds to metadata to find documents by their links."""
_BODY: Final = "body_blob"
_VECTOR: Final = "vector"
_OPTIONAL: Final = ("attributes_blob", "metadata_s")
_DIMENSION: Final = re.compile(r"vector<float, (\d+)>")
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("text", "ascii"), str),
    **dict.fromkeys(("uuid", "timeuuid"), uuid.UUID),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "varint"), int),
}
"""How the key columns of a type are read from strings."""
ColumnRow = tuple[str, str, str, int, str]
"""Name, type, kind, position and clustering order of a column."""


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
        driver_session, chosen = resolve_session(session, keyspace)
        self._executor = Executor(driver_session, settings)
        columns = _read_columns(self._executor, chosen, table)
        self._check_columns(f"table {table!r} in the keyspace {chosen!r}", columns)
        types = {name: kind for name, kind, *_ in columns}
        placed = sorted(columns, key=lambda column: column[3])
        self._partition = [(name, types[name]) for name, _, role, *_ in placed if role == "partition_key"]
        self._clustering = [(name, types[name]) for name, _, role, *_ in placed if role == "clustering"]
        self._order = "<" if any(order == "desc" for *_, order in columns) else ">"
        self._optional = [name for name in _OPTIONAL if name in types]
        names = [*(name for name, _ in self._keys), _BODY, _VECTOR, *self._optional]
        selected = ", ".join(map(quote_identifier, names))
        self._select = f"SELECT {selected} FROM {quote_identifier(chosen)}.{quote_identifier(table)}"
        (dimension,) = _DIMENSION.findall(types[_VECTOR])
        self._manifest = Manifest(embedding=find_recorded_name(embedding), dimension=int(dimension))

    @staticmethod
    def _check_columns(where: str, columns: Sequence[ColumnRow]) -> None:
        if not columns:
            raise StoreNotFoundError(f"{where} does not exist; check the spelling")
        if not _is_community(columns):
            names = ", ".join(sorted(name for name, *_ in columns))
            raise StoreFormatError(
                f"the {where} was not made by langchain-community: it has {names}, and not {_BODY} with"
                f" {_VECTOR}"
            )
        keys = [column for column in columns if column[2] in {"partition_key", "clustering"}]
        unknown = ", ".join(f"{name} {kind}" for name, kind, *_ in keys if kind not in _READERS)
        orders = {order for *_, role, _, order in keys if role == "clustering"}
        if unknown or len(orders) > 1:
            problem = f"of {unknown}" if unknown else "ordered both up and down"
            raise StoreFormatError(f"the {where} has a key {problem}, which cannot be read on from any row")

    @property
    def _keys(self) -> list[tuple[str, str]]:
        return [*self._partition, *self._clustering]

    def manifest(self) -> Manifest:
        """Return the embedding that was named, and the dimension of the table's vectors."""
        return self._manifest

    def pages(self) -> Sequence[PageEntry]:
        """Return nothing, since langchain-community keeps no pages."""
        return ()

    def batch(self, after: str | None, limit: int) -> Batch:
        """Return the next documents in the order of the ring, then of the partition."""
        records: list[Record] = []
        refused: dict[str, str] = {}
        cursor = None
        for row in self._read_rows(after, limit):
            key, (text, vector, *metadata) = row[: len(self._keys)], row[len(self._keys) :]
            *parts, own = map(str, key)
            id = "/".join((*(quote(part, safe="") for part in parts), own))
            cursor = orjson.dumps([*map(str, key)]).decode()
            unpacked = None if vector is None else unpack_vector(vector)
            try:
                records.append(
                    _make_record(id, text, unpacked, **dict(zip(self._optional, metadata, strict=True)))
                )
            except (DocumentError, LinkError) as error:
                refused[id] = error.message
        return Batch(cursor=cursor, records=records, refused=refused)

    def _read_rows(self, after: str | None, limit: int) -> list[Row]:
        """Read the next rows: those left of the partition of the last one, then other partitions."""
        if after is None:
            return self._read("", (), limit)
        words = orjson.loads(after)
        key = tuple(_READERS[kind](word) for (_, kind), word in zip(self._keys, words, strict=True))
        rows: list[Row] = []
        if self._clustering:
            same = " AND ".join(f"{quote_identifier(name)} = ?" for name, _ in self._partition)
            columns, places = _list_columns(self._clustering)
            rows = self._read(f" WHERE {same} AND ({columns}) {self._order} ({places})", key, limit)
        if len(rows) < limit:
            columns, places = _list_columns(self._partition)
            partition = key[: len(self._partition)]
            rows += self._read(f" WHERE token({columns}) > token({places})", partition, limit - len(rows))
        return rows

    def _read(self, where: str, values: tuple[Any, ...], limit: int) -> list[Row]:
        cql = f"{self._select}{where} LIMIT ?"
        statement = Statement(cql=cql, values=(*values, limit), limit=limit)
        (rows,) = self._executor.run(Requests(statements=(statement,), what="read documents"))
        return rows


def _list_columns(columns: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Return the names of columns and as many placeholders, each with commas between them."""
    return ", ".join(quote_identifier(name) for name, _ in columns), ", ".join("?" * len(columns))


def _make_record(
    id: str, text: Any, vector: Any, attributes_blob: str | None = None, metadata_s: Any = None
) -> Record:
    """Make a record of a row, with its unsearchable metadata, as JSON, and its searchable metadata.

    Raises:
        DocumentError: If it lacks its text or vector, or has metadata that is none.
        LinkError: If its links cannot be read.
    """
    check_id(id)
    if not isinstance(text, str):
        raise DocumentError("it has no text" if text is None else f"its text is {type(text).__name__}")
    if vector is None:
        raise DocumentError("it has no vector")
    metadata = {**_parse_attributes(attributes_blob), **dict(metadata_s or {})}
    links = _take_links(metadata, id)
    if links:
        metadata[LINKS_KEY] = [link.to_dict() for link in links]
    unit = normalize_vectors([vector], None, [id])[0]
    return Record(id=id, text=text, metadata=metadata, vector=unit, links=links)


def _parse_attributes(text: str | None) -> dict[str, Any]:
    """Return the metadata in a column of JSON, if it would come back as it is."""
    if text is None:
        return {}
    try:
        metadata = json.loads(text)
        same = orjson.loads(orjson.dumps(metadata)) == metadata
    except (ValueError, TypeError, RecursionError) as error:
        raise DocumentError(f"its metadata cannot be read: {error}") from error
    if not isinstance(metadata, dict) or not same:
        raise DocumentError("its metadata is not a JSON object that linkstore can store")
    return metadata


def _take_links(metadata: dict[str, Any], id: str) -> tuple[Link, ...]:
    """Take the links out of metadata, with the entries by which langchain-community finds them."""
    stored = metadata.pop(LINKS_KEY, None)
    if isinstance(stored, str):
        try:
            stored = orjson.loads(stored)
        except ValueError as error:
            raise LinkError(f"its links are not valid JSON: {stored[:100]!r}") from error
    links = parse_links({LINKS_KEY: stored}, id)
    for link in links:
        key = f"link:{link.kind}:{link.tag}"
        if link.leads_in and metadata.get(key) == _LINKED:
            del metadata[key]
    return links


@contextmanager
def open_source(url: str, embedding: str | None = None) -> Iterator[MigrationSource]:
    """Open the store at a URL: a linkstore, or a table of langchain-community, by its columns.

    Args:
        url: ``cassandra://host:port/keyspace/table``.
        embedding: Name of what the vectors were made with; needed for a table of langchain-community.

    Raises:
        StoreNotFoundError: If there is neither.
        StoreFormatError: If there is another table of this name.
        EmbeddingError: If the embedding is not named and the table does not say.
        StoreUnavailableError: If no server answers.
    """
    connection = connect_session(url)
    try:
        session, keyspace, table = connection.session, connection.address.keyspace, connection.address.table
        columns = _read_columns(Executor(session), keyspace, table)
        if not _is_community(columns):
            yield BackendSource(_open_linkstore(session, keyspace, table, columns))
        elif embedding is None:
            raise EmbeddingError(
                f"the table {table!r} was made by langchain-community, which does not record the embedding:"
                " name the embedding of its vectors, such as --embedding-name openai:text-embedding-3-small"
            )
        else:
            yield CommunityTable(embedding, table=table, session=session, keyspace=keyspace)
    finally:
        connection.close()


def check_free_for_store(url: str) -> None:
    """Make sure that a store can be made at a URL, or is there.

    Raises:
        StoreFormatError: If there is a table of langchain-community.
        StoreUnavailableError: If no server answers.
    """
    connection = connect_session(url)
    address = connection.address
    try:
        columns = _read_columns(Executor(connection.session), address.keyspace, address.table)
    finally:
        connection.close()
    if _is_community(columns):
        raise StoreFormatError(
            f"the table {address.table!r} in the keyspace {address.keyspace!r} was made by"
            " langchain-community; name another one, which will be made"
        )


def _open_linkstore(
    session: Session, keyspace: str, table: str, columns: Sequence[ColumnRow]
) -> CassandraBackend:
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


def _read_columns(executor: Executor, keyspace: str, table: str) -> list[Any]:
    look = Statement(cql=READ_COLUMNS, values=(keyspace, table), level="one")
    return executor.run(Requests(statements=(look,), what="look for the table"))[0]


def _is_community(columns: Sequence[ColumnRow]) -> bool:
    """Say whether these are the columns of a table of cassio's with texts and vectors."""
    types = {name: kind for name, kind, *_ in columns}
    return _BODY in types and bool(_DIMENSION.fullmatch(types.get(_VECTOR, "")))
