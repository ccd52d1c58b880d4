"""Watches the searches of a store: how many find nothing, their times, and when to raise an alarm."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from linkstore.core.arguments import omit_none, require, require_at_least, require_within
from linkstore.core.calls import run
from linkstore.core.display import format_percent
from linkstore.core.processes import Lock
from linkstore.store.linkstore import require_store
from linkstore.store.unanswered import record_unanswered
from linkstore.strategies.observers import CompletedSearch

if TYPE_CHECKING:
    from linkstore.store.linkstore import LinkStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRecord:
    """The record of a search.

    Args:
        question: The question as text; empty for a search by a vector.
        strategy: The strategy, as text.
        began: When it began, in UTC.
        seconds: How long it took.
        reason: Why it found nothing, or the message of the error with which it failed; None if it found some.
        failed: Whether it ended with an error.
    """

    question: str
    strategy: str
    began: datetime
    seconds: float
    reason: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the figures of a window are cause for alarm.

    Args:
        empty: The highest share of searches that may find nothing, or fail; default 0.1, so 11 of 100 raise
            an alarm.
        seconds: How long 99 % of searches may take; default None, any time.
        least: With fewer searches than this in the window no alarm is raised; default 20.

    Raises:
        StrategyError: If a limit is out of range.
    """

    empty: float = 0.1
    seconds: float | None = None
    least: int = 20

    def __post_init__(self) -> None:
        require_within(0, 1, empty=self.empty)
        require_at_least(0, least=self.least)
        require_within(0, math.inf, **omit_none(seconds=self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """Figures of the searches in a window.

    Args:
        searches: How many there were.
        empty: How many found nothing, or failed.
        seconds_p50: Half of them took no longer; 0 without searches.
        seconds_p99: 99 % of them took no longer.
    """

    searches: int
    empty: int
    seconds_p50: float
    seconds_p99: float

    @property
    def empty_share(self) -> float:
        """The share of searches that found nothing, from 0 to 1."""
        return self.empty / self.searches if self.searches else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a plain JSON dict."""
        return {**asdict(self), "empty_share": self.empty_share}

    def __str__(self) -> str:
        return (
            f"{self.searches:,} searches, {self.empty:,} found nothing ({format_percent(self.empty_share)});"
            f" p50 {self.seconds_p50 * 1000:.1f} ms, p99 {self.seconds_p99 * 1000:.1f} ms"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A figure that is past its limit.

    Args:
        name: ``empty`` or ``seconds``.
        value: The figure.
        limit: Its limit.
        text: Both in words.
    """

    name: str
    value: float
    limit: float
    text: str

    def __str__(self) -> str:
        return self.text


def compute_vitals(searches: Collection[SearchRecord]) -> Vitals:
    """Return the figures of some searches, with percentiles of the nearest rank."""
    seconds = sorted(search.seconds for search in searches) or [0.0]
    return Vitals(
        searches=len(searches),
        empty=sum(search.reason is not None for search in searches),
        seconds_p50=seconds[-(-len(seconds) * 50 // 100) - 1],
        seconds_p99=seconds[-(-len(seconds) * 99 // 100) - 1],
    )


def make_alarms(vitals: Vitals, limits: Limits) -> tuple[Alarm, ...]:
    """Return the figures that are past their limits, as alarms."""
    count = f"of the last {vitals.searches:,} searches"
    none = f"{format_percent(vitals.empty_share)} {count} found nothing"
    slow = f"1 % {count} took {vitals.seconds_p99:.2f} s or more"
    figures = (
        ("empty", vitals.empty_share, limits.empty, none, format_percent(limits.empty, 0)),
        ("seconds", vitals.seconds_p99, limits.seconds, slow, f"{limits.seconds or 0:g} s"),
    )
    return tuple(
        Alarm(name=name, value=value, limit=limit, text=f"{text}; the limit is {told}")
        for name, value, limit, text, told in figures
        if limit is not None and value > limit and vitals.searches >= limits.least
    )


class StoreObserver(ABC):
    """An observer of the searches of a store, until it is closed or its ``with`` block ends.

    Args:
        store: The store.

    Raises:
        ArgumentError: If ``store`` is not a store.
    """

    def __init__(self, store: LinkStore) -> None:
        require_store(store=store)
        self._end: Final = store.observe(self)

    @abstractmethod
    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Note that a search begins: see :class:`~linkstore.strategies.observers.Observer`."""

    def close(self) -> None:
        """End the observation, whose counts stay. Closing twice is allowed."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


DEFAULT_KEPT: Final = 200
"""How many searches that found nothing are kept by default."""
_WATCH_LOG: Final = logging.getLogger("linkstore.watch")


class Watch(StoreObserver):
    """Watches the searches of a store by its methods, retrievers, tools and context compilers.

    It holds figures of the last searches, and the questions of those that found nothing or failed; no
    documents. Any number of threads and tasks may search. Where a figure passes its limit, a warning is
    logged once by the logger ``linkstore.watch``, and again when it passes the limit anew. Windows of time
    and other figures are :class:`Telemetry`'s.

    Use it as a context manager, or call ``close()``, to end it. Then the questions that found nothing are
    kept in the store with their counts, for ``linkstore doctor``.

    Args:
        store: The store.
        window: How many of the last searches are counted.
        limits: When to raise an alarm; default :class:`Limits`.
        kept: How many searches that found nothing, or failed, are kept with their questions.
        keep: Whether unanswered questions are kept in the store; default True.

    Raises:
        ArgumentError: If ``store`` or ``limits`` has the wrong type.
        StrategyError: If ``window`` or ``kept`` is not an integer of at least 1.
    """

    def __init__(
        self,
        store: LinkStore,
        *,
        window: int = 1_000,
        limits: Limits | None = None,
        kept: int = DEFAULT_KEPT,
        keep: bool = True,
    ) -> None:
        require_store(store=store)
        require_at_least(1, window=window, kept=kept)
        self._keep = keep
        self.store: Final = store
        self.limits: Final = Limits() if limits is None else limits
        require(Limits, "a Limits", limits=self.limits)
        self._searches: deque[SearchRecord] = deque(maxlen=window)
        self._unanswered: deque[SearchRecord] = deque(maxlen=kept)
        self._raised = frozenset[str]()
        self._lock = Lock()
        super().__init__(store)

    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Return the function that records the search."""
        return self._record

    def _record(self, searched: CompletedSearch) -> None:
        if searched.error is not None and not isinstance(searched.error, Exception):
            return  # interrupted: it is no evidence about the store
        found = searched.hits
        search = SearchRecord(
            question=searched.question,
            strategy=searched.strategy,
            began=searched.began,
            seconds=searched.seconds,
            reason=None if found else str(searched.error if found is None else found.reason),
            failed=found is None,
        )
        with self._lock:
            self._searches.append(search)
            if search.reason is not None:
                self._unanswered.append(search)
            alarms = make_alarms(compute_vitals(self._searches), self.limits)
            known, self._raised = self._raised, frozenset(alarm.name for alarm in alarms)
        for alarm in alarms:
            if alarm.name not in known:
                _WATCH_LOG.warning("%s", alarm)

    def close(self) -> None:
        """End the watch, whose counts stay, and keep the unanswered questions. Closing twice is allowed."""
        super().close()
        with self._lock:
            questions = [one.question for one in self._unanswered if self._keep and not one.failed]
            self._keep = False
        run(record_unanswered(self.store.backend, questions))

    def vitals(self) -> Vitals:
        """Return the figures of the searches in the window."""
        with self._lock:
            searches = tuple(self._searches)
        return compute_vitals(searches)

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the figures that are past their limits now, as alarms."""
        return make_alarms(self.vitals(), self.limits)

    def unanswered(self) -> tuple[SearchRecord, ...]:
        """Return the last searches that found nothing or failed, oldest first, with their questions."""
        with self._lock:
            return tuple(self._unanswered)

    def __repr__(self) -> str:
        return f"<Watch over {self.store!r}: {self.vitals()}>"
