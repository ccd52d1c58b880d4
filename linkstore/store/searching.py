"""Searching by a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from linkstore import operations
from linkstore.filters import Filter
from linkstore.hits import Hits
from linkstore.links import AnyLink
from linkstore.observing import observed
from linkstore.plans import Operation
from linkstore.searchoptions import SearchOptions
from linkstore.store.driving import Driven
from linkstore.store.names import check_known, check_types
from linkstore.store.options import chosen_strategy
from linkstore.strategies import Strategy


class Searching(Driven):
    """The search methods of a store."""

    def search(
        self,
        query: str,
        *,
        k: int | None = None,
        strategy: Strategy | None = None,
        filter: Filter | None = None,
        link_filter: Filter | None = None,
        initial_links: Sequence[AnyLink] = (),
    ) -> Hits:
        """Search by a strategy, and return hits with their paths: see :meth:`linkstore.LinkStore.search`."""
        options = SearchOptions(filter=filter, link_filter=link_filter, initial_links=initial_links)
        return self._run(self._hits(query, chosen_strategy(strategy, k), options))

    def _hits(self, query: str | list[float], strategy: Strategy, options: SearchOptions) -> Operation[Hits]:
        strategy = strategy.with_floor(self._floor)
        if not self._observers:
            return (yield from self._found(query, strategy, options, None))
        question = query if isinstance(query, str) else ""
        search = partial(self._found, query, strategy, options)
        return (yield from observed(self._observers, question, str(strategy), search))

    def _found(
        self,
        query: str | list[float],
        strategy: Strategy,
        options: SearchOptions,
        reached: list[int] | None,
    ) -> Operation[Hits]:
        yield from check_known(self.backend, strategy, options)
        hits = yield from operations.search(self.backend, query, strategy, options, self._max_depth, reached)
        if not hits or options.hop_filter is not None:
            yield from check_types(self.backend, options)
        return hits
