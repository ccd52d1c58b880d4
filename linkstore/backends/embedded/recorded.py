"""Reads the settings and metadata of a store, and checks them: another program may have changed the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import apsw
import orjson

from linkstore.backends.embedded.limits import MOST_KEYS
from linkstore.errors import LinkStoreError, StoreFormatError
from linkstore.links import LINKS_KEY

COUNTERS: Final = ("change", "last_key", "last_group", "documents")
_OPTIONAL: Final = ("epoch", "floor", "unlisted", "generation")
_MOST: Final = {"last_key": MOST_KEYS, "last_group": MOST_KEYS}
_HIGHEST: Final = (
    "SELECT (SELECT max(key) FROM document), (SELECT max(key) FROM vector), (SELECT max(key) FROM departed),"
    " (SELECT max(change) FROM departed), (SELECT max(key) FROM link_group)"
)


def settings_of(connection: apsw.Connection) -> dict[str, Any]:
    """Read the table of settings and check it.

    Raises:
        StoreFormatError: If a counter is missing or invalid; ``repair`` restores it.
    """
    settings = raw_settings(connection)
    if wrong := problems(settings):
        raise StoreFormatError(
            f"{connection.filename}: {wrong[0]}; run repair, or restore the store from a copy"
        )
    return settings


def raw_settings(connection: apsw.Connection) -> dict[str, Any]:
    """Read the table of settings, without checks."""
    rows: list[Any] = connection.execute("SELECT name, value FROM setting").fetchall()
    return dict(rows)


def counter_problems(connection: apsw.Connection) -> list[str]:
    """Return the problems of the counters, by themselves and compared with the tables."""
    settings = raw_settings(connection)
    return problems(settings) or [
        f"the setting {name!r} is {settings[name]}, and the tables have {highest}"
        for name, highest in _highest(connection).items()
        if settings[name] < highest
    ]


def restore_counters(connection: apsw.Connection) -> None:
    """Restore the counters from the tables, in an open write transaction. No number is assigned twice."""
    settings, highest = raw_settings(connection), _highest(connection)
    count = connection.execute("SELECT count(*) FROM document").get
    for name in COUNTERS:
        known = settings.get(name) if _is_counter(name, settings.get(name)) else 0
        value = count if name == "documents" else max(known or 0, highest[name])
        connection.execute("INSERT OR REPLACE INTO setting VALUES (?, ?)", (name, value))
    for name in _OPTIONAL:
        if name in settings and not _is_counter(name, settings[name]):
            connection.execute("DELETE FROM setting WHERE name = ?", (name,))
    if _dimension_problem(settings):
        size = connection.execute(
            "SELECT length(embedding) FROM vector GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
        ).get
        connection.execute("DELETE FROM setting WHERE name = 'dimension'")
        if size and size % 4 == 0:
            connection.execute("INSERT INTO setting VALUES ('dimension', ?)", (size // 4,))


def read_metadata(metadata: str, links: str | None) -> dict[str, Any]:
    """Return a document's metadata as its author gave it, with its links.

    Raises:
        ValueError: If a text is not valid JSON.
        TypeError: If the metadata is not a JSON object.
    """
    fields: Any = orjson.loads(metadata) if metadata != "{}" else {}
    if not isinstance(fields, dict):
        raise TypeError(f"metadata {metadata!r} is not a JSON object")
    if links is not None:
        fields[LINKS_KEY] = orjson.loads(links)
    return fields


@contextlib.contextmanager
def decoding(what: str) -> Iterator[None]:
    """Convert the errors that invalid rows cause to StoreFormatError.

    Args:
        what: What is being read, such as ``"documents"``.
    """
    try:
        yield
    except LinkStoreError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError) as error:
        raise StoreFormatError(
            f"{what} in the database: there is a value that linkstore does not write ({error}); run verify"
            " and repair, or restore the store from a copy"
        ) from error


def problems(settings: dict[str, Any]) -> list[str]:
    """Return the problems of the settings by themselves."""
    found = [
        f"the setting {name!r} is {settings.get(name)!r}"
        for name in COUNTERS
        if not _is_counter(name, settings.get(name))
    ]
    found += [
        f"the setting {name!r} is {settings[name]!r}"
        for name in _OPTIONAL
        if name in settings and not _is_counter(name, settings[name])
    ]
    dimension = _dimension_problem(settings)
    return [*found, dimension] if dimension else found


def _is_counter(name: str, value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= _MOST.get(name, 2**62)


def _dimension_problem(settings: dict[str, Any]) -> str | None:
    dimension = settings.get("dimension")
    if dimension is None or (isinstance(dimension, int) and 0 < dimension < 2**20):
        return None
    return f"the setting 'dimension' is {dimension!r}"


def _highest(connection: apsw.Connection) -> dict[str, int]:
    *keys, change, group = (
        value if isinstance(value, int) else 0 for value in next(iter(connection.execute(_HIGHEST)))
    )
    return {"last_key": max(keys), "change": change, "last_group": group}
