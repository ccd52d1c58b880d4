"""Watches the searches of a store: how many find nothing, their times, and when to raise an alarm.

:class:`Telemetry` reports them as spans and metrics instead, using only OpenTelemetry's API. Without a
configured OpenTelemetry SDK, the API does nothing, and neither does this class.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from linkstore._version import __version__
from linkstore.core.arguments import omit_none, require, require_at_least, require_within
from linkstore.core.calls import run
from linkstore.core.display import format_percent
from linkstore.core.processes import Lock
from linkstore.errors import MissingExtraError
from linkstore.store.linkstore import require_store
from linkstore.store.unanswered import record_unanswered
from linkstore.strategies.observers import CompletedSearch

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

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
        Alarm(name=name, value=value, limit=limit, text=f"{text}; the limit is {shown_limit}")
        for name, value, limit, text, shown_limit in figures
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
        hits = searched.hits
        search = SearchRecord(
            question=searched.question,
            strategy=searched.strategy,
            began=searched.began,
            seconds=searched.seconds,
            reason=hits.doubt if hits else str(searched.error if hits is None else hits.reason),
            failed=hits is None,
        )
        with self._lock:
            self._searches.append(search)
            if search.reason is not None:
                self._unanswered.append(search)
            alarms = make_alarms(compute_vitals(self._searches), self.limits)
            raised, self._raised = self._raised, frozenset(alarm.name for alarm in alarms)
        for alarm in alarms:
            if alarm.name not in raised:
                _WATCH_LOG.warning("%s", alarm)

    def close(self) -> None:
        """End the watch, whose counts stay, and keep the unanswered questions. Closing twice is allowed."""
        super().close()
        with self._lock:
            questions = [record.question for record in self._unanswered if self._keep and not record.failed]
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

    def list_unanswered(self) -> tuple[SearchRecord, ...]:
        """Return the last searches that found nothing or failed, oldest first, with their questions."""
        with self._lock:
            return tuple(self._unanswered)

    def __repr__(self) -> str:
        return f"<Watch over {self.store!r}: {self.vitals()}>"


SCOPE_NAME: Final = "linkstore"
"""The name of the instrumentation scope."""
SPAN_NAME: Final = "linkstore.search"
"""The name of the spans."""
ATTRIBUTES: Final = {
    "gen_ai.operation.name": "retrieval",
    "db.system.name": "linkstore",
    "db.operation.name": "search",
}
"""What every span and every figure has, by the semantic conventions."""
SECONDS_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of times. The default ones begin at 5 s, and so show nothing."""
DOCUMENT_BUCKETS: Final = (0, 1, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)


class Telemetry(StoreObserver):
    """Reports each search of a store as a span, and in metrics.

    One search is one span, ``linkstore.search``, also that of an agent's tool. It is current while the search
    runs, so spans of an embedding or a reranker are its children. Its attributes are ``linkstore.strategy``,
    ``linkstore.hits``, ``linkstore.depth`` (the most links to a hit), ``linkstore.reached`` (documents that
    were come to along links), and ``linkstore.reason`` of an empty result; those of the GenAI conventions
    (``gen_ai.operation.name``, here ``retrieval``) and of the database conventions (``db.system.name``,
    ``db.operation.name``); and ``error.type`` of a failed search. The metrics, each with the attribute
    ``linkstore.outcome`` (``found``, ``empty``, ``failed``), are the histograms ``linkstore.search.duration``
    in seconds, whose buckets show percentiles from 1 ms to 10 s, ``linkstore.search.hits`` and
    ``linkstore.search.reached`` in documents.

    See https://opentelemetry.io/docs/specs/semconv/.

    Use it as a context manager, or call ``close()``, to end it.

    Args:
        store: The store.
        tracer_provider: Where spans go; None: the global provider.
        meter_provider: Where metrics go; None: the global provider.
        questions: Whether spans have the question, as ``gen_ai.retrieval.query.text``; default False, since
            questions may be private.

    Raises:
        MissingExtraError: If the extra ``otel`` is not installed.
    """

    def __init__(
        self,
        store: LinkStore,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        questions: bool = False,
    ) -> None:
        try:
            from opentelemetry import context, metrics, trace
        except ImportError as error:
            raise MissingExtraError("telemetry of searches", "otel") from error
        self._context: Final = context
        self._trace: Final = trace
        self._tracer: Final = trace.get_tracer(SCOPE_NAME, __version__, tracer_provider)
        meter = metrics.get_meter(SCOPE_NAME, __version__, meter_provider)
        self._seconds: Final = meter.create_histogram(
            f"{SPAN_NAME}.duration",
            unit="s",
            description="Time of a search, with embedding and reranking.",
            explicit_bucket_boundaries_advisory=SECONDS_BUCKETS,
        )
        self._hits: Final = meter.create_histogram(
            f"{SPAN_NAME}.hits", unit="{document}", description="Documents that a search found."
        )
        self._reached: Final = meter.create_histogram(
            f"{SPAN_NAME}.reached",
            unit="{document}",
            description="Documents that a search came to along links.",
            explicit_bucket_boundaries_advisory=DOCUMENT_BUCKETS,
        )
        self._questions: Final = questions
        super().__init__(store)

    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Begin the span of a search: see :class:`~linkstore.strategies.observers.Observer`."""
        span = self._tracer.start_span(SPAN_NAME, attributes={**ATTRIBUTES, "linkstore.strategy": strategy})
        if self._questions and question:
            span.set_attribute("gen_ai.retrieval.query.text", question)
        token = self._context.attach(self._trace.set_span_in_context(span))

        def ended(searched: CompletedSearch) -> None:
            self._context.detach(token)
            self._report(span, searched)
            span.end()

        return ended

    def _report(self, span: Span, searched: CompletedSearch) -> None:
        hits, reached = searched.hits, sum(searched.reached)
        outcome = "failed" if hits is None else "found" if hits else "empty"
        attributes: dict[str, Any] = {**ATTRIBUTES, "linkstore.outcome": outcome}
        span.set_attribute("linkstore.reached", reached)
        if hits is None:
            attributes["error.type"] = _name_error(searched.error)
            if isinstance(searched.error, Exception):
                span.record_exception(searched.error)
            span.set_attribute("error.type", attributes["error.type"])
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, type(searched.error).__name__))
        else:
            span.set_attribute("linkstore.hits", len(hits))
            span.set_attribute("linkstore.depth", max((hit.depth for hit in hits), default=0))
            if hits.reason is not None:
                span.set_attribute("linkstore.reason", hits.reason)
        self._seconds.record(searched.seconds, attributes)
        self._hits.record(len(hits or ()), attributes)
        self._reached.record(reached, attributes)


def _name_error(error: BaseException | None) -> str:
    """Return the class of an error, with its module unless it is built in."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
