"""What a node is told: cassandra.yaml, logback.xml and the command line of Java. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VERSION = "5.0.9"
"""Of ``cassandra-all``, as pom.xml pins it."""

READY = "Startup complete"
"""What the log says once the node has done all its starting."""

Settings = Mapping[str, object]

DURABLE: Settings = {"commitlog_sync": "batch", "commitlog_sync_period": None}
"""Settings under which a write is acknowledged only when it would survive ``kill -9``.

As delivered, the commit log is periodic: what was acknowledged in the last 100 ms before a SIGKILL is not
replayed, for the log's marker has not moved past it. Other replicas cover for that; a single node has none.
"""

EXPORTS = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
)
OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "java.rmi/sun.rmi.transport.tcp",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
)
"""Packages that Cassandra 5.0 reaches into, as in its own jvm17-server.options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node's place on the machine and on the ring.

    Args:
        folder: All its files: configuration, data, log.
        address: Of this machine, 127.0.0.N; the same for clients and for other nodes.
        native_port: For CQL.
        storage_port: For other nodes; one number on all nodes of a ring.
        jmx_port: For nodetool, always on 127.0.0.1; no two nodes may share it.
        token: Its place on the ring.
        seed: Address of the ring's first node.
        heap: Java's heap, as in ``-Xmx``.
        settings: More of cassandra.yaml; ``None`` as a value removes a setting.
        lasting: Whether the schema outlives the node. To flush each change of it takes two thirds of the time
            in which a store is founded.
    """

    folder: Path
    native_port: int
    storage_port: int
    jmx_port: int
    address: str = "127.0.0.1"
    token: int = 0
    seed: str = "127.0.0.1"
    heap: str = "1G"
    settings: Settings = field(default_factory=dict)
    lasting: bool = True

    @property
    def yaml(self) -> Path:
        """Where its cassandra.yaml lies."""
        return self.folder / "cassandra.yaml"

    @property
    def logback(self) -> Path:
        """Where its logback.xml lies."""
        return self.folder / "logback.xml"

    @property
    def log(self) -> Path:
        """Where all it says goes."""
        return self.folder / "server.log"


def cassandra_yaml(node: Node) -> str:
    """The text of cassandra.yaml, in that part of YAML which is JSON.

    Small caches, for several nodes share a machine; no snapshot of what a test drops; and one write at a time
    for each core of a small machine: the vector index lets three threads insert at once where there are two
    cores, and fails the write that would be the fourth.
    """
    wanted = _identity(node) | _memory() | _requests() | dict(node.settings)
    return json.dumps({name: value for name, value in wanted.items() if value is not None}, indent=2)


def _identity(node: Node) -> dict[str, object]:
    """Who the node is, and where it listens."""
    seeds = [{"seeds": f"{node.seed}:{node.storage_port}"}]
    return {
        "cluster_name": "linkstore",
        "num_tokens": 1,
        "initial_token": str(node.token),
        "auto_bootstrap": False,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "seed_provider": [
            {"class_name": "org.apache.cassandra.locator.SimpleSeedProvider", "parameters": seeds}
        ],
        "listen_address": node.address,
        "rpc_address": node.address,
        "storage_port": node.storage_port,
        "native_transport_port": node.native_port,
        "storage_compatibility_mode": "NONE",
    }


def _memory() -> dict[str, object]:
    """What lies in memory and in the commit log."""
    return {
        "memtable_heap_space": "192MiB",
        "memtable_offheap_space": "192MiB",
        "key_cache_size": "16MiB",
        "networking_cache_size": "32MiB",
        "file_cache_size": "64MiB",
        "commitlog_sync": "periodic",
        "commitlog_sync_period": "10000ms",
        "commitlog_disk_access_mode": "legacy",
        "commitlog_segment_size": "36MiB",
        "commitlog_total_space": "512MiB",
        "auto_snapshot": False,
    }


def _requests() -> dict[str, object]:
    """How many requests at once, and how large; a mutation may be half a segment of the commit log."""
    return {
        "concurrent_writes": 2,
        "concurrent_reads": 8,
        "native_transport_max_frame_size": "32MiB",
        "native_transport_max_message_size": "32MiB",
        "native_transport_max_request_data_in_flight": "128MiB",
        "native_transport_max_request_data_in_flight_per_ip": "128MiB",
    }


def logback_xml() -> str:
    """Everything of note goes to standard output, which goes to one file."""
    return """<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%-5level %date{ISO8601} [%thread] %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="OUT"/></root>
  <logger name="org.apache.cassandra.config.Config" level="WARN"/>
