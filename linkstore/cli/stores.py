"""From what ``--store`` says to an open store: the one place that knows how places are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from linkstore.cli.exits import UsageError

if TYPE_CHECKING:
    from linkstore.store import LinkStore


@contextmanager
def opened(place: str, *, create: bool = False, embedding: str | None = None) -> Iterator[LinkStore]:
    """The store at ``place``, closed in the end.

    Args:
        place: What ``--store`` says: a folder.
        create: Whether to make a new store if there is none.
        embedding: Name of the embedding; default the recorded one, or the default of a new store.

    Raises:
        UsageError: If ``place`` is empty or of an unknown scheme.
        StoreNotFoundError: If there is no store and none shall be made.
    """
    if not place.strip():
        raise UsageError("--store is empty; give the store's folder")
    scheme, separator, _ = place.partition("://")
    if separator:
        raise UsageError(f"--store {place}: no backend is known for {scheme}://; give a folder")
    from linkstore.embeddings import get_embedding
    from linkstore.store import LinkStore

    chosen = None if embedding is None else get_embedding(embedding)
    with LinkStore.open(place, embedding=chosen, create=create) as store:
        yield store
