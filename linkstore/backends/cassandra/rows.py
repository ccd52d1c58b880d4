"""Converts between records and rows of the table of documents."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson
import xxhash

from linkstore.backends.base import Record
from linkstore.backends.cassandra.states import packed as packed_set
from linkstore.backends.cassandra.states import sized
from linkstore.errors import DocumentError
from linkstore.filters import Condition
from linkstore.links import LINKS_KEY, Link, links_in
from linkstore.plans import Side
from linkstore.storedlinks import passing_weights
from linkstore.vectors import Floats

Membership = tuple[str, str, Side]
"""A side of a link group: kind, tag, side."""
StoredLink = tuple[str, str, str, float]
"""A link in the column of links: kind, tag, direction, weight."""
LinkCell = tuple[str, frozenset[StoredLink]]
"""The column of links: the JSON of ``metadata["links"]`` (empty: none), and the parsed links.

Both are in one column, so that they always come from the same write.
"""
Replaced = Mapping[str, str]
"""The column of replaced links: for each kind, see :func:`replacement`."""
LONGEST_KEY: Final = 65_535
"""Maximum length of a key in bytes."""
LONGEST_ID: Final = 65_000
"""Maximum length of an id in bytes of UTF-8; together with a word and a hash it must fit into a key."""
LONGEST_TERM: Final = 512
"""Longer values (bytes of UTF-8) are not searchable; the server's index accepts at most 1,024 bytes."""
_REQUIRED: Final = 6
_SIZE: Final = struct.Struct(">i")
_WEIGHT: Final = struct.Struct(">f")
_PARTS: Final = 4
_PARSED: Final = 1 << 14
"""How many different links are kept parsed."""
_SHORT: Final = 512
"""Links of at most this many bytes are."""
_SIDES: Final[Mapping[str, tuple[Side, ...]]] = {"out": ("out",), "in": ("in",), "bidir": ("out", "in")}


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A stored document.

    Args:
        id: Its id.
        text: Its content.
        attributes: Its metadata without links, as JSON.
        packed: Its links as :func:`current_links` gives them, see :func:`links_of`.
        vector: (d,) float32 of unit length.
    """

    id: str
    text: str
    attributes: str
    packed: bytes | None
    vector: Floats

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> DocumentRow:
        """Make a document from id, body, attributes, links, digest, vector, replaced links."""
        id, text, attributes, links, _, vector, relinked = row
        return cls(id, text, attributes, current_links(links, relinked), vector)

    @property
    def links(self) -> list[StoredLink]:
        """Its links."""
        return links_of(self.packed)

    def metadata(self) -> dict[str, Any]:
        """Return the metadata as it was added, as a new dict."""
        fields: dict[str, Any] = orjson.loads(self.attributes)
        written = written_links(self.packed)
        return {**fields, LINKS_KEY: orjson.loads(written)} if written else fields

    def weight(self, kind: str, tag: str, side: Side) -> float | None:
        """Return the highest weight of the links to a link group on one side, or None without such a link.

        This searches the packed bytes. A match is always a link: kinds, tags and JSON contain no NUL, and the
        size before each part starts with one.
        """
        packed, start = self.packed or b"", sized((kind.encode(), tag.encode()))
        found = []
        for direction in _DIRECTIONS[side]:
            at = packed.find(start + direction)
            if at >= 0:
                at += len(start) + len(direction)
                found.append(_WEIGHT.unpack_from(packed, at + _SIZE.size)[0])
        return max(found, default=None)

    def weights(self) -> dict[Side, dict[tuple[str, str], float]]:
        """Return the link groups of the document on each side, with the highest weight of its links."""
        found: dict[Side, dict[tuple[str, str], float]] = {"out": {}, "in": {}}
        for (kind, tag, side), weight in memberships(self.links).items():
            found[side][kind, tag] = weight
        return found

    def passing(self, side: Side, condition: Condition) -> dict[tuple[str, str], float]:
        """Return the groups of one side for links whose data pass a condition.

        The data are only in the JSON.
        """
        if not has_link_data(self.packed):
            return self.weights()[side] if condition.matches({}) else {}
        return passing_weights(read_links(self.packed, self.id), side, condition)

    def record(self) -> Record:
        """Return the record that was written."""
        metadata = self.metadata()
        return Record(
            id=self.id,
            text=self.text,
            metadata=metadata,
            vector=self.vector,
            links=links_in(metadata, self.id),
        )


def is_whole(row: Sequence[Any]) -> bool:
    """Say whether a row is a document, which has every column that a document must have.

    These columns are the first six of each statement that reads documents.

    A row that lacks one is treated as missing by all reads, and reported by ``verify``. If a document
    expires, its links may outlive the other columns by a second.
    """
    return all(column is not None for column in row[:_REQUIRED])


_DIRECTIONS: Final[Mapping[Side, tuple[bytes, ...]]] = {
    "out": (sized((b"out",)), sized((b"bidir",))),
    "in": (sized((b"in",)), sized((b"bidir",))),
}
"""The directions of links on each side, in the format of the native protocol."""


def links_of(packed: bytes | None) -> list[StoredLink]:
    """Read a document's links from the native protocol's format, several times faster than the driver.

    The column is a tuple of the JSON and the set of links. A collection is its length followed by its
    elements, a tuple is its parts. Each element or part is preceded by its size in bytes, -1 for null. All
    numbers are 32-bit big-endian integers.
    """
    if packed is None:
        return []
    found: list[StoredLink] = []
    (size,) = _SIZE.unpack_from(packed)
    at, end = 3 * _SIZE.size + size, len(packed)  # after the JSON, the size of the set, and its length
    while at < end:
        (size,) = _SIZE.unpack_from(packed, at)
        at += _SIZE.size + size
        read = _link_of if size > _SHORT else _short_link_of
        found.append(read(packed[at - size : at]))
    return found


def _link_of(packed: bytes) -> StoredLink:
    """Read one link of the set."""
    parts, at = [], 0
    for _ in range(_PARTS):
        (size,) = _SIZE.unpack_from(packed, at)
        at += _SIZE.size + size
        parts.append(packed[at - size : at])
    kind, tag, direction, weight = parts
    return kind.decode(), tag.decode(), direction.decode(), _WEIGHT.unpack(weight)[0]


@lru_cache(maxsize=_PARSED)
def _short_link_of(packed: bytes) -> StoredLink:
    """Read one link of the set, with a cache, because many documents have the same link."""
    return _link_of(packed)


def written_links(packed: bytes | None) -> bytes:
    """Return the JSON of a document's links as in its metadata, empty if it has no links."""
    if packed is None:
        return b""
    (size,) = _SIZE.unpack_from(packed)
    return packed[_SIZE.size : _SIZE.size + size]


