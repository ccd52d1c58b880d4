"""Reports searches of a retriever to LangChain's callbacks."""

from __future__ import annotations

from typing import Any, Final

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
    adispatch_custom_event,
    dispatch_custom_event,
)

from linkstore.hits import Hits

EVENT: Final = "linkstore"
"""The name of the custom event: see it in LangSmith, or as ``on_custom_event`` of ``astream_events``."""


def traced(run: CallbackManagerForRetrieverRun, hits: Hits) -> None:
    """Report a search as a custom event of the retriever's run."""
    dispatch_custom_event(EVENT, report(hits), config={"callbacks": run.get_child()})


async def atraced(run: AsyncCallbackManagerForRetrieverRun, hits: Hits) -> None:
    """Report a search as :func:`traced` does, without blocking the event loop."""
    await adispatch_custom_event(EVENT, report(hits), config={"callbacks": run.get_child()})


def report(hits: Hits) -> dict[str, Any]:
    """Return the strategy, how many documents came back by how many hops, and what was cut and why."""
    by_depth: dict[int, int] = {}
    for hit in hits:
        by_depth[hit.depth] = by_depth.get(hit.depth, 0) + 1
    return {
        "strategy": hits.strategy,
        "hits": len(hits),
        "hops": max(by_depth, default=0),
        "hits_by_depth": dict(sorted(by_depth.items())),
        "cuts": [str(cut) for cut in hits.cuts],
        "reason": hits.reason,
    }
