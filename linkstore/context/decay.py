"""How strong a memory still is: half-lives by kind of memory, from the last access."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, Self, get_args

from linkstore.arguments import require, require_within
from linkstore.errors import StrategyError

Memory = Literal["semantic", "episodic", "procedural"]
"""Kinds of memory: facts, events, and rules of behaviour. Rules are pinned and do not decay."""
MEMORIES: Final[tuple[str, ...]] = get_args(Memory)
MEMORY_KEY: Final = "memory"
"""The metadata key of a document's kind of memory."""
HALF_LIFE_KEY: Final = "half_life_hours"
"""The metadata key of a document's own half-life, a number of hours greater than 0."""
ACCESS_KEY: Final = "last_access"
"""The metadata key of the last access: ISO 8601, or seconds since 1970; without an offset it is UTC."""
LastAccess = Mapping[str, datetime] | Callable[[str], datetime | None]
"""When documents were last accessed, by id; it goes before the metadata."""


def _default_half_lives() -> Mapping[str, timedelta]:
    return {"semantic": timedelta(days=60), "episodic": timedelta(days=7)}


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

    half_life: Mapping[str, timedelta] = field(default_factory=_default_half_lives, hash=False)
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
        known = isinstance(memory, str) and memory in self.half_life
        return known or metadata.get(HALF_LIFE_KEY) is not None

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

    def strength_of(
        self,
        name: str,
        metadata: Mapping[str, Any],
        now: datetime,
        centrality: float = 0.0,
        last_access: LastAccess | None = None,
    ) -> float:
        """Return the strength of a stored document.

        Args:
            name: Its id.
            metadata: Its metadata; see :data:`MEMORY_KEY`, :data:`HALF_LIFE_KEY` and :data:`ACCESS_KEY`.
            now: The time of the question.
            centrality: See :meth:`strength`.
            last_access: Times of access by id; they go before the metadata.

        Raises:
            StrategyError: If a field has a value that cannot be read.
        """
        if not self.may_fade(metadata):
            return 1.0
        memory = metadata.get(MEMORY_KEY)
        own = _half_life(name, metadata.get(HALF_LIFE_KEY))
        accessed = accessed_at(name, last_access)
        if accessed is None:
            accessed = _time(name, metadata.get(ACCESS_KEY))
        age = None if accessed is None else _aware(now) - _aware(accessed)
        return self.strength(memory if isinstance(memory, str) else None, age, centrality, own)


def accessed_at(name: str, last_access: LastAccess | None) -> datetime | None:
    """Return when a document was last accessed, if that is given, else None."""
    if last_access is None:
        return None
    return last_access.get(name) if isinstance(last_access, Mapping) else last_access(name)


def _half_life(name: str, hours: object) -> timedelta | None:
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours < 1e8:
        raise StrategyError(
            f"document {name!r}: metadata[{HALF_LIFE_KEY!r}] must be a number of hours above 0, not {hours!r}"
        )
    return timedelta(hours=hours)


def _time(name: str, value: object) -> datetime | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise StrategyError(_unreadable(name, value)) from error
    raise StrategyError(_unreadable(name, value))


def _unreadable(name: str, value: object) -> str:
    return (
        f"document {name!r}: metadata[{ACCESS_KEY!r}] must be an ISO 8601 time or seconds since 1970,"
        f" not {value!r}"
    )


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
