"""Which items of a LangGraph store have expired.

An item with a time to live expires that many minutes after it was last put or read. Reads are recorded as
accesses of its document, which rewrites nothing; so the time is derived and not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from linkstore.arguments import refusal
from linkstore.memory.graphstore.items import Kept
from linkstore.memory.graphstore.reading import expiring_items, kept_items
from linkstore.memory.requests import delete
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.twins import answered_by, of_backend

_DELETED_AT_ONCE: Final = 500
_MICROS: Final = 1_000_000


def require_minutes(name: str, value: object) -> None:
    """Raise unless this is a time to live: a positive number of minutes, or None for ever.

    Raises:
        ArgumentError: Naming it.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (is_number and value > 0):  # type: ignore[operator]
        raise refusal(name, "a positive number of minutes, or None", value)


def alive(store: LinkStore, items: Sequence[Kept], now: datetime) -> Operation[list[Kept]]:
    """The items that have not expired, in their order."""
    expired = {one.id for one in (yield from _expired(store, items, now))}
    return [one for one in items if one.id not in expired]


def refreshed(store: LinkStore, items: Sequence[Kept], now: datetime) -> Operation[None]:
    """Record that items were read, of those that would expire."""
    times = {one.id: int(now.timestamp() * _MICROS) for one in items if one.ttl is not None}
    if times:
        yield of_backend(store, store.backend.touch(times))


def swept(store: LinkStore, dimension: int, now: datetime) -> Operation[int]:
    """Remove all expired items; how many there were.

    Items are looked at again just before they are removed: others may have put or read them meanwhile.
    """
    candidates: list[Kept] = yield answered_by(store, expiring_items(dimension))
    ids = [one.id for one in (yield from _expired(store, candidates, now))]
    count = 0
    for start in range(0, len(ids), _DELETED_AT_ONCE):
        again: dict[str, Kept] = yield answered_by(store, kept_items(ids[start : start + _DELETED_AT_ONCE]))
        gone = yield from _expired(store, list(again.values()), now)
        if gone:
            yield delete(store, [id for one in gone for id in one.document_ids])
        count += len(gone)
    return count


def _expired(store: LinkStore, items: Sequence[Kept], now: datetime) -> Operation[list[Kept]]:
    doubtful = [one for one in items if (end := one.expires(None)) is not None and end <= now]
    if not doubtful:
        return []
    ids = [one.id for one in doubtful]
    times: dict[str, int] = yield of_backend(store, store.backend.accessed(ids))
    accessed = {id: datetime.fromtimestamp(micros / _MICROS, UTC) for id, micros in times.items()}
    return [one for one in doubtful if (end := one.expires(accessed.get(one.id))) is not None and end <= now]
