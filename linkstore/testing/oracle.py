"""A backend of plain Python dicts, slow but obviously correct, with which other backends are compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from linkstore import drivers
from linkstore.backends.base import (
    Backend,
    Change,
    LinkedPage,
    Manifest,
    PageEntry,
    Record,
    Report,
    Survey,
    Written,
    check_dimension,
)
from linkstore.backends.reader import immediate
from linkstore.errors import StoreClosedError
from linkstore.filters import EVERYTHING, Condition
from linkstore.links import LINKS_KEY, Link, links_in
from linkstore.plans import (
    Operation,
    Plan,
)
from linkstore.storedlinks import with_other_links
from linkstore.testing.oraclereader import OracleReader, Tag, tag_of
from linkstore.vocabulary import Vocabulary, names_in

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that is stored at one moment. A write makes a new state.

    Args:
        manifest: The name and dimension of the embedding.
        records: By id.
        pages: By source and url.
        notes: By name.
        accessed: When documents were last accessed, by id.
    """

    manifest: Manifest
    records: Mapping[str, Record]
    pages: Mapping[Tag, PageEntry]
    notes: Mapping[str, str] = field(default_factory=dict)
    accessed: Mapping[str, int] = field(default_factory=dict)


class OracleBackend(Backend):
    """A backend that keeps a state in memory, and replaces it at every write."""

    def __init__(self) -> None:
        self._state = State(manifest=Manifest(), records={}, pages={})
        self._closed = False

    @immediate
    def manifest(self) -> Manifest:
        """Return the manifest that was claimed."""
        return self._open().manifest

    @immediate
    def claim(self, manifest: Manifest) -> Manifest:
        """Keep the manifest of the first claim."""
        state = self._open()
        if state.manifest == Manifest():
            self._state = replace(state, manifest=manifest)
        return self._state.manifest

    @immediate
    def write(self, change: Change) -> Written:
        """Check, copy, remove and put, then replace the old state by the new one."""
        state = self._open()
        check_dimension(change.put, state.manifest.dimension)
        put = {record.id: _own(record) for record in change.put}
        before = state.records
        removed = {id for id in change.remove if id in before and id not in put}
        pages = {key: page for key, page in state.pages.items() if key not in set(change.remove_pages)}
        pages |= {(page.source, page.url): page for page in change.put_pages}
        kept = {id: record for id, record in before.items() if id not in removed}
        accessed = {id: time for id, time in state.accessed.items() if id not in removed}
        self._state = replace(state, records=kept | put, pages=pages, accessed=accessed)
        known = [record for id, record in put.items() if id in before]
        unchanged = sum(_content(record) == _content(before[record.id]) for record in known)
        return Written(
            added=len(put) - len(known),
            updated=len(known) - unchanged,
            unchanged=unchanged,
            removed=len(removed),
        )

    @immediate
    def relink(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> Written:
        """Replace links document by document, in the state of the moment."""
        state = self._open()
        known = {id: state.records[id] for id in links if id in state.records}
        changed = {
            id: replace(record, metadata=metadata, links=links_in(metadata, id))
            for id, record in known.items()
            if (metadata := _relinked(record, kinds, links[id])) is not None
        }
        self._state = replace(state, records={**state.records, **changed})
        return Written(updated=len(changed), unchanged=len(known) - len(changed))

    @immediate
    def touch(self, times: Mapping[str, int]) -> int:
        """Keep the latest time of each document."""
        state = self._open()
        known = {id: time for id, time in times.items() if id in state.records}
        latest = {id: max(time, state.accessed.get(id, time)) for id, time in known.items()}
        self._state = replace(state, accessed={**state.accessed, **latest})
        return len(known)

    @immediate
    def accessed(self, ids: Sequence[str]) -> dict[str, int]:
        """Look the times up in the dict."""
        accessed = self._open().accessed
        return {id: accessed[id] for id in ids if id in accessed}

    @immediate
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """Return the entries sorted by source and url."""
        entries = sorted(self._open().pages.items())
        return [
            page
            for (of, url), page in entries
            if (source is None or of == source) and (urls is None or url in urls)
        ]

    @immediate
    def linked(self, kind: str, take: int) -> list[LinkedPage]:
        """Count page by page and link by link."""
        state = self._open()
        found = [
            LinkedPage(source=page.source, url=page.url, links=_linked(page, state.records, kind))
            for page in state.pages.values()
        ]
        linked = [page for page in found if page.links]
        return sorted(linked, key=lambda page: (-page.links, page.source, page.url))[:take]

    @immediate
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """Return the records sorted by id."""
        records = self._open().records
        ids = sorted(id for id in records if after is None or id > after)
        return [_own(records[id]) for id in ids[:limit]]

    @immediate
    def survey(self) -> Survey:
        """Count link by link."""
        state = self._open()
        links = [link for record in state.records.values() for link in record.links]
        kinds = [link.kind for link in links]
        answered = {tag_of(link) for link in links if link.leads_in}
        asked = [tag_of(link) for link in links if link.leads_out and tag_of(link) not in answered]
        return Survey(
            documents=len(state.records),
            pages=len(state.pages),
            links={kind: kinds.count(kind) for kind in sorted(set(kinds))},
            groups=len({tag_of(link) for link in links}),
            dangling=tuple((*tag, asked.count(tag)) for tag in sorted(set(asked))),
        )

    @immediate
    def vocabulary(self, asked: Vocabulary | None = None) -> Vocabulary:
        """Collect the names record by record."""
        found = Vocabulary()
        for record in self._open().records.values():
            found |= names_in(record.metadata, record.links)
        return found if asked is None else asked & found

    @immediate
    def note(self, name: str) -> str | None:
        """Look the note up in the dict."""
        return self._open().notes.get(name)

    @immediate
    def set_note(self, name: str, value: str | None, expected: str | None) -> str | None:
        """Set the note in the dict."""
        state = self._open()
        if state.notes.get(name) == expected:
            others = {key: text for key, text in state.notes.items() if key != name}
            self._state = replace(state, notes=others if value is None else {**others, name: value})
        return self._state.notes.get(name)

    @immediate
    def flush(self) -> None:
        """Do nothing: no data are derived that could be late."""
        self._open()

    @immediate
    def compact(self) -> None:
        """Do nothing: deleted content is gone already."""
        self._open()

    @immediate
    def verify(self) -> Report:
        """Find nothing: no data are derived that could differ."""
        self._open()
        return Report()

    @immediate
    def repair(self) -> Report:
        """Find nothing: no data are derived that could be repaired."""
        self._open()
        return Report()

    def run(self, operation: Operation[T]) -> T:
        """Drive an operation, which never waits."""
        return drivers.run(operation, _never)

    async def arun(self, operation: Operation[T]) -> T:
        """Drive an operation, which never waits."""
        return await drivers.arun(operation, _never)

    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> Operation[T]:
        """Answer from the state of the moment when the plan starts, as if only the scope were stored."""
        records = self._open().records.values()
        reader = OracleReader([record for record in records if scope.matches(record.metadata)])
        return (yield from drivers.answered(plan, reader.answer))

    def close(self) -> None:
        """Refuse all further use."""
        self._closed = True

    def _open(self) -> State:
        if self._closed:
            raise StoreClosedError("this store was closed; open it again to use it")
        return self._state


def _relinked(record: Record, kinds: Collection[str], links: Sequence[Link]) -> dict[str, Any] | None:
    """Return the metadata with other links of these kinds, or None if it has these links already."""
    written = with_other_links(record.metadata, kinds, links)
    return None if written is None else {**record.metadata, LINKS_KEY: written}


def _own(record: Record) -> Record:
    """Return a copy that shares nothing with the caller's record."""
    return replace(record, metadata=deepcopy(dict(record.metadata)), vector=record.vector.copy())


def _content(record: Record) -> tuple[Any, ...]:
    """Return the values that identify a record's content, as JSON, in which 1, 1.0 and true differ."""
    return record.text, json.dumps(record.metadata, sort_keys=True), record.vector.tobytes(), record.links


def _never(request: object) -> Any:
    """Refuse to wait: this engine computes its answers in place."""
    raise AssertionError(f"the oracle never waits, but was asked to wait for {request!r}")


def _linked(page: PageEntry, records: Mapping[str, Record], kind: str) -> int:
    """Count the links of a kind that lead to a page's documents from documents of other pages."""
    own = [records[id] for id in page.ids if id in records]
    answered = {
        tag_of(link) for record in own for link in record.links if link.leads_in and link.kind == kind
    }
    others = [record for id, record in records.items() if id not in page.ids]
    return sum(len({tag_of(link) for link in record.links if link.leads_out} & answered) for record in others)
