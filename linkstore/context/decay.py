"""How memories fade: the strength of a document halves with each half-life since its last access.

A document is first accessed when it is written, and then whenever a context or a recall uses it. Accesses
are recorded many at a time, so that a search hardly ever writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Self, get_args

from linkstore.core.arguments import require, require_within
from linkstore.core.calls import Operation, call_engine
from linkstore.core.documents import ACCESS_KEY, HALF_LIFE_KEY, MEMORY_KEY
from linkstore.core.processes import Lock
from linkstore.errors import StoreReadOnlyError, StrategyError
from linkstore.store.linkstore import LinkStore
from linkstore.store.usage import convert_access_time, read_access_times

Memory = Literal["semantic", "episodic", "procedural"]
"""Kinds of memory: facts, events, and rules of behaviour. Rules are pinned and do not fade."""
MEMORIES: Final[tuple[str, ...]] = get_args(Memory)
LastAccess = Mapping[str, datetime] | Callable[[str], datetime | None]
"""When documents were last accessed, by id; it goes before the metadata."""
_HALF_LIVES: Final = {"semantic": timedelta(days=60), "episodic": timedelta(days=7)}
_OTHER_KEYS: Final = {
    "type": MEMORY_KEY,
    "memory_type": MEMORY_KEY,
    "decay": HALF_LIFE_KEY,
    "decay_factor": HALF_LIFE_KEY,
    "decay_rate": HALF_LIFE_KEY,
    "half_life": HALF_LIFE_KEY,
    "half_life_days": HALF_LIFE_KEY,
    "accessed_at": ACCESS_KEY,
    "last_accessed": ACCESS_KEY,
    "last_accessed_at": ACCESS_KEY,
}
"""Keys that others use for what these keys say."""
_KEPT_ACCESSES: Final = 256
"""Number of documents whose accesses are recorded in one change."""
_KEPT_SECONDS: Final = 60.0
"""How long an access waits to be recorded, until the next search after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decay:
    """The strength of a memory: ``0.5 ** (age / half_life) + resistance * centrality``, at most 1.

    The age is the time since the last access. A document without a kind of memory, of a kind without a
    half-life, or whose last access is not known has strength 1, and so has one accessed in the future.

    Args:
        half_life: The half-life of each kind of memory; default 60 days for ``semantic``, 7 days for
            ``episodic``, none for ``procedural``. ``metadata["half_life_hours"]`` of a document goes before
            it.
        resistance: How much the most linked document of a search resists decay, from 0 to 1; default 0.2.

    Raises:
        StrategyError: If a half-life is not greater than 0, or ``resistance`` is out of range.
    """

    half_life: Mapping[str, timedelta] = field(default_factory=_HALF_LIVES.copy, hash=False)
    resistance: float = 0.2

    def __post_init__(self) -> None:
        require(Mapping, "a dict of timedeltas by kind of memory", half_life=self.half_life)
        for kind, value in self.half_life.items():
            if not isinstance(value, timedelta) or value <= timedelta(0):
                raise StrategyError(f"the half-life of {kind!r} must be a timedelta above 0, not {value!r}")
        require_within(0, 1, resistance=self.resistance)

    @classmethod
    def published(cls) -> Self:
        """Return the decay of ContextOS (Thakur, 2025): facts retain 0.9995 an hour, events 0.90.

        As half-lives: 57.8 days and 6.6 hours.
        """
        return cls(half_life={"semantic": timedelta(days=57.8), "episodic": timedelta(hours=6.58)})

    def may_fade(self, metadata: Mapping[str, Any]) -> bool:
        """Say whether a document with this metadata has a half-life."""
        memory = metadata.get(MEMORY_KEY)
        has_half_life = isinstance(memory, str) and memory in self.half_life
        return has_half_life or metadata.get(HALF_LIFE_KEY) is not None

    def strength(
        self,
        memory: str | None,
        age: timedelta | None,
        centrality: float = 0.0,
        half_life: timedelta | None = None,
    ) -> float:
        """Return the strength of one document.

        Args:
            memory: Its kind of memory, if known.
            age: Time since its last access, if known.
            centrality: How linked it is compared with the most linked document of the search, from 0 to 1.
            half_life: Its own half-life, if it has one.
        """
        life = half_life or self.half_life.get(memory or "")
        if life is None or age is None or age <= timedelta(0):
            return 1.0
        return float(min(1.0, 0.5 ** (age / life) + self.resistance * centrality))

    def judge(
        self,
        name: str,
        metadata: Mapping[str, Any],
        now: datetime,
        centrality: float = 0.0,
        accessed: datetime | None = None,
    ) -> tuple[float, str | None]:
        """Return the strength of a stored document, and what is wrong with its fields on it, if anything.

        Args:
            name: Its id.
            metadata: Its metadata, with the keys ``memory``, ``half_life_hours`` and ``last_access``.
            now: The time of the question.
            centrality: See :meth:`strength`.
            accessed: When it was last accessed, if that is known; it goes before the metadata.
        """
        memory, strength = metadata.get(MEMORY_KEY), 1.0
        if self.may_fade(metadata):
            try:
                own = _read_half_life(metadata.get(HALF_LIFE_KEY))
                accessed = accessed or _read_time(metadata.get(ACCESS_KEY))
            except ValueError as error:
                return 1.0, f"document {name!r}: {error}; it does not fade"
            age = None if accessed is None else _add_time_zone(now) - _add_time_zone(accessed)
            strength = self.strength(memory if isinstance(memory, str) else None, age, centrality, own)
        if memory is not None and memory not in (*MEMORIES, *self.half_life):
            kinds = ", ".join(dict.fromkeys((*MEMORIES, *self.half_life)))
            wrong = f"{MEMORY_KEY} {memory!r} is none of {kinds}; it does not fade"
            return strength, f"document {name!r}: {wrong}"
        unread = [
            f"{key} {value!r}, which is read as {meant}"
            for key, meant in _OTHER_KEYS.items()
            if (value := metadata.get(key)) is not None and (key != "type" or value in MEMORIES)
        ]
        return strength, f"document {name!r}: not read: {'; '.join(unread)}" if unread else None


