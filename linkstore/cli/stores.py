"""Opens the store that ``--store`` names. Only this module knows how places are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from linkstore.cli.ending import ended_by_interrupts
from linkstore.cli.exits import UsageError
from linkstore.errors import BackendError, StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.backends.base import Backend
    from linkstore.store import LinkStore
    from linkstore.store.core import CoreStore


@contextmanager
def core_opened(place: str) -> Iterator[CoreStore]:
    """Open the existing store at ``place``, without LangChain's base classes, which take long to import.

    Raises:
        As :func:`opened`.
    """
    with ended_by_interrupts():
        from linkstore.store.core import CoreStore, core_in
    if _is_url(place):
        with _backend_at(place, create=False) as backend:
            yield CoreStore(backend)
    else:
        with _told_how_to_make(place):
            in_folder = core_in(place)
        with in_folder as store:
            yield store


@contextmanager
def opened(place: str, *, create: bool = False, embedding: str | None = None) -> Iterator[LinkStore]:
    """Open the store at ``place``, and close it in the end.

    Args:
        place: The value of ``--store``: a folder, or ``cassandra://host:port/keyspace/table``.
        create: Whether to make a new store if there is none.
        embedding: Name of the embedding; default the recorded one, or the default of a new store.

    Raises:
        UsageError: If ``place`` is empty, of an unknown scheme, or a URL of another form.
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreUnavailableError: If no server answers.
        MissingExtraError: If ``place`` needs an extra that is not installed.
    """
    at_url = _is_url(place)
    with ended_by_interrupts():
        from linkstore.embeddings import get_embedding
        from linkstore.store import LinkStore
    chosen = None if embedding is None else get_embedding(embedding)
    if at_url:
        with _backend_at(place, create=create) as backend:
            yield LinkStore(chosen, backend=backend)
    else:
        with _told_how_to_make(place):
            in_folder = LinkStore.open(place, embedding=chosen, create=create)
        with in_folder as store:
            yield store


@contextmanager
def _told_how_to_make(place: str) -> Iterator[None]:
    """Tell how to make a store that does not exist.

    Raises:
        StoreNotFoundError: In place of the one raised within.
    """
    try:
        yield
    except StoreNotFoundError as error:
        raise StoreNotFoundError(
            f"there is no store at {place}; make one with: linkstore index SOURCE --store {place}"
        ) from error


@contextmanager
def opened_or_empty(place: str) -> Iterator[LinkStore]:
    """Open the store at ``place`` to be read only, or an empty one in memory where there is none.

    Raises:
        UsageError: As for :func:`opened`.
        StoreUnavailableError: If no server answers.
        MissingExtraError: If ``place`` needs an extra that is not installed.
    """
    from linkstore.store import LinkStore

    with ExitStack() as stack:
        try:
            store = stack.enter_context(opened(place))
        except StoreNotFoundError:
            store = stack.enter_context(LinkStore())
        yield store


@contextmanager
def _backend_at(url: str, *, create: bool) -> Iterator[Backend]:
    """Open a backend in Cassandra, and close it in the end with its connections."""
    from linkstore.store.cassandra import backend_at

    with _told_how_to_make(url):
        backend = backend_at(url, create=create)
    try:
        yield backend
    finally:
        backend.close()


def _is_url(place: str) -> bool:
    """Say whether the value of ``--store`` is a URL, and not a folder.

    Raises:
        UsageError: If it is neither.
    """
    if not place.strip():
        raise UsageError("--store is empty; give the store's folder")
    try:
        return is_url(place)
    except UsageError as error:
        raise UsageError(f"--store: {error}") from error


def is_url(place: str, *, of_store: bool = True) -> bool:
    """Say whether a place is a URL, and not a folder.

    Args:
        place: The place of a store or a table.
        of_store: Whether the table's name must be one for a store.

    Raises:
        UsageError: If the place is of an unknown scheme, or a URL of another form.
    """
    scheme, separator, _ = place.partition("://")
    if not separator:
        return False
    if scheme != "cassandra":
        raise UsageError(
            f"no backend is known for {scheme}://; give a folder, or cassandra://host:port/keyspace/table"
        )
    from linkstore.store.cassandra import read_url

    try:
        read_url(place, of_store=of_store)
    except BackendError as error:
        raise UsageError(str(error)) from error
    return True
