"""Options that commands share, and the store that ``--store`` names: opened, or created at the first page."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linkstore.cli.exits import UsageError, ended_by_interrupts
from linkstore.errors import BackendError, StoreNotFoundError

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from linkstore.core.documents import PageDocuments
    from linkstore.core.links import Link
    from linkstore.engines.bookkeeping import Backend
    from linkstore.engines.contract import LinkedPage, Survey
    from linkstore.ingest.source import PageStore
    from linkstore.store.core import CoreStore
    from linkstore.store.linkstore import LinkStore


@contextmanager
def open_core_store(place: str) -> Iterator[CoreStore]:
    """Open the existing store at ``place``, without LangChain's base classes, which take long to import.

    Raises:
        As :func:`open_store`.
    """
    with ended_by_interrupts():
        from linkstore.store.core import CoreStore, open_core_in_folder
    if _is_store_url(place):
        with _open_backend(place, create=False) as backend:
            yield CoreStore(backend)
    else:
        with _advise_if_missing(place):
            in_folder = open_core_in_folder(place)
        with in_folder as store:
            yield store


@contextmanager
def open_store(place: str, *, create: bool = False, embedding: str | None = None) -> Iterator[LinkStore]:
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
    at_url = _is_store_url(place)
    with ended_by_interrupts():
        from linkstore.embeddings.names import get_embedding
        from linkstore.store.linkstore import LinkStore
    chosen = None if embedding is None else get_embedding(embedding)
    if at_url:
        with _open_backend(place, create=create) as backend:
            yield LinkStore(chosen, backend=backend)
    else:
        with _advise_if_missing(place):
            in_folder = LinkStore.open(place, embedding=chosen, create=create)
        with in_folder as store:
            yield store


@contextmanager
def _advise_if_missing(place: str) -> Iterator[None]:
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
def open_or_empty(place: str) -> Iterator[LinkStore]:
    """Open the store at ``place`` to be read only, or an empty one in memory where there is none.

    Raises:
        UsageError: As for :func:`open_store`.
        StoreUnavailableError: If no server answers.
        MissingExtraError: If ``place`` needs an extra that is not installed.
    """
    from linkstore.store.linkstore import LinkStore

    with ExitStack() as stack:
        try:
            store = stack.enter_context(open_store(place))
        except StoreNotFoundError:
            store = stack.enter_context(LinkStore())
        yield store


@contextmanager
def _open_backend(url: str, *, create: bool) -> Iterator[Backend]:
    """Open a backend in Cassandra, and close it in the end with its connections."""
    from linkstore.store.cassandra import make_url_backend

    with _advise_if_missing(url):
        backend = make_url_backend(url, create=create)
    try:
        yield backend
    finally:
        backend.close()


def _is_store_url(place: str) -> bool:
    """Say whether the value of ``--store`` is a URL, and not a folder.

    Raises:
        UsageError: If it is neither.
    """
    if not place.strip():
        raise UsageError("--store is empty; give the store's folder")
    try:
        return is_place_url(place)
    except UsageError as error:
        raise UsageError(f"--store: {error}") from error


def is_place_url(place: str, *, of_store: bool = True) -> bool:
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
    from linkstore.store.cassandra import parse_store_url

    try:
        parse_store_url(place, of_store=of_store)
    except BackendError as error:
        raise UsageError(str(error)) from error
    return True


@contextmanager
def open_or_make(place: str, *, embedding: str | None = None) -> Iterator[PageStore]:
    """Open the store at a place, where the first page makes a store that does not exist yet.

    Args:
        place: The value of ``--store``.
        embedding: Name of the embedding; default the recorded one, or the default of a new store.

    Raises:
        UsageError: As for :func:`~linkstore.cli.stores.open_store`.
        EmbeddingError: If there is no such embedding, or the store was built with another.
    """
    from linkstore.embeddings.names import get_embedding
    from linkstore.store.linkstore import LinkStore

    chosen = None if embedding is None else get_embedding(embedding)
    with ExitStack() as stack:
        try:
            store = stack.enter_context(open_store(place, embedding=embedding))
        except StoreNotFoundError:
            making = _UnmadeStore(place, embedding, stack.enter_context(LinkStore(embedding=chosen)))
            stack.callback(making.close)
            yield making
        else:
            yield store


class _UnmadeStore:
    """A store that reads from an empty one until the first write, which makes the real one."""

    def __init__(self, place: str, embedding: str | None, empty: LinkStore) -> None:
        self._place = place
        self._embedding = embedding
        self._store = empty
        self._made = ExitStack()
        self._is_made = False
        self._is_new = not is_place_url(place) and not Path(place).exists()

    def close(self) -> None:
        """Close the store, and remove a new one that nothing was written to."""
        if not self._is_made:
            return
        is_empty = self._is_new and not self._store.survey().documents
        self._made.close()
        if is_empty:
            shutil.rmtree(self._place)

    def embed_pages(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Make the store if need be, and embed what will be written."""
        return self._make().embed_pages(source, pages)

    def put_pages(self, source: str, pages: Sequence[PageDocuments]) -> object:
        """Make the store if need be, and write."""
        return self._make().put_pages(source, pages)

    def remove_pages(self, source: str, urls: Sequence[str]) -> object:
        """Remove pages with their documents."""
        return self._store.remove_pages(source, urls)

    def pages(self, source: str) -> dict[str, str]:
        """Return the pages stored for a source."""
        return self._store.pages(source)

    def check_pages(self, source: str, urls: Sequence[str]) -> None:
        """Raise SourceConflictError if another source has one of these pages."""
        self._store.check_pages(source, urls)

    def page_ids(self, source: str, urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the documents made of pages."""
        return self._store.page_ids(source, urls)

    def replace_links(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> object:
        """Give documents other links of these kinds."""
        return self._store.replace_links(kinds, links)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids."""
        return self._store.get_by_ids(ids)

    def scan(self) -> Iterator[Document]:
        """Yield all stored documents."""
        return self._store.scan()

    def most_linked_pages(self, kind: str = "hyperlink", take: int = 10) -> Sequence[LinkedPage]:
        """Return the pages that most links lead to."""
        return self._store.most_linked_pages(kind, take)

    def survey(self) -> Survey:
        """Count what is stored."""
        return self._store.survey()

    def _make(self) -> LinkStore:
        if not self._is_made:
            made = open_store(self._place, create=True, embedding=self._embedding)
            self._store = self._made.enter_context(made)
            self._is_made = True
        return self._store


StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        "-s",
        metavar="PLACE",
        envvar="LINKSTORE_STORE",
        help="The store: a folder, or cassandra://host:port/keyspace/table.",
    ),
]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="The question.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_names(values: Iterable[str]) -> tuple[str, ...]:
    """Return names given by repeating an option, separated by commas, or both."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def parse_weights(values: Iterable[str]) -> dict[str, float] | None:
    """Return link kinds such as ``hyperlink,section=0.5``, each with its weight, or None if none is named.

    Raises:
        UsageError: If a weight is not a number.
    """
    weights = {}
    for item in split_names(values):
        kind, _, weight = item.partition("=")
        try:
            weights[kind.strip()] = float(weight) if weight else 1.0
        except ValueError as error:
            raise UsageError(f"--kinds {item!r}: the weight must be a number from 0 to 1") from error
    return weights or None


def parse_json_option(text: str | None, option: str) -> dict[str, Any] | None:
    """Return a JSON object given as an option.

    Raises:
        UsageError: If it is not a JSON object.
    """
    import orjson

    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise UsageError(f'{option} is not valid JSON, such as \'{{"lang": "en"}}\': {error}') from error
    if not isinstance(value, dict):
        raise UsageError(f'{option} must be a JSON object such as \'{{"lang": "en"}}\', not {text}')
    return value


def read_json_option(path: str, option: str) -> dict[str, Any]:
    """Return a JSON object in a file.

    Raises:
        UsageError: If there is no such file, or it does not hold a JSON object.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{option}: {path} cannot be read: {error}") from error
    return parse_json_option(text, option) or {}
