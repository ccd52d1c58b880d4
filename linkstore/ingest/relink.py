"""Brings the links up to date that extractors make from the whole corpus.

Such links change in documents that did not change themselves: older texts get links to a new title that they
mention, and lose them when its document is removed. :func:`link_corpus` makes them from scratch, in two
passes over the stored texts. :class:`CorpusLinks` applies the changes of an indexing run, in one pass.
Neither embeds anything. Both write only the documents whose links differ, and hold only the extractors'
counts in memory, not documents.

Links are replaced in the documents as they are at that moment, so concurrent writes of others are kept. But
the links follow from the texts that were read, so link a store again after others have indexed into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_core.documents import Document

from linkstore.core.arguments import require_having, require_list
from linkstore.core.calls import split_batches
from linkstore.core.documents import PageDocuments
from linkstore.core.links import Link, get_links, merge_links
from linkstore.errors import ExtractionError
from linkstore.extract.protocol import LinkExtractor, UpkeepExtractor, load_extractor

if TYPE_CHECKING:
    from linkstore.store.core import CoreStore

CORPUS_LINKS: Final = ("mention", "entity")
"""The installed extractors whose links are kept up to date."""
BEGUN_SOURCE: Final = "linkstore:linking"
"""The source of the page entries by which a store remembers a run whose linking is not done yet."""
MANY_CHANGES: Final = 5_000
"""When a run changes more documents than this, the store is linked from scratch."""
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Relinked:
    """The result of bringing links up to date.

    Args:
        documents: How many documents the store holds; 0 if none had to be looked at.
        changed: How many of them had other links than they have now.
        links: The links those have now, by kind.
    """

    documents: int = 0
    changed: int = 0
    links: Mapping[str, int] = field(default_factory=dict)


def link_corpus(store: CoreStore, links: Sequence[str | LinkExtractor[Any]] = CORPUS_LINKS) -> Relinked:
    """Make the links that need the whole corpus, for whatever is in the store.

    Links of the extractors' own kinds are replaced, whoever wrote them. All others stay. It takes two passes
    over the stored texts, and a write of each document whose links differ. Nothing is embedded.

    Args:
        store: Such as a :class:`~linkstore.store.LinkStore`, however its documents came into it.
        links: Names of installed extractors, or extractors that have seen nothing yet.

    Raises:
        ExtractionError: If an extractor is not installed, or its links cannot be kept up to date.
    """
    require_having("survey", "a store, such as LinkStore.open('kb')", store=store)
    require_list("extractors", links=links)
    extractors = [_load_upkeep_extractor(link) for link in links]
    total = 0
    for document in store.scan():
        total += 1
        for extractor in extractors:
            extractor.observe((document,))
    return _replace_changed_links(store, extractors, store.scan(), total)


class CorpusLinks:
    """Keeps the links made of the whole corpus up to date while a run changes pages.

    The run changes pages through this object, and calls :meth:`settle` in the end. Until then the new
    documents are without those links. A run that was interrupted is remembered in the store: the next one
    links from scratch. Documents that came into the store otherwise take part once :func:`link_corpus`
    has linked them.

    Args:
        store: Where pages go.
        extractors: New ones, which have seen nothing. With none, pages are passed on and that is all.
    """

    def __init__(self, store: CoreStore, extractors: Sequence[UpkeepExtractor]) -> None:
        self._store = store
        self._extractors = tuple(extractors)
        self._kinds = sorted(kind for extractor in extractors for kind in extractor.kinds)
        self._before: list[Counter[str]] = [Counter() for _ in extractors]
        self._after: list[Counter[str]] = [Counter() for _ in extractors]
        self._put: set[str] = set()
        self._changes = 0
        self._marked = bool(extractors) and not store.pages.digests(BEGUN_SOURCE).keys().isdisjoint(
            self._kinds
        )
        self._unfinished = self._marked

    def embed(self, source: str, pages: Sequence[PageDocuments]) -> list[PageDocuments]:
        """Return pages with the vectors of their documents, as the store gives them."""
        return self._store.pages.embed(source, pages)

    def put(self, source: str, pages: Sequence[PageDocuments]) -> None:
        """Replace pages as wholes, as the store does."""
        documents = [document for page in pages for document in page.documents]
        gone = self._before_writing(source, [page.url for page in pages], documents)
        self._store.pages.put(source, pages)
        self._record_changes(gone, documents)

    def remove(self, urls: Sequence[str], source: str) -> None:
        """Remove pages with their documents, as the store does."""
        gone = self._before_writing(source, urls, ())
        self._store.pages.remove(urls, source)
        self._record_changes(gone, ())

    def finish(self) -> Relinked:
        """Bring the links of the whole store up to date.

        This costs nothing if no page changed, else one pass over the stored texts, or two after many changes.
        """
        if self._unfinished or self._changes > MANY_CHANGES:
            done = link_corpus(self._store, self._extractors)
        else:
            done = self._follow_changes() if self._changes else Relinked()
        if self._marked:
            self._store.pages.remove(self._kinds, BEGUN_SOURCE)
        self._changes, self._unfinished, self._marked = 0, False, False
        return done

    def _before_writing(
        self, source: str, urls: Sequence[str], documents: Iterable[Document]
    ) -> list[Document]:
        """Mark the run as begun, and return the documents that will be replaced or removed."""
        if not self._extractors:
            return []
        if not self._marked:
            marks = [PageDocuments(url=kind, digest="begun", documents=()) for kind in self._kinds]
            self._store.pages.put(BEGUN_SOURCE, marks)
            self._marked = True
        ids = [id for ids in self._store.pages.ids(source, urls).values() for id in ids]
        return self._store.get_by_ids(
            list(dict.fromkeys([*ids, *(document.id or "" for document in documents)]))
        )

    def _record_changes(self, gone: Sequence[Document], documents: Sequence[Document]) -> None:
        """Record the removed and the added documents."""
        if not self._extractors:
            return
        self._changes += len(gone) + len(documents)
        if self._unfinished or self._changes > MANY_CHANGES:  # all will be linked from scratch
            for counts in (*self._before, *self._after):
                counts.clear()
            return
        self._put.difference_update(document.id or "" for document in gone)
        self._put.update(document.id or "" for document in documents)
        for extractor, before, after in zip(self._extractors, self._before, self._after, strict=True):
            before.update(key for document in gone for key in extractor.keys(document))
            after.update(key for document in documents for key in extractor.keys(document))

    def _follow_changes(self) -> Relinked:
        """Find in one pass the documents whose links may have changed, and link them."""
        reviews = [
            extractor.review(before, after)
            for extractor, before, after in zip(self._extractors, self._before, self._after, strict=True)
        ]
        touched = self._put
        total = 0
        for document in self._store.scan():
            total += 1
            verdicts = [review(document) for review in reviews]  # each must see the document
            if any(verdicts):
                touched.add(document.id or "")
        ids = sorted(touched)
        batches = split_batches(ids, _BATCH)
        documents = (document for batch in batches for document in self._store.get_by_ids(batch))
        return _replace_changed_links(self._store, self._extractors, documents, total)


def _replace_changed_links(
    store: CoreStore, extractors: Sequence[UpkeepExtractor], documents: Iterable[Document], total: int
) -> Relinked:
    """Replace the links of the documents whose links have changed."""
    kinds = frozenset(kind for extractor in extractors for kind in extractor.kinds)
    changed = 0
    counts: Counter[str] = Counter()
    for batch in split_batches(documents, _BATCH):
        links: dict[str, tuple[Link, ...]] = {}
        for document in batch:
            made = merge_links(link for extractor in extractors for link in extractor.extract(document))
            before = [link for link in get_links(document) if link.kind in kinds]
            if _list_link_fields(made) != _list_link_fields(before):
                links[document.id or ""] = made
                counts.update(link.kind for link in made)
        if links:
            store.links.replace(kinds, links)
            changed += len(links)
    return Relinked(documents=total, changed=changed, links=dict(sorted(counts.items())))


def _list_link_fields(links: Iterable[Link]) -> list[tuple[object, ...]]:
    """Return all that is stored of links, in one order. Links themselves compare three fields alone."""
    return sorted(
        (link.kind, link.tag, link.direction, link.label or "", link.weight, repr(link.data))
        for link in links
    )


def _load_upkeep_extractor(chosen: str | LinkExtractor[Any]) -> UpkeepExtractor:
    extractor = load_extractor(chosen) if isinstance(chosen, str) else chosen
    if not isinstance(extractor, UpkeepExtractor):
        raise ExtractionError(
            f"{type(extractor).__name__} cannot link a stored corpus, because it is not an UpkeepExtractor;"
            f" use {' or '.join(CORPUS_LINKS)}"
        )
    return extractor
