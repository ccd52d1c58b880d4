"""Makes backends in folders."""

from __future__ import annotations

from pathlib import Path

from linkstore.backends.embedded import EmbeddedBackend


def backend_in(path: str | Path, *, create: bool = True) -> EmbeddedBackend:
    """Make a backend without an embedding, for work that embeds nothing.

    Args:
        path: The folder.
        create: Create the store if it does not exist.

    Raises:
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreFormatError: If the folder contains something else, or a store of a newer version.
    """
    return EmbeddedBackend(path, create=create)
