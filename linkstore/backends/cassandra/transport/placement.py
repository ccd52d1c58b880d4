"""Groups partitions by the node that owns them, for statements about many partitions."""

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
        positions: Positions of their keys in the list of keys.
        routing: A routing key that sends a statement to that node, None for any node.
    """

    positions: list[int]
    routing: bytes | None = None


class Placement:
    """Groups partition keys by the node to ask, using the driver's token metadata.

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
        """Whether partitions have several replicas, True if this is not known."""
        metadata = self._cluster.metadata
        if self._keyspace not in metadata.keyspaces or not metadata.token_map:
            return True
        tokens = metadata.token_map
        return not tokens.ring or len(tokens.get_replicas(self._keyspace, tokens.ring[0])) != 1

    def by_replica(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[Share]:
        """Group partition keys by the first of their replicas that is up and in the local datacenter.

        If there is only one node, or the driver does not know the tokens or the table's key, there is one
        group. This takes some microseconds per key and sends nothing to the server.

        Args:
            table: The table, spelled as in the schema.
            keys: Values of the partition key columns, in the order of the key.
        """
        packers = self._find_packers(table)
        if packers is None or len(keys) < 2 or len(self._cluster.metadata.all_hosts()) < 2:
            return [Share(positions=list(range(len(keys))))] if keys else []
        owner_of: dict[int, Host | None] = {}
        shares: dict[Host | None, Share] = {}
        for position, (point, routing) in enumerate(self._locate_keys(packers, keys)):
            if point not in owner_of:
                owner_of[point] = self._find_owner(point)
            share = shares.setdefault(owner_of[point], Share(positions=[], routing=routing))
            share.positions.append(position)
        return list(shares.values())

    def _locate_keys(
        self, packers: Sequence[_Packer], keys: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield, for each key, the position of its token range in the ring, and its routing key."""
        tokens, ring = self._cluster.metadata.token_map, self._list_ring_values()
        hashed = tokens.token_class.hash_fn
        for key in keys:
            routing = routing_key([pack(value) for pack, value in zip(packers, key, strict=True)])
            point = bisect_left(ring, hashed(routing))
            yield point if point < len(ring) else 0, routing

    def _list_ring_values(self) -> list[Any]:
        """Return the tokens of the ring as plain values, cached for the driver's current token map."""
        tokens = self._cluster.metadata.token_map
        known, values = self._ring
        if known is not tokens:
            values = [token.value for token in tokens.ring]
            self._ring = (tokens, values)
        return values

    def _find_owner(self, point: int) -> Host | None:
        """Return the node to ask: the first replica that is up and local, otherwise the first replica."""
        tokens = self._cluster.metadata.token_map
        replicas = tokens.get_replicas(self._keyspace, tokens.ring[point])
        near = (host for host in replicas if host.is_up and self._is_near(host))
        return next(near, replicas[0] if replicas else None)

    def _is_near(self, host: Host) -> bool:
        return bool(self._cluster.profile_manager.distance(host) == HostDistance.LOCAL)

    def _find_packers(self, table: str) -> list[_Packer] | None:
        """Return functions that serialise the columns of a table's partition key, or None if not known."""
        metadata = self._cluster.metadata
        keyspace = metadata.keyspaces.get(self._keyspace)
        known = keyspace.tables.get(table) if keyspace else None
        if not known or not metadata.token_map or not metadata.can_support_partitioner():
            return None
        packers = [_PACKERS.get(column.cql_type) for column in known.partition_key]
        return [pack for pack in packers if pack] if all(packers) else None


def routing_key(parts: Sequence[bytes]) -> bytes:
    """Return the routing key of a partition.

    This is its only part, or each part with its length before and a 0 after it.
    """
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
"""Serialisation of values by column type, in the format of the native protocol."""
