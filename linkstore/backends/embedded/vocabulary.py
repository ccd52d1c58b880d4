"""Which kinds of link and metadata fields documents have, looked up in the tables."""

from __future__ import annotations

from typing import Final

import apsw
import orjson

from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.recorded import decoding
from linkstore.links import LINKS_KEY
from linkstore.vocabulary import Vocabulary

REMEMBERED: Final = 10_000
"""How many field names a process remembers."""
_HAS_KIND: Final = "SELECT 1 FROM link_group WHERE kind = ? LIMIT 1"
_NEXT_KIND: Final = "SELECT min(kind) FROM link_group WHERE kind > ?"
# A field is written as its name in quotation marks and a colon; a text may contain the same, so it is parsed.
_WITH: Final = "SELECT metadata FROM document WHERE instr(metadata, ?)"
_HAS_LINKS: Final = "SELECT 1 FROM document WHERE links IS NOT NULL LIMIT 1"


class KnownFields:
    """Metadata fields that some document was seen to have.

    A field that most documents have is found in the first of them; a rare one takes one look at all of them
    in each process.
    """

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()

    def among(self, asked: frozenset[str], connection: apsw.Connection) -> frozenset[str]:
        """Those of the fields asked for that a document has, or had when this process last looked."""
        known = self._known
        found = {name for name in asked if name in known or _has_field(connection, name)}
        if not found <= known:
            self._known = (known if len(known) < REMEMBERED else frozenset()) | found
        return frozenset(found)


def vocabulary(connection: apsw.Connection, known: KnownFields, asked: Vocabulary | None) -> Vocabulary:
    """Those of the names asked for that a document has; for None, all of them, from every document."""
    if asked is None:
        return Vocabulary(kinds=_all_kinds(connection), fields=_all_fields(connection)).checkable
    kinds = frozenset(kind for kind in asked.kinds if rows_of(connection, _HAS_KIND, (kind,)))
    return Vocabulary(kinds=kinds, fields=known.among(asked.fields, connection))


def _has_field(connection: apsw.Connection, name: str) -> bool:
    if name == LINKS_KEY:
        return bool(rows_of(connection, _HAS_LINKS))
    needle = orjson.dumps(name).decode() + ":"
    with decoding("documents"):
        return any(name in orjson.loads(metadata) for (metadata,) in connection.execute(_WITH, (needle,)))


def _all_kinds(connection: apsw.Connection) -> frozenset[str]:
    """By jumps through the index, one for each kind."""
    found: list[str] = []
    while (kind := connection.execute(_NEXT_KIND, (found[-1] if found else "",)).get) is not None:
        found.append(kind)
    return frozenset(found)


def _all_fields(connection: apsw.Connection) -> frozenset[str]:
    found: set[str] = {LINKS_KEY} if rows_of(connection, _HAS_LINKS) else set()
    with decoding("documents"):
        for (metadata,) in connection.execute("SELECT metadata FROM document"):
            found.update(orjson.loads(metadata))
    return frozenset(found)
