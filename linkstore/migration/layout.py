"""The tables of langchain-community's Cassandra stores: their columns, and the CQL that reads them.

cassio makes them, with ``row_id`` for the key, or ``partition_id`` before it in clustered tables.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from linkstore.errors import StoreFormatError, StoreNotFoundError

COLUMNS: Final = (
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
        """The document's id: its key; in a clustered table with its partition before it."""
        *parts, own = map(str, key)
        return "/".join((*(quote(part, safe="") for part in parts), own))

    def key(self, words: Sequence[str]) -> tuple[Any, ...]:
        """Key values from strings."""
        return tuple(_READERS[kind](word) for (_, kind), word in zip(self.keys, words, strict=True))

    def first(self) -> str:
        """The first rows in the order of the ring; values: the limit."""
        return f"{self._select()} LIMIT ?"

    def rest_of_partition(self) -> str:
        """The next rows of a partition; values: the last key, the limit."""
        same = " AND ".join(f"{_quoted(name)} = ?" for name, _ in self.partition)
        order = "<" if self.descending else ">"
        columns, places = _listed(self.clustering), _places(self.clustering)
        return f"{self._select()} WHERE {same} AND ({columns}) {order} ({places}) LIMIT ?"

    def next_partitions(self) -> str:
        """The rows of the partitions after one; values: its key, the limit."""
        columns, places = _listed(self.partition), _places(self.partition)
        return f"{self._select()} WHERE token({columns}) > token({places}) LIMIT ?"

    def _select(self) -> str:
        columns = ", ".join(map(_quoted, self.columns))
        return f"SELECT {columns} FROM {_quoted(self.keyspace)}.{_quoted(self.table)}"


def is_community(columns: Sequence[ColumnRow]) -> bool:
    """Whether these are the columns of a table of cassio's with texts and vectors."""
    types = {name: kind for name, kind, *_ in columns}
    return _BODY in types and bool(_DIMENSION.fullmatch(types.get(_VECTOR, "")))


def layout(keyspace: str, table: str, columns: Sequence[ColumnRow]) -> Layout:
    """The layout of a table, from its columns in the schema.

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


def _listed(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(_quoted(name) for name, _ in columns)


def _places(columns: Sequence[object]) -> str:
    return ", ".join("?" * len(columns))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
