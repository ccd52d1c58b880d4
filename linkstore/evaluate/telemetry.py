"""Reports the searches of a store as spans and metrics, using only OpenTelemetry's API.

Without a configured OpenTelemetry SDK, the API does nothing, and neither does :class:`Telemetry`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self

from linkstore._version import __version__
from linkstore.errors import MissingExtraError
from linkstore.store.base import observe_searches
from linkstore.store.core import require_store
from linkstore.strategies.observers import CompletedSearch

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from linkstore.store.linkstore import LinkStore

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


class Telemetry:
    """Reports each search of a store as a span, and in metrics.

    One search is one span, ``linkstore.search``, also that of an agent's tool. It is current while the search
    runs, so spans of an embedding or a reranker are its children. Its attributes are ``linkstore.strategy``,
    ``linkstore.hits``, ``linkstore.depth`` (the most links to a hit), ``linkstore.reached`` (documents that
    were come to along links), and ``linkstore.reason`` of an empty or doubtful result; those of the GenAI
    conventions (``gen_ai.operation.name``, here ``retrieval``) and of the database conventions
    (``db.system.name``, ``db.operation.name``); and ``error.type`` of a failed search. The metrics, each with
    the attribute ``linkstore.outcome`` (``found``, ``doubtful``, ``empty``, ``failed``), are the histograms
    ``linkstore.search.duration`` in seconds, whose buckets show percentiles from 1 ms to 10 s,
    ``linkstore.search.hits`` and ``linkstore.search.reached`` in documents.

    See https://opentelemetry.io/docs/specs/semconv/.

    Use it as a context manager, or call ``close()``, to end it.

    Args:
        store: The store.
        tracer_provider: Where spans go; None: the global provider.
        meter_provider: Where metrics go; None: the global provider.
        questions: Whether spans have the question, as ``gen_ai.retrieval.query.text``; default False, since
            questions may be private.

    Raises:
        ArgumentError: If ``store`` is not a store.
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
        require_store(store=store)
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
        self._end: Final = observe_searches(store, self)

    def close(self) -> None:
        """End the observation. Closing twice is allowed."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        outcome = "failed" if hits is None else "empty" if not hits else "doubtful" if hits.doubt else "found"
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
            if (reason := hits.reason or hits.doubt) is not None:
                span.set_attribute("linkstore.reason", reason)
        self._seconds.record(searched.seconds, attributes)
        self._hits.record(len(hits or ()), attributes)
        self._reached.record(reached, attributes)


def _name_error(error: BaseException | None) -> str:
    """Return the class of an error, with its module unless it is built in."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
