"""Documents are packed as the driver packs them, and as few statements write them as the server allows."""

from __future__ import annotations

from enum import Enum

import numpy as np
import orjson
import pytest

pytest.importorskip("cassandra", reason="the extra 'cassandra' is not installed")

from cassandra.cqltypes import lookup_casstype
from internals import (
    DocumentVersion,
    Record,
    derive_postings,
    make_document_writes,
    normalize_vectors,
    select_searchable,
)

from linkstore import Link

COLUMNS = [
    lookup_casstype(name)
    for name in (*["UTF8Type"] * 3, "SetType(UTF8Type)", "UTF8Type", "UTF8Type", "BytesType")
]
TIMESTAMP, LIFETIME, SIZE = (lookup_casstype(name) for name in ("LongType", "Int32Type", "Int32Type"))


class OneNode:
    """A fetcher for a cluster of one node."""

    @property
    def placement(self):
        return self

    def by_replica(self, items):
        return [([*items.values()], None)]


def statements(records, lifetime=0):
    versions = list(map(DocumentVersion.of_record, records))
    return list(make_document_writes(OneNode(), versions, 7, {}, lifetime))


def record(n, text="", dimension=4, **metadata):
    (vector,) = normalize_vectors(np.random.default_rng(n).standard_normal((1, dimension)))
    links = (Link.bidir(kind="k", tag=f"täg {n}"), Link.outgoing(kind="k", tag="a", weight=0.5))
    metadata["links"] = [link.to_dict() for link in links]
    return Record(id=f"dé {n}", text=text, metadata=metadata, vector=vector, links=links)


@pytest.mark.parametrize("lifetime", [0, 60])
def test_a_document_is_packed_as_the_driver_packs_it(lifetime):
    one = record(1, text="Œuvre", title="ü", number=2, flag=True, other=[1])
    version = DocumentVersion.of_record(one)
    parsed = orjson.dumps(sorted((link.kind, link.tag, link.direction, link.weight) for link in one.links))
    links = parsed.decode(), orjson.dumps(one.metadata["links"]).decode()
    written = orjson.dumps({name: one.metadata[name] for name in one.metadata if name != "links"}).decode()
    columns = [one.id, one.text, written, sorted(select_searchable(one.metadata)), *links, version.digest]
    (statement,) = statements([one], lifetime)
    stamp, *sent = statement.values
    expected = [kind.serialize(value, 5) for kind, value in zip(COLUMNS, columns, strict=True)]
    expected.append(one.vector.astype(">f4").tobytes())
    expected.append(SIZE.serialize(0, 5))  # of a text that is elsewhere
    expected.append(TIMESTAMP.serialize(7, 5))  # when the document was added
    assert sent == [*expected, LIFETIME.serialize(lifetime, 5)]
    assert stamp == TIMESTAMP.serialize(7, 5)
    assert statement.cql.count("?") == len(statement.values)


def test_members_of_enumerations_are_written_as_they_are_read():
    """So an equality finds them, and the words of a title are those that ``verify`` expects."""

    class Name(str, Enum):  # noqa: UP042 - a StrEnum formats as its value
        ALPHA = "alpha"

    given = DocumentVersion.of_record(record(1, title=Name.ALPHA, names=[Name.ALPHA]))
    plain = DocumentVersion.of_record(record(1, title="alpha", names=["alpha"]))
    assert given.pack(7) == plain.pack(7)
    assert (type(given.fields["title"]), type(given.fields["names"][0])) == (str, str)
    words = [derive_postings(one, 256) for one in (given, plain)]
    assert words[0] == words[1]


def test_small_documents_share_a_statement_and_large_ones_do_not():
    sizes = [10] * 7 + [2_000] * 2 + [4_000] * 2 + [10]
    records = [record(n, text="x" * size) for n, size in enumerate(sizes)]
    sent = statements(records)
    assert [statement.cql.count("INSERT") for statement in sent] == [3, 3, 2, 1, 1, 1, 1]
    ids = [value for one in sent for value in one.values[1::11]]
    assert ids == [record.id.encode() for record in records]
    for one in sent:
        assert one.cql.count("INSERT") == 1 or sum(map(len, one.values)) < 5_120


def test_a_long_text_is_written_beside_its_document_in_one_statement():
    """Searches read the rows of documents, so texts that are long are not in them."""
    one = record(1, text="x" * 4_097)
    (statement,) = statements([one])
    assert statement.values[2] == b""
    assert statement.values[-3:-1] == [one.id.encode(), one.text.encode()]
    assert statement.cql.count("INSERT") == 2
    assert statement.cql.count("?") == len(statement.values)
