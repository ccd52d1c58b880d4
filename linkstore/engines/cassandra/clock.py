"""The timestamps of writes, and the clocks of the nodes.

The timestamps of writes.

Compares the clock of this machine with those of the nodes.

The write with the later timestamp wins, and clients take timestamps from their clocks. If the clock of a
client is minutes ahead, other clients cannot change what it wrote for minutes.
"""

from __future__ import annotations

import secrets
import threading
import time
from datetime import UTC, datetime
from typing import Final

from linkstore.core.plans import Operation
from linkstore.engines.cassandra import statements
from linkstore.engines.cassandra.requests import Requests, Statement
from linkstore.errors import ClockSkewError

_RELINK_MARGIN: Final = 100
"""Microseconds left after a timestamp that was read, for links that are replaced in that version."""
_TIMESTAMP_SPREAD: Final = 1_000
"""Clients that must write later than the same timestamp spread over so many microseconds."""


class Clock:
    """Timestamps in microseconds since 1970: the time of day, or directly after what a write replaces.

    So timestamps do not run ahead of the fastest clock of a client: each change of a document adds at most a
    millisecond to what it replaces, and takes longer than that. Two clients should not write the same
    document in the same microsecond. If they do, each column comes from one write or the other, and
    ``verify`` finds rows that do not fit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def now(self, after: int = 0) -> int:
        """Return the timestamp of one write, later than all that this clock took from the time of day.

        Args:
            after: The latest timestamp of what the write replaces. The result is later, even if the clock of
                its writer was ahead. How much later is random. Otherwise all clients that read the same
                timestamp would write in the same microsecond.
        """
        with self._lock:
            self._last = max(self._last + 1, self.time_of_day())
            now = self._last
        return (
            now
            if now > after + _RELINK_MARGIN
            else after + _RELINK_MARGIN + secrets.randbelow(_TIMESTAMP_SPREAD)
        )

    def time_of_day(self) -> int:
        """Return the time on the clock of this machine, in microseconds since 1970."""
        return time.time_ns() // 1000


MAX_CHECKED_NODES: Final = 8
"""As many nodes are asked something on their own."""


def check_clocks(nodes: int, bound: float) -> Operation[None]:
    """Compare the clock of this machine with those of up to 8 nodes.

    Args:
        nodes: Number of nodes. The driver sends each statement to another one.
        bound: Maximum difference in seconds, in addition to the time until the answer.

    Raises:
        ClockSkewError: If the difference is larger. The message has both times.
    """
    for _ in range(min(max(nodes, 1), MAX_CHECKED_NODES)):
        asked = _now()
        statement = Statement(cql=statements.READ_CLOCK, level="one")
        (((there, node),),) = yield Requests(statements=(statement,), what="compare clocks")
        theirs = there.replace(tzinfo=UTC).timestamp()
        if not asked - bound <= theirs <= _now() + bound:
            raise ClockSkewError(
                f"the clock of this machine says {_format_time(asked)}, that of the "
                f"Cassandra node {node} says"
                f" {_format_time(theirs)}: they differ by {abs(asked - theirs):,.1f} s, "
                f"and {bound:g} s are allowed"
                " (max_clock_skew), for the later of two writes wins. Set the clocks, for instance by NTP"
            )


def _now() -> float:
    """Return the seconds since 1970."""
    return time.time()


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
