"""Watches the searches of a store: how many find nothing, their times, and how many documents they reach."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from linkstore.arguments import require, require_at_least
from linkstore.observing import Searched
from linkstore.schema.model import TYPE_FIELD
from linkstore.store.checking import require_store
from linkstore.watch.observation import Observation
from linkstore.watch.vitals import Alarm, Limits, Search, Vitals, alarmed, alarms_of, past_limits, vitals_of

if TYPE_CHECKING:
    from linkstore.store import LinkStore

KEPT: Final = 200
"""How many searches that found nothing are kept by default."""
_LOG: Final = logging.getLogger("linkstore.watch")


class Watch(Observation):
    """Watches the searches of a store by its methods, retrievers, tools and context compilers.

    It holds figures of the last searches, and the questions of those that found nothing or failed; no
    documents. Any number of threads and tasks may search. Where a figure passes its limit, a warning is
    logged once by the logger ``linkstore.watch``, and again when it passes the limit anew.

    Use it as a context manager, or call ``close()``, to end it.

    Args:
        store: The store.
        window: How many of the last searches are counted.
        limits: When to raise an alarm; default :class:`Limits`.
        kept: How many searches that found nothing, or failed, are kept with their questions.
        type_field: The metadata field that holds the type of a document; None: that of the recorded schema,
            else ``"type"``.

    Raises:
        ArgumentError: If ``store`` or ``limits`` has the wrong type.
        StrategyError: If ``window`` or ``kept`` is not an integer of at least 1.
    """

    def __init__(
        self,
        store: LinkStore,
        *,
        window: int = 1_000,
        limits: Limits | None = None,
        kept: int = KEPT,
        type_field: str | None = None,
    ) -> None:
        require_store(store=store)
        require_at_least(1, window=window, kept=kept)
        self.store: Final = store
        self.limits: Final = Limits() if limits is None else limits
        require(Limits, "a Limits", limits=self.limits)
        schema = store.schema() if type_field is None else None
        self._type_field = type_field or (schema.type_field if schema else TYPE_FIELD)
        self._searches: deque[Search] = deque(maxlen=window)
        self._unanswered: deque[Search] = deque(maxlen=kept)
        self._past: Counter[str] = Counter()
        self._raised = frozenset[str]()
        self._lock = Lock()
        super().__init__(store)

    def search_begins(self, question: str, strategy: str) -> Callable[[Searched], None]:
        """Return the function that records the search: see :class:`~linkstore.observing.Observer`."""
        return self._record

    def _record(self, searched: Searched) -> None:
        if searched.error is not None and not isinstance(searched.error, Exception):
            return  # interrupted: it is no evidence about the store
        search = _figures(searched, self._type_field)
        with self._lock:
            if len(self._searches) == self._searches.maxlen:
                self._past.subtract(past_limits(self._searches[0], self.limits))
            self._searches.append(search)
            self._past.update(past_limits(search, self.limits))
            if not search.hits:
                self._unanswered.append(search)
            raised = alarmed(len(self._searches), self._past, self.limits)
            new, self._raised = raised - self._raised, raised
            vitals = vitals_of(self._searches) if new else None
        for alarm in alarms_of(vitals, self.limits) if vitals else ():
            if alarm.name in new:
                _LOG.warning("%s", alarm)

    def vitals(self) -> Vitals:
        """Return the figures of the searches in the window."""
        with self._lock:
            searches = tuple(self._searches)
        return vitals_of(searches)

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the figures that are past their limits now, as alarms."""
        return alarms_of(self.vitals(), self.limits)

    def unanswered(self) -> tuple[Search, ...]:
        """Return the last searches that found nothing or failed, oldest first, with their questions."""
        with self._lock:
            return tuple(self._unanswered)

    def __repr__(self) -> str:
        return f"<Watch over {self.store!r}: {self.vitals()}>"


def _figures(searched: Searched, type_field: str) -> Search:
    """Return the record of a search."""
    hits = searched.hits or ()
    types: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for hit in hits:
        found: Any = hit.document.metadata.get(type_field)
        types.update([found] if isinstance(found, str) else [])
        kinds.update({step.kind for step in hit.path if step.kind is not None})
    failed = searched.error is not None
    reason = str(searched.error) if failed else searched.hits.reason if searched.hits is not None else None
    return Search(
        question=searched.question,
        strategy=searched.strategy,
        began=searched.began,
        seconds=searched.seconds,
        reached=sum(searched.reached),
        hits=len(hits),
        types=dict(types),
        kinds=dict(kinds),
        failed=failed,
        reason=reason if not hits else None,
    )
