"""Three nodes on one machine, each a replica of everything (RF 3)."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cassandra_server.config import Settings
from cassandra_server.endpoint import connect
from cassandra_server.machine import ServerError, free_port
from cassandra_server.server import DEADLINE, Server

ADDRESSES = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
TOKENS = (-9223372036854775808, -3074457345618258603, 3074457345618258602)
"""Which cut the ring in thirds."""
PAUSE = 0.2
"""Seconds until the nodes are asked again whether they see each other."""
ANSWER_SECONDS = 10.0


class Ring:
    """Three nodes that share one CQL port on 127.0.0.1, .2 and .3.

    What a node missed while it was down is not told to it when it is back: hints are off, unless the settings
    say otherwise.

    Args:
        folder: For a folder of each node, kept after the end; one for this ring only otherwise.
        heap: Of each node.
        settings: More of cassandra.yaml, for all nodes.
    """

    def __init__(
        self, folder: Path | str | None = None, *, heap: str = "1G", settings: Settings | None = None
    ) -> None:
        port, storage_port = free_port(ADDRESSES), free_port(ADDRESSES)
        self.nodes = tuple(
            Server(
                None if folder is None else Path(folder) / f"node{number}",
                address=address,
                port=port,
                heap=heap,
                settings={"hinted_handoff_enabled": False, **(settings or {})},
                storage_port=storage_port,
                token=token,
                seed=None if number == 1 else ADDRESSES[0],
            )
            for number, (address, token) in enumerate(zip(ADDRESSES, TOKENS, strict=True), start=1)
        )
        self.port = port

    @property
    def hosts(self) -> list[str]:
        """The nodes' addresses, the seed's first."""
        return [node.host for node in self.nodes]

    def start(self, deadline: float = DEADLINE) -> Self:
        """Start the first node, and the others together when it is ready; it, for chaining.

        Args:
            deadline: Seconds for each node, and for all to meet.

        Raises:
            ServerError: A node did not start, or they did not meet.
        """
        first, *others = self.nodes
        first.start(deadline)
        for node in others:
            node.launch()
        for node in others:
            node.wait(deadline)
        self._meet(deadline)
        return self

    def connect(self, keyspace: str | None = None) -> AbstractContextManager[Any]:
        """A session of cassandra-driver; see :func:`~cassandra_server.endpoint.connect`."""
        return connect(self.hosts, self.port, keyspace)

    def heal(self, deadline: float = DEADLINE) -> None:
        """Have all nodes run again, whatever was done to them, and know of each other.

        Args:
            deadline: Seconds for each node to start, and for all to meet.

        Raises:
            ServerError: A node did not start, or they did not meet.
        """
        down = [node for node in self.nodes if not node.running]
        for node in down:
            node.launch()
        for node in self.nodes:
            node.resume()
        for node in down:
            node.wait(deadline)
        self._meet(deadline)

    def _meet(self, deadline: float) -> None:
        """Wait until all nodes see each other; one that is not seen is not told of changes of the schema."""
        until = time.monotonic() + deadline
        with self.connect() as session:
            while not all(_sees_all(session, host) for host in self.hosts):
                if time.monotonic() > until:
                    raise ServerError(f"the nodes do not see each other after {deadline:.0f} s")
                time.sleep(PAUSE)

    def close(self) -> None:
        """Kill all nodes and remove their folders, unless a folder was given."""
        for node in self.nodes:
            node.close()

    def __enter__(self) -> Self:
        """Started."""
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closed."""
        self.close()


def _sees_all(session: Any, address: str) -> bool:
    """Whether a node has the answers of all to a read of a table that each has a copy of."""
    from cassandra import ConsistencyLevel, DriverException
    from cassandra.cluster import NoHostAvailable
    from cassandra.query import SimpleStatement

    asked = SimpleStatement(
        "SELECT * FROM system_distributed.view_build_status WHERE keyspace_name = '-' AND view_name = '-'",
        consistency_level=ConsistencyLevel.ALL,
    )
    try:
        session.execute(asked, host=session.cluster.metadata.get_host(address), timeout=ANSWER_SECONDS)
    except (DriverException, NoHostAvailable):
        return False
    return True
