"""The content of rows: documents, their links, codes of vectors, sets of states, and batches of rows.

A collection is its length followed by its elements, a tuple is its parts. Each element or part is preceded by
its size in bytes, -1 for null. All numbers are 32-bit big-endian integers. Parsing and packing this here is
several times faster than the driver.

A code of a vector has 12 bits per component: ``v ≈ scale · units`` with integer units from -2,047 to 2,047.
By the Cauchy-Schwarz inequality, the error of the similarity to a unit vector is at most the length of
``v - scale · units``, and no component of that is longer than half of the scale. A reader finds the exact
best documents if it reads the full vectors of all documents that may be among the best within this bound. A
code has the scale, the high 8 bits of all components, then the low 4 bits, two components per byte.

A row of members or words has a set of blobs, one for each recorded state of the document. A write adds its
state to a row, then writes the document, then removes the other states. So a row always has the current state
of its document. Nearly all rows have exactly one state, which is then the current one.

A text of more than :data:`LONGEST_INLINE` bytes is not in the row of its document but in a table of texts.
Both rows are written at once. The digest of a document begins with a hash of its text, which tells whether a
text that is read afterwards is still that of the document.

The links of a document are two columns, both JSON: as they are in the metadata, and as they were parsed.
Links that were replaced since are in a third one, which has a cell for each kind;
:func:`merge_replaced_links` puts them together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from math import sqrt
from operator import itemgetter
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
from linkstore.engines.bookkeeping import serialize_record
from linkstore.engines.cassandra.statements import Row, Statement
from linkstore.engines.contract import Record
from linkstore.errors import DocumentError, StoreFormatError

BATCH_BYTES: Final = 4_500
"""The server warns about batches of more than 5 KiB."""
ROW_BYTES: Final = 56
"""Bytes that the server counts for a row in addition to its values, less those of the lifetime, which it does
not count."""
SIZE: Final = struct.Struct(">i")
SINGLE_STATE_OFFSET: Final = 2 * SIZE.size
"""Bytes before the state in a set of one: the number of elements, and the size of the element."""
LONG: Final = struct.Struct(">q")
_SCALE: Final = np.dtype("<f4")
_MAX_UNIT: Final = np.float32(2047)
_ROUNDING_ERROR: Final = np.float32(1e-5)
"""Upper limit of the rounding errors of float32 sums."""
_VECTORS_PER_BLOCK: Final = 512
"""Vectors whose products are computed together, so that they fit into the processor's cache."""
_CodeBytes = npt.NDArray[np.uint8]
PackedRow = TypeVar("PackedRow", bound=Sequence[bytes])


def pack_vector(vector: Floats) -> bytes:
    """Pack a vector (d,)."""
    return vector.astype(">f4").tobytes()


def unpack_vector(packed: bytes) -> Floats:
    """Return a vector (d,) float32."""
    return np.frombuffer(packed, dtype=">f4").astype(np.float32)


def pack_set(*elements: bytes) -> bytes:
    """Pack a set of packed elements, such as states."""
    return SIZE.pack(len(elements)) + b"".join([SIZE.pack(len(element)) + element for element in elements])


def unpack_set(packed: bytes | None) -> list[bytes]:
    """Return the packed elements of a set."""
    return split_sized(packed, SIZE.size) if packed else []


def split_sized(packed: bytes, at: int = 0) -> list[bytes]:
    """Return the values from a position on, each of which follows its size."""
    values = []
    while at < len(packed):
        (size,) = SIZE.unpack_from(packed, at)
        at += SIZE.size + size
        values.append(packed[at - size : at])
    return values


def encode_vectors(vectors: Floats) -> list[bytes]:
    """Encode unit vectors (n, d) as codes of 4 + 1.5 d bytes each."""
    dimension = vectors.shape[1]
    scale = np.abs(vectors).max(axis=1, initial=0) / _MAX_UNIT
    units = np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int16)
    low = np.pad((units & 15).astype(np.uint8), ((0, 0), (0, dimension % 2)))
    parts = (
        scale.astype(_SCALE)[:, None].view(np.uint8),
        (units >> 4).astype(np.int8).view(np.uint8),
        low[:, 0::2] | low[:, 1::2] << 4,
    )
    return [row.tobytes() for row in np.hstack(parts)]


def compute_code_width(dimension: int) -> int:
    """Return the number of bytes of a code."""
    return _SCALE.itemsize + dimension + (dimension + 1) // 2


