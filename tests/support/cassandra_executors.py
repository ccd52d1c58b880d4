"""What stands between a Cassandra backend and its server in a test: a client that stops, one that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from linkstore.engines.cassandra.statements import Requests

Order = Callable[[int], Sequence[int]]


class Stopped(BaseException):
    """The client is no more. Nothing of linkstore catches it, as nothing catches SIGKILL."""


class Stopping:
    """Runs statements one after another, so many in all, and then raises :class:`Stopped`.

    Args:
        executor: The backend's own.
        allowed: How many statements are run.
        order: In which order the statements of one request are run, which may run at once: positions.
    """

    def __init__(self, executor: Any, allowed: int, order: Order = range) -> None:
        self._executor = executor
        self._left = allowed
        self._order = order

    def run(self, requests: Requests) -> list[list[tuple[Any, ...]]]:
        """As the executor does, statement by statement."""
        answers: list[list[tuple[Any, ...]]] = [[] for _ in requests.statements]
        for at in self._order(len(requests.statements)):
            if not self._left:
                raise Stopped
            self._left -= 1
            one = replace(requests, statements=(requests.statements[at],))
            (answers[at],) = self._executor.run(one)
        return answers


class Counting:
    """Runs statements as the backend's own executor does, and counts them and the rows they give.

    Args:
        executor: The backend's own.
    """

    def __init__(self, executor: Any) -> None:
        self.session = executor.session
        self._executor = executor
        self._ran: list[tuple[str, int, int]] = []

    def run(self, requests: Requests) -> list[list[tuple[Any, ...]]]:
        """As the executor does."""
        answers: list[list[tuple[Any, ...]]] = self._executor.run(requests)
        self._ran.append((requests.what, len(requests.statements), sum(map(len, answers))))
        return answers

    def rows(self, what: str | None = None) -> list[int]:
        """How many rows each request gave, or each that was of this operation."""
        return [rows for of, _, rows in self._ran if what in {of, None}]

    @property
    def statements(self) -> int:
        """How many were run."""
        return sum(count for _, count, _ in self._ran)

    def reset(self) -> None:
        """Begin anew."""
        self._ran.clear()
