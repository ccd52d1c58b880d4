"""The tools of a store, independent of their caller: one operation each, driven sync or async."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from linkstore.arguments import require
from linkstore.drivers import arun, run
from linkstore.errors import StrategyError
from linkstore.filters import Filter, parse_filter
from linkstore.plans import Operation
from linkstore.requests import Engine
from linkstore.store import LinkStore
from linkstore.store.checking import require_store
from linkstore.strategies.base import Walk
from linkstore.tools import describing, linked, reading, searching, writing
from linkstore.tools.answers import Answer
from linkstore.tools.limits import ToolLimits
from linkstore.tools.searching import Search
from linkstore.tools.view import View
from linkstore.tools.writing import Add, Delete

T = TypeVar("T")


class Toolbox:
    """The operations behind the tools of a store.

    Args:
        store: What they read.
        limits: What they may do, and how much they may return.
        filter: Only documents that pass it exist for the tools.

    Raises:
        ArgumentError: If this is not a store, or these are not limits.
        FilterError: If the filter is invalid.
    """

    def __init__(
        self, store: LinkStore, limits: ToolLimits | None = None, filter: Filter | None = None
    ) -> None:
        require_store(store=store)
        self.store = store
        self.limits = ToolLimits() if limits is None else limits
        require(ToolLimits, "a ToolLimits", limits=self.limits)
        parse_filter(filter)  # raise now, and not in a call
        self.view = View(store.backend, filter)

    @property
    def ceiling(self) -> int:
        """How many links in a row ``search`` may follow: the lower of the limits' and the store's."""
        most = self.store.max_depth
        return self.limits.max_depth if most is None else min(most, self.limits.max_depth)

    @property
    def usual_hops(self) -> int:
        """How many links ``search`` follows unless it is told: 2, or the ceiling if that is lower."""
        return min(2, self.ceiling)

    def answer(self, operation: Operation[T]) -> T:
        """Carry out an operation, such as those below."""
        return run(operation, self._wait)

    async def aanswer(self, operation: Operation[T]) -> T:
        """Carry out an operation without blocking the event loop."""
        return await arun(operation, self._await)

    def search(self, question: str, hops: int | None = None) -> Operation[Answer]:
        """Search: see :func:`linkstore.tools.searching.search`. ``hops`` is ``usual_hops`` by default."""
        chosen = self.usual_hops if hops is None else hops
        return searching.search(self.view, question, chosen, self.limits, self.ceiling)

    def follow(
        self, id: str, kinds: Sequence[str] | None = None, direction: Walk = "forward"
    ) -> Operation[Answer]:
        """Follow links: see :func:`linkstore.tools.linked.follow`."""
        if not self.ceiling:
            raise StrategyError("the ceiling is 0: no links may be followed here; use search and read")
        return linked.follow(self.view, id, kinds, direction, self.limits)

    def read(self, id: str, offset: int = 0) -> Operation[Answer]:
        """Read a document: see :func:`linkstore.tools.reading.read`."""
        return reading.read(self.view, id, offset, self.limits)

    def links(self, id: str) -> Operation[Answer]:
        """List links: see :func:`linkstore.tools.linked.links`."""
        return linked.links(self.view, id, self.limits)

    def schema(self) -> Operation[Answer]:
        """Describe the schema: see :func:`linkstore.tools.describing.schema`."""
        return describing.schema(self.store.backend, self.ceiling)

    def add(
        self,
        id: str,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        links: Sequence[Mapping[str, Any]] | None = None,
    ) -> Operation[Answer]:
        """Add a document: see :func:`linkstore.tools.writing.add`."""
        return writing.add(self.view, id, text, metadata, links)

    def delete(self, id: str) -> Operation[Answer]:
        """Delete a document: see :func:`linkstore.tools.writing.delete`."""
        return writing.delete(self.view, id)

    def _wait(self, request: object) -> Any:
        match request:
            case Search(question, strategy):
                return self.store.search(question, strategy=strategy, filter=self.view.filter)
            case Engine(operation):
                return self.store.backend.run(operation)
            case Add(document):
                return self.store.add_documents([document])
            case Delete(id):
                return self.store.delete([id])
        raise TypeError(f"no way to answer {request!r}")

    async def _await(self, request: object) -> Any:
        match request:
            case Search(question, strategy):
                return await self.store.asearch(question, strategy=strategy, filter=self.view.filter)
            case Engine(operation):
                return await self.store.backend.arun(operation)
            case Add(document):
                return await self.store.aadd_documents([document])
            case Delete(id):
                return await self.store.adelete([id])
        raise TypeError(f"no way to answer {request!r}")
