"""What operations of the Cassandra backend wait for: statements. Nothing here needs the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

Level = Literal["read", "write", "one", "schema"]
"""How a statement is run: reads and writes at the levels of the settings; ``one`` at LOCAL_ONE, which
nearest-neighbour search requires; ``schema`` unprepared, with a timeout of its own."""
Row = tuple[Any, ...]


class _Unset(Enum):
    """The type of UNSET."""

    UNSET = "UNSET"


UNSET: Final = _Unset.UNSET
"""In a statement's values: leave this column as it is. A None would write a tombstone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A CQL statement that may be run more than once with the same outcome.

    Args:
        cql: Its text, with ``?`` for values; prepared once per session by this text. The text of a
            ``schema`` statement takes no values.
        values: One for each ``?``. Vectors may be float arrays.
        packed: Whether the values are bytes as the native protocol has them. For statements of hundreds of
            values, each of which the driver takes longer to turn into bytes than all else takes.
        level: How it is run.
        routing: The routing key of a replica to send it to, for statements whose partition keys stand in
            an IN. None: the driver derives it from the values.
        page_limit: Stop after so many rows. None: read all pages.
    """

    cql: str
    values: Sequence[Any] = ()
    packed: bool = False
    level: Level = "read"
    routing: bytes | None = None
    page_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Statements to run concurrently; answered by a list with the list of rows of each.

    Args:
        statements: In any number; how many are under way at once is bounded.
        what: The operation in words, as in "could not read link groups".
    """

    statements: tuple[Statement, ...]
    what: str
