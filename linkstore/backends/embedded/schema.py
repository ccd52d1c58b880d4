"""The tables, readable in any SQLite browser, and the migration of older files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import apsw

from linkstore.backends.embedded import words
from linkstore.errors import StoreFormatError

APPLICATION_ID: Final = 0x6C6E6B73
"""``lnks`` in the file header identifies a linkstore database."""
FORMAT_VERSION: Final = 4

TABLES: Final = """
CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value
) WITHOUT ROWID;
CREATE TABLE document (
  key INTEGER PRIMARY KEY,        -- never used again, so what is derived can be told by key
  id TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  metadata TEXT NOT NULL,         -- JSON, without links
  links TEXT,                     -- JSON, as the author wrote them; NULL: the metadata has none
  hash BLOB NOT NULL              -- of everything above and the vector
);
CREATE TABLE vector (
  key INTEGER PRIMARY KEY,        -- of the document
  embedding BLOB NOT NULL         -- float32, little-endian, unit length
);
CREATE TABLE link_group (
  key INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  tag TEXT NOT NULL,
  UNIQUE (kind, tag)
);
CREATE TABLE link (
  document INTEGER NOT NULL,
  link_group INTEGER NOT NULL,
  direction TEXT NOT NULL,        -- in, out, bidir
  label TEXT,
  weight REAL NOT NULL,
  PRIMARY KEY (document, link_group, direction)
) WITHOUT ROWID;
CREATE TABLE departed (
  key INTEGER PRIMARY KEY,        -- a document key that is gone
  change INTEGER NOT NULL         -- the change that removed it
);
CREATE INDEX departed_change ON departed (change);
CREATE TABLE page (
  source TEXT NOT NULL,
  url TEXT NOT NULL,
  digest TEXT NOT NULL,
  ids TEXT NOT NULL,              -- JSON list of document ids
  PRIMARY KEY (source, url)
) WITHOUT ROWID;
CREATE TABLE access (
  id TEXT PRIMARY KEY,            -- of the document; it outlives updates, which change the key
  at INTEGER NOT NULL             -- microseconds since 1970, UTC
) WITHOUT ROWID;
-- word: the words of each document, for lexical search
INSERT INTO setting VALUES ('change', 0), ('last_key', 0), ('last_group', 0), ('documents', 0);
"""


def _with_new_words(connection: apsw.Connection) -> None:
    """Migrate from format 2, whose snapshots numbered rows by document key and split words at vowel signs.

    A new snapshot is taken when the store is opened.
    """
    connection.execute("DELETE FROM setting WHERE name = 'snapshot'")
    words.index_all(connection)


def _unchanged(connection: apsw.Connection) -> None:
    """Migrate from format 1, which had no words: the migration to format 3 adds them."""


def _with_accesses(connection: apsw.Connection) -> None:
    """Migrate from format 3, which did not record when documents were accessed."""
    connection.execute("CREATE TABLE access (id TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID")


MIGRATIONS: Final[Mapping[int, Callable[[apsw.Connection], None]]] = {
    1: _unchanged,
    2: _with_new_words,
    3: _with_accesses,
}
"""For each older format version, the function that migrates a file to the next one."""


def create_or_migrate(connection: apsw.Connection, path: str) -> None:
    """Create or migrate the database to the current format, in one transaction.

    Raises:
        StoreFormatError: If the file is not a linkstore database, or has a newer format.
    """
    if _format_of(connection, path) == FORMAT_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _bring_forward(connection, _format_of(connection, path))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_format(connection: apsw.Connection, path: str) -> None:
    """Refuse a database that this version of linkstore cannot read without migration.

    Raises:
        StoreFormatError: If the file is not a linkstore database, or has another format.
    """
    version = _format_of(connection, path)
    if version != FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has format {version}, and cannot be brought to {FORMAT_VERSION} where nothing can be"
            " written: open it once where it can be written"
        )


def _bring_forward(connection: apsw.Connection, version: int) -> None:
    if version == 0:
        connection.execute(TABLES)
        connection.execute(words.TABLE)
        connection.pragma("application_id", APPLICATION_ID)
        version = FORMAT_VERSION
    while version < FORMAT_VERSION:
        MIGRATIONS[version](connection)
        version += 1
    connection.pragma("user_version", version)


def _format_of(connection: apsw.Connection, path: str) -> int:
    """Return the version of the file's format, or 0 for an empty file."""
    if not connection.execute("SELECT count(*) FROM sqlite_schema").get:
        return 0
    version = int(connection.pragma("user_version"))
    if int(connection.pragma("application_id")) != APPLICATION_ID:
        raise StoreFormatError(f"{path} is an SQLite database, but not one of linkstore's")
    if version > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} has format {version}; this linkstore reads up to {FORMAT_VERSION}: upgrade it"
        )
    return version
