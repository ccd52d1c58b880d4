"""From what ``--store`` says to an open store: the one place that knows how places are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from linkstore.cli.exits import UsageError
from linkstore.errors import BackendError, StoreNotFoundError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from linkstore.store import LinkStore


@contextmanager
def opened(place: str, *, create: bool = False, embedding: str | None = None) -> Iterator[LinkStore]:
    """The store at ``place``, closed in the end.

    Args:
        place: What ``--store`` says: a folder, or ``cassandra://host:port/keyspace/table``.
        create: Whether to make a new store if there is none.
        embedding: Name of the embedding; default the recorded one, or the default of a new store.

    Raises:
        UsageError: If ``place`` is empty, of an unknown scheme, or a URL of another form.
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreUnavailableError: If no server answers.
        MissingExtraError: If ``place`` needs an extra that is not installed.
    """
    at_url = _is_url(place)
    from linkstore.embeddings import get_embedding

    chosen = None if embedding is None else get_embedding(embedding)
    if at_url:
        with _at_url(place, chosen, create=create) as store:
            yield store
    else:
        with _in_folder(place, chosen, create=create) as store:
            yield store


def _in_folder(place: str, embedding: Embeddings | None, *, create: bool) -> LinkStore:
    from linkstore.store import LinkStore

    try:
        return LinkStore.open(place, embedding=embedding, create=create)
    except StoreNotFoundError as error:
        raise StoreNotFoundError(_missing(place)) from error


def _missing(place: str) -> str:
    return f"there is no store at {place}; make one with: linkstore index SOURCE --store {place}"


@contextmanager
def opened_or_empty(place: str) -> Iterator[LinkStore]:
    """The store at ``place``, or an empty one in memory where there is none: to look at, not to write to.

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
def _at_url(url: str, embedding: Embeddings | None, *, create: bool) -> Iterator[LinkStore]:
    """A store in Cassandra, closed in the end with its connections."""
    from linkstore.store import LinkStore
    from linkstore.store.cassandra import backend_at

    try:
        backend = backend_at(url, create=create)
    except StoreNotFoundError as error:
        raise StoreNotFoundError(_missing(url)) from error
    try:
        yield LinkStore(embedding, backend=backend)
    finally:
        backend.close()


def _is_url(place: str) -> bool:
    """Whether ``--store`` says a URL, and not a folder.

    Raises:
        UsageError: If it can be neither.
    """
    if not place.strip():
        raise UsageError("--store is empty; give the store's folder")
    try:
        return is_url(place)
    except UsageError as error:
        raise UsageError(f"--store: {error}") from error


def is_url(place: str, *, of_store: bool = True) -> bool:
    """Whether a place is a URL, and not a folder.

    Args:
        place: Where a store is, or a table.
        of_store: Whether the table's name must be one for a store.

    Raises:
        UsageError: If it is of an unknown scheme, or a URL of another form.
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
