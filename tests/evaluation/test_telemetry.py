"""Spans and metrics of searches, as the SDK of OpenTelemetry sees them."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the SDK of OpenTelemetry is not installed")

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from stores import documents, embedding

from linkstore import LinkStore
from linkstore.errors import MissingExtraError, UnknownNameError
from linkstore.evaluate import Telemetry
from linkstore.strategies import Eager, Similarity


class Tracing:
    """The SDK with exporters in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def points(self):
        (resource,) = self.reader.get_metrics_data().resource_metrics
        (scope,) = resource.scope_metrics
        assert scope.scope.name == "linkstore"
        return {
            (metric.name, point.attributes["linkstore.outcome"]): point
            for metric in scope.metrics
            for point in metric.data.data_points
        }


@pytest.fixture
def tracing():
    return Tracing()


@pytest.fixture
def store():
    with LinkStore(embedding()) as store:
        store.add_documents(documents(0, 40))
        yield store


def watched(store, tracing, **more):
    return Telemetry(store, tracer_provider=tracing.tracers, meter_provider=tracing.meters, **more)


def test_a_search_is_a_span_with_its_figures_and_without_its_question(store, tracing):
    with watched(store, tracing):
        hits = store.search("a secret", strategy=Eager(k=20, start_k=2, depth=1))
    (span,) = tracing.spans
    assert span.name == "linkstore.search"
    assert span.attributes["linkstore.hits"] == len(hits)
    assert span.attributes["linkstore.depth"] == 1
    assert span.attributes["linkstore.reached"] >= sum(hit.depth > 0 for hit in hits)
    assert "Eager" in span.attributes["linkstore.strategy"]
    assert "secret" not in span.to_json()


def test_the_question_is_told_if_asked_for(store, tracing):
    with watched(store, tracing, questions=True):
        store.search("a question")
    assert tracing.spans[0].attributes["gen_ai.retrieval.query.text"] == "a question"


def test_failures_and_empty_results_are_told_apart(store, tracing):
    with watched(store, tracing):
        store.search("found", strategy=Similarity(k=3))
        store.search("nothing", filter={"n": -1})
        with pytest.raises(UnknownNameError):
            store.search("wrong", strategy=Eager(kinds={"hyperlnk"}))
    found, empty, failed = tracing.spans
    assert found.status.status_code == StatusCode.UNSET
    assert empty.attributes["linkstore.reason"]
    assert failed.status.status_code == StatusCode.ERROR
    assert failed.events[0].name == "exception"
    assert failed.attributes["error.type"] == "linkstore.errors.UnknownNameError"
    assert found.attributes["gen_ai.operation.name"] == "retrieval"
    assert found.attributes["db.system.name"] == "linkstore"
    points = tracing.points()
    assert {outcome for _, outcome in points} == {"found", "empty", "failed"}
    assert points["linkstore.search.duration", "found"].count == 1
    bounds = points["linkstore.search.duration", "found"].explicit_bounds
    assert sum(bound < 1 for bound in bounds) > 5
    assert points["linkstore.search.duration", "failed"].attributes["error.type"]
    assert points["linkstore.search.hits", "found"].sum == 3
    assert points["linkstore.search.hits", "empty"].sum == 0


def test_a_doubtful_result_is_told_from_a_found_one_with_its_reason(tracing):
    with LinkStore() as store:
        store.add_texts([f"Nails and hammers of the Romans, part {number}." for number in range(120)])
        with watched(store, tracing):
            store.search("hammers of the Romans")
            hits = store.search("best pizza topping")
    assert tracing.spans[1].attributes["linkstore.reason"] == hits.doubt
    assert "linkstore.reason" not in tracing.spans[0].attributes
    assert {outcome for _, outcome in tracing.points()} == {"found", "doubtful"}


def test_the_span_is_current_while_the_search_runs_and_has_the_callers_as_parent(tracing):
    seen = []

    class Looking(type(embedding())):
        def embed_query(self, text):
            seen.append(trace.get_current_span().get_span_context().span_id)
            return super().embed_query(text)

    with LinkStore(Looking(size=16)) as store:
        store.add_documents(documents(0, 5))
        with watched(store, tracing), tracing.tracers.get_tracer("app").start_as_current_span("request"):
            store.search("a")
            outer = trace.get_current_span().get_span_context().span_id
    search, request = tracing.spans
    assert seen == [search.context.span_id]
    assert search.parent.span_id == request.context.span_id == outer


def test_concurrent_tasks_have_spans_of_their_own(store, tracing):
    async def request(number):
        with tracing.tracers.get_tracer("app").start_as_current_span(f"request {number}") as span:
            await store.asearch(f"question {number}")
            return span.get_span_context().span_id

    async def requests():
        return await asyncio.gather(*map(request, range(10)))

    with watched(store, tracing):
        outer = asyncio.run(requests())
    searches = [span for span in tracing.spans if span.name == "linkstore.search"]
    assert sorted(span.parent.span_id for span in searches) == sorted(outer)
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_a_cancelled_search_ends_its_span(store, tracing):
    asked = asyncio.Event()

    class Never(type(embedding())):
        async def aembed_query(self, text):
            asked.set()
            await asyncio.Event().wait()

    async def cancelled(slow):
        task = asyncio.ensure_future(slow.asearch("a"))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with LinkStore(Never(size=16)) as slow, watched(slow, tracing):
        slow.add_documents(documents(0, 3))
        asyncio.run(cancelled(slow))
    assert [span.name for span in tracing.spans] == ["linkstore.search"]
    assert tracing.spans[0].status.status_code == StatusCode.ERROR


def test_it_is_silent_where_nothing_is_configured():
    code = (
        "from linkstore import LinkStore; from linkstore.evaluate import Telemetry\n"
        "from langchain_core.embeddings import DeterministicFakeEmbedding as Fake\n"
        "store = LinkStore(Fake(size=8)); Telemetry(store); store.add_texts(['a'])\n"
        "assert len(store.search('a')) == 1; store.close()\n"
        "from opentelemetry import trace; assert type(trace.get_tracer_provider()).__name__[:5] == 'Proxy'"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_without_the_extra_it_is_named(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"langchain-linkstore\[otel\]"):
        Telemetry(store)


def test_nothing_is_imported_before_it_is_used():
    code = (
        "import sys; from linkstore import LinkStore; before = {*sys.modules}; import linkstore.evaluate\n"
        "assert not [name for name in {*sys.modules} - before if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_search_by_an_agents_tool_is_one_span(store, tracing):
    from linkstore.agents import graph_tools

    with watched(store, tracing):
        graph_tools(store)[0].invoke({"question": "text 1 of the store"})
    assert [span.name for span in tracing.spans] == ["linkstore.search"]
