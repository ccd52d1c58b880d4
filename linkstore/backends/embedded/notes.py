"""Short texts that users of a store keep in its table of settings."""

from __future__ import annotations

from typing import Final

import apsw

from linkstore.backends.embedded.database import rows_of
from linkstore.errors import StoreFormatError

_PREFIX: Final = "note "
_READ: Final = "SELECT value FROM setting WHERE name = ?"


def read(connection: apsw.Connection, name: str) -> str | None:
    """Return the note of this name, or None if there is none.

    Raises:
        StoreFormatError: If the note is not a text.
    """
    rows = rows_of(connection, _READ, (_PREFIX + name,))
    if not rows:
        return None
    ((value,),) = rows
    if not isinstance(value, str):
        raise StoreFormatError(
            f"{connection.filename}: the setting {_PREFIX + name!r} is {value!r}, not a text"
        )
    return value


def exchange(connection: apsw.Connection, name: str, value: str | None, expected: str | None) -> str | None:
    """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards."""
    noted = read(connection, name)
    if noted != expected or noted == value:
        return noted
    if value is None:
        connection.execute("DELETE FROM setting WHERE name = ?", (_PREFIX + name,))
    else:
        connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (_PREFIX + name, value))
    return value