class Accesses:
    """The accesses to documents of a store that are not recorded yet. Safe to use from threads.

    Args:
        store: Where they are to be recorded.
    """

    def __init__(self, store: LinkStore) -> None:
        self._store = store
        self._pending: dict[str, datetime] = {}
        self._since = 0.0
        self._lock = Lock()

    def collect(self, names: Iterable[str], moment: datetime) -> None:
        """Collect documents that were accessed at this moment."""
        with self._lock:
            if not self._pending:
                self._since = time.monotonic()
            for name in names:
                self._pending[name] = max(moment, self._pending.get(name, moment))

    def read(self, names: Collection[str]) -> Operation[dict[str, datetime]]:
        """Return when documents were last accessed, recorded or not, for those with a known time."""
        times = (yield from read_access_times(self._store.backend, list(names))) if names else {}
        pending = {name: self._pending[name] for name in names if name in self._pending}
        return times | {name: max(at, times.get(name, at)) for name, at in pending.items()}

    def record(self, *, all: bool = False) -> Operation[None]:
        """Record what is pending in one change: if there is much, if it waits for long, or ``all``.

        In a store that cannot be written, nothing is recorded, and accesses count in this process alone.
        """
        with self._lock:
            late = time.monotonic() - self._since > _KEPT_SECONDS
            if not self._pending or not (all or late or len(self._pending) >= _KEPT_ACCESSES):
                return
            pending, self._pending = self._pending, {}
        now = datetime.now(UTC)
        times = {name: convert_access_time(min(at, now)) for name, at in pending.items()}
        try:
            yield from call_engine(self._store.backend, self._store.backend.touch(times))
        except StoreReadOnlyError:
            self.collect(pending, now)


def _read_half_life(hours: object) -> timedelta | None:
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours < 1e8:
        raise ValueError(f"metadata[{HALF_LIFE_KEY!r}] must be a number of hours above 0, not {hours!r}")
    return timedelta(hours=hours)


def _read_time(value: object) -> datetime | None:
    if value is None:
        return None
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    raise ValueError(
        f"metadata[{ACCESS_KEY!r}] must be an ISO 8601 time or seconds since 1970, not {value!r}"
    )


def _add_time_zone(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
