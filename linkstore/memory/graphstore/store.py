"""GraphStore: the long-term memory of LangGraph's agents in a linkstore store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from langgraph.store.base import BaseStore, IndexConfig, Op, PutOp, Result, TTLConfig

from linkstore.arguments import given, require
from linkstore.errors import ArgumentError, EmbeddingError
from linkstore.memory.graphstore.batching import Batch, batch_now
from linkstore.memory.graphstore.expiry import require_minutes
from linkstore.memory.graphstore.items import WHOLE
from linkstore.memory.requests import adrive, drive
from linkstore.plans import Operation
from linkstore.store import LinkStore
from linkstore.store.checking import require_store

SWEEP_MINUTES: Final = 5
"""Minutes between two removals of expired items, by default."""


class GraphStore(BaseStore):
    """A LangGraph store, for ``create_agent(store=...)``, that keeps its items in a linkstore store.

    Items are documents, with links to the namespaces above them. A search reads the items of its namespace
    and no others; a list of items, those of its page. Any number of threads, tasks and processes may use one
    store; the sync methods work inside a running event loop.

    A batch reads first and then writes, and of several puts of one key the last counts. In an embedded store
    all puts of a batch are one change. A search without a query gives the oldest items first. A search with a
    query gives items by cosine similarity, then those that are not indexed, with the score None.

    Args:
        store: Where items are kept. It may have other documents; ids of items are JSON arrays.
        index: ``fields`` are the paths of the texts to search by meaning; default ``["$"]``, the whole value.
            The store's embedding is used, so ``embed`` and ``dims`` may be left out.
        ttl: Default time to live, whether reads refresh it, and the minutes between two removals of expired
            items; default 5. Expired items are never returned, whatever ``omit_expired`` says. The next write
            after the interval removes them, or :meth:`sweep_ttl`.

    Raises:
        ArgumentError: If ``ttl`` has an unknown key, or a time that is not a positive number.
        EmbeddingError: If ``index`` has another embedding than the store.
    """

    supports_ttl: bool = True

    def __init__(
        self, store: LinkStore, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        require_store(store=store)
        require(Mapping, "a dict", **given(index=index, ttl=ttl))
        embed = index.get("embed") if index else None
        if embed is not None and embed is not store.embeddings:
            raise EmbeddingError(
                f"index has the embedding {embed!r}, but the store uses {store.embeddings!r};"
                " leave embed out, or open the store with this embedding"
            )
        _check_ttl(ttl)
        self.store = store
        self.ttl_config = ttl
        self._fields = tuple((index.get("fields") if index else None) or [WHOLE])
        self._sweep_seconds = 60 * ((ttl.get("sweep_interval_minutes") if ttl else None) or SWEEP_MINUTES)
        self._swept_at = time.monotonic()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: first all reads, then all writes.

        Raises:
            InvalidNamespaceError: If a label is empty, or contains a period or a NUL.
            FilterError: If a filter is invalid.
            StrategyError: If a limit or an offset is negative.
            ArgumentError: If a time to live is not a positive number; then nothing is written.
            DocumentError: If a key or a value cannot be stored as JSON; then nothing is written.
            BackendError: If the storage engine fails.
        """
        return drive(self._carried_out(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations without blocking the event loop: see :meth:`batch`."""
        return await adrive(self._carried_out(list(ops)))

    def sweep_ttl(self) -> int:
        """Remove the expired items now; returns how many there were."""
        return drive(self._now().swept())

    async def asweep_ttl(self) -> int:
        """Remove the expired items: see :meth:`sweep_ttl`."""
        return await adrive(self._now().swept())

    def __repr__(self) -> str:
        return f"GraphStore({self.store!r})"

    def _carried_out(self, ops: list[Op]) -> Operation[list[Result]]:
        batch, moment = self._now(), time.monotonic()
        results = yield from batch.carried_out(ops)
        if any(isinstance(op, PutOp) for op in ops) and moment >= self._swept_at + self._sweep_seconds:
            self._swept_at = moment
            yield from batch.swept()
        return results

    def _now(self) -> Batch:
        return batch_now(self.store, self._fields)


def _check_ttl(ttl: TTLConfig | None) -> None:
    """Raise unless these are settings of a time to live.

    Raises:
        ArgumentError: If a key is not one of LangGraph's, or a time is not positive.
    """
    for name, value in (ttl or {}).items():
        if name not in TTLConfig.__annotations__:
            known = ", ".join(sorted(TTLConfig.__annotations__))
            raise ArgumentError(f"ttl has the unknown key {name!r}; it may have {known}")
        if name in ("default_ttl", "sweep_interval_minutes"):
            require_minutes(name, value)
