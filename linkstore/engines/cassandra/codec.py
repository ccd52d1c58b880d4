"""The content of rows: documents, their links, codes of vectors, sets of states, and batches of rows.

The number of rows of a batch is one of a few sizes, because each size needs a prepared statement. The server
warns about a batch with more than ten partitions or 5 KiB. A batch within one partition is a single write,
and may have any number of rows.

A code of a vector has 12 bits per component, with a bound on the error of a similarity: ``v ≈ scale · units``
with integer units from -2,047 to 2,047. By the Cauchy-Schwarz inequality, the error of the similarity to a
unit vector is at most the length of ``v - scale · units``, which is stored in the code. A reader finds the
exact best documents if it reads the full vectors of all documents that may be among the best within this
bound. A code has the high 8 bits of all components, then the low 4 bits, two components per byte.

A row of members or words has a set of blobs, one for each recorded state of the document. A write adds its
state to a row, then writes the document, then removes the other states. So a row always has the current state
of its document. Nearly all rows have exactly one state, which is then the current one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import orjson
import xxhash

from linkstore.core.arrays import Floats
from linkstore.core.documents import collect_weights
from linkstore.core.filters import Condition
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.core.plans import Side
from linkstore.engines.cassandra.statements import Statement
from linkstore.engines.contract import Record
from linkstore.errors import DocumentError

BATCH_BYTES: Final = 4_500
"""The server warns about batches of more than 5 KiB."""
ROW_BYTES: Final = 60
"""Bytes that the server counts for a row in addition to its values."""
_LONG: Final = struct.Struct(">q")
Value = TypeVar("Value")
PackedRow = TypeVar("PackedRow", bound=Sequence[bytes | None])


def split_batches(
    rows: Sequence[PackedRow], sizes: Sequence[int], most: int = BATCH_BYTES
) -> Iterator[Sequence[PackedRow]]:
    """Split rows into batches, limited by number of rows and by bytes.

    Args:
        rows: The values of each row, packed. Their order is kept.
        sizes: Numbers of rows that a batch may have, descending. A row that fits no such batch is alone.
        most: The most bytes in a batch.
    """
    counted = (ROW_BYTES + sum([len(value) for value in row if value]) for row in rows)
    ends = list(accumulate(counted, initial=0))
    start = 0
    while start < len(rows):
        fitting = (
            count
            for count in sizes
            if start + count < len(ends) and ends[start + count] - ends[start] <= most
        )
        count = next(fitting, 1)
        yield rows[start : start + count]
        start += count


def split_list(values: Sequence[Value], size: int) -> list[Sequence[Value]]:
    """Split a list into parts of a size, of which the last may be smaller."""
    return [values[start : start + size] for start in range(0, len(values), size)]


def pack_batch(
    text: str, at: int, rows: Iterable[Iterable[bytes | None]], routing: bytes | None
) -> Statement:
    """Return the statement of a batch whose values are packed.

    Args:
        text: A batch with one timestamp.
        at: The timestamp.
        rows: The values of each row.
        routing: The routing key.
    """
    values = [_LONG.pack(at), *chain.from_iterable(rows)]
    return Statement(cql=text, values=values, packed=True, level="write", routing=routing)


_CODE_HEAD: Final = np.dtype([("scale", "<f4"), ("loss", "<f4")])
_MAX_UNIT: Final = np.float32(2047)
_ROUNDING_ERROR: Final = np.float32(1e-5)
"""Upper limit of the rounding errors of float32 sums."""
_VECTORS_PER_BLOCK: Final = 1_024
"""Vectors whose products are computed together, so that they fit into the processor's cache."""
_UNKNOWN_HEAD: Final = np.array([(0, 2)], _CODE_HEAD).tobytes()
_CodeBytes = npt.NDArray[np.uint8]


def encode_vectors(vectors: Floats) -> list[bytes]:
    """Encode unit vectors (n, d) as codes of 8 + 1.5 d bytes each."""
    scale = np.abs(vectors).max(axis=1, initial=0) / _MAX_UNIT
    units = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    lost = vectors.astype(np.float64) - units * scale[:, None].astype(np.float64)
    heads = np.zeros(len(vectors), _CODE_HEAD)
    heads["scale"] = scale
    heads["loss"] = np.sqrt((lost**2).sum(axis=1)) + _ROUNDING_ERROR
    high = (units >> 4).astype(np.int8).view(np.uint8)
    packed = np.hstack(
        (heads.view(np.uint8).reshape(-1, _CODE_HEAD.itemsize), high, _pack_nibbles(units & 15))
    )
    return [row.tobytes() for row in packed]