def estimate_similarities(codes: _CodeBytes, vector: Floats) -> tuple[Floats, Floats]:
    """Return similarities of encoded vectors to a unit vector, and bounds on their errors: (n,) and (n,).

    This does without BLAS, whose idle threads spin, and slow down a server on the same cores.

    Args:
        codes: (n, width of a code) bytes.
        vector: (d,).
    """
    scale = np.ascontiguousarray(codes[:, : _SCALE.itemsize]).view(_SCALE)[:, 0]
    body, dimension = codes[:, _SCALE.itemsize :], len(vector)
    products = np.empty(len(codes), np.float32)
    for at in range(0, len(codes), _VECTORS_PER_BLOCK):
        block = body[at : at + _VECTORS_PER_BLOCK]
        units, low = block[:, :dimension].view(np.int8).astype(np.float32), block[:, dimension:]
        units *= 16
        units[:, 0::2] += low & 15
        units[:, 1::2] += low[:, : dimension // 2] >> 4
        products[at : at + _VECTORS_PER_BLOCK] = np.einsum("ij,j->i", units, vector)
    return scale * products, scale * np.float32(sqrt(dimension) / 2) + _ROUNDING_ERROR


def split_rows(rows: Sequence[PackedRow], counts: Sequence[int]) -> Iterator[Sequence[PackedRow]]:
    """Split rows into batches, limited by number of rows and by bytes.

    The number of rows of a batch is one of a few, because each needs a prepared statement. The server warns
    about a batch with more than ten partitions or 5 KiB.

    Args:
        rows: The values of each row, packed. Their order is kept.
        counts: Numbers of rows that a batch may have, descending. A row that fits no such batch is alone.
    """
    sizes = (ROW_BYTES + sum(map(len, row)) for row in rows)
    ends = list(accumulate(sizes, initial=0))
    start = 0
    while start < len(rows):
        fitting = (
            count
            for count in counts
            if start + count < len(ends) and ends[start + count] - ends[start] <= BATCH_BYTES
        )
        count = next(fitting, 1)
        yield rows[start : start + count]
        start += count


def pack_batch(text: str, at: int, rows: Iterable[Iterable[bytes]], routing: bytes | None) -> Statement:
    """Return the statement of a batch whose values are packed.

    Args:
        text: A batch with one timestamp.
        at: The timestamp.
        rows: The values of each row.
        routing: The routing key.
    """
    values = [LONG.pack(at), *chain.from_iterable(rows)]
    return Statement(cql=text, values=values, packed=True, level="write", routing=routing)


StoredLink = tuple[str, str, str, float]
"""A parsed link: kind, tag, direction, weight."""
SIDES: Final[tuple[Side, Side]] = ("out", "in")
ReplacedLinks = Mapping[str, str]
"""The column of replaced links: for each kind, see :func:`make_replacement`."""
LONGEST_KEY: Final = 65_535
"""Maximum length of a key in bytes. Ids that are longer, or empty, are not sent to the server."""
LONGEST_ID: Final = 65_000
"""Maximum length of an id in bytes of UTF-8; together with a word and a hash it must fit into a key."""
_BEHIND_NAME: Final = "\x1f"
LONGEST_INLINE: Final = 4_096
"""Longer texts (bytes of UTF-8) are in a table of their own, so that a search reads only those it returns."""
TEXT_HASH_BYTES: Final = 8
"""The length of the hash of the text at the beginning of a digest."""
LONGEST_TERM: Final = 512
"""Longer values (bytes of UTF-8) are not searchable; the server's index accepts at most 1,024 bytes."""
_REQUIRED_COLUMNS: Final = 7
_RELINKED: Final = 7
_TIMES: Final = slice(11, 16)
"""The places of write times in a row of :data:`.statements.VERSION`."""


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A version of a document, stored or about to be written.

    Args:
        id: Its id.
        text: Its content, empty if it was not read.
        fields: Its metadata without links, as read from JSON.
        written_links: Its links as JSON, as in its metadata, with the replaced ones; empty if it has none.
        parsed_links: The same as :func:`dump_links` has them.
        digest: Hash of the text, then hash of text, metadata without links, and vector.
        vector: (d,) float32 of unit length.
        relinked: The links that were replaced since it was written.
        size: The number of bytes of its text in the table of texts, 0 if the text is in its row.
        written: Latest write time of its columns, 0 if it is not written yet, or was read to be searched.
        lifetime: Seconds until it expires. 0: never.
        born: When the document was added, 0 if it is not stored yet, or was read to be searched.
    """

    id: str
    text: str
    fields: Mapping[str, Any]
    written_links: str
    parsed_links: str
    digest: bytes
    vector: Floats
    relinked: ReplacedLinks = field(default_factory=dict)
    size: int = 0
    written: int = 0
    lifetime: int = 0
    born: int = 0

    @classmethod
    def of_row(cls, row: Row) -> DocumentVersion | None:
        """Make a version from the columns read for a search, or from the columns read for a write.

        See :data:`.statements.DOCUMENT` and :data:`.statements.VERSION`. A row that lacks a column, or
        whose metadata are not JSON, is None: all reads treat it as missing, and ``verify`` reports it.

        Raises:
            StoreFormatError: If its replaced links are not JSON. The message names the document.
        """
        id, text, attributes, parsed, written, digest, vector, relinked, size, *more = row
        fields = parse_fields(attributes) if is_whole(row) else None
        if fields is None:
            return None
        relinked = dict(relinked or {})
        links = merge_replaced_links(id, written, parsed, relinked)
        version = id, text, fields, *links, digest, unpack_vector(vector), relinked, size or 0
        if not more:
            return cls(*version)
        lifetime, born, *_ = more
        return cls(*version, find_last_write(row), lifetime or 0, born or 0)

    @classmethod
    def of_record(cls, record: Record) -> DocumentVersion:
        """Make the version that a record describes.

        Raises:
            DocumentError: If the metadata is not JSON, or the id is too long. The message names the document.
        """
        if len(record.id.encode()) > LONGEST_ID:
            raise DocumentError(
                f"document {record.id[:60]!r}… cannot be stored: its id has {len(record.id.encode()):,}"
                f" bytes, and in Cassandra it may have {LONGEST_ID:,} at most"
            )
        text, attributes, links = serialize_record(record)
        digest = xxhash.xxh3_128(text)
        digest.update(b"\0%d\0" % len(text) + attributes)
        digest.update(record.vector.data)
        parsed = dump_links(record.links)
        stored = orjson.loads(attributes)  # as it will be read; members of enumerations become strings
        whole = hash_text(record.text) + digest.digest()
        return cls(record.id, record.text, stored, links.decode(), parsed, whole, record.vector)

    def pack(self, born: int) -> tuple[tuple[bytes, ...], bytes | None]:
        """Return its columns as :func:`.statements.write_documents` has them, and its text if that is long.

        Args:
            born: When it was added.
        """
        text = self.text.encode()
        long = len(text) > LONGEST_INLINE
        columns = (
            self.id.encode(),
            b"" if long else text,
            orjson.dumps(self.fields),
            pack_set(*map(str.encode, sorted(select_searchable(self.fields)))),
            self.parsed_links.encode(),
            self.written_links.encode(),
            self.digest,
            pack_vector(self.vector),
            SIZE.pack(len(text) if long else 0),
            LONG.pack(born),
        )
        return columns, text if long else None

    def check_size(self, limit: int) -> None:
        """Check that it fits into one write.

        Raises:
            DocumentError: If it takes more bytes than the limit. The message names the document.
        """
        columns, text = self.pack(0)
        size = sum(map(len, (*columns, text or b"")))
        if size > limit:
            raise DocumentError(
                f"document {self.id[:60]!r} takes {size:,} bytes in Cassandra, and {limit:,} are allowed"
                " (max_document_bytes): split it; or raise the limits of the server, commitlog_segment_size"
                " and native_transport_max_frame_size, and then this one"
            )

    @property
    def unread(self) -> int:
        """The number of bytes of its text in the table of texts, 0 if the text is known."""
        return 0 if self.text else self.size

    @property
    def text_hash(self) -> bytes:
        """The hash of its text, also if that was not read."""
        return self.digest[:TEXT_HASH_BYTES]

    @property
    def links(self) -> list[StoredLink]:
        """Its links."""
        links = parse_stored_links(self.id, self.parsed_links)
        return [(kind, tag, direction, weight) for kind, tag, direction, weight in links]

    def metadata(self) -> dict[str, Any]:
        """Return the metadata as it was added, as a new dict.

        Raises:
            StoreFormatError: If its links are not JSON. The message names the document.
        """
        written = self.written_links
        return (
            {**self.fields, LINKS_KEY: parse_stored_links(self.id, written)} if written else dict(self.fields)
        )

    def weights(self, side: Side) -> dict[tuple[str, str], float]:
        """Return the link groups of the document on one side, with the highest weight of its links."""
        weights: dict[tuple[str, str], float] = {}
        for kind, tag, direction, weight in parse_stored_links(self.id, self.parsed_links):
            if direction in (side, "bidir") and weight >= weights.get((kind, tag), 0.0):
                weights[kind, tag] = weight
        return weights

    def filter_groups(self, side: Side, condition: Condition) -> dict[tuple[str, str], float]:
        """Return the groups of one side for links whose data pass a condition.

        The data are only in the JSON.
        """
        if condition.always or '"data":' not in self.written_links:
            return self.weights(side) if condition.matches({}) else {}
        return collect_weights(parse_links(self.metadata(), self.id), side, condition)

    def record(self) -> Record:
        """Return the record that was written."""
        metadata = self.metadata()
        links = parse_links(metadata, self.id)
        return Record(id=self.id, text=self.text, metadata=metadata, vector=self.vector, links=links)


def hash_text(text: str) -> bytes:
    """Return a hash of a text."""
    return xxhash.xxh3_64_digest(text.encode())


def parse_fields(attributes: str | None) -> dict[str, Any] | None:
    """Return metadata without links, or None if a text is not such metadata as JSON."""
    try:
        fields = orjson.loads(attributes or b"")
    except orjson.JSONDecodeError:
        return None
    return fields if isinstance(fields, dict) else None


def read_versions(rows: Iterable[Row]) -> list[DocumentVersion]:
    """Return the documents in rows. Rows that are not a whole document are left out."""
    return [version for version in map(DocumentVersion.of_row, rows) if version]


def is_whole(row: Row) -> bool:
    """Say whether a row has every column that a document must have.

    These columns are the first seven of each statement that reads documents. If a document expires, its links
    may outlive the other columns by a second.
    """
    return None not in row[:_REQUIRED_COLUMNS]


def has_content(row: Row) -> bool:
    """Say whether a row of :data:`.statements.VERSION` has a column of a document.

    Links alone do not count, because they may outlive the other columns.
    """
    body, attributes, digest, vector, _ = row[_TIMES]
    return any(time is not None for time in (body, attributes, digest, vector))


def find_last_write(row: Row) -> int:
    """Return the latest write time in a row of :data:`.statements.VERSION`, 0 without any."""
    id, relinked, times = row[0], row[_RELINKED], row[_TIMES]
    replaced = (at for _, (at, _) in _parse_cells(id, relinked)) if relinked else ()
    return max((time for time in (*times, *replaced) if time is not None), default=0)


def dump_links(links: Iterable[Link]) -> str:
    """Return parsed links as JSON: each once, as a list of what a :data:`StoredLink` has."""
    distinct = {(link.kind, link.tag, link.direction, link.weight) for link in links}
    return orjson.dumps(sorted(distinct)).decode()


def make_replacement(at: int, kinds: Iterable[str], links: Iterable[Mapping[str, Any]]) -> ReplacedLinks:
    """Return the cells of the column of replaced links that replace the links of these kinds at one time.

    Each kind is a cell, so clients that replace links of different kinds do not write the same cell. A cell
    is JSON: when it was written, and the links with their positions among all that were written with them.
    """
    links_by_kind: dict[str, list[tuple[int, Any]]] = {kind: [] for kind in kinds}
    for position, link in enumerate(links):
        links_by_kind[link["kind"]].append((position, link))
    return {kind: orjson.dumps([at, of]).decode() for kind, of in links_by_kind.items()}


def merge_replaced_links(id: str, written: str, parsed: str, relinked: ReplacedLinks) -> tuple[str, str]:
    """Return the columns of links of a document with the links that were replaced since it was written.

    Links of other kinds keep their order. The replaced ones follow, those replaced last at the end.
    """
    if not relinked:
        return written, parsed
    links = [link for link in parse_stored_links(id, written or "[]") if link["kind"] not in relinked]
    cells = _parse_cells(id, relinked)
    later = [(at, position, kind, link) for kind, (at, of) in cells for position, link in of]
    links += [link for *_, link in sorted(later, key=itemgetter(0, 1, 2))]
    return orjson.dumps(links).decode(), dump_links(parse_links({LINKS_KEY: links}, id))


def _parse_cells(id: str, relinked: ReplacedLinks) -> Iterator[tuple[str, tuple[int, list[tuple[int, Any]]]]]:
    return ((kind, parse_stored_links(id, cell)) for kind, cell in relinked.items())


def parse_stored_links(id: str, written: str) -> Any:
    """Read one of the columns of links.

    Raises:
        StoreFormatError: If it is not JSON. The message names the document.
    """
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError as error:
        raise StoreFormatError(
            f"the links of document {id!r} are not JSON ({error}), so linkstore did not write them: delete"
            " its row with cqlsh, run repair, and add it again"
        ) from error


def select_searchable(metadata: Mapping[str, Any]) -> set[str]:
    """Return entries by which the server looks up equalities: field and term.

    A field with a list has an entry for each of its members, since a list equals them in filters.
    """
    return {
        f"{name}{_BEHIND_NAME}{term}"
        for name, value in metadata.items()
        if len(name.encode()) <= LONGEST_TERM
        for part in (value if isinstance(value, list | tuple) else (value,))
        if (term := format_term(part)) is not None
    }


def format_term(value: object) -> str | None:
    """Return the same string for all values that filters treat as equal, None if not searchable.

    Equal numbers have the same string. A number, a string and a boolean never have the same string.
    """
    if isinstance(value, bool):
        return f"b{value:d}"
    if isinstance(value, str):
        return f"s{value}" if len(value.encode()) <= LONGEST_TERM else None
    if isinstance(value, int | float):
        return f"n{int(value)}" if value == int(value) else f"n{value!r}"
    return None
