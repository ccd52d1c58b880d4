"""A backend of plain Python dicts, obviously right and slow: what other backends are held against."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from linkstore import drivers
from linkstore.backends.base import (
    Backend,
    Change,
    LexicalReader,
    LinkedPage,
    Manifest,
    PageEntry,
    Record,
    Report,
    Survey,
    Written,
    immediate,
)
from linkstore.errors import EmbeddingError, StoreClosedError
from linkstore.filters import EVERYTHING, Condition
from linkstore.lexical import POSTINGS, affordable, document_terms, inverse_frequency, weight
from linkstore.links import LINKS_KEY, Link, links_in, with_other_links
from linkstore.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Lexical,
    Matching,
    Members,
    Memberships,
    Nearest,
    Operation,
    Plan,
    Reached,
    Resolve,
    Side,
    Stored,
    Tags,
    Vectors,
    Worded,
)
from linkstore.vectors import Bools, Floats, Ints, similarities
from linkstore.vocabulary import Vocabulary, names_in

T = TypeVar("T")
Tag = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that is stored at one moment; a write makes a new one.

    Args:
        manifest: The embedding.
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


class OracleReader(LexicalReader):
    """Answers every fetch by looking at every document.

    Args:
        records: What it sees, in any order.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        # Refs run against the ids, so that a plan that takes refs for an order is found out.
        self._records = sorted(records, key=lambda record: record.id, reverse=True)
        self._groups = sorted({_tag(link) for record in records for link in record.links}, reverse=True)
        sides: tuple[Side, Side] = ("out", "in")
        self._weights = {side: [_weights(record, side) for record in self._records] for side in sides}

    @immediate
    def nearest(self, fetch: Nearest) -> Candidates:
        """All that pass, scored and sorted."""
        passing = [ref for ref, r in enumerate(self._records) if fetch.filter.matches(r.metadata)]
        chosen = self._by_similarity(passing, fetch.vector)[: fetch.k]
        return self._candidates(chosen, fetch.vector)

    @immediate
    def find(self, fetch: Find) -> Candidates:
        """Each id that is there, once, where it was first asked for."""
        ref_of = {record.id: ref for ref, record in enumerate(self._records)}
        found = [ref_of[id] for id in dict.fromkeys(fetch.ids) if id in ref_of]
        passing = [ref for ref in found if fetch.filter.matches(self._records[ref].metadata)]
        return self._candidates(passing, fetch.vector, filtered=len(found) - len(passing))

    @immediate
    def groups(self, fetch: Groups) -> Memberships:
        """The tags of each document, on that side, of those kinds."""
        kinds = tuple(sorted({kind for kind, _ in self._groups}))
        rows = [
            (position, self._groups.index(tag), kinds.index(tag[0]), weight)
            for position, ref in enumerate(fetch.refs.tolist())
            for tag, weight in self._weights[fetch.side][ref].items()
            if fetch.kinds is None or tag[0] in fetch.kinds
        ]
        document, group, kind, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
        return Memberships(
            document=_ints(document),
            group=_ints(group),
            kind=_ints(kind),
            weight=_floats(weights),
            kinds=kinds,
        )

    @immediate
    def resolve(self, fetch: Resolve) -> Ints:
        """The position of each tag among all tags."""
        return _ints([self._groups.index(tag) if tag in self._groups else -1 for tag in fetch.tags])

    @immediate
    def members(self, fetch: Members) -> Reached:
        """Group by group: count, then leave out the excluded, then filter, then sort, then take."""
        rows: list[tuple[int, int, float]] = []
        sizes: list[int] = []
        filtered: set[int] = set()
        excluded = set(fetch.exclude.tolist())
        for position, group in enumerate(fetch.groups.tolist()):
            weight_of = self._members_of(self._groups[group], fetch.side)
            sizes.append(min(len(weight_of), fetch.cap + 1))
            if len(weight_of) > fetch.cap:
                continue
            wanted = [ref for ref in weight_of if ref not in excluded]
            passing = [ref for ref in wanted if fetch.filter.matches(self._records[ref].metadata)]
            filtered |= set(wanted) - set(passing)
            taken = self._by_similarity(passing, fetch.vector)[: fetch.take]
            rows += [(position, ref, weight_of[ref]) for ref in taken]
        return Reached(
            group=_ints([position for position, _, _ in rows]),
            refs=_ints([ref for _, ref, _ in rows]),
            similarity=_floats([self._similarity(ref, fetch.vector) for _, ref, _ in rows]),
            weight=_floats([weight for _, _, weight in rows]),
            sizes=_ints(sizes),
            filtered=len(filtered),
        )

    @immediate
    def lexical(self, fetch: Lexical) -> Worded:
        """Every word of every document, counted."""
        found = [document_terms(record.text, record.metadata) for record in self._records]
        having = {word: sum(word in of for of in found) for word in fetch.terms}
        taken, left = affordable({word: min(count, POSTINGS + 1) for word, count in having.items()})
        average = sum(map(len, found)) / max(1, len(found))
        scores = {
            ref: float(np.float32(sum(self._weight(of, word, having[word], average) for word in taken)))
            for ref, of in enumerate(found)
            if set(of) & set(taken) and fetch.filter.matches(self._records[ref].metadata)
        }
        ordered = sorted(scores, key=lambda ref: (-scores[ref], self._records[ref].id))[: fetch.k]
        return Worded(
            refs=_ints(ordered), score=_floats([scores[ref] for ref in ordered]), left_out=tuple(left)
        )

    def _weight(self, of: Sequence[str], word: str, having: int, average: float) -> float:
        idf = inverse_frequency(len(self._records), having)
        return idf * weight(of.count(word), len(of), average)

    @immediate
    def matching(self, fetch: Matching) -> Bools:
        """Each document's metadata, tested."""
        passes = [fetch.filter.matches(self._records[ref].metadata) for ref in fetch.refs.tolist()]
        return np.array(passes, dtype=np.bool_)

    @immediate
    def vectors(self, fetch: Vectors) -> Floats:
        """The vectors, stacked."""
        vectors = [self._records[ref].vector for ref in fetch.refs.tolist()]
        return np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)

    @immediate
    def ids(self, fetch: Ids) -> list[str]:
        """The ids."""
        return [self._records[ref].id for ref in fetch.refs.tolist()]

    @immediate
    def tags(self, fetch: Tags) -> list[Tag]:
        """The kinds and tags."""
        return [self._groups[group] for group in fetch.groups.tolist()]

    @immediate
    def documents(self, fetch: Documents) -> list[Stored]:
        """Copies of the documents."""
        records = [self._records[ref] for ref in fetch.refs.tolist()]
        return [Stored(id=r.id, text=r.text, metadata=deepcopy(dict(r.metadata))) for r in records]

    def _similarity(self, ref: int, vector: Floats) -> float:
        return float(similarities(self._records[ref].vector[None], vector)[0])

    def _by_similarity(self, refs: Sequence[int], vector: Floats) -> list[int]:
        """The documents by similarity descending, then id."""
        return sorted(refs, key=lambda ref: (-self._similarity(ref, vector), self._records[ref].id))

    def _candidates(self, refs: list[int], vector: Floats | None, filtered: int = 0) -> Candidates:
        similarity = [0.0 if vector is None else self._similarity(ref, vector) for ref in refs]
        return Candidates(refs=_ints(refs), similarity=_floats(similarity), filtered=filtered)

    def _members_of(self, tag: Tag, side: Side) -> dict[int, float]:
        """The documents on one side of a link group, with the weight of their link."""
        return {ref: weight[tag] for ref, weight in enumerate(self._weights[side]) if tag in weight}


