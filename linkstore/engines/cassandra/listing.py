"""The list of all documents, to compare those of a small store one by one.

The server's index misses some even of few documents, and takes long where many have expired or were deleted.
To read the table of documents asks all nodes, and passes over these too. So each document has a row in one of
some partitions of members, as if all were members of one link group. The row is added before the document is
written, and removed afterwards, as every member is, so the list always has every document that is stored. A
search that finds more rows than it compares asks the index.

A row without an id is the mark of the list. It is written when the store is created, and when it is repaired.
If it is missing, the table was lost, and the list is not used.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from linkstore.core.plans import EngineOperation
from linkstore.engines.cassandra import codec
from linkstore.engines.cassandra import statements as cql
from linkstore.engines.cassandra.derived import LIST, LIST_SHARDS
from linkstore.engines.cassandra.reading import RowFetcher
from linkstore.engines.cassandra.statements import MEMBER_ROWS, Requests, Statement, run_writes, send

LISTED_DOCUMENTS: Final = 1_000
"""Up to so many documents are compared."""
_ROWS_PER_SHARD: Final = 64
"""Of 1,000 documents, as many are in one partition with a probability below 1e-15."""
_MARK: Final = b"complete"


def mark_list(at: int) -> EngineOperation[None]:
    """Mark the list as complete, with a timestamp."""
    text = cql.write_rows(MEMBER_ROWS, 1, replace=False)
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
