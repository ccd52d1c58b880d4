"""Statements, as operations of the Cassandra backend yield them. Does not import the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from linkstore.core.plans import Operation

Level = Literal["read", "write", "one", "schema"]
"""Determines the consistency level: reads and writes use those of the settings; ``one`` is LOCAL_ONE, which
nearest-neighbour search requires. ``schema`` statements are not prepared and have a separate timeout."""
Row = tuple[Any, ...]


class _Unset(Enum):
    """The type of UNSET."""

    UNSET = "UNSET"


UNSET: Final = _Unset.UNSET
"""As a value in a statement: do not change this column. None would write a tombstone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An idempotent CQL statement.

    Args:
        cql: Its text, with ``?`` for values, prepared once per session. ``schema`` statements have no values.
        values: One for each ``?``. Vectors may be float arrays.
        packed: Whether the values are bytes in the format of the native protocol. Saves time for statements
            with hundreds of values, which the driver is slow to serialise.
        level: Determines the consistency level.
        routing: The routing key of a replica to send it to, for statements with partition keys in an IN.
            None: the driver derives it from the values.
        page_limit: Maximum number of rows. None: read all pages.
    """

    cql: str
    values: Sequence[Any] = ()
    packed: bool = False
    level: Level = "read"
    routing: bytes | None = None
    page_limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Statements to run concurrently, answered by a list with the list of rows of each.

    Args:
        statements: Any number of statements. The number of concurrent ones is bounded.
        what: The operation, as in "could not read link groups".
        wait: Seconds to wait before that.
    """

    statements: tuple[Statement, ...]
    what: str
    wait: float = 0.0


def run_writes(what: str, statements: Iterable[Statement]) -> Operation[None]:
    """Run statements that write, if there are any, with ``what`` as in :class:`Requests`."""
    all_of_them = tuple(statements)
    if all_of_them:
        yield Requests(statements=all_of_them, what=what)