def compute_code_width(dimension: int) -> int:
    """Return the number of bytes of a code."""
    return _CODE_HEAD.itemsize + dimension + (dimension + 1) // 2


def make_unknown_code(dimension: int) -> bytes:
    """Return a code without information, whose error bound covers every possible similarity."""
    return _UNKNOWN_HEAD.ljust(compute_code_width(dimension), b"\0")


def estimate_similarities(codes: _CodeBytes, vector: Floats) -> tuple[Floats, Floats]:
    """Return similarities of encoded vectors to a unit vector, and bounds on their errors: (n,) and (n,).

    Args:
        codes: (n, width of a code) bytes.
        vector: (d,).
    """
    heads = np.ascontiguousarray(codes[:, : _CODE_HEAD.itemsize]).view(_CODE_HEAD)[:, 0]
    return heads["scale"] * _compute_products(codes[:, _CODE_HEAD.itemsize :], vector), heads["loss"].copy()


def _compute_products(body: _CodeBytes, vector: Floats) -> Floats:
    """Return the (n,) dot products of the units and a vector."""
    parts = (
        _compute_block_products(body[at : at + _VECTORS_PER_BLOCK], vector)
        for at in range(0, len(body), _VECTORS_PER_BLOCK)
    )
    return np.concatenate([np.empty(0, np.float32), *parts])


def _compute_block_products(body: _CodeBytes, vector: Floats) -> Floats:
    dimension = len(vector)
    high, low = body[:, :dimension].view(np.int8), body[:, dimension:]
    first, second = vector[0::2], vector[1::2]
    products: Floats = 16 * _compute_dot_products(high, vector)
    products += _compute_dot_products(low & 15, first)
    products += _compute_dot_products((low >> 4)[:, : len(second)], second)
    return products


def _compute_dot_products(units: npt.NDArray[np.generic], vector: Floats) -> Floats:
    """Return (n,) dot products.

    This does without BLAS, whose idle threads spin, and slow down a server on the same cores.
    """
    dots: Floats = np.einsum("ij,j->i", units.astype(np.float32), vector)
    return dots


def _pack_nibbles(nibbles: npt.NDArray[np.int16]) -> _CodeBytes:
    """Pack two components into each byte, the first one in the low bits."""
    first, second = nibbles[:, 0::2].astype(np.uint8), nibbles[:, 1::2].astype(np.uint8)
    first[:, : second.shape[1]] |= second << 4
    return first


_SIZE: Final = struct.Struct(">i")
SINGLE_STATE: Final = _SIZE.pack(1)
SINGLE_STATE_OFFSET: Final = 2 * _SIZE.size
"""Bytes before the state in a set of one: the number of elements, and the size of the element."""


def pack_vector(vector: Floats) -> bytes:
    """Pack a vector (d,) in the format of the native protocol."""
    return vector.astype(">f4").tobytes()


def unpack_vector(packed: bytes) -> Floats:
    """Return a vector (d,) float32."""
    return np.frombuffer(packed, dtype=">f4").astype(np.float32)


def pack_states(*states: bytes) -> bytes:
    """Pack a set of states in the format of the native protocol."""
    return _SIZE.pack(len(states)) + join_sized(states)


def unpack_states(states: bytes | None) -> list[bytes]:
    """Return the states in a set in the format of the native protocol."""
    return split_sized(states, _SIZE.size) if states else []


def pack_map(entries: Mapping[str, str]) -> bytes:
    """Pack a map of texts in the format of the native protocol."""
    return _SIZE.pack(len(entries)) + join_sized(
        [part.encode() for entry in entries.items() for part in entry]
    )


def join_sized(values: Iterable[bytes]) -> bytes:
    """Join values, each after its size."""
    return b"".join([_SIZE.pack(len(one)) + one for one in values])


def split_sized(packed: bytes, at: int = 0) -> list[bytes]:
    """Return the values from a position on, each of which follows its size."""
    values = []
    while at < len(packed):
        (size,) = _SIZE.unpack_from(packed, at)
        at += _SIZE.size + size
        values.append(packed[at - size : at])
    return values


