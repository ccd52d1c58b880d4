"""The store of ``--store``, opened for a command, and values of common options."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from linkstore.cli.exits import UsageError, end_at_once
from linkstore.cli.output import inform
from linkstore.errors import BackendError, LinkStoreError, StoreNotFoundError

if TYPE_CHECKING:
    from linkstore.engines.bookkeeping import Backend
    from linkstore.store.core import CoreStore
    from linkstore.store.linkstore import LinkStore
    from linkstore.store.pages import StorePages

DEFAULT_STORE: Final = ".linkstore"
"""The folder of the store that commands use where none is named."""
EMBEDDING_VARIABLE: Final = "LINKSTORE_EMBEDDING"
"""Names the embedding of stores whose own one is not built in."""


def find_store() -> str:
    """Return the store of the working directory: the one in it, else in the nearest folder above.

    Where there is none, it is the one that would be made here.
    """
    with suppress(FileNotFoundError):  # the working directory is gone
        here = Path.cwd()
        for folder in (here, *here.parents):
            if is_store(folder / DEFAULT_STORE):
                if folder == here:
                    break
                inform(f"the store is {folder / DEFAULT_STORE}")
                return str(folder / DEFAULT_STORE)
    return DEFAULT_STORE


def is_store(folder: str | Path) -> bool:
    """Say whether a folder is a store."""
    from linkstore.engines.embedded.location import DATABASE_NAME

    return os.path.isfile(os.path.join(folder, DATABASE_NAME))  # noqa: PTH113, PTH118 (a Path's may raise)


@contextmanager
def open_core_store(
    place: str, *, create: bool = False, embedding: str | None = None, by_words: bool = False
) -> Iterator[CoreStore]:
    """Open the store at ``place``, without LangChain's base classes, which take long to import.

    Args:
        place: See :func:`open_store`.
        create: See :func:`open_store`.
        embedding: See :func:`open_store`.
        by_words: See :func:`open_store`.

    Raises:
        As :func:`open_store`.
    """
    with end_at_once():
        from linkstore.embeddings.names import get_encoder
        from linkstore.store.core import CoreStore
    with open_backend(place, create=create) as backend:
        chosen = _choose_embedding(backend, place, embedding, get_encoder if by_words else None)
        yield CoreStore(backend, chosen)


@contextmanager
def open_store(
    place: str, *, create: bool = False, embedding: str | None = None, by_words: bool = False
) -> Iterator[LinkStore]:
    """Open the store at ``place``, and close it in the end.

    Args:
        place: The value of ``--store``: a folder, or ``cassandra://host:port/keyspace/table``.
        create: Whether to make a new store if there is none.
        embedding: Name of the embedding, or ``package.module:function`` that makes it; default the recorded
            one if it is built in, else that of LINKSTORE_EMBEDDING, else wordllama for a new store.
        by_words: Whether a store is searched by words, names and links where its embedding cannot be had.

    Raises:
        UsageError: If ``place`` is empty, of an unknown scheme, or a URL of another form.
        StoreNotFoundError: If the store does not exist and ``create`` is False.
        StoreUnavailableError: If no server answers.
        EmbeddingError: If there is no such embedding, or the store was built with another.
        MissingExtraError: If ``place`` needs an extra that is not installed.
    """
    with end_at_once():
        from linkstore.embeddings.names import get_embedding
        from linkstore.store.linkstore import LinkStore
    with open_backend(place, create=create) as backend:
        chosen = _choose_embedding(backend, place, embedding, get_embedding if by_words else None)
        yield LinkStore(chosen, backend=backend)


def _choose_embedding(
    backend: Backend, place: str, embedding: str | None, make: Callable[[str], Any] | None
) -> Any:
    """Return the embedding that the user gave, by the option or the environment; None: the recorded one.

    Where ``make`` cannot make the recorded one either, a store is searched by words.
    """
    from linkstore.embeddings.names import find_encoder, import_embedding, is_built_in

    name = embedding or os.environ.get(EMBEDDING_VARIABLE)
    manifest = backend.run(backend.manifest())
    if name and (embedding is not None or not is_built_in(manifest.embedding or "")):
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))  # where a module of the user's lies, as for python -m
        return import_embedding(name)
    if make is None or manifest.embedding is None:
        return None
    chosen = find_encoder(manifest.embedding, manifest.dimension or 1, make, by_words=True)
    if getattr(chosen, "by_words", False):
        inform(
            f"{place} is searched by words, names and links: its embedding {manifest.embedding!r} was not"
            " given (LINKSTORE_EMBEDDING)"
        )
    return chosen


@contextmanager
def open_or_make(place: str, *, embedding: str | None = None) -> Iterator[CoreStore]:
    """Open the store at a place, where the first page makes a store that does not exist yet.

    Args:
        place: The value of ``--store``.
        embedding: Name of the embedding; default the recorded one, or the default of a new store.

    Raises:
        As :func:`open_store`.
    """
    with ExitStack() as stack:
        try:
            store = stack.enter_context(open_core_store(place, embedding=embedding))
        except StoreNotFoundError:
            empty = stack.enter_context(open_core_store(":memory:", create=True, embedding=embedding))
            make = partial(_make_store, place, embedding)
            store = cast("CoreStore", _UnmadeStore(empty, lambda: stack.enter_context(make())))
        yield store


@contextmanager
def _make_store(place: str, embedding: str | None) -> Iterator[CoreStore]:
    """Make a store, and remove it in the end if it is in a new folder and nothing was written after all."""
    is_new = not is_place_url(place) and not Path(place).exists()
    is_empty = False
    try:
        with open_core_store(place, create=True, embedding=embedding) as store:
            if is_new and Path(place).name == DEFAULT_STORE:  # it lies among the user's own files
                (Path(place) / ".gitignore").write_text("*\n", encoding="utf-8")
            try:
                yield store
            finally:
                with suppress(LinkStoreError):
                    is_empty = is_new and next(store.scan(), None) is None
    finally:
        if is_empty:
            shutil.rmtree(place)


class _UnmadeStore:
    """A store made by its first write; empty until then.

    Args:
        empty: What is read until then.
        make: Makes the real store.
    """

    def __init__(self, empty: CoreStore, make: Callable[[], CoreStore]) -> None:
        self._store, self._make, self._is_made = empty, make, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def pages(self) -> _UnmadePages:
        """The pages of the store, of which the first write makes it."""
        return _UnmadePages(self)

    def make(self) -> None:
        """Make the real store, if it is not made yet."""
        if not self._is_made:
            self._store, self._is_made = self._make(), True

    def get_pages(self) -> StorePages:
        """Return the pages of the store that there is."""
        return self._store.pages


class _UnmadePages:
    """The pages of a store that the first write makes."""

    def __init__(self, store: _UnmadeStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in {"embed", "put"}:
            self._store.make()
        return getattr(self._store.get_pages(), name)


def is_among_pages(place: str, source: str) -> bool:
    """Say whether a store would be made in the very folder that is to be indexed."""
    if is_place_url(place) or not Path(source).is_dir() or not Path(place).is_dir():
        return False
    return Path(place).samefile(source) and not is_store(place)


@contextmanager
def open_backend(place: str, *, create: bool) -> Iterator[Backend]:
    """Open the backend of a store, and close it in the end with its connections.

    Raises:
        As :func:`open_store`.
    """
    at_url = is_place_url(place, option="--store")
    try:
        if at_url:
            from linkstore.store.cassandra import make_url_backend

            backend: Backend = make_url_backend(place, create=create)
        else:
            from linkstore.engines.embedded.backend import EmbeddedBackend

            backend = EmbeddedBackend(place, create=create)
    except StoreNotFoundError as error:
        message = f"there is no store at {place}; make one with: linkstore index SOURCE --store {place}"
        if place == DEFAULT_STORE:
            message = (
                f"there is no store here: neither this folder nor one above it has a {place}; make one with:"
                " linkstore open SOURCE, or name one by --store or LINKSTORE_STORE"
            )
        raise StoreNotFoundError(message) from error
    try:
        yield backend
    finally:
        backend.close()


def is_place_url(place: str, *, option: str = "", of_store: bool = True) -> bool:
    """Say whether a place is a URL, and not a folder.

    Args:
        place: The place of a store or a table.
        option: The option that names it, for messages.
        of_store: Whether the table's name must be one for a store.

    Raises:
        UsageError: If the place is empty, of an unknown scheme, or a URL of another form.
    """
    lead = f"{option}: " if option else ""
    if not place.strip():
        raise UsageError(
            f"{option or 'a place'} is empty; give a folder, or cassandra://host:port/keyspace/table"
        )
    scheme, separator, _ = place.partition("://")
    if not separator:
        return False
    if scheme != "cassandra":
        raise UsageError(
            f"{lead}no backend is known for {scheme}://; give a folder, or cassandra://host:port/keyspace/table"
        )
    from linkstore.store.cassandra import parse_store_url

    try:
        parse_store_url(place, of_store=of_store)
    except BackendError as error:
        raise UsageError(f"{lead}{error}") from error
    return True


def refuse_options(why: str, /, **options: object) -> None:
    """Refuse options that another one leaves no use for.

    Args:
        why: The end of the message, such as ``"goes with --calibrate only"``.
        options: Their values by their names; None, False or empty if not given.

    Raises:
        UsageError: If one is given.
    """
    for name, value in options.items():
        if value or (isinstance(value, int | float) and value is not False):
            raise UsageError(f"{'--' if len(name) > 1 else '-'}{name.replace('_', '-')} {why}")


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
