"""The check that an argument is a store."""

from __future__ import annotations

from pathlib import Path

from linkstore.arguments import require
from linkstore.store.linkstore import LinkStore


def require_store(**stores: object) -> None:
    """Raise unless every argument is an open store. For a path, the message says how to open it.

    Raises:
        ArgumentError: If one is not. The message names it.
    """
    for name, store in stores.items():
        path = str(store) if isinstance(store, str | Path) else "kb"
        require(LinkStore, f"an open store, such as LinkStore.open({path!r})", **{name: store})
