"""Whether the clocks of this machine and of the nodes agree.

Of two writes the one with the later timestamp counts, and clients take timestamps from their clocks. What a
client wrote whose clock is minutes ahead, others could not change for minutes.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final

from linkstore.backends.cassandra import cql
from linkstore.backends.cassandra.transport.requests import Requests, Statement
from linkstore.errors import ClockSkewError
from linkstore.plans import Operation

_MOST_NODES: Final = 8


def check_clocks(nodes: int, bound: float) -> Operation[None]:
    """Compare this machine's clock with that of each node, or of 8 of them.

    Args:
        nodes: How many there are; the driver sends each statement to the next.
        bound: How far they may differ, in seconds, beyond the time that the answer takes.

    Raises:
        ClockSkewError: If they differ by more; the message says both times.
    """
    for _ in range(min(max(nodes, 1), _MOST_NODES)):
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
    """Seconds since 1970."""
    return time.time()


def _shown(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