def has_link_data(packed: bytes | None) -> bool:
    """Say whether a link of a document may have data."""
    return packed is not None and b'"data":' in packed


def read_links(packed: bytes | None, id: str) -> tuple[Link, ...]:
    """Return a document's links with their labels and data, duplicates merged."""
    written = written_links(packed)
    return links_in({LINKS_KEY: orjson.loads(written)}, id) if written else ()


def replacement(at: int, kinds: Iterable[str], links: Iterable[Mapping[str, Any]]) -> Replaced:
    """Return the cells of the column of replaced links that replace the links of these kinds at one time.

    Each kind is a cell, so clients that replace links of different kinds do not write the same cell. A cell
    is JSON: when it was written, and the links with their positions among all that were written with them.
    """
    found: dict[str, list[tuple[int, Any]]] = {kind: [] for kind in kinds}
    for position, link in enumerate(links):
        found[link["kind"]].append((position, link))
    return {kind: orjson.dumps([at, of]).decode() for kind, of in found.items()}


def current_links(packed: bytes | None, relinked: Replaced | None) -> bytes | None:
    """Return the column of links with the links that were replaced since it was written.

    Links of other kinds keep their order. The replaced ones follow, those replaced last at the end.
    """
    if not relinked:
        return packed
    links = [link for link in orjson.loads(written_links(packed) or b"[]") if link["kind"] not in relinked]
    cells = [(at, kind, of) for kind, (at, of) in _cells(relinked)]
    later = sorted((at, position, kind, n) for at, kind, of in cells for n, (position, _) in enumerate(of))
    of_kind = {kind: of for _, kind, of in cells}
    links += [of_kind[kind][n][1] for _, _, kind, n in later]
    return packed_cell(link_cell(orjson.dumps(links).decode(), links_in({LINKS_KEY: links}, "")))


