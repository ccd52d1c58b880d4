"""Which node owns which partition, so that a statement about many partitions can go to one node."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from linkstore.backends.cassandra.transport.driver import Host, HostDistance, Session

_Packer = Callable[[Any], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The partitions of one node.

    Args:
        positions: Where their keys stand among the keys asked for.
        routing: Routing key that sends a statement to that node; None where any node will do.
    """

    positions: list[int]
    routing: bytes | None = None


class Placement:
    """Groups partition keys by the node that answers for them, from the driver's picture of the ring.

    Args:
        session: The driver's.
        keyspace: The tables' keyspace.
    """

    def __init__(self, session: Session, keyspace: str) -> None:
        self._cluster = session.cluster
        self._keyspace = keyspace
        self._ring: tuple[Any, list[Any]] = (None, [])

    @property
    def is_replicated(self) -> bool:
        """Whether a partition lies on several nodes; also if that is not known."""
        metadata = self._cluster.metadata
        if self._keyspace not in metadata.keyspaces or not metadata.token_map:
            return True
        tokens = metadata.token_map
        return not tokens.ring or len(tokens.get_replicas(self._keyspace, tokens.ring[0])) != 1

    def by_replica(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[Share]:
        """Group partition keys by the first of their replicas that is up and near.

        Where there is one node, or the driver does not know the ring or the table's key, all are in one
        group. No more than some microseconds a key; nothing is asked of the server.

        Args:
            table: The table, as it is named in the schema.
            keys: Values of the partition key's columns, in the key's order.
        """
        packers = self._packers(table)
        if packers is None or len(keys) < 2 or len(self._cluster.metadata.all_hosts()) < 2:
            return [Share(positions=list(range(len(keys))))] if keys else []
        owner_of: dict[int, Host | None] = {}
        shares: dict[Host | None, Share] = {}
        for position, (point, routing) in enumerate(self._points(packers, keys)):
            if point not in owner_of:
                owner_of[point] = self._owner(point)
            share = shares.setdefault(owner_of[point], Share(positions=[], routing=routing))
            share.positions.append(position)
        return list(shares.values())

    def _points(
        self, packers: Sequence[_Packer], keys: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, bytes]]:
        """For each key, the point of the ring it belongs to and its routing key."""
        tokens, ring = self._cluster.metadata.token_map, self._ring_values()
        hashed = tokens.token_class.hash_fn
        for key in keys:
            routing = routing_key([pack(value) for pack, value in zip(packers, key, strict=True)])
            point = bisect_left(ring, hashed(routing))
            yield point if point < len(ring) else 0, routing

    def _ring_values(self) -> list[Any]:
        """The ring's tokens as plain values; they change only with the driver's token map."""
        tokens = self._cluster.metadata.token_map
        known, values = self._ring
        if known is not tokens:
            values = [token.value for token in tokens.ring]
            self._ring = (tokens, values)
        return values

    def _owner(self, point: int) -> Host | None:
        """The node to ask: the first replica that is up and near, else the first."""
        tokens = self._cluster.metadata.token_map
        replicas = tokens.get_replicas(self._keyspace, tokens.ring[point])
        near = (host for host in replicas if host.is_up and self._is_near(host))
        return next(near, replicas[0] if replicas else None)

    def _is_near(self, host: Host) -> bool:
        return bool(self._cluster.profile_manager.distance(host) == HostDistance.LOCAL)

    def _packers(self, table: str) -> list[_Packer] | None:
        """How to pack each column of a table's partition key; None if that is not known."""
        metadata = self._cluster.metadata
        keyspace = metadata.keyspaces.get(self._keyspace)
        known = keyspace.tables.get(table) if keyspace else None
        if not known or not metadata.token_map or not metadata.can_support_partitioner():
            return None
        packers = [_PACKERS.get(column.cql_type) for column in known.partition_key]
        return [pack for pack in packers if pack] if all(packers) else None


def routing_key(parts: Sequence[bytes]) -> bytes:
    """The routing key of a partition: its one part, or each part with its length before and a 0 behind."""
    if len(parts) == 1:
        return parts[0]
    return b"".join(struct.pack(f">H{len(part)}sB", len(part), part, 0) for part in parts)


_PACKERS: Final[Mapping[str, _Packer]] = {
    "text": str.encode,
    "ascii": str.encode,
    "tinyint": struct.Struct(">b").pack,
    "smallint": struct.Struct(">h").pack,
    "int": struct.Struct(">i").pack,
    "bigint": struct.Struct(">q").pack,
    "blob": bytes,
}
"""Values of a column type as the native protocol has them."""
