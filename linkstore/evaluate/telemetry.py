"""Reports the searches of a store as spans and metrics, using only OpenTelemetry's API.

Without a configured OpenTelemetry SDK, the API does nothing, and neither does this module.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from linkstore._version import __version__
from linkstore.errors import MissingExtraError
from linkstore.evaluate.watch import StoreObserver
from linkstore.strategies.observers import CompletedSearch

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from linkstore.store.linkstore import LinkStore

SCOPE_NAME: Final = "linkstore"
"""The name of the instrumentation scope."""
SPAN_NAME: Final = "linkstore.search"
"""The name of the spans."""


class Telemetry(StoreObserver):
    """Reports each search of a store as a span, and in metrics.

    The span ``linkstore.search`` is current while the search runs, so spans of an embedding or a reranker are
    its children. Its attributes are ``linkstore.strategy``, ``linkstore.hits``, ``linkstore.depth`` (the most
    links to a hit), ``linkstore.reached`` (documents that were come to along links), and ``linkstore.reason``
    of an empty result. The metrics, each with the attribute ``linkstore.outcome`` (``found``, ``empty``,
    ``failed``), are the histograms ``linkstore.search.duration`` in seconds, ``linkstore.search.hits`` and
    ``linkstore.search.reached`` in documents.

    Use it as a context manager, or call ``close()``, to end it.

    Args:
        store: The store.
        tracer_provider: Where spans go; None: the global provider.
        meter_provider: Where metrics go; None: the global provider.
        questions: Whether spans have the question, as ``linkstore.question``; default False, since questions
            may be private.

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
            f"{SPAN_NAME}.duration", unit="s", description="Time of a search, with embedding and reranking."
        )
        self._hits: Final = meter.create_histogram(
            f"{SPAN_NAME}.hits", unit="{document}", description="Documents that a search found."
        )
        self._reached: Final = meter.create_histogram(
            f"{SPAN_NAME}.reached",
            unit="{document}",
            description="Documents that a search came to along links.",
        )
        self._questions: Final = questions
        super().__init__(store)

    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Begin the span of a search: see :class:`~linkstore.strategies.observers.Observer`."""
        span = self._tracer.start_span(SPAN_NAME, attributes={"linkstore.strategy": strategy})
        if self._questions and question:
            span.set_attribute("linkstore.question", question)
        token = self._context.attach(self._trace.set_span_in_context(span))

        def ended(searched: CompletedSearch) -> None:
            self._context.detach(token)
            self._report(span, searched)
            span.end()

        return ended

    def _report(self, span: Span, searched: CompletedSearch) -> None:
        hits, reached = searched.hits, sum(searched.reached)
        span.set_attribute("linkstore.reached", reached)
        if hits is None:
            self._report_failure(span, searched.error)
        else:
            span.set_attribute("linkstore.hits", len(hits))
            span.set_attribute("linkstore.depth", max((hit.depth for hit in hits), default=0))
            if hits.reason is not None:
                span.set_attribute("linkstore.reason", hits.reason)
        outcome = "failed" if hits is None else "found" if hits else "empty"
        attributes: dict[str, Any] = {"linkstore.outcome": outcome}
        self._seconds.record(searched.seconds, attributes)
        self._hits.record(len(hits or ()), attributes)
        self._reached.record(reached, attributes)

    def _report_failure(self, span: Span, error: BaseException | None) -> None:
        status = self._trace.StatusCode.ERROR
        if isinstance(error, Exception):
            span.record_exception(error)
        span.set_status(self._trace.Status(status, type(error).__name__))
