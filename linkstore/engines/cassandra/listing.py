"""Two lists among the members: of all documents of a small store, and of what was split.

The server's index misses some even of few documents, and takes long where many have expired or were deleted.
To read the table of documents asks all nodes, and passes over these too. So each document has a row in one of
some partitions of members, as if all were members of one link group. The row is added before the document is
written, and removed afterwards, as every member is, so the list always has every document that is stored. A
search that finds more rows than it compares asks the index.

A row without an id is the mark of the list. It is written when the store is created, and when it is repaired.
If it is missing, the table was lost, and the list is not used.

A link group or a word is *split* when its first partition has become large. One document in a thousand, by
the hash of its id, asks how large those are that it was added to. A mark, a row without an id that is the
first of the partition, tells readers that there are further buckets. Then the split is listed, and writers
read the list before they write; one that does not know of it yet writes to the first bucket, which all
readers read. Neither is ever removed, and to write them again changes nothing, so clients may split at once,
or stop in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

import orjson

from linkstore.core.plans import EngineOperation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.derived import LIST, LIST_SHARDS, DerivedRows, RowSet, hash_id, name_split
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.statements import Requests, Row, Statement, ask, run_writes, send

LISTED_DOCUMENTS: Final = 1_000
"""Up to so many documents are compared."""
_ROWS_PER_SHARD: Final = 64
"""Of 1,000 documents, as many are in one partition with a probability below 1e-15."""
_MARK: Final = b"complete"
SPLITS: Final = ("", "split", "")
"""Kind, tag and side of the members that are the list of what was split."""
LARGEST_GROUP_BYTES: Final = 32 << 20
"""About as many bytes of members are in one partition before it is split."""
MAX_POSTINGS: Final = 100_000
"""About as many documents of a word are in one partition before it is split."""
CHECKED: Final = 1024
"""One document of so many asks for the sizes of partitions."""
_POSTINGS_COUNTED: Final = 100
_MAX_SPLITS: Final = 1 << 30
_MARK_HASH: Final = b"\0"
"""Before the hash of every document, and after the empty one from which words are read."""


def mark_list(at: int) -> EngineOperation[None]:
    """Mark the list as complete, with a timestamp."""
    text = cql.write_rows(cql.MEMBER_ROWS, 1, replace=False)
    mark = Statement(cql=text, values=(at, 0, {_MARK}, *LIST, 0, ""), level="write")
    yield from run_writes("mark the list of documents", [mark])


def read_list(fetcher: RowFetcher) -> EngineOperation[list[tuple[str, bytes]] | None]:
    """Return the ids and states of all documents, or None if there are many or the list is not complete."""
    keys = {
        (*(name.encode() for name in LIST), codec.SIZE.pack(shard)): shard for shard in range(LIST_SHARDS)
    }
    statements = tuple(
        Statement(
            cql=cql.READ_LIST,
            values=(*LIST, shards, _ROWS_PER_SHARD),
            routing=routing,
            limit=len(shards) * _ROWS_PER_SHARD,
        )
        for shards, routing in fetcher.parts(keys, _ROWS_PER_SHARD)
    )
    answers = yield from send(Requests(statements=statements, what="read the list of documents"))
    rows = [row for of in answers for row in of]
    listed = [(id, states or b"") for _, id, states in rows if id]
    rows_of = Counter(shard for shard, *_ in rows)
    is_marked, is_cut = len(listed) < len(rows), _ROWS_PER_SHARD in rows_of.values()
    return listed if is_marked and not is_cut and len(listed) <= LISTED_DOCUMENTS else None


def read_splits() -> EngineOperation[frozenset[Row]]:
    """Return what was split."""
    rows = yield from ask("read what was split", cql.READ_LIST, *SPLITS, [0], _MAX_SPLITS)
    return frozenset(tuple(orjson.loads(name)) for _, name, _ in rows)


def mark_splits(derived: DerivedRows, splits: Collection[Row], at: int) -> EngineOperation[None]:
    """Mark what is split, for readers, then list it, for writers, with a timestamp."""
    groups = [((*name, 0, ""), _MARK) for name in splits if len(name) == len(SPLITS)]
    words = [((shard, 0, word, _MARK_HASH, ""), _MARK) for shard, word, *more in splits if not more]
    marks = chain(derived.write(cql.MEMBER_ROWS, groups, at), derived.write(cql.WORD_ROWS, words, at))
    yield from run_writes("mark what is split", marks)
    listed = [((*SPLITS, 0, orjson.dumps(name).decode()), _MARK) for name in splits]
    yield from run_writes("list what is split", derived.write(cql.MEMBER_ROWS, listed, at))


def split_large(derived: DerivedRows, written: Mapping[str, RowSet], at: int) -> EngineOperation[None]:
    """Split what has become large, as far as one of some documents asks for it.

    Args:
        derived: Makes the statements, and places further rows.
        written: The rows of documents that were written, by id.
        at: A timestamp.
    """
    asking = chain.from_iterable(of for id, of in written.items() if hash_id(id) % CHECKED == 0)
    states = {name_split(key): len(state) for rows in asking for key, state in rows.items()}
    asked = {name: states[name] for name in states.keys() - derived.splits if name != LIST}
    requests = Requests(statements=tuple(map(_measure, asked)), what="ask for the sizes of partitions")
    answers = yield from send(requests)
    sizes = zip(asked.items(), answers, strict=True)
    if large := {name for (name, size), rows in sizes if _is_large(size, rows)}:
        yield from mark_splits(derived, large, at)
        derived.splits |= large


def _measure(name: Row) -> Statement:
    """Return the statement whose answer tells whether a partition is large."""
    if len(name) == len(SPLITS):
        return Statement(cql=cql.COUNT_MEMBERS, values=name, limit=1)
    values = (name[0], 0, name[1], b"", "", _POSTINGS_COUNTED)
    return Statement(cql=cql.READ_POSTINGS, values=values, limit=_POSTINGS_COUNTED)


def _is_large(state: int, rows: Sequence[Row]) -> bool:
    """Say whether a partition is large: by the count of its rows, or by the hash of one of the first."""
    if len(rows) == 1 and len(rows[0]) == 1:
        return bool(rows[0][0] * (state + codec.ROW_BYTES) >= LARGEST_GROUP_BYTES)
    hashes = [int.from_bytes(hashed, "big") for hashed, id, _ in rows if id]
    return len(rows) == _POSTINGS_COUNTED and hashes[-1] * MAX_POSTINGS <= len(hashes) << 64
