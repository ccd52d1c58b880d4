"""One node for all processes of a test session: made when the first asks, ended with the session.

The process that hands tests out holds the node; it and each of its workers ask through a socket, so no worker
has to outlive the others.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading

from cassandra_server.endpoint import Endpoint
from cassandra_server.machine import ServerError
from cassandra_server.server import DEADLINE, Server

PATIENCE = DEADLINE + 120.0
"""Seconds that one may wait: for the jars, then for the node."""


class SharedServer:
    """Holds the node.

    Args:
        heap: Of the node, as in ``-Xmx``.
    """

    def __init__(self, heap: str = "1G") -> None:
        self._heap = heap
        self._server: Server | None = None
        self._making = threading.Lock()
        self._desk: socketserver.TCPServer | None = None

    def open_desk(self) -> int:
        """The port of 127.0.0.1 at which other processes may :func:`ask`."""
        if self._desk is None:
            self._desk = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _answer_with(self))
            self._desk.daemon_threads = True
            threading.Thread(target=self._desk.serve_forever, name="cassandra-desk", daemon=True).start()
        port: int = self._desk.server_address[1]
        return port

    def endpoint(self) -> Endpoint:
        """Where the node is, once it is ready.

        Raises:
            ServerError: It did not start.
        """
        with self._making:
            if self._server is None:
                self._server = Server(heap=self._heap, lasting=False)
            if not self._server.running:
                self._server.start()
            return self._server.endpoint

    def close(self) -> None:
        """End the node, if there is one."""
        if self._desk is not None:
            self._desk.shutdown()
            self._desk.server_close()
        if self._server is not None:
            self._server.close()


def ask(desk: int) -> Endpoint:
    """The shared node, ready.

    Args:
        desk: See :meth:`SharedServer.open_desk`.

    Raises:
        ServerError: It did not start.
    """
    with socket.create_connection(("127.0.0.1", desk), timeout=PATIENCE) as line, line.makefile("rb") as said:
        answer = json.loads(said.readline())
    if "error" in answer:
        raise ServerError(answer["error"])
    return Endpoint(**answer["endpoint"])


def _answer_with(shared: SharedServer) -> type[socketserver.BaseRequestHandler]:
    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            try:
                answer = {"endpoint": shared.endpoint().as_dict()}
            except ServerError as error:
                answer = {"error": str(error)}
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    return Answer
