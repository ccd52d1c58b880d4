"""One node: started, killed, paused and started again on the same data and ports."""

from __future__ import annotations

import atexit
import shutil
import signal
import socket
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cassandra_server.config import (
    READY,
    Node,
    Settings,
    cassandra_yaml,
    java_command,
    logback_xml,
)
from cassandra_server.endpoint import NODETOOL_SECONDS, Endpoint, connect
from cassandra_server.machine import ServerError, free_port, jars, java_17
from cassandra_server.process import WatchedProcess

DEADLINE = 180.0
"""Seconds that a node may take to be ready; it takes some ten."""
UNHEARD = "Unable to gossip with any peers"
"""The last words of a node that got no answer from its seed, as on a machine with much else to do."""
TRIES = 4
STOP_SECONDS = 30.0
LOG_LINES = 30


class Server:
    """One node. It dies with the process that made it, and with ``close()``.

    Args:
        folder: Kept after the end if given; one for this node only otherwise.
        address: Of this machine, 127.0.0.N.
        port: The CQL port wanted; another if it is taken. Default: any.
        heap: Java's heap, as in ``-Xmx``.
        settings: More of cassandra.yaml, for instance :data:`~cassandra_server.config.DURABLE`.
        storage_port: For other nodes; any if not given.
        token: Its place on the ring.
        seed: The ring's first node; none means that it is alone or the first.
        lasting: Whether its schema outlives a stop or a kill; making tables takes longer then.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        address: str = "127.0.0.1",
        port: int | None = None,
        heap: str = "1G",
        settings: Settings | None = None,
        storage_port: int | None = None,
        token: int = 0,
        seed: str | None = None,
        lasting: bool = True,
    ) -> None:
        self._own_folder = folder is None
        self._alone = seed is None
        self.node = Node(
            folder=Path(folder or tempfile.mkdtemp(prefix="cassandra-")).absolute(),
            address=address,
            native_port=free_port([address], wanted=port),
            storage_port=storage_port or free_port([address]),
            jmx_port=free_port(),
            token=token,
            seed=seed or address,
            heap=heap,
            settings=settings or {},
            lasting=lasting,
        )
        self._process: WatchedProcess | None = None
        self._log_start = 0
        atexit.register(self.close)

    @property
    def host(self) -> str:
        """Its address."""
        return self.node.address

    @property
    def port(self) -> int:
        """Its CQL port."""
        return self.node.native_port

    @property
    def pid(self) -> int:
        """Of the Java process.

        Raises:
            ServerError: It was not started.
        """
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the process lives, be it paused."""
        return self._process is not None and self._process.exit_code is None

    @property
    def endpoint(self) -> Endpoint:
        """Where it is found; holds through restarts."""
        return Endpoint(
            host=self.host, port=self.port, jmx_port=self.node.jmx_port, folder=str(self.node.folder)
        )

    def launch(self) -> None:
        """Start it and do not wait.

        Raises:
            ServerError: It runs already, or the machine lacks what it needs.
        """
        if self.running:
            raise ServerError(f"the node at {self.host}:{self.port} runs already")
        java, folder = java_17(), jars()
        self.node.folder.mkdir(parents=True, exist_ok=True)
        self.node.yaml.write_text(cassandra_yaml(self.node))
        self.node.logback.write_text(logback_xml())
        self._log_start = self.node.log.stat().st_size if self.node.log.exists() else 0
        self._process = WatchedProcess(
            java_command(java, folder, self.node, alone=self._alone), self.node.log
        )

    def wait(self, deadline: float = DEADLINE) -> None:
        """Until it is ready and takes connections; one that its seed did not answer is started again.

        Args:
            deadline: Seconds from now.

        Raises:
            ServerError: It ended, or was not ready in time; with the end of its log.
        """
        until = time.monotonic() + deadline
        tries = 1
        while not (READY in self.log() and self.accepts()):
            code = self._running().exit_code
            if code is not None and UNHEARD in self.log() and tries < TRIES:
                tries += 1
                self.launch()
            elif code is not None:
                raise ServerError(f"Cassandra ended with {code} as it started:\n{self.log_end()}")
            if time.monotonic() > until:
                end = self.log_end()
                self.kill()
                raise ServerError(f"Cassandra was not ready in {deadline:.0f} s:\n{end}")
            time.sleep(0.1)

    def start(self, deadline: float = DEADLINE) -> Self:
        """:meth:`launch` and :meth:`wait`; it, for chaining."""
        self.launch()
        self.wait(deadline)
        return self

    def stop(self) -> None:
        """Ask it to end, as an administrator would; it writes what is in memory. Nothing if it is down."""
        if self._process is not None:
            self._process.terminate(STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL, also if paused. Nothing if it is down."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        self._running().signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End a pause."""
        self._running().signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill it, and remove its folder unless that was given."""
        atexit.unregister(self.close)
        self.kill()
        if self._own_folder:
            shutil.rmtree(self.node.folder, ignore_errors=True)

    def nodetool(self, *arguments: str, seconds: float = NODETOOL_SECONDS) -> str:
        """See :meth:`Endpoint.nodetool`."""
        return self.endpoint.nodetool(*arguments, seconds=seconds)

    def connect(self, keyspace: str | None = None) -> AbstractContextManager[Any]:
        """A session of cassandra-driver; see :func:`~cassandra_server.endpoint.connect`."""
        return connect([self.host], self.port, keyspace)

    def accepts(self) -> bool:
        """Whether its CQL port takes connections, and the port at which other nodes reach it."""
        return all(map(self._listens, (self.port, self.node.storage_port)))

    def _listens(self, port: int) -> bool:
        try:
            socket.create_connection((self.host, port), timeout=1).close()
        except OSError:
            return False
        return True

    def log(self) -> str:
        """All it said since it was last started."""
        with self.node.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def log_end(self, lines: int = LOG_LINES) -> str:
        """The last it said."""
        return "\n".join(self.log().splitlines()[-lines:])

    def _running(self) -> WatchedProcess:
        if self._process is None:
            raise ServerError("the node was not started")
        return self._process

    def __enter__(self) -> Self:
        """Started, unless it runs."""
        try:
            return self if self.running else self.start()
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
