"""What every engine keeps and tells in the same way: notes, names, counts of the content, and upkeep.

The server of an engine may be unable to list the kinds of link, metadata fields and link data fields of
documents without reading every document. So a writer records each name as a note, with or before the first
document that has it. A name may stay after its last document is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import orjson

from linkstore.core.arrays import Bools, Ints, is_member, match_equal, sort_unique
from linkstore.core.links import LINKS_KEY, Link
from linkstore.core.plans import EngineOperation
from linkstore.core.vocabulary import Vocabulary, collect_names
from linkstore.engines.contract import (
    LinkedPage,
    PageEntry,
    Record,
    Report,
    StorageEngine,
    StoredLinks,
    Survey,
    make_findings,
)
from linkstore.errors import DocumentError, StoreFormatError

MAX_CACHED_NAMES: Final = 10_000
"""How many names a client caches."""
_NOTE_PREFIX: Final = "note "
_NAME_PREFIXES: Final[Mapping[str, str]] = {
    "kinds": "kind ",
    "fields": "field ",
    "link_fields": "link field ",
}


class Backend(StorageEngine):
    """A storage engine with the bookkeeping that all engines do alike."""

    _known_names = Vocabulary()

    def note(self, name: str) -> EngineOperation[str | None]:
        """Return the note of this name, or None if there is none."""
        notes = yield from self.read_notes([_NOTE_PREFIX + name])
        return notes.get(_NOTE_PREFIX + name)

    def set_note(self, name: str, value: str | None, expected: str | None) -> EngineOperation[str | None]:
        """Set a note (None: delete it) if its value is ``expected``, and return its value afterwards.

        If two clients set the same text at the same time, both get that text back.
        """
        return (yield from self.exchange_note(_NOTE_PREFIX + name, value, expected))

    def change_note(
        self, name: str, change: Callable[[str | None], str], tries: int
    ) -> EngineOperation[bool]:
        """Replace a note by what is made of it, again where another client changed it meanwhile.

        Args:
            name: Of the note.
            change: Returns the new text; it gets the present one, None if there is none.
            tries: How often it is tried at most.

        Returns:
            Whether it was replaced.
        """
        for _ in range(tries):
            before = yield from self.note(name)
            after = change(before)
            if (yield from self.set_note(name, after, before)) == after:
                return True
        return False

    def vocabulary(self, asked: Vocabulary | None = None) -> EngineOperation[Vocabulary]:
        """Return the requested names (None: all) that a document has, perhaps also a removed document.

        Threads may use the cache of names without a lock: at worst a name is read once more.
        """
        if asked is None:
            return _parse_names((yield from self.read_notes(None)))
        cached = self._known_names
        recorded = _parse_names((yield from self.read_notes(list(list_name_notes(asked - cached)))))
        if recorded:
            self._remember_names(recorded)
        return asked & (cached | recorded)

    def record_names(self, names: Vocabulary) -> EngineOperation[None]:
        """Record new names, for an engine that does so before it writes the first document with them."""
        new = names - self._known_names
        if new:
            yield from self.add_notes(list(list_name_notes(new)))
            self._remember_names(new)

    def _remember_names(self, names: Vocabulary) -> None:
        """Cache names that are recorded."""
        vocabulary = self._known_names
        self._known_names = vocabulary | names if len(vocabulary) < MAX_CACHED_NAMES else names

    def digests(self, source: str | None) -> EngineOperation[dict[str, str]]:
        """Return the digests of the page entries of one source (None: of all), by url.

        This is enough to find out which of millions of pages have changed.
        """
        digests = yield from self.page_digests(source)
        return {url: digest for (_, url), digest in digests.items()}

    def page_digests(self, source: str | None) -> EngineOperation[dict[tuple[str, str], str]]:
        """Return the digests of the page entries of one source (None: of all), by source and url."""
        entries = yield from self.pages(source)
        return {(entry.source, entry.url): entry.digest for entry in entries}

    def survey(self) -> EngineOperation[Survey]:
        """Count the content of the store, at a cost that follows its size."""
        pages = len((yield from self.page_digests(None)))
        return _count_content((yield from self.links()), pages)

    def find_most_linked(self, kind: str, take: int) -> EngineOperation[list[LinkedPage]]:
        """Return the pages that most links of a kind lead to, most first, at a cost like the store's size."""
        return (yield from self.survey_pages(kind, take))[1]

    def survey_pages(self, kind: str, take: int) -> EngineOperation[tuple[Survey, list[LinkedPage]]]:
        """Count the content, and list the pages with the most links of a kind to them, most first."""
        pages = yield from self.pages(None)
        stored = yield from self.links()
        linked = _find_most_linked(stored, pages, kind, take) if pages else []
        return _count_content(stored, len(pages)), linked

    def verify(self) -> EngineOperation[Report]:
        """Compare what is derived from the documents with them, without changing anything."""
        return (yield from self._inspect(repair=False))

    def repair(self) -> EngineOperation[Report]:
        """Repair what ``verify`` would find, and return the findings."""
        return (yield from self._inspect(repair=True))

    def _inspect(self, *, repair: bool) -> EngineOperation[Report]:
        findings = yield from self.inspect(repair=repair)
        try:
            missing = (yield from self.collect_names()) - (yield from self.vocabulary())
        except StoreFormatError:
            if not findings:  # they say what cannot be read
                raise
            missing = Vocabulary()
        names = list(list_name_notes(missing))
        if names and repair:  # also those that this client has cached, and that are lost
            yield from self.add_notes(names)
        problem = "names of link kinds and metadata fields that are not recorded"
        return Report(findings=(*findings, *make_findings(problem, names)))