class OracleBackend(Backend):
    """Keeps a state in memory, and replaces it at every write."""

    def __init__(self) -> None:
        self._state = State(manifest=Manifest(), records={}, pages={})
        self._closed = False

    @immediate
    def manifest(self) -> Manifest:
        """What was claimed."""
        return self._open().manifest

    @immediate
    def claim(self, manifest: Manifest) -> Manifest:
        """The first claim counts."""
        state = self._open()
        if state.manifest == Manifest():
            self._state = replace(state, manifest=manifest)
        return self._state.manifest

    @immediate
    def write(self, change: Change) -> Written:
        """Check, copy, remove, put, then let the new state take the place of the old."""
        state = self._open()
        _check_dimension(change.put, state.manifest)
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
        """Document by document, in the state of the moment."""
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
        """The latest time of each document."""
        state = self._open()
        known = {id: time for id, time in times.items() if id in state.records}
        latest = {id: max(time, state.accessed.get(id, time)) for id, time in known.items()}
        self._state = replace(state, accessed={**state.accessed, **latest})
        return len(known)

    @immediate
    def accessed(self, ids: Sequence[str]) -> dict[str, int]:
        """From the dict."""
        accessed = self._open().accessed
        return {id: accessed[id] for id in ids if id in accessed}

    @immediate
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """Sorted by source and url."""
        entries = sorted(self._open().pages.items())
        return [
            page
            for (of, url), page in entries
            if (source is None or of == source) and (urls is None or url in urls)
        ]

    @immediate
    def linked(self, kind: str, take: int) -> list[LinkedPage]:
        """Page by page, link by link."""
        state = self._open()
        found = [
            LinkedPage(source=page.source, url=page.url, links=_linked(page, state.records, kind))
            for page in state.pages.values()
        ]
        linked = [page for page in found if page.links]
        return sorted(linked, key=lambda page: (-page.links, page.source, page.url))[:take]

    @immediate
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """Sorted by id."""
        records = self._open().records
        ids = sorted(id for id in records if after is None or id > after)
        return [_own(records[id]) for id in ids[:limit]]

    @immediate
    def survey(self) -> Survey:
        """Count link by link."""
        state = self._open()
        links = [link for record in state.records.values() for link in record.links]
        kinds = [link.kind for link in links]
        answered = {_tag(link) for link in links if link.leads_in}
        asked = [_tag(link) for link in links if link.leads_out and _tag(link) not in answered]
        return Survey(
            documents=len(state.records),
            pages=len(state.pages),
            links={kind: kinds.count(kind) for kind in sorted(set(kinds))},
            groups=len({_tag(link) for link in links}),
            dangling=tuple((*tag, asked.count(tag)) for tag in sorted(set(asked))),
        )

    @immediate
    def vocabulary(self, asked: Vocabulary | None = None) -> Vocabulary:
        """Record by record."""
        found = Vocabulary()
        for record in self._open().records.values():
            found |= names_in(record.metadata, (link.kind for link in record.links))
        return found if asked is None else asked & found

    @immediate
    def note(self, name: str) -> str | None:
        """From the dict."""
        return self._open().notes.get(name)

    @immediate
    def set_note(self, name: str, value: str | None, expected: str | None) -> str | None:
        """Into the dict."""
        state = self._open()
        if state.notes.get(name) == expected:
            others = {key: text for key, text in state.notes.items() if key != name}
            self._state = replace(state, notes=others if value is None else {**others, name: value})
        return self._state.notes.get(name)

    @immediate
    def flush(self) -> None:
        """Nothing is derived, so nothing is late."""
        self._open()

    @immediate
    def compact(self) -> None:
        """What was deleted is gone already."""
        self._open()

    @immediate
    def verify(self) -> Report:
        """Nothing is derived, so nothing can differ."""
        self._open()
        return Report()

    @immediate
    def repair(self) -> Report:
        """Nothing is derived, so nothing can be mended."""
        self._open()
        return Report()

    def run(self, operation: Operation[T]) -> T:
        """Drive an operation; it never waits."""
        return drivers.run(operation, _never)

    async def arun(self, operation: Operation[T]) -> T:
        """Drive an operation; it never waits."""
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