</configuration>
"""


def java_command(java: Path, jars: Path, node: Node, *, alone: bool = True) -> list[str]:
    """The command that is a node.

    Java compiles once only and quickly: a node that lives for minutes would spend more on compiling its code
    well than it would gain.

    Args:
        java: Java 17.
        jars: Folder of the jars.
        node: Whose files are written already.
        alone: Whether there is no other node to wait for.
    """
    properties = {
        **_tool_properties(),
        "cassandra-foreground": "yes",
        "cassandra.config": node.yaml.as_uri(),
        "cassandra.storagedir": str(node.folder),
        "cassandra.logdir": str(node.folder),
        "cassandra.jmx.local.port": str(node.jmx_port),
        "cassandra.shutdown_announce_in_ms": "0",
        "cassandra.superuser_setup_delay_ms": "0",
        "cassandra.test.flush_local_schema_changes": str(node.lasting).lower(),
        "cassandra.consistent.rangemovement": "false",
        "cassandra.migration_delay_ms": "1000",  # until a node asks for a change of the schema that it missed
        "com.sun.management.jmxremote.authenticate": "false",
        "io.netty.tryReflectionSetAccessible": "true",
        "logback.configurationFile": node.logback.as_uri(),
        **_settling(alone=alone),
    }
    agent = min(jars.glob("jamm-*.jar"))
    return [
        str(java),
        f"-Xms{node.heap}",
        f"-Xmx{node.heap}",
        "-XX:+UseG1GC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+PerfDisableSharedMem",
        "-XX:+ExitOnOutOfMemoryError",
        f"-javaagent:{agent}",
        *_modules(),
        *(f"-D{name}={value}" for name, value in properties.items()),
        "-cp",
        f"{jars}/*",
        "org.apache.cassandra.service.CassandraDaemon",
    ]


def nodetool_command(java: Path, jars: Path, node: Node, arguments: Sequence[str]) -> list[str]:
    """The command that asks a node something, as ``nodetool`` does."""
    properties = {
        **_tool_properties(),
        "logback.configurationFile": node.logback.as_uri(),
        "user.home": str(node.folder),
    }
    return [
        str(java),
        "-Xmx128M",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        *_modules(),
        *(f"-D{name}={value}" for name, value in properties.items()),
        "-cp",
        f"{jars}/*",
        "org.apache.cassandra.tools.NodeTool",
        "-p",
        str(node.jmx_port),
        *arguments,
    ]


def _tool_properties() -> dict[str, str]:
    """What every program of Cassandra's needs."""
    return {"jdk.attach.allowAttachSelf": "true", "chronicle.analytics.disable": "true"}


def _modules() -> list[str]:
    """Java's doors that must stand open."""
    exports = [f"--add-exports={name}=ALL-UNNAMED" for name in EXPORTS]
    return exports + [f"--add-opens={name}=ALL-UNNAMED" for name in OPENS]


def _settling(*, alone: bool) -> dict[str, str]:
    """How long a node listens to the others' gossip before it takes part."""
    if alone:
        return {"cassandra.skip_wait_for_gossip_to_settle": "0", "cassandra.ring_delay_ms": "0"}
    return {
        "cassandra.ring_delay_ms": "60000",  # how long its seed may take to answer at all
        "cassandra.gossip_settle_min_wait_ms": "1000",
        "cassandra.gossip_settle_interval_ms": "500",
        "cassandra.gossip_settle_poll_success_required": "3",
    }
