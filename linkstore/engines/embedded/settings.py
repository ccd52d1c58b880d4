"""The table of settings: counters, the dimension of vectors, and the record of the snapshot.

They are checked whenever they are read, because another program may have changed the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import apsw

from linkstore.engines.embedded.schema import MOST_KEYS
from linkstore.errors import StoreFormatError

SNAPSHOT: Final = "snapshot"
"""The setting with the record of the last snapshot."""
GENERATION: Final = "generation"
"""The setting with the number of the last snapshot that was ever recorded."""
FLOOR: Final = "floor"
"""The setting with the last change whose removals are no longer listed."""
UNLISTED: Final = "unlisted"
"""The setting that counts the removals that are no longer listed."""
_COUNTED: Final = {
    "change": "SELECT max(change) FROM departed",
    "last_key": (
        "SELECT max(key) FROM (SELECT max(key) AS key FROM document UNION ALL SELECT max(key) FROM vector"
        " UNION ALL SELECT max(key) FROM departed)"
    ),
    "last_group": "SELECT max(key) FROM link_group",
    "documents": "SELECT count(*) FROM document",
}
"""The counters that every store has, and the queries for their least values, or that of ``documents``."""
_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "change": (0, 2**62),
    "last_key": (0, MOST_KEYS),
    "last_group": (0, MOST_KEYS),
    "documents": (0, 2**62),
    GENERATION: (0, 2**62),
    FLOOR: (0, 2**62),
    UNLISTED: (0, 2**62),
    "dimension": (1, 2**20 - 1),
}


def read_settings(connection: apsw.Connection) -> dict[str, Any]:
    """Read the table of settings and check it.

    Raises:
        StoreFormatError: If a counter is missing or invalid; ``repair`` restores it.
    """
    settings = read_raw_settings(connection)
    if wrong := find_setting_problems(settings):
        raise StoreFormatError(
            f"{connection.filename}: {wrong[0]}; run repair, or restore the store from a copy"
        )
    return settings


def read_raw_settings(connection: apsw.Connection) -> dict[str, Any]:
    """Read the table of settings, without checks."""
    rows: list[Any] = connection.execute("SELECT name, value FROM setting").fetchall()
    return dict(rows)


def write_settings(connection: apsw.Connection, settings: Mapping[str, Any]) -> None:
    """Set some settings (None: delete them), in an open write transaction."""
    rows = list(settings.items())
    connection.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", rows)
    connection.executemany("DELETE FROM setting WHERE name = ? AND ? IS NULL", rows)


def find_setting_problems(settings: Mapping[str, Any]) -> list[str]:
    """Return the problems of the settings by themselves."""
    return [
        f"the setting {name!r} is {settings.get(name)!r}" for name in _RANGES if not _is_valid(name, settings)
    ]


def _is_valid(name: str, settings: Mapping[str, Any]) -> bool:
    value, (least, most) = settings.get(name), _RANGES[name]
    if value is None:
        return name not in _COUNTED
    return isinstance(value, int) and least <= value <= most


def find_counter_problems(connection: apsw.Connection) -> list[str]:
    """Return the problems of the settings, by themselves and compared with the tables."""
    settings = read_raw_settings(connection)
    return find_setting_problems(settings) or [
        f"the setting {name!r} is {settings[name]}, and the tables have {found}"
        for name, found in _count_tables(connection).items()
        if settings[name] < found or (name == "documents" and settings[name] > found)
    ]


def restore_counters(connection: apsw.Connection) -> None:
    """Restore the settings from the tables, in an open write transaction. No number is assigned twice."""
    settings = read_raw_settings(connection)
    restored: dict[str, Any] = {name: None for name in _RANGES if not _is_valid(name, settings)}
    for name, found in _count_tables(connection).items():
        known = 0 if name in restored or name == "documents" else settings[name]
        restored[name] = max(known, found)
    if "dimension" in restored:
        query = "SELECT length(embedding) FROM vector GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
        size = connection.execute(query).get or 0
        restored["dimension"] = size // 4 if size % 4 == 0 else None
    write_settings(connection, restored)


def _count_tables(connection: apsw.Connection) -> dict[str, int]:
    found = {name: connection.execute(query).get for name, query in _COUNTED.items()}
    return {name: value if isinstance(value, int) else 0 for name, value in found.items()}