def _weights(record: Record, side: Side) -> dict[Tag, float]:
    """The link groups a document lies on, on one side, with the highest weight of its links there."""
    weights: dict[Tag, float] = {}
    for link in record.links:
        if link.leads_out if side == "out" else link.leads_in:
            weights[_tag(link)] = max(link.weight, weights.get(_tag(link), 0.0))
    return weights


def _tag(link: Link) -> Tag:
    return link.kind, link.tag


def _check_dimension(records: Sequence[Record], manifest: Manifest) -> None:
    for record in records:
        if len(record.vector) != manifest.dimension:
            raise EmbeddingError(
                f"document {record.id!r} has a vector of dimension {len(record.vector)},"
                f" but {manifest.dimension} is recorded; claim the right dimension first"
            )


def _relinked(record: Record, kinds: Collection[str], links: Sequence[Link]) -> dict[str, Any] | None:
    """The metadata with other links of these kinds; None if it has them already."""
    written = with_other_links(record.metadata, kinds, links)
    return None if written is None else {**record.metadata, LINKS_KEY: written}


def _own(record: Record) -> Record:
    """A copy that shares nothing with the caller's."""
    return replace(record, metadata=deepcopy(dict(record.metadata)), vector=record.vector.copy())


def _content(record: Record) -> tuple[Any, ...]:
    """What makes two records the same; as JSON, in which 1, 1.0 and true differ."""
    return record.text, json.dumps(record.metadata, sort_keys=True), record.vector.tobytes(), record.links


def _never(request: object) -> Any:
    """The wait of an engine that computes its answers in place: it must not be asked to."""
    raise AssertionError(f"the oracle never waits, but was asked to wait for {request!r}")


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float32)


def _linked(page: PageEntry, records: Mapping[str, Record], kind: str) -> int:
    """How many links of a kind lead to a page's documents from others."""
    own = [records[id] for id in page.ids if id in records]
    answered = {_tag(link) for record in own for link in record.links if link.leads_in and link.kind == kind}
    others = [record for id, record in records.items() if id not in page.ids]
    return sum(len({_tag(link) for link in record.links if link.leads_out} & answered) for record in others)
