"""index_facts: extracts the facts of a store into a second store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from linkstore.agents.facts import KEY_ELEMENT, FactExtractor
from linkstore.agents.indexing import FactSummary, Indexing
from linkstore.arguments import given, require_having
from linkstore.drivers import arun, in_thread, run
from linkstore.embeddings import embedding_name
from linkstore.errors import DocumentError, EmbeddingError, StoreNotFoundError
from linkstore.store import LinkStore
from linkstore.store.beside import FACTS, store_beside
from linkstore.store.checking import require_store
from linkstore.twins import awaited, wait
from linkstore.variants import Variants


def fact_store(store: LinkStore, *, create: bool = False) -> LinkStore:
    """Open the store that holds the facts of a store: the folder ``facts`` in its folder, or further tables.

    Args:
        store: Holds the chunks.
        create: Whether to make it if there is none.

    Raises:
        StoreNotFoundError: If there is none and ``create`` is False.
        CapabilityError: If the backend cannot keep further stores next to its own.
    """
    require_store(store=store)
    return store_beside(store, FACTS, create=create)


def index_facts(
    store: LinkStore,
    extractor: FactExtractor,
    *,
    facts: LinkStore | None = None,
    aliases: Mapping[str, Iterable[str]] | None = None,
    dry_run: bool = False,
) -> FactSummary:
    """Extract the atomic facts of a store's chunks and their key elements, for :func:`graph_reader`.

    Facts and key elements are ordinary documents with links in a store of their own, so that no search of the
    chunks finds them. A key element is a document if at least two facts name it. Chunks that have not
    changed cost nothing. Facts of chunks that are gone are removed, and key elements that too few facts name.
    A run that is interrupted goes on where it stopped.

    Args:
        store: Holds the chunks; every document is one.
        extractor: Extracts facts, such as a :class:`~linkstore.agents.ModelExtractor`.
        facts: Where to keep the facts; default :func:`fact_store`, next to the store.
        aliases: Other names of key elements by the name that they stand for; see
            :class:`~linkstore.variants.Variants`. They apply to facts that are extracted from now on.
        dry_run: Count what would be extracted, with the calls of a model and the tokens sent; write nothing.

    Returns:
        What was done; ``failed`` lists the chunks whose facts could not be extracted.

    Raises:
        ExtractionError: If no chunk's facts could be extracted.
        LinkError: If an alias stands for two names.
        EmbeddingError: If ``facts`` has another embedding than the store: no reader could use it.
        DocumentError: If ``facts`` is the store itself.
        BackendError: If a storage engine fails; what was written stays.
    """
    with _indexing(store, extractor, facts, aliases, dry_run) as indexing:
        return run(indexing.operation(), wait)


async def aindex_facts(
    store: LinkStore,
    extractor: FactExtractor,
    *,
    facts: LinkStore | None = None,
    aliases: Mapping[str, Iterable[str]] | None = None,
    dry_run: bool = False,
) -> FactSummary:
    """Extract facts without blocking the event loop: see :func:`index_facts`."""
    with ExitStack() as stack:
        opening = _indexing(store, extractor, facts, aliases, dry_run)
        indexing = await in_thread(stack.enter_context, opening)
        return await arun(indexing.operation(), awaited)


def check_embeddings(store: LinkStore, facts: LinkStore) -> None:
    """Raise unless questions can be compared with facts as with chunks.

    Raises:
        EmbeddingError: If the embeddings differ.
    """
    names = [embedding_name(one.embeddings) for one in (store, facts)]
    if names[0] != names[1]:
        raise EmbeddingError(
            f"the chunks are embedded with {names[0]!r}, their facts with {names[1]!r}; use the same for both"
        )


@contextmanager
def _indexing(
    store: LinkStore,
    extractor: FactExtractor,
    facts: LinkStore | None,
    aliases: Mapping[str, Iterable[str]] | None,
    dry_run: bool,
) -> Iterator[Indexing]:
    """Yield a run, then close the store of facts if it was opened here."""
    require_store(store=store, **given(facts=facts))
    require_having("aextract", "a FactExtractor, such as ModelExtractor(model)", extractor=extractor)
    variants = Variants([KEY_ELEMENT], aliases)
    if facts is store:
        raise DocumentError("facts cannot be kept among their chunks; pass another store as facts, or none")
    if facts is not None:
        check_embeddings(store, facts)
    with ExitStack() as stack:
        if facts is None:
            facts = stack.enter_context(_to_look_at(store) if dry_run else fact_store(store, create=True))
        yield Indexing(store, facts, extractor, variants, dry_run)


def _to_look_at(store: LinkStore) -> LinkStore:
    """Open the store of facts, or an empty one where there is none."""
    try:
        return fact_store(store)
    except StoreNotFoundError:
        return LinkStore()
