"""Looks up which kinds of link, fields of metadata and fields of link data the documents have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import apsw
import orjson

from linkstore.backends.embedded.database import rows_of
from linkstore.backends.embedded.linkverdicts import DATA
from linkstore.backends.embedded.recorded import decoding, read_metadata
from linkstore.links import LINKS_KEY, links_in
from linkstore.vocabulary import Vocabulary, names_in

REMEMBERED: Final = 10_000
"""How many field names a process caches."""
_HAS_KIND: Final = "SELECT 1 FROM link_group WHERE kind = ? LIMIT 1"
_NEXT_KIND: Final = "SELECT min(kind) FROM link_group WHERE kind > ?"
# JSON writes a field as its quoted name and a colon. A value may contain the same, so each match is parsed.
_WITH: Final = "SELECT metadata FROM document WHERE instr(metadata, ?)"
_LINKED_WITH: Final = "SELECT links FROM document WHERE instr(links, ?)"
_HAS_LINKS: Final = "SELECT 1 FROM document WHERE links IS NOT NULL LIMIT 1"


class KnownFields:
    """A cache of the fields of metadata and of link data that some document was found to have.

    A field that most documents have is found in the first ones. A rare field takes one scan of all documents
    in each process.
    """

    def __init__(self) -> None:
        self._known = Vocabulary()

    def among(self, asked: Vocabulary, connection: apsw.Connection) -> Vocabulary:
        """Return the requested fields that a document has, or had when this process last looked."""
        known = self._known
        found = Vocabulary(
            fields=_having(asked.fields, known.fields, connection, _has_field),
            link_fields=_having(asked.link_fields, known.link_fields, connection, _has_link_field),
        )
        if found - known:
            self._known = (known if len(known) < REMEMBERED else Vocabulary()) | found
        return found


def vocabulary(connection: apsw.Connection, known: KnownFields, asked: Vocabulary | None) -> Vocabulary:
    """Return the requested names that a document has, or with None all names, read from every document."""
    if asked is None:
        found = Vocabulary(kinds=_all_kinds(connection), fields=_all_fields(connection))
        return found.checkable | Vocabulary(link_fields=_all_link_fields(connection))
    kinds = frozenset(kind for kind in asked.kinds if rows_of(connection, _HAS_KIND, (kind,)))
    return Vocabulary(kinds=kinds) | known.among(asked, connection)


def _having(
    asked: frozenset[str],
    known: frozenset[str],
    connection: apsw.Connection,
    has: Callable[[apsw.Connection, str], bool],
) -> frozenset[str]:
    return frozenset(name for name in asked if name in known or has(connection, name))


def _has_field(connection: apsw.Connection, name: str) -> bool:
    if name == LINKS_KEY:
        return bool(rows_of(connection, _HAS_LINKS))
    with decoding("documents"):
        return any(
            name in orjson.loads(metadata) for (metadata,) in connection.execute(_WITH, (_needle(name),))
        )


def _has_link_field(connection: apsw.Connection, name: str) -> bool:
    with decoding("documents"):
        return any(
            name in _link_fields(links) for (links,) in connection.execute(_LINKED_WITH, (_needle(name),))
        )


def _needle(name: str) -> str:
    return orjson.dumps(name).decode() + ":"


def _link_fields(links: str) -> frozenset[str]:
    return names_in({}, links_in(read_metadata("{}", links))).link_fields


def _all_kinds(connection: apsw.Connection) -> frozenset[str]:
    """Find all kinds with one index lookup for each."""
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


def _all_link_fields(connection: apsw.Connection) -> frozenset[str]:
    found: set[str] = set()
    with decoding("documents"):
        for (links,) in connection.execute(_LINKED_WITH, (DATA,)):
            found.update(_link_fields(links))
    return frozenset(found)