Membership = tuple[str, str, Side]
"""A side of a link group: kind, tag, side."""
StoredLink = tuple[str, str, str, float]
"""A link in the column of links: kind, tag, direction, weight."""
LinkCell = tuple[str, frozenset[StoredLink]]
"""The column of links: the JSON of ``metadata["links"]`` (empty: none), and the parsed links.

Both are in one column, so that they always come from the same write.
"""
ReplacedLinks = Mapping[str, str]
"""The column of replaced links: for each kind, see :func:`make_replacement`."""
LONGEST_KEY: Final = 65_535
"""Maximum length of a key in bytes."""
LONGEST_ID: Final = 65_000
"""Maximum length of an id in bytes of UTF-8; together with a word and a hash it must fit into a key."""
LONGEST_TERM: Final = 512
"""Longer values (bytes of UTF-8) are not searchable; the server's index accepts at most 1,024 bytes."""
_REQUIRED_COLUMNS: Final = 6
_WEIGHT: Final = struct.Struct(">f")
_MAX_CACHED_LINKS: Final = 1 << 14
"""How many different links are kept parsed."""
_MAX_CACHED_BYTES: Final = 512
"""Links of at most this many bytes are."""
_SIDES: Final[Mapping[str, tuple[Side, ...]]] = {"out": ("out",), "in": ("in",), "bidir": ("out", "in")}


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A stored document.

    Args:
        id: Its id.
        text: Its content.
        attributes: Its metadata without links, as JSON.
        packed: Its links as :func:`merge_replaced_links` gives them, see :func:`unpack_links`.
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
        return cls(id, text, attributes, merge_replaced_links(links, relinked), unpack_vector(vector))

    @property
    def links(self) -> list[StoredLink]:
        """Its links."""
        return unpack_links(self.packed)

    def metadata(self) -> dict[str, Any]:
        """Return the metadata as it was added, as a new dict."""
        fields: dict[str, Any] = orjson.loads(self.attributes)
        written = extract_links_json(self.packed)
        return {**fields, LINKS_KEY: orjson.loads(written)} if written else fields

    def weight(self, kind: str, tag: str, side: Side) -> float | None:
        """Return the highest weight of the links to a link group on one side, or None without such a link.

        This searches the packed bytes. A match is always a link: kinds, tags and JSON contain no NUL, and the
        size before each part starts with one.
        """
        packed, start = self.packed or b"", join_sized((kind.encode(), tag.encode()))
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
        for (kind, tag, side), weight in derive_memberships(self.links).items():
            found[side][kind, tag] = weight
        return found

    def passing(self, side: Side, condition: Condition) -> dict[tuple[str, str], float]:
        """Return the groups of one side for links whose data pass a condition.

        The data are only in the JSON.
        """
        if not has_link_data(self.packed):
            return self.weights()[side] if condition.matches({}) else {}
        return collect_weights(read_links(self.packed, self.id), side, condition)

    def record(self) -> Record:
        """Return the record that was written."""
        metadata = self.metadata()
        return Record(
            id=self.id,
            text=self.text,
            metadata=metadata,
            vector=self.vector,
            links=parse_links(metadata, self.id),
        )


def is_whole(row: Sequence[Any]) -> bool:
    """Say whether a row is a document, which has every column that a document must have.

    These columns are the first six of each statement that reads documents.

    A row that lacks one is treated as missing by all reads, and reported by ``verify``. If a document
    expires, its links may outlive the other columns by a second.
    """
    return all(column is not None for column in row[:_REQUIRED_COLUMNS])


_DIRECTIONS: Final[Mapping[Side, tuple[bytes, ...]]] = {
    "out": (join_sized((b"out",)), join_sized((b"bidir",))),
    "in": (join_sized((b"in",)), join_sized((b"bidir",))),
}
"""The directions of links on each side, in the format of the native protocol."""


def unpack_links(packed: bytes | None) -> list[StoredLink]:
    """Read a document's links from the native protocol's format, several times faster than the driver.

    The column is a tuple of the JSON and the set of links. A collection is its length followed by its
    elements, a tuple is its parts. Each element or part is preceded by its size in bytes, -1 for null. All
    numbers are 32-bit big-endian integers.
    """
    if packed is None:
        return []
    (size,) = _SIZE.unpack_from(packed)
    links = split_sized(packed, 3 * _SIZE.size + size)  # after the JSON, the size of the set, and its length
    return [(_unpack_link if len(one) > _MAX_CACHED_BYTES else _unpack_short_link)(one) for one in links]


def _unpack_link(packed: bytes) -> StoredLink:
    """Read one link of the set."""
    kind, tag, direction, weight = split_sized(packed)
    return kind.decode(), tag.decode(), direction.decode(), _WEIGHT.unpack(weight)[0]


@lru_cache(maxsize=_MAX_CACHED_LINKS)
def _unpack_short_link(packed: bytes) -> StoredLink:
    """Read one link of the set, with a cache, because many documents have the same link."""
    return _unpack_link(packed)


