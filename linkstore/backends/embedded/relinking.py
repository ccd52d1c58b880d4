"""Replaces the links of stored documents, which are read and written in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import apsw
import numpy as np
import orjson

from linkstore.backends.base import Record
from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import read_metadata
from linkstore.backends.embedded.writing import PreparedRecord, prepare
from linkstore.links import LINKS_KEY, Link, links_in
from linkstore.storedlinks import with_other_links

_LINKS: Final = (
    "SELECT document.id, links FROM json_each(?) AS wanted CROSS JOIN document ON document.id = wanted.value"
)
_WHOLE: Final = (
    "SELECT document.id, text, metadata, embedding FROM json_each(?) AS wanted"
    " CROSS JOIN document ON document.id = wanted.value JOIN vector ON vector.key = document.key"
)


def relinked(
    connection: apsw.Connection, kinds: Collection[str], links: Mapping[str, Sequence[Link]]
) -> tuple[list[PreparedRecord], int]:
    """Prepare the documents whose links change for writing, and count the documents that keep their links.

    Text, metadata and vector are the stored ones. If a document keeps its links, only the links are read.

    Args:
        connection: In the write transaction.
        kinds: Links of these kinds are removed.
        links: The links that replace them, by document id.
    """
    known = rows_of(connection, _LINKS, (_json(list(links)),))
    changed = {
        id: written
        for id, stored in known
        if (written := with_other_links(read_metadata("{}", stored), kinds, links[id])) is not None
    }
    rows = rows_of(connection, _WHOLE, (_json(list(changed)),))
    return prepare(_record(row, changed[row[0]]) for row in rows), len(known) - len(changed)


def _record(row: tuple[str, str, str, bytes], links: list[Any]) -> Record:
    id, text, metadata, vector = row
    fields = {**orjson.loads(metadata), LINKS_KEY: links}
    return Record(
        id=id,
        text=text,
        metadata=fields,
        vector=np.frombuffer(vector, np.float32),
        links=links_in(fields, id),
    )


def _json(ids: list[str]) -> str:
    return orjson.dumps(ids).decode()
