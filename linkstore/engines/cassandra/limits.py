"""How much is asked at once, and for how long: what an executor learns from overload and guardrails.

A guardrail is a limit that an operator sets in ``cassandra.yaml``. It is unknown until a statement meets it,
and the error names it and its threshold. From then on, statements ask for fewer keys or shorter pages.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from linkstore.core.calls import split_batches

if TYPE_CHECKING:
    from linkstore.engines.cassandra.statements import Statement

PAGE_ROWS: Final = 5_000
"""Rows per page. An answer that cannot have more rows is asked for without pages."""
_FIRST_WAIT: Final = 0.05
_LONGEST_WAIT: Final = 2.0
_RECOVERY_SECONDS: Final = 60.0
PAGE_SIZE: Final = "page_size"
"""The guardrail of the rows of a page."""
KEYS: Final = "in_select_cartesian_product", "partition_keys_in_select"
"""The guardrails of the keys that the lists of a statement combine to."""
_PLACE: Final = re.compile(r"(\bIN )?\?")


class ConcurrencyLimit:
    """The maximum number of concurrent statements: halved by overload, recovers within a minute.

    The operations of a store share it, so an overload slows down later operations too. Threads may call it
    without a lock. At worst, one of two simultaneous halvings is lost.

    Args:
        top: The maximum without overload.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._eased = (float(top), 0.0)

    def at(self, now: float) -> int:
        """Return the maximum number of concurrent statements at time ``now`` in seconds, at least 1."""
        level, since = self._eased
        return max(1, min(self._top, int(level + self._top * (now - since) / _RECOVERY_SECONDS)))

    def ease(self, now: float) -> None:
        """Halve the maximum after an overload."""
        self._eased = (max(1.0, self.at(now) / 2), now)


class LostTime:
    """The seconds that an operation has lost to failures, less the later seconds without a failure.

    So an operation that fails again and again ends after its deadline, however many statements it has, and a
    long one on a busy server does not end because it is long.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._counted = 0.0

    def at(self, since: float, now: float) -> float:
        """Return the lost seconds if a statement fails that was first sent at ``since``."""
        since = max(since, self._counted)
        return max(0.0, self._seconds - (since - self._counted)) + now - since

    def add(self, since: float, now: float) -> None:
        """Count a statement that succeeded only now."""
        self._seconds, self._counted = self.at(since, now), now


def compute_backoff(tries: int) -> float:
    """Return the seconds to wait after ``tries`` failures: 0.05 doubled each time up to 2, half of it random.

    The random part keeps clients that failed together from coming back together (M. Brooker,
    Exponential Backoff And Jitter, AWS Architecture Blog, 2015: "equal jitter").
    """
    longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(tries - 1, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


class Guardrails:
    """The limits that the server's guardrails set, as far as they are known.

    Threads may use it without a lock. At worst, a statement is refused once more.

    Attributes:
        page_rows: The most rows of a page.
        most_keys: The most keys of a statement, None if no limit is known.
    """

    def __init__(self) -> None:
        self.page_rows = PAGE_ROWS
        self.most_keys: int | None = None

    def adapt(
        self, statement: Statement, refusal: tuple[str, int] | None, page_rows: int
    ) -> Sequence[Statement]:
        """Learn from a guardrail that refused a statement, and return the statements to run instead.

        Args:
            statement: The statement.
            refusal: The guardrail's name and threshold.
            page_rows: The rows of a page that were asked for.

        Returns:
            Statements that do the same, none if there is no other way.
        """
        name, threshold = refusal or ("", 0)
        if name == PAGE_SIZE and 0 < threshold < page_rows:
            self.page_rows = min(self.page_rows, threshold)
            return [statement]
        if name in KEYS and threshold > 0:
            self.most_keys = min(threshold, self.most_keys or threshold)
            parts = [*self.divide(statement)]
            return parts if len(parts) > 1 else []
        return []

    def divide(self, statement: Statement) -> Iterator[Statement]:
        """Yield statements that together do the same as one, each with no more keys than are allowed."""
        lists = [] if self.most_keys is None else _find_keys(statement)
        keys = prod(map(len, lists))
        longest = max(lists, key=len, default=())
        if self.most_keys is None or keys <= self.most_keys or len(longest) == 1:
            yield statement
            return
        for part in split_batches(longest, max(1, self.most_keys * len(longest) // keys)):
            values = [part if value is longest else value for value in statement.values]
            yield from self.divide(replace(statement, values=values))


def _find_keys(statement: Statement) -> list[Sequence[Any]]:
    """Return the lists among the values of a statement that stand for an ``IN``, each once."""
    if statement.packed or not statement.values:
        return []
    places = enumerate(_PLACE.finditer(statement.cql))
    lists = [statement.values[at] for at, place in places if place[1]]
    return list({id(keys): keys for keys in lists}.values())
