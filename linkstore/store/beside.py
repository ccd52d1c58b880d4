"""Opens further stores next to a store, with the same engine and embedding, named after their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from linkstore.backends.base import Backend
from linkstore.errors import CapabilityError
from linkstore.store.opening import closed_on_failure

if TYPE_CHECKING:
    from linkstore.store import LinkStore

FACTS: Final = "facts"
"""The name of the store of facts of a store of chunks."""


@runtime_checkable
class KeepsBeside(Protocol):
    """A backend that can keep further stores next to its own."""

    def beside(self, name: str, *, create: bool) -> Backend:
        """Open the backend of the store with this name.

        Raises:
            StoreNotFoundError: If there is none and ``create`` is False.
        """
        ...


def store_beside(store: LinkStore, name: str, *, create: bool = True) -> LinkStore:
    """Open a further store that belongs to a store. Close it before that store.

    Args:
        store: The store whose engine and embedding the further one has.
        name: Lower-case letters.
        create: Whether to make it if there is none.

    Raises:
        CapabilityError: If the backend keeps no further stores.
        StoreNotFoundError: If there is none and ``create`` is False.
    """
    from linkstore.store import LinkStore  # late: commands that use no LangChain take the name above

    backend = store.backend
    if not isinstance(backend, KeepsBeside):
        raise CapabilityError(
            f"{type(backend).__name__} cannot keep a second store; pass one, such as LinkStore()"
        )
    further = backend.beside(name, create=create)
    with closed_on_failure(further):
        return LinkStore(store.embeddings, backend=further)
