"""A table of langchain-community as a source. Importing this needs the extra ``cassandra``."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from linkstore.engines.cassandra.statements import Requests, Row, Statement
from linkstore.engines.contract import Manifest, PageEntry, Record
from linkstore.errors import DocumentError, EmbeddingError, LinkError, StoreFormatError, StoreNotFoundError
from linkstore.store.migration import BackendSource, Batch, Source, find_recorded_name

_LINKED: Final = "link"
"""The value of the entries that langchain-community adds to metadata to find documents by their links."""


def make_record(id: str, text: Any, vector: Any, attributes: str | None, entries: Any) -> Record:
    """Make a record of what a row holds.

    Args:
        id: The document's id.
        text: Its content.
        vector: Of any length but 0.
        attributes: Metadata that was not searchable, as JSON; links are among them.
        entries: Metadata that was searchable, as a map of strings.

    Raises:
        DocumentError: If it lacks its text or vector, or has metadata that is none.
        LinkError: If its links cannot be read.
    """
    check_id(id)
    if not isinstance(text, str):
        raise DocumentError("it has no text" if text is None else f"its text is {type(text).__name__}")
    if vector is None:
        raise DocumentError("it has no vector")
    metadata = {**_parse_attributes(attributes), **dict(entries or {})}
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
        found = json.loads(text)
        same = orjson.loads(orjson.dumps(found)) == found
    except (ValueError, TypeError, RecursionError) as error:
        raise DocumentError(f"its metadata cannot be read: {error}") from error
    if not isinstance(found, dict) or not same:
        raise DocumentError("its metadata is not a JSON object that linkstore can store")
    return found


def _take_links(metadata: dict[str, Any], id: str) -> tuple[Link, ...]:
    """Take the links out of metadata, with the entries by which langchain-community finds them."""
    stored = metadata.pop(LINKS_KEY, None)
    if isinstance(stored, str):
        try:
            stored = orjson.loads(stored)
        except ValueError as error:
            raise LinkError(f"its links are not valid JSON: {_format_value(stored)}") from error
    links = parse_links({LINKS_KEY: stored}, id)
    for link in links:
        key = f"link:{link.kind}:{link.tag}"
        if link.leads_in and metadata.get(key) == _LINKED:
            del metadata[key]
    return links


def _format_value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


READ_COLUMNS: Final = (
    "SELECT column_name, type, kind, position, clustering_order FROM system_schema.columns"
    " WHERE keyspace_name = ? AND table_name = ?"
)
"""The columns of a table; values: keyspace, table."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A table of cassio's with texts and vectors.

    Args:
        keyspace: As it is named in the schema.
        table: Likewise.
        partition: Columns of the partition key, in order: (name, type).
        clustering: Columns that order a partition: (name, type).
        descending: Whether those are ordered downwards.
        dimension: Length of the vectors.
        optional: Which of the columns for metadata there are.
    """

    keyspace: str
    table: str
    partition: tuple[tuple[str, str], ...]
    clustering: tuple[tuple[str, str], ...]
    descending: bool
    dimension: int
    optional: tuple[str, ...]

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """All key columns."""
        return (*self.partition, *self.clustering)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row, in order: keys, body, vector, metadata."""
        return (*(name for name, _ in self.keys), _BODY, _VECTOR, *self.optional)

    def name(self, key: Sequence[Any]) -> str:
        """Return the document's id: its key, in a clustered table with its partition before it."""
        *parts, own = map(str, key)
        return "/".join((*(quote(part, safe="") for part in parts), own))

    def key(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Key values from strings."""
        return tuple(_READERS[kind](word) for (_, kind), word in zip(self.keys, words, strict=True))

    def first(self) -> str:
        """Select the first rows in the order of the ring. Values: the limit."""
        return f"{self._select()} LIMIT ?"

    def rest_of_partition(self) -> str:
        """Select the next rows of a partition. Values: the last key, the limit."""
        same = " AND ".join(f"{_quote_column(name)} = ?" for name, _ in self.partition)
        order = "<" if self.descending else ">"
        columns, places = _join_column_names(self.clustering), _make_placeholders(self.clustering)
        return f"{self._select()} WHERE {same} AND ({columns}) {order} ({places}) LIMIT ?"

    def next_partitions(self) -> str:
        """Select the rows of the partitions after one. Values: its key, the limit."""
        columns, places = _join_column_names(self.partition), _make_placeholders(self.partition)
        return f"{self._select()} WHERE token({columns}) > token({places}) LIMIT ?"

    def _select(self) -> str:
        columns = ", ".join(map(_quote_column, self.columns))
        return f"SELECT {columns} FROM {_quote_column(self.keyspace)}.{_quote_column(self.table)}"


def is_community(columns: Sequence[ColumnRow]) -> bool:
    """Whether these are the columns of a table of cassio's with texts and vectors."""
    types = {name: kind for name, kind, *_ in columns}
    return _BODY in types and bool(_DIMENSION.fullmatch(types.get(_VECTOR, "")))


def read_layout(keyspace: str, table: str, columns: Sequence[ColumnRow]) -> Layout:
    """Return the layout of a table, from its columns in the schema.

    Raises:
        StoreNotFoundError: If there are none.
        StoreFormatError: If it is another table, or its keys cannot be followed.
    """
    where = f"the table {table!r} in the keyspace {keyspace!r}"
    if not columns:
        raise StoreNotFoundError(f"{where.removeprefix('the ')} does not exist; check the spelling")
    types = {name: kind for name, kind, *_ in columns}
    dimension = _DIMENSION.fullmatch(types.get(_VECTOR, ""))
    if not is_community(columns) or dimension is None:
        raise StoreFormatError(
            f"{where} was not made by langchain-community: it has {', '.join(sorted(types))}, and not"
            f" {_BODY} with {_VECTOR}"
        )
    keyed = sorted(columns, key=lambda column: column[3])
    orders = {order for *_, role, _, order in columns if role == "clustering"}
    found = Layout(
        keyspace=keyspace,
        table=table,
        partition=tuple((name, kind) for name, kind, role, *_ in keyed if role == "partition_key"),
        clustering=tuple((name, kind) for name, kind, role, *_ in keyed if role == "clustering"),
        descending=orders == {"desc"},
        dimension=int(dimension[1]),
        optional=tuple(name for name in _OPTIONAL if name in types),
    )
    unknown = [f"{name} {kind}" for name, kind in found.keys if kind not in _READERS]
    if unknown or len(orders) > 1:
        problem = f"of {', '.join(unknown)}" if unknown else "ordered both up and down"
        raise StoreFormatError(f"{where} has a key {problem}, which cannot be read on from any row")
    return found


def _join_column_names(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(_quote_column(name) for name, _ in columns)


def _make_placeholders(columns: Sequence[object]) -> str:
    return ", ".join("?" * len(columns))


def _quote_column(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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
        self._layout = read_layout(chosen, table, _read_columns(self._executor, chosen, table))
        self._embedding = find_recorded_name(embedding)

    def manifest(self) -> Manifest:
        """Return the embedding that was named, and the dimension of the table's vectors."""
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
        given = None if vector is None else unpack_vector(vector)
        return make_record(id, text, given, named.get("attributes_blob"), named.get("metadata_s"))

    def _split(self, row: Row) -> tuple[Row, str]:
        """Return a row's key, and the id that its document gets."""
        key = row[: len(self._layout.keys)]
        return key, self._layout.name(key)

    def _rows(self, after: str | None, limit: int) -> list[Row]:
        """Read the next rows: those left of the partition, then other partitions."""
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
def open_source(url: str, embedding: str | None = None) -> Iterator[Source]:
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
        if not is_community(columns):
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
    if is_community(columns):
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
