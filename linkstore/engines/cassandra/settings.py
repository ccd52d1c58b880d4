"""Settings of a store: consistency, timeouts, retries, concurrency."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final, get_type_hints

from linkstore.core.arguments import MAX_SETTING, make_argument_error
from linkstore.errors import BackendError

READ_LEVELS: Final = ("LOCAL_QUORUM", "QUORUM", "LOCAL_ONE", "ONE", "TWO", "THREE", "ALL")
WRITE_LEVELS: Final = (*READ_LEVELS, "EACH_QUORUM")
_OVERLAPPING: Final = {
    ("QUORUM", "QUORUM"),
    ("QUORUM", "EACH_QUORUM"),
    ("LOCAL_QUORUM", "EACH_QUORUM"),
    ("LOCAL_QUORUM", "LOCAL_QUORUM"),
}
"""Levels of reads and writes that have a replica in common, however many datacenters there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CassandraSettings:
    """Settings of a store in Cassandra.

    A read sees all acknowledged writes if the replicas of reads and writes overlap: as with LOCAL_QUORUM for
    both in one datacenter; in several, QUORUM for both, or EACH_QUORUM for writes and LOCAL_QUORUM or QUORUM
    for reads; and with ALL for either. Not every pair of levels that end with QUORUM overlaps there.
    Lightweight transactions, which create a store and exchange notes, are decided in the local datacenter if
    the level of writes is a local one.

    Args:
        read_consistency: Level of reads: LOCAL_QUORUM (default), QUORUM, LOCAL_ONE, ONE, TWO, THREE or
            ALL. Nearest-neighbour search always runs at LOCAL_ONE, as the server requires.
        write_consistency: Level of writes: one of those, or EACH_QUORUM. Default LOCAL_QUORUM.
        timeout: Seconds to wait for the answer to one statement, or to one page of it. Default 10. After two
            seconds (or half the timeout) it is sent to another node too.
        deadline: Seconds that a call may lose to timeouts, overload and lost connections until it fails, in
            all: from the first attempt of each statement that fails until it succeeds. Time without
            failures makes up for it, so a long change is not given up because it is long. Default 30.
        schema_timeout: Timeout and deadline of statements that change the schema, in seconds. Default 60.
        in_flight: Maximum number of concurrent statements of one operation. Default 64. Overload halves it.
            It recovers within a minute.
        scan_limit: Maximum number of documents that a search scans if fewer of the 1,000 nearest pass its
            filter than were requested. Default 100,000.
        shards: Number of partitions of the words of all documents, fixed when the store is created. None,
            the default: that of the store, 256 for a new one. Another than that of the store is refused when
            it is opened. More keep partitions small in a store of many millions of documents, and make
            adding slower.
        lexical: Whether the words of documents are indexed for lexical search, fixed when the store is
            created. None, the default: as the store does, True for a new one. Otherwise as ``shards``.
        settle: Seconds after which every write has completed or failed. ``verify`` and ``repair`` ignore
            younger rows, whose documents may not be written yet. A change that takes more than half of this
            time, and more than the deadline, fails. Default 600.
        max_document_bytes: Larger documents (id, text, metadata, links and vector) raise an error before
            anything is written. Default 15,728,640 (15 MiB). With its default configuration, a server accepts
            writes of at most 16 MiB: half of ``commitlog_segment_size``, and
            ``native_transport_max_frame_size``.
        max_clock_skew: Maximum difference in seconds between the clocks of this machine and of a node when a
            store is opened. Default 2. The write with the later timestamp wins, and timestamps come from
            clients. What was added and is missing was removed by a client whose clock is ahead. Then it is
            written again until it is there, for about twice this time (clients differ by at most that).
        ttl: Seconds until documents written by this client expire, with their links. None, the default:
            never.

    Raises:
        BackendError: If a level is unknown, or a number is not positive or too large.
        ArgumentError: If a value has another type.
    """

    read_consistency: str = "LOCAL_QUORUM"
    write_consistency: str = "LOCAL_QUORUM"
    timeout: float = 10.0
    deadline: float = 30.0
    schema_timeout: float = 60.0
    in_flight: int = 64
    scan_limit: int = 100_000
    shards: int | None = None
    lexical: bool | None = None
    settle: float = 600.0
    max_document_bytes: int = 15 << 20
    max_clock_skew: float = 2.0
    ttl: int | None = None

    def reads_see_writes(self, datacenters: int) -> bool:
        """Say whether reads see what clients in the same datacenter wrote: some replica has it and answers.

        With LOCAL_QUORUM for both, what was written in another datacenter is seen once it has arrived.

        Args:
            datacenters: How many the cluster has.
        """
        levels = self.read_consistency, self.write_consistency
        if "ALL" in levels:
            return True
        overlapping = levels in _OVERLAPPING
        return overlapping or (datacenters == 1 and all(level.endswith("QUORUM") for level in levels))

    def __post_init__(self) -> None:
        for name, levels in (("read_consistency", READ_LEVELS), ("write_consistency", WRITE_LEVELS)):
            if (level := getattr(self, name)) not in levels:
                raise BackendError(f"{name} is {level!r}; it must be one of {', '.join(levels)}")
        kinds = get_type_hints(type(self))
        for field in fields(self):
            value, kind = getattr(self, field.name), kinds[field.name]
            logical = kind == bool | None
            if not isinstance(value, kind if logical else kind | int) or isinstance(value, bool) > logical:
                raise make_argument_error(field.name, f"of type {field.type}", value)
            if isinstance(value, int | float) and not logical and not 0 < value <= MAX_SETTING:
                raise BackendError(f"{field.name} is {value!r}; it must be above 0, at most {MAX_SETTING:,}")
