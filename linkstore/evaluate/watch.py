"""Watches the searches of a store: how many find nothing, their times, and when to raise an alarm."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Self

from linkstore.core.arguments import omit_none, require, require_at_least, require_within
from linkstore.core.calls import run
from linkstore.core.display import format_percent
from linkstore.store.linkstore import require_store
from linkstore.store.schema import TYPE_FIELD
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
        reached: How many documents it reached along links, each step counted.
        hits: How many documents it found.
        types: How many of them are of each type.
        kinds: How many of their paths follow each kind of link.
        failed: Whether it ended with an error.
        reason: Why it found nothing, or the message of the error.
    """

    question: str
    strategy: str
    began: datetime
    seconds: float
    reached: int
    hits: int
    types: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    failed: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the figures of a window are cause for alarm.

    Args:
        empty: The highest share of searches that may find nothing; default 0.1, so 11 of 100 raise an alarm.
        failed: The highest share of searches that may fail, such as those that name a kind the store does
            not have; default 0.1.
        reached: How many documents 99 % of searches may come to along links; default 20,000. None: any
            number.
        seconds: How long 99 % of searches may take; default None, any time.
        least: With fewer searches than this in the window no alarm is raised; default 20.

    Raises:
        StrategyError: If a limit is out of range.
    """

    empty: float = 0.1
    failed: float = 0.1
    reached: int | None = 20_000
    seconds: float | None = None
    least: int = 20

    def __post_init__(self) -> None:
        require_within(0, 1, empty=self.empty, failed=self.failed)
        require_at_least(0, least=self.least, **omit_none(reached=self.reached))
        require_within(0, math.inf, **omit_none(seconds=self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """Figures of the searches in a window.

    Args:
        searches: How many there were.
        empty: How many found nothing.
        failed: How many ended with an error; they are not among the empty ones.
        seconds_p50: Half of them took no longer; 0 without searches.
        seconds_p99: 99 % of them took no longer.
        reached_p50: Half of them came to no more documents along links.
        reached_p99: 99 % of them came to no more.
        reached_most: The largest number that one search reached.
        types: How many hits were of each document type.
        kinds: How many paths of hits follow each kind of link.
    """

    searches: int
    empty: int
    failed: int
    seconds_p50: float
    seconds_p99: float
    reached_p50: int
    reached_p99: int
    reached_most: int
    types: Mapping[str, int]
    kinds: Mapping[str, int]

    @property
    def empty_share(self) -> float:
        """The share of searches that found nothing, from 0 to 1, not counting those that failed."""
        answered = self.searches - self.failed
        return self.empty / answered if answered else 0.0

    @property
    def failed_share(self) -> float:
        """The share of searches that failed, from 0 to 1."""
        return self.failed / self.searches if self.searches else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a plain JSON dict."""
        return {**asdict(self), "empty_share": self.empty_share, "failed_share": self.failed_share}

    def __str__(self) -> str:
        return (
            f"{self.searches:,} searches, {self.empty:,} found nothing ({format_percent(self.empty_share)}),"
            f" {self.failed:,} failed; p50 {self.seconds_p50 * 1000:.1f} ms, p99"
            f" {self.seconds_p99 * 1000:.1f} ms; along links p50 {self.reached_p50:,}, p99"
            f" {self.reached_p99:,}, at most {self.reached_most:,} documents"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A figure that is past its limit.

    Args:
        name: ``empty``, ``failed``, ``reached`` or ``seconds``.
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
    """Return the figures of some searches."""
    seconds = sorted(search.seconds for search in searches)
    reached = sorted(search.reached for search in searches)
    types: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for search in searches:
        types.update(search.types)
        kinds.update(search.kinds)
    return Vitals(
        searches=len(searches),
        empty=sum(not search.hits and not search.failed for search in searches),
        failed=sum(search.failed for search in searches),
        seconds_p50=_compute_percentile(seconds, 50),
        seconds_p99=_compute_percentile(seconds, 99),
        reached_p50=int(_compute_percentile(reached, 50)),
        reached_p99=int(_compute_percentile(reached, 99)),
        reached_most=reached[-1] if reached else 0,
        types=dict(sorted(types.items())),
        kinds=dict(sorted(kinds.items())),
    )


def list_past_limits(search: SearchRecord, limits: Limits) -> list[str]:
    """Return the names of the alarms that a search counts towards."""
    return [
        name
        for name, past in (
            ("empty", not search.hits and not search.failed),
            ("failed", search.failed),
            ("reached", limits.reached is not None and search.reached > limits.reached),
            ("seconds", limits.seconds is not None and search.seconds > limits.seconds),
        )
        if past
    ]


def name_alarms(searches: int, past: Mapping[str, int], limits: Limits) -> frozenset[str]:
    """Return the names of the alarms to raise, from how many of the searches count towards each.

    The 99th percentile is past its limit if more than 1 % of the searches are.
    """
    if searches < limits.least:
        return frozenset()
    failed = past.get("failed", 0)
    raised = {
        "empty": past.get("empty", 0) > 0 and past["empty"] / (searches - failed) > limits.empty,
        "failed": failed / searches > limits.failed if searches else False,
        "reached": past.get("reached", 0) > searches // 100,
        "seconds": past.get("seconds", 0) > searches // 100,
    }
    return frozenset(name for name, one in raised.items() if one)


def make_alarms(vitals: Vitals, limits: Limits) -> tuple[Alarm, ...]:
    """Return the figures that are past their limits, as alarms."""
    if vitals.searches < limits.least:
        return ()
    count = f"of the last {vitals.searches:,} searches"
    slow = f"1 % {count} took {vitals.seconds_p99:.2f} s or more"
    none = f"{format_percent(vitals.empty_share)} {count} found nothing"
    lost = f"{format_percent(vitals.failed_share)} {count} failed"
    wide = f"1 % {count} came to {vitals.reached_p99:,} documents or more along links"
    figures = (
        ("empty", vitals.empty_share, limits.empty, none),
        ("failed", vitals.failed_share, limits.failed, lost),
        ("reached", vitals.reached_p99, limits.reached, wide),
        ("seconds", vitals.seconds_p99, limits.seconds, slow),
    )
    return tuple(
        Alarm(name=name, value=value, limit=limit, text=f"{text}; the limit is {_format_limit(name, limit)}")
        for name, value, limit, text in figures
        if limit is not None and value > limit
    )


def _format_limit(name: str, limit: float) -> str:
    return {"reached": f"{limit:,.0f}", "seconds": f"{limit:g} s"}.get(name, format_percent(limit, 0))


def _compute_percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the nearest-rank percentile of ascending values, or 0 without any."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0


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
    logged once by the logger ``linkstore.evaluate``, and again when it passes the limit anew.

    Use it as a context manager, or call ``close()``, to end it. Then the questions that found nothing are
    kept in the store with their counts, for ``linkstore doctor``.

    Args:
        store: The store.
        window: How many of the last searches are counted.
        limits: When to raise an alarm; default :class:`Limits`.
        kept: How many searches that found nothing, or failed, are kept with their questions.
        type_field: The metadata field that holds the type of a document; None: that of the recorded schema,
            else ``"type"``.
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
        type_field: str | None = None,
        keep: bool = True,
    ) -> None:
        require_store(store=store)
        require_at_least(1, window=window, kept=kept)
        self._keep = keep
        self.store: Final = store
        self.limits: Final = Limits() if limits is None else limits
        require(Limits, "a Limits", limits=self.limits)
        schema = store.schema() if type_field is None else None
        self._type_field = type_field or (schema.type_field if schema else TYPE_FIELD)
        self._searches: deque[SearchRecord] = deque(maxlen=window)
        self._unanswered: deque[SearchRecord] = deque(maxlen=kept)
        self._past: Counter[str] = Counter()
        self._raised = frozenset[str]()
        self._lock = Lock()
        super().__init__(store)

    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Return the function that records the search."""
        return self._record

    def _record(self, searched: CompletedSearch) -> None:
        if searched.error is not None and not isinstance(searched.error, Exception):
            return  # interrupted: it is no evidence about the store
        search = _make_record(searched, self._type_field)
        with self._lock:
            if len(self._searches) == self._searches.maxlen:
                self._past.subtract(list_past_limits(self._searches[0], self.limits))
            self._searches.append(search)
            self._past.update(list_past_limits(search, self.limits))
            if not search.hits:
                self._unanswered.append(search)
            raised = name_alarms(len(self._searches), self._past, self.limits)
            new, self._raised = raised - self._raised, raised
            vitals = compute_vitals(self._searches) if new else None
        for alarm in make_alarms(vitals, self.limits) if vitals else ():
            if alarm.name in new:
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


def _make_record(searched: CompletedSearch, type_field: str) -> SearchRecord:
    """Return the record of a search."""
    hits = searched.hits or ()
    types: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for hit in hits:
        found: Any = hit.document.metadata.get(type_field)
        types.update([found] if isinstance(found, str) else [])
        kinds.update({step.kind for step in hit.path if step.kind is not None})
    failed = searched.error is not None
    reason = str(searched.error) if failed else searched.hits.reason if searched.hits is not None else None
    return SearchRecord(
        question=searched.question,
        strategy=searched.strategy,
        began=searched.began,
        seconds=searched.seconds,
        reached=sum(searched.reached),
        hits=len(hits),
        types=dict(types),
        kinds=dict(kinds),
        failed=failed,
        reason=reason if not hits else None,
    )