def collect_record_names(records: Iterable[Record]) -> Vocabulary:
    """Return the names that records use."""
    fields = set[str]()
    links: list[Link] = []
    for record in records:
        fields.update(record.metadata)
        links += record.links
    return collect_names(fields, links)


def serialize_record(record: Record) -> tuple[bytes, bytes, bytes]:
    """Return the text of a record, its metadata without links and its links, empty if it has none, as stored.

    Raises:
        DocumentError: If the metadata are not JSON. The message names the document.
    """
    metadata = dict(record.metadata)
    try:
        links = orjson.dumps(metadata.pop(LINKS_KEY)) if LINKS_KEY in metadata else b""
        return record.text.encode(), orjson.dumps(metadata), links
    except (TypeError, ValueError) as error:
        raise DocumentError(
            f"document {record.id!r} cannot be stored: {error}; metadata must be plain JSON"
        ) from error


def list_name_notes(names: Vocabulary) -> Iterator[str]:
    """Yield the names of the notes that record the names of a vocabulary."""
    for field, prefix in _NAME_PREFIXES.items():
        yield from (prefix + name for name in sorted(getattr(names, field)))


def _parse_names(notes: Collection[str]) -> Vocabulary:
    return Vocabulary(
        **{
            field: frozenset(name.removeprefix(prefix) for name in notes if name.startswith(prefix))
            for field, prefix in _NAME_PREFIXES.items()
        }
    )


def _count_content(stored: StoredLinks, pages: int) -> Survey:
    groups = len(stored.groups)
    links = np.bincount(stored.group, minlength=groups)
    entered = np.zeros(groups, np.bool_)
    entered[stored.group[stored.leads_in]] = True
    by_kind = dict.fromkeys(sorted({kind for kind, _ in stored.groups}), 0)
    for (kind, _), count in zip(stored.groups, links.tolist(), strict=True):
        by_kind[kind] += count
    dangling = [
        (*stored.groups[at], int(links[at])) for at in np.flatnonzero((links > 0) & ~entered).tolist()
    ]
    return Survey(
        documents=len(stored.ids),
        pages=pages,
        links={kind: count for kind, count in by_kind.items() if count},
        groups=int(np.count_nonzero(links)),
        dangling=tuple(sorted(dangling)),
    )


def _find_most_linked(
    stored: StoredLinks, entries: Sequence[PageEntry], kind: str, take: int
) -> list[LinkedPage]:
    """Return the pages with the most incoming links of a kind from other pages, most first.

    Args:
        stored: All links.
        entries: All pages, by source and url.
        kind: The kind of the links.
        take: The most pages to return.
    """
    pages, groups = len(entries), len(stored.groups)
    of_kind = np.fromiter((name == kind for name, _ in stored.groups), np.bool_, groups)[stored.group]
    owned = _find_owned(stored.ids, entries)
    answered = np.unique(_number_answers(stored, of_kind & stored.leads_in, owned, pages))
    asking = np.flatnonzero(of_kind & stored.leads_out)
    codes = stored.document[asking] * groups + stored.group[asking]
    asking = asking[np.unique(codes, return_index=True)[1]]
    askers = np.bincount(stored.group[asking], minlength=groups)[answered // pages]
    links = np.bincount(answered % pages, weights=askers, minlength=pages).astype(np.int64)
    own = _number_answers(stored, asking, owned, pages)
    links -= np.bincount(own[is_member(own, answered)] % pages, minlength=pages)
    return [
        LinkedPage(source=entries[page].source, url=entries[page].url, links=int(links[page]))
        for page in np.argsort(-links, kind="stable")[:take].tolist()
        if links[page]
    ]


def _find_owned(ids: Sequence[str], entries: Sequence[PageEntry]) -> tuple[Ints, Ints]:
    """Return pairs of the position of a document and that of a page with it, in ascending order."""
    position = {id: at for at, id in enumerate(ids)}
    pages = len(entries)
    owned = ((position[id], page) for page, entry in enumerate(entries) for id in entry.ids if id in position)
    codes = sort_unique(np.fromiter((document * pages + page for document, page in owned), np.int64))
    return codes // pages, codes % pages


def _number_answers(stored: StoredLinks, chosen: Bools | Ints, owned: tuple[Ints, Ints], pages: int) -> Ints:
    """Return one number for each chosen link and each page of its document: ``group * pages + page``."""
    documents, page = owned
    link, owner = match_equal(stored.document[chosen], documents)
    return stored.group[chosen][link] * pages + page[owner]
