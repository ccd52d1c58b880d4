"""The node to ask: one that owns a partition, and another while the first is silent.

A node that hangs keeps its connections open and answers nothing, so the driver, which asks the same replica
first each time, notices it only after up to a minute. A request that is not answered for two seconds is sent
to the next node of the driver's plan too, and the silent one comes last in all plans for ten seconds. So an
operation of many requests waits for it once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from linkstore.engines.cassandra.driver import Session, metadata, policies

T = TypeVar("T")
PartitionKey = TypeVar("PartitionKey", bound=tuple[bytes, ...])
"""The columns of the key of a partition, packed."""
PATIENCE: Final = 2.0
"""Seconds without an answer until another node is asked too."""
SILENCE: Final = 10.0
"""Seconds for which a node that did not answer is asked last."""


class SilentNodes:
    """The nodes that did not answer lately.

    If none or all of the nodes are silent, requests are sent as the driver plans them. So a cluster that is
    slow as a whole gets each request once, but for a few.

    Threads may use it without a lock. At worst, a silent node is asked once more.
    """

    def __init__(self) -> None:
        self._until: dict[Any, float] = {}

    def plan(self, nodes: Iterable[Any], now: float) -> Iterator[Any]:
        """Return the nodes to ask, one after another, the silent ones last."""
        if not self._until:
            return iter(nodes)
        return iter(sorted(nodes, key=lambda node: self._until.get(node, now) > now))

    def ask_another(self, request: Any, now: float) -> None:
        """Record that the node of a request is silent, and send the request to the next responsive node.

        The first answer counts, whichever node it comes from.

        Args:
            request: The driver's future.
            now: The time in seconds.
        """
        self._until.update((node, now + SILENCE) for node in request.attempted_hosts[-1:])
        others = [node for node in request.query_plan if self._until.get(node, now) <= now]
        request.query_plan = iter(others)
        request.send_request(error_no_hosts=False)


class Placement:
    """Groups partition keys by the node to ask, by the driver's metadata of tokens.

    Args:
        session: The driver's.
        keyspace: The tables' keyspace.
    """

    def __init__(self, session: Session, keyspace: str) -> None:
        self._cluster = session.cluster
        self._keyspace = keyspace

    @property
    def is_replicated(self) -> bool:
        """Whether partitions have several replicas, True if this is not known."""
        return len(self._cluster.metadata.get_replicas(self._keyspace, b"any")) != 1

    @property
    def datacenters(self) -> int:
        """The number of datacenters, at least 1."""
        return max(1, len({host.datacenter for host in self._cluster.metadata.all_hosts()}))

    @staticmethod
    def compute_token(key: bytes) -> int:
        """Return the token of a partition by its routing key."""
        return int(metadata.Murmur3Token.hash_fn(key))

    def by_replica(self, items: Mapping[PartitionKey, T]) -> list[tuple[list[T], bytes | None]]:
        """Group items by the first replica of their partition that is up and in the local datacenter.

        If there is only one node, or the driver does not know the tokens, there is one group. This takes some
        microseconds per key and sends nothing to the server.

        Args:
            items: The items by partition key.

        Returns:
            The items of each node, and a routing key that sends a statement there, None for any node.
        """
        if len(items) < 2 or len(self._cluster.metadata.all_hosts()) < 2:
            return [([*items.values()], None)] if items else []
        shares: dict[object, tuple[list[T], bytes | None]] = {}
        for key, item in items.items():
            routing = make_routing_key(key)
            owner = self._find_owner(routing)
            share, _ = shares.setdefault(owner, ([], routing if owner else None))
            share.append(item)
        return list(shares.values())

    def _find_owner(self, routing: bytes) -> Any:
        """Return the node to ask: the first replica that is up and local, otherwise the first replica."""
        replicas = self._cluster.metadata.get_replicas(self._keyspace, routing)
        distance = self._cluster.profile_manager.distance
        local = policies.HostDistance.LOCAL
        near = (host for host in replicas if host.is_up and distance(host) == local)
        return next(near, replicas[0] if replicas else None)


def make_routing_key(parts: Sequence[bytes]) -> bytes:
    """Return the routing key of a partition.

    This is its only part, or each part with its length before and a 0 after it.
    """
    if len(parts) == 1:
        return parts[0]
    return b"".join(struct.pack(f">H{len(part)}sB", len(part), part, 0) for part in parts)
