"""The embedded engine: SQLite stores the documents; numpy and usearch answer from data derived from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.engines.embedded.backend import EmbeddedBackend
    from linkstore.engines.embedded.maintenance import EmbeddedSettings

__all__ = [
    "EmbeddedBackend",
    "EmbeddedSettings",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.engines.embedded.backend": "EmbeddedBackend",
        "linkstore.engines.embedded.maintenance": "EmbeddedSettings",
    },
)
