"""A session of cassandra-driver without a server: a test says what each request comes to."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

from cassandra import OperationTimedOut
from cassandra.cqltypes import ListType, UTF8Type
from cassandra.protocol import RESULT_KIND_PREPARED, ColumnMetadata, ResultMessage

PLACE = re.compile(r"(IN )?\?")


class Request:
    """One request as the driver was given it, and the future it gave back; it is sent when told so."""

    row_factory = None

    def __init__(self, number, query, options, send=None):
        self.number = number
        self.query = query
        self.values = tuple(getattr(query, "raw_values", ()))
        self.cql = getattr(query, "query_string", None) or query.prepared_statement.query_string
        self.options = options
        self.page = options.get("paging_state")
        self.timed_out = None
        self.sent = None
        self.query_plan = iter(options.pop("nodes", ()))
        self.attempted_hosts = []
        self._send = send
        self.coordinator_host = None
        self.has_more_pages = False
        self._heard = None
        self._next_page = None
        self._lock = threading.Lock()
        self._outcome = None

    def send_request(self, error_no_hosts=True):
        """As the driver does: to the next node of the plan."""
        node = next(self.query_plan, None)
        if node is None:
            assert not error_no_hosts, "the plan has no node"
            return
        self.sent = self.sent or time.monotonic()
        self.attempted_hosts.append(node)
        if self._send:
            self._send(self)

    def _on_timeout(self):
        """As the driver does where its timer is over."""
        self.timed_out = time.monotonic() - self.sent
        self.fail(OperationTimedOut())

    def add_callbacks(self, callback, errback):
        """As the driver does: at once if the outcome is there, else when it comes."""
        with self._lock:
            self._heard = (callback, errback)
            outcome = self._outcome
        if outcome:
            self._say(outcome)

    def clear_callbacks(self):
        """As the driver does: call nobody from now on."""
        with self._lock:
            self._heard = None

    def result(self):
        """What has a page's state."""
        return SimpleNamespace(paging_state=self._next_page)

    def answer(self, rows=None, next_page=None):
        """Give rows, and the state of the next page if there is one."""
        self._next_page, self.has_more_pages = next_page, next_page is not None
        self._finish((0, rows and self.row_factory(["a"], rows)))

    def fail(self, error):
        """Give an error."""
        self._finish((1, error))

    def _finish(self, outcome):
        with self._lock:
            self._outcome = self._outcome or outcome
            heard = self._heard
        if heard:
            self._say(outcome)

    def _say(self, outcome):
        which, value = outcome
        self._heard[which](value)


class Preparing:
    """The connection to a node, and its pool, by which the driver's own futures prepare texts."""

    is_shutdown = False
    orphaned_threshold = 1_000

    def __init__(self, session):
        self._session = session
        self._requests, self.lock, self.orphaned_request_ids = {}, threading.Lock(), set()

    def borrow_connection(self, timeout):
        return self, 1

    def return_connection(self, connection, stream_was_orphaned=False):
        pass

    def send_msg(self, message, request_id, cb, **options):
        self._requests[request_id] = cb
        threading.Thread(target=self._answer, args=(message.query, cb), daemon=True).start()
        return 0

    def _answer(self, cql, cb):
        try:
            self._session.on_prepare(cql)
        except Exception as error:
            cb(error)
            return
        self._session.prepared.append(cql)
        answer = ResultMessage(RESULT_KIND_PREPARED)
        kinds = [
            ListType.apply_parameters([UTF8Type]) if list_of else UTF8Type for list_of in PLACE.findall(cql)
        ]
        columns = [ColumnMetadata("ks", "t", f"c{i}", kind) for i, kind in enumerate(kinds)]
        answer.query_id, answer.bind_metadata, answer.pk_indexes = cql.encode(), columns, []
        answer.column_metadata, answer.result_metadata_id = [], b""
        cb(answer)


class FakeSession:
    """Hands each request to ``serve(request)``, in a thread of its own as the driver does.

    Args:
        serve: Calls ``answer`` or ``fail`` on the request, now or later, or never.
        delay: Seconds until it is called.
        nodes: The nodes, in the order in which the driver would ask them.
    """

    def __init__(self, serve: Callable[[Request], None], *, delay=0.001, nodes=("10.0.0.7:9042",)):
        self.requests: list[Request] = []
        self.prepared: list[str] = []
        self.is_shutdown = False
        self.keyspace = None
        self._under_way: set[int] = set()
        self._counts: list[int] = []
        self.on_prepare = lambda cql: None
        node = SimpleNamespace(endpoint="10.0.0.7:9042", is_up=True)
        self.cluster = SimpleNamespace(
            metadata=SimpleNamespace(all_hosts=lambda: ["10.0.0.7:9042"], keyspaces={}, node=node),
            control_connection=SimpleNamespace(wait_for_schema_agreement=lambda *, wait_time: True),
            scheduler=SimpleNamespace(is_alive=lambda: True),
            protocol_version=5,
            column_encryption_policy=None,
            add_prepared=lambda query_id, prepared: None,
            _default_load_balancing_policy=SimpleNamespace(make_query_plan=lambda keyspace, query: nodes),
        )
        self.row_factory = None
        self._nodes = nodes
        self._pools = {node: Preparing(self) for node in nodes}
        self._serve, self._delay = serve, delay
        self._lock = threading.Lock()

    @property
    def most(self):
        """How many requests were under way at once, at most."""
        return max(self._counts)

    def _create_response_future(self, query, parameters, trace, payload, timeout, *, paging_state):
        options = {"timeout": timeout, "paging_state": paging_state, "nodes": self._nodes}
        with self._lock:
            request = Request(len(self.requests), query, options, self._send)
            self.requests.append(request)
        return request

    def _on_request(self, request):
        assert request in self.requests

    def _send(self, request):
        with self._lock:
            self._under_way.add(request.number)
            self._counts.append(len(self._under_way))
        if self._delay is None:
            self._run(request)
        else:
            timer = threading.Timer(self._delay, self._run, (request,))
            timer.daemon = True
            timer.start()

    def _run(self, request):
        with self._lock:
            self._under_way.remove(request.number)
        self._serve(request)
