"""A real Apache Cassandra for tests, benchmarks and people, from Maven's jars, without Docker.

::

    from cassandra_server import Server

    with Server() as server:                   # one node; ready in some ten seconds
        print(server.host, server.port)
        server.kill()                          # SIGKILL
        server.start()                         # same data, same ports

:class:`Ring` is three nodes, :class:`Proxy` a connection that a test can cut. ``python -m cassandra_server``,
with ``tests/`` on the path, starts a node for a person. The package knows nothing of linkstore.
"""

from __future__ import annotations

from cassandra_server.cluster import Ring
from cassandra_server.config import DURABLE
from cassandra_server.endpoint import Endpoint, connect, create_keyspace
from cassandra_server.machine import ServerError, why_not
from cassandra_server.proxy import Proxy
from cassandra_server.server import Server

__all__ = [
    "DURABLE",
    "Endpoint",
    "Proxy",
    "Ring",
    "Server",
    "ServerError",
    "connect",
    "create_keyspace",
    "why_not",
]
