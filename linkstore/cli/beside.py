"""A note that changes of a store do not change the facts that were extracted from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkstore.cli.output import note
from linkstore.errors import StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore


def note_facts(store: CoreStore, place: str) -> None:
    """Tell how facts of deleted documents are erased, if a store has facts beside it.

    Args:
        store: The store that documents were deleted from.
        place: The value of ``--store``.
    """
    from linkstore.store.beside import FACTS

    backend: Any = store.backend
    try:
        backend.beside(FACTS, create=False).close()
    except StoreNotFoundError:
        return
    of_facts = f"{place}_{FACTS}" if "://" in place else f"{place.rstrip('/')}/{FACTS}"
    note(
        f"facts that were extracted from deleted documents stay in {of_facts}: run linkstore facts --store"
        f" {place} --model NAME, then linkstore compact --store {of_facts}"
    )
