"""Compares the clock of this machine with those of the nodes.

The write with the later timestamp wins, and clients take timestamps from their clocks. If the clock of a
client is minutes ahead, other clients cannot change what it wrote for minutes.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.errors import ClockSkewError
from linkstore.plans import Operation

MOST_NODES: Final = 8
"""As many nodes are asked something on their own."""


def check_clocks(nodes: int, bound: float) -> Operation[None]:
    """Compare the clock of this machine with those of up to 8 nodes.

    Args:
        nodes: Number of nodes. The driver sends each statement to another one.
        bound: Maximum difference in seconds, in addition to the time until the answer.

    Raises:
        ClockSkewError: If the difference is larger. The message has both times.
    """
    for _ in range(min(max(nodes, 1), MOST_NODES)):
        asked = _now()
        statement = Statement(cql=cql.READ_CLOCK, level="one")
        (((there, node),),) = yield Requests(statements=(statement,), what="compare clocks")
        theirs = there.replace(tzinfo=UTC).timestamp()
        if not asked - bound <= theirs <= _now() + bound:
            raise ClockSkewError(
                f"the clock of this machine says {_shown(asked)}, that of the Cassandra node {node} says"
                f" {_shown(theirs)}: they differ by {abs(asked - theirs):,.1f} s, and {bound:g} s are allowed"
                " (max_clock_skew), for the later of two writes wins. Set the clocks, for instance by NTP"
            )


def _now() -> float:
    """Return the seconds since 1970."""
    return time.time()


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