def last_replaced(relinked: Replaced | None) -> int:
    """Return when links were last replaced, 0 if never since the document was written."""
    return max((at for _, (at, _) in _cells(relinked)), default=0) if relinked else 0


def _cells(relinked: Replaced) -> Iterator[tuple[str, tuple[int, list[tuple[int, Any]]]]]:
    return ((kind, orjson.loads(cell)) for kind, cell in relinked.items())


def memberships(links: Iterable[StoredLink]) -> dict[Membership, float]:
    """Return the sides of link groups of a document with these links, each with the highest weight."""
    found: dict[Membership, float] = {}
    for kind, tag, direction, weight in links:
        for side in _SIDES[direction]:
            key = (kind, tag, side)
            found[key] = max(weight, found.get(key, 0.0))
    return found


def stored_links(links: Iterable[Link]) -> frozenset[StoredLink]:
    """Return the set of links in the column of links."""
    return frozenset((link.kind, link.tag, link.direction, link.weight) for link in links)


def packed_cell(cell: LinkCell) -> bytes:
    """Pack the column of links in the format of the native protocol, see :func:`links_of`."""
    written, links = cell
    each = [(_packed_link if len(link[1]) > _SHORT else _short_packed_link)(link) for link in sorted(links)]
    return sized((written.encode(), packed_set(*each)))


def _packed_link(link: StoredLink) -> bytes:
    """Pack one link of the set."""
    *names, weight = link
    return sized((*map(str.encode, names), _WEIGHT.pack(weight)))


@lru_cache(maxsize=_PARSED)
def _short_packed_link(link: StoredLink) -> bytes:
    """Pack one link of the set, with a cache, because many documents have the same link."""
    return _packed_link(link)


def link_cell(written: str, links: Iterable[Link]) -> LinkCell:
    """Return the column of links."""
    return written, stored_links(links)


def searchable(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that the server can look up for a filter, which have one short value."""
    entries = {name: term(value) for name, value in metadata.items() if len(name.encode()) <= LONGEST_TERM}
    return {name: found for name, found in entries.items() if found is not None}


def term(value: object) -> str | None:
    """Return a string that is the same for all values that filters treat as equal, None if not searchable.

    Equal numbers have the same string. A number, a string and a boolean never have the same string.
    """
    if isinstance(value, bool):
        return f"b{value:d}"
    if isinstance(value, str):
        return f"s{value}" if len(value.encode()) <= LONGEST_TERM else None
    if isinstance(value, int | float):
        return f"n{int(value)}" if value == int(value) else f"n{value!r}"
    return None


def is_possible(id: str) -> bool:
    """Say whether a document can have this id. Other ids are not sent to the server."""
    return len(id) <= LONGEST_KEY and len(id.encode()) <= LONGEST_KEY


def attributes_of(record: Record) -> tuple[str, str]:
    """Return a record's metadata without links, and its links (empty: none), as JSON.

    Raises:
        DocumentError: If the metadata is not JSON, or the id is too long. The message names the document.
    """
    if len(record.id) > LONGEST_ID or len(record.id.encode()) > LONGEST_ID:
        raise DocumentError(
            f"document {record.id[:60]!r}… cannot be stored: its id has {len(record.id.encode()):,} bytes,"
            f" and in Cassandra it may have {LONGEST_ID:,} at most"
        )
    try:
        record.text.encode()
        fields = dict(record.metadata)
        written = orjson.dumps(fields.pop(LINKS_KEY)).decode() if LINKS_KEY in fields else ""
        return orjson.dumps(fields).decode(), written
    except (TypeError, ValueError) as error:
        raise DocumentError(
            f"document {record.id!r} cannot be stored: {error}; metadata must be plain JSON"
        ) from error


def digest_of(record: Record, attributes: str) -> bytes:
    """Return a hash of text, metadata without links, and vector."""
    text = record.text.encode()
    digest = xxhash.xxh3_128(text)
    digest.update(b"\0%d\0" % len(text) + attributes.encode())
    digest.update(record.vector.data)
    return digest.digest()
