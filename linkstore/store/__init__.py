"""Stores: documents with their links, kept by a backend, searched by strategies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.lazy import lazy

if TYPE_CHECKING:
    from linkstore.store.linkstore import LinkStore

__all__ = ["LinkStore"]

__getattr__, __dir__ = lazy(__name__, {"LinkStore": "linkstore"})
