"""A running node as its clients see it, in whichever process they are."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cassandra_server.config import Node, nodetool_command
from cassandra_server.machine import ServerError, jars, java_17

NODETOOL_SECONDS = 120.0
REQUEST_SECONDS = 60.0
"""For statements that prepare and inspect; the schema changes slowly on a busy machine."""
AGREEMENT_SECONDS = 40.0
"""For all nodes to know a change of the schema; less than a statement may take, which includes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a running node is found.

    Args:
        host: Its address.
        port: Its CQL port.
        jmx_port: Its port for nodetool.
        folder: All its files.
    """

    host: str
    port: int
    jmx_port: int
    folder: str

    def as_dict(self) -> dict[str, str | int]:
        """For another process."""
        return asdict(self)

    def store_url(self, keyspace: str, table: str) -> str:
        """What ``--store`` takes."""
        return f"cassandra://{self.host}:{self.port}/{keyspace}/{table}"

    def nodetool(self, *arguments: str, seconds: float = NODETOOL_SECONDS) -> str:
        """What ``nodetool`` says: ``nodetool("flush", keyspace)``. It takes one or two seconds.

        Args:
            arguments: The command and what it is about.
            seconds: How long to wait for it; flushing large vector indexes on a busy machine takes minutes.

        Raises:
            ServerError: It failed, or the node does not answer.
        """
        node = Node(folder=Path(self.folder), native_port=self.port, storage_port=0, jmx_port=self.jmx_port)
        command = nodetool_command(java_17(), jars(), node, arguments)
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ServerError(f"nodetool {' '.join(arguments)}: no answer in {seconds} s") from None
        if done.returncode:
            raise ServerError(f"nodetool {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def connect(hosts: Sequence[str], port: int, keyspace: str | None = None) -> Iterator[Any]:
    """A session of cassandra-driver, closed at the end.

    Args:
        hosts: Addresses of nodes.
        port: Their CQL port, or a proxy's.
        keyspace: That statements are about.
    """
    from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
    from cassandra.policies import RoundRobinPolicy

    profile = ExecutionProfile(request_timeout=REQUEST_SECONDS, load_balancing_policy=RoundRobinPolicy())
    cluster = Cluster(
        list(hosts),
        port=port,
        protocol_version=5,
        connect_timeout=10,
        control_connection_timeout=10,
        max_schema_agreement_wait=AGREEMENT_SECONDS,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    try:
        yield cluster.connect(keyspace)
    finally:
        cluster.shutdown()


def create_keyspace(session: Any, name: str, replicas: int = 1, *, durable: bool = True) -> None:
    """Make a keyspace, unless there is one of that name.

    Args:
        session: Of cassandra-driver.
        name: Quoted here; so it keeps its capitals.
        replicas: How many nodes hold each row.
        durable: Whether writes outlive the node. It takes a third of the time in which it is dropped.
    """
    replication = f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}}"
    quoted = name.replace('"', '""')
    session.execute(
        f'CREATE KEYSPACE IF NOT EXISTS "{quoted}" WITH replication = {replication}'
        f" AND durable_writes = {str(durable).lower()}"
    )