def extract_links_json(packed: bytes | None) -> bytes:
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
    written = extract_links_json(packed)
    return parse_links({LINKS_KEY: orjson.loads(written)}, id) if written else ()


def make_replacement(at: int, kinds: Iterable[str], links: Iterable[Mapping[str, Any]]) -> ReplacedLinks:
    """Return the cells of the column of replaced links that replace the links of these kinds at one time.

    Each kind is a cell, so clients that replace links of different kinds do not write the same cell. A cell
    is JSON: when it was written, and the links with their positions among all that were written with them.
    """
    found: dict[str, list[tuple[int, Any]]] = {kind: [] for kind in kinds}
    for position, link in enumerate(links):
        found[link["kind"]].append((position, link))
    return {kind: orjson.dumps([at, of]).decode() for kind, of in found.items()}


def merge_replaced_links(packed: bytes | None, relinked: ReplacedLinks | None) -> bytes | None:
    """Return the column of links with the links that were replaced since it was written.

    Links of other kinds keep their order. The replaced ones follow, those replaced last at the end.
    """
    if not relinked:
        return packed
    links = [
        link for link in orjson.loads(extract_links_json(packed) or b"[]") if link["kind"] not in relinked
    ]
    cells = [(at, kind, of) for kind, (at, of) in _parse_cells(relinked)]
    later = sorted((at, position, kind, n) for at, kind, of in cells for n, (position, _) in enumerate(of))
    of_kind = {kind: of for _, kind, of in cells}
    links += [of_kind[kind][n][1] for _, _, kind, n in later]
    return pack_cell(make_link_cell(orjson.dumps(links).decode(), parse_links({LINKS_KEY: links}, "")))


def find_last_replaced(relinked: ReplacedLinks | None) -> int:
    """Return when links were last replaced, 0 if never since the document was written."""
    return max((at for _, (at, _) in _parse_cells(relinked)), default=0) if relinked else 0


def _parse_cells(relinked: ReplacedLinks) -> Iterator[tuple[str, tuple[int, list[tuple[int, Any]]]]]:
    return ((kind, orjson.loads(cell)) for kind, cell in relinked.items())


def derive_memberships(links: Iterable[StoredLink]) -> dict[Membership, float]:
    """Return the sides of link groups of a document with these links, each with the highest weight."""
    found: dict[Membership, float] = {}
    for kind, tag, direction, weight in links:
        for side in _SIDES[direction]:
            key = (kind, tag, side)
            found[key] = max(weight, found.get(key, 0.0))
    return found


def make_link_set(links: Iterable[Link]) -> frozenset[StoredLink]:
    """Return the set of links in the column of links."""
    return frozenset((link.kind, link.tag, link.direction, link.weight) for link in links)


def pack_cell(cell: LinkCell) -> bytes:
    """Pack the column of links in the format of the native protocol, see :func:`unpack_links`."""
    written, links = cell
    each = [
        (_pack_link if len(link[1]) > _MAX_CACHED_BYTES else _pack_short_link)(link) for link in sorted(links)
    ]
    return join_sized((written.encode(), pack_states(*each)))


def _pack_link(link: StoredLink) -> bytes:
    """Pack one link of the set."""
    *names, weight = link
    return join_sized((*map(str.encode, names), _WEIGHT.pack(weight)))


@lru_cache(maxsize=_MAX_CACHED_LINKS)
def _pack_short_link(link: StoredLink) -> bytes:
    """Pack one link of the set, with a cache, because many documents have the same link."""
    return _pack_link(link)


def make_link_cell(written: str, links: Iterable[Link]) -> LinkCell:
    """Return the column of links."""
    return written, make_link_set(links)


def select_searchable(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that the server can look up for a filter, which have one short value."""
    entries = {
        name: format_term(value) for name, value in metadata.items() if len(name.encode()) <= LONGEST_TERM
    }
    return {name: found for name, found in entries.items() if found is not None}


def format_term(value: object) -> str | None:
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


def is_possible_id(id: str) -> bool:
    """Say whether a document can have this id. Other ids are not sent to the server."""
    return len(id) <= LONGEST_KEY and len(id.encode()) <= LONGEST_KEY


def serialise_attributes(record: Record) -> tuple[str, str]:
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


def compute_digest(record: Record, attributes: str) -> bytes:
    """Return a hash of text, metadata without links, and vector."""
    text = record.text.encode()
    digest = xxhash.xxh3_128(text)
    digest.update(b"\0%d\0" % len(text) + attributes.encode())
    digest.update(record.vector.data)
    return digest.digest()
