"""Observers of searches: what a store tells them when a search begins and when it ends.

A store reports every search, by its own methods, retrievers, tools and compilers of contexts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Final, Protocol, TypeVar

from linkstore.core.calls import Operation, answer_plan
from linkstore.core.hits import Hits
from linkstore.core.plans import Fetch, Members, Plan, ask

T = TypeVar("T")
_OBSERVER_LOG: Final = logging.getLogger("linkstore")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedSearch:
    """A search that has ended.

    Args:
        question: The question as text; empty for a search by a vector.
        strategy: The strategy, as text.
        began: When it began, in UTC.
        seconds: How long it took, with embedding and reranking.
        reached: How many documents each step along links gave, in the order of the steps.
        hits: What was found; None if it failed.
        error: Why it failed; None if it did not. GeneratorExit stands for a search that was interrupted.
    """

    question: str
    strategy: str
    began: datetime
    seconds: float
    reached: tuple[int, ...]
    hits: Hits | None = None
    error: BaseException | None = None


class Observer(Protocol):
    """Is told of the searches of a store, by the threads and tasks that search.

    A search does not fail if its observer does: the first failure is logged by the logger ``linkstore``.
    """

    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Learn of the start of a search, and return a function to call once when it ends.

        The same thread or task calls it.
        """
        ...


class GuardedObserver:
    """An observer whose failures fail no search; the first is logged, since each search may repeat it.

    Args:
        observer: The object to notify of searches.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._reported = False

    def search_begins(self, question: str, strategy: str) -> Callable[[CompletedSearch], None]:
        """Tell the observer that a search begins, and return the function to call when it ends."""
        try:
            tell = self._observer.search_begins(question, strategy)
        except Exception:  # noqa: BLE001 (an observer may raise anything)
            self._report()
            return lambda _: None

        def ended(searched: CompletedSearch) -> None:
            try:
                tell(searched)
            except Exception:  # noqa: BLE001
                self._report()

        return ended

    def _report(self) -> None:
        if not self._reported:
            self._reported = True
            _OBSERVER_LOG.exception(
                "the observer %r failed; its further failures are not logged", self._observer
            )


def observe_search(
    observers: Sequence[Observer],
    question: str,
    strategy: str,
    search: Callable[[list[int]], Operation[Hits]],
) -> Operation[Hits]:
    """Run a search, and notify observers of its beginning and end.

    Args:
        observers: The observers, notified in this order.
        question: The question as text, empty for a vector.
        strategy: The strategy as text.
        search: Makes the search. It takes the list that gets the documents reached, step by step.
    """
    began, start = datetime.now(UTC), perf_counter()
    reached: list[int] = []
    listeners: list[Callable[[CompletedSearch], None]] = []

    def ended(hits: Hits | None, error: BaseException | None) -> None:
        search = CompletedSearch(
            question=question,
            strategy=strategy,
            began=began,
            seconds=perf_counter() - start,
            reached=tuple(reached),
            hits=hits,
            error=error,
        )
        for tell in reversed(listeners):
            tell(search)

    try:
        listeners.extend(observer.search_begins(question, strategy) for observer in observers)
        hits = yield from search(reached)
    except BaseException as error:
        ended(None, error)
        raise
    ended(hits, None)
    return hits


def count_reached(plan: Plan[T], reached: list[int]) -> Plan[T]:
    """Run a plan, and append to ``reached`` how many documents each step along links gave."""

    def answer(fetch: Fetch[Any]) -> Plan[Any]:
        reply = yield from ask(fetch)
        if isinstance(fetch, Members):
            reached.append(len(reply.refs))
        return reply

    return answer_plan(plan, answer)
