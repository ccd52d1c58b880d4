"""Where documents live: the contract of a storage engine, and the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.engines.bookkeeping import Backend
    from linkstore.engines.contract import Reader

__all__ = [
    "Backend",
    "Reader",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.engines.bookkeeping": "Backend",
        "linkstore.engines.contract": "Reader",
    },
)
