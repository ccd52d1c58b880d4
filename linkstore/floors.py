"""The minimum similarity that a store records for its searches."""

from __future__ import annotations

from typing import Final

import orjson

from linkstore.arguments import require_within
from linkstore.backends.base import Backend
from linkstore.errors import StoreBusyError, StoreFormatError
from linkstore.plans import Operation
from linkstore.requests import Engine

FLOOR_NOTE: Final = "min_similarity"
"""The note that holds it."""


def recorded_floor(backend: Backend) -> Operation[float | None]:
    """Return the minimum similarity that the store records, or None without one.

    Raises:
        StoreFormatError: If the note is not one that linkstore wrote.
    """
    return _read((yield Engine(backend.note(FLOOR_NOTE))))


def record_floor(backend: Backend, floor: float | None) -> Operation[float | None]:
    """Record a minimum similarity, or remove it if it is None, and return what is recorded then.

    Raises:
        StrategyError: If it is not a number from -1 to 1.
        StoreBusyError: If another client records one at the same time.
    """
    if floor is not None:
        require_within(-1, 1, min_similarity=floor)
    value = None if floor is None else orjson.dumps(float(floor)).decode()
    before: str | None = yield Engine(backend.note(FLOOR_NOTE))
    if (yield Engine(backend.set_note(FLOOR_NOTE, value, before))) != value:
        raise StoreBusyError("another client set the minimum similarity at the same time; try again")
    return _read(value)


def _read(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        floor = orjson.loads(text)
    except ValueError:
        floor = None
    if isinstance(floor, bool) or not isinstance(floor, int | float) or not -1 <= floor <= 1:
        raise StoreFormatError(
            f"the note {FLOOR_NOTE!r} of the store is {text[:60]!r}, not a number from -1 to 1; restore the"
            f" store from a copy, or remove the row 'note {FLOOR_NOTE}' from its table of settings"
        )
    return float(floor)
