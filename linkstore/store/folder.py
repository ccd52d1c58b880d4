"""Backends in folders."""

from __future__ import annotations

from pathlib import Path

from linkstore.backends.embedded import EmbeddedBackend


def backend_in(path: str | Path, *, create: bool = True) -> EmbeddedBackend:
    """A backend without an embedding, for work that embeds nothing.

    Args:
        path: The folder.
        create: Make the store if it is not there.

    Raises:
        StoreNotFoundError: If there is no store and none shall be made.
        StoreFormatError: If what is there is no linkstore, or a newer one.
    """
    return EmbeddedBackend(path, create=create)
