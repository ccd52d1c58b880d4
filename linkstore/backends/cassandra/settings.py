"""How statements are run: consistency, timeouts, retries, concurrency."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from linkstore.errors import BackendError

READ_LEVELS: Final = ("LOCAL_QUORUM", "QUORUM", "LOCAL_ONE", "ONE", "TWO", "THREE", "ALL")
WRITE_LEVELS: Final = (*READ_LEVELS, "EACH_QUORUM")


@dataclass(frozen=True, slots=True, kw_only=True)
class CassandraSettings:
    """How a Cassandra store talks to its cluster.

    A reader sees all that was acknowledged if the replicas of a read and of a write overlap, as those of
    LOCAL_QUORUM do within a datacenter.

    Args:
        read_consistency: Level of reads: LOCAL_QUORUM (default), QUORUM, LOCAL_ONE, ONE, TWO, THREE or
            ALL. Nearest-neighbour search always runs at LOCAL_ONE, as the server requires.
        write_consistency: Level of writes: one of those, or EACH_QUORUM. Default LOCAL_QUORUM.
        timeout: Seconds to wait for the answer to one statement, or to one page of it. Default 10.
        deadline: Seconds from the first try of a statement (or page) until it is given up; within them
            it is tried again after timeouts, overload and lost connections. Default 30.
        schema_timeout: Both of these, for statements that change the schema. Default 60.
        in_flight: Statements of one operation under way at once. Default 64. Overload halves it, and it
            comes back within a minute.
        scan_limit: How many documents a search looks at, at most, where a filter leaves fewer among the 1,000
            nearest than were asked for. Default 100,000.
        buckets: Into how many partitions one side of a link group is split, and one word; fixed when the
            store is made. Default 1.
        lexical: Whether the words of documents are indexed, so that they can be searched by words; fixed when
            the store is made. Default True.
        settle: Seconds after which a write is surely through or stopped. ``verify`` and ``repair`` leave
            alone what was written later and may yet get its document. A change that takes half as long, and
            longer than the deadline, fails. Default 600.
        max_document_bytes: Larger documents (id, text, metadata, links and vector) are refused before
            anything is written; default 15,728,640 (15 MiB). A server as delivered takes no write of more
            than 16 MiB: half a ``commitlog_segment_size``, and one ``native_transport_max_frame_size``.
        max_clock_skew: How far this machine's clock and a node's may differ when a store is opened, in
            seconds; default 2. Of two writes the later wins, by the clocks of the clients. A document that
            was added and then is not there was removed before by a client whose clock is ahead, by twice as
            much at most; it is added again, later than that.
        ttl: Seconds until documents written through this store expire, with their links. None, the
            default: never.

    Raises:
        BackendError: If a level is unknown or a number is not positive.
    """

    read_consistency: str = "LOCAL_QUORUM"
    write_consistency: str = "LOCAL_QUORUM"
    timeout: float = 10.0
    deadline: float = 30.0
    schema_timeout: float = 60.0
    in_flight: int = 64
    scan_limit: int = 100_000
    buckets: int = 1
    lexical: bool = True
    settle: float = 600.0
    max_document_bytes: int = 15 << 20
    max_clock_skew: float = 2.0
    ttl: int | None = None

    @property
    def reads_see_writes(self) -> bool:
        """Whether each read asks a node that has what was acknowledged before."""
        levels = self.read_consistency, self.write_consistency
        return "ALL" in levels or all(level.endswith("QUORUM") for level in levels)

    def __post_init__(self) -> None:
        _check_level("read_consistency", self.read_consistency, READ_LEVELS)
        _check_level("write_consistency", self.write_consistency, WRITE_LEVELS)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
                raise BackendError(f"{field.name} is {value!r}; it must be more than 0")


def _check_level(name: str, level: str, known: tuple[str, ...]) -> None:
    if level not in known:
        raise BackendError(f"{name} is {level!r}; it must be one of {', '.join(known)}")
