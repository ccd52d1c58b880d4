"""An oracle in plain Python: a backend of dicts, slow but obviously correct, and its reader.

The reader of the oracle, which answers each fetch by looking at every document.

A backend of plain Python dicts, slow but obviously correct, with which other backends are compared.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from linkstore.core import calls
from linkstore.core.arrays import Bools, Floats, Ints, cosine_similarities
from linkstore.core.documents import replace_kinds
from linkstore.core.filters import EVERYTHING, Condition
from linkstore.core.lexical import (
    POSTINGS,
    bm25_weight,
    extract_document_terms,
    inverse_frequency,
    select_affordable,
)
from linkstore.core.links import LINKS_KEY, Link, parse_links
from linkstore.core.plans import (
    Candidates,
    Documents,
    EngineOperation,
    Find,
    Groups,
    Ids,
    Lexical,
    LexicalMatches,
    Matching,
    Members,
    Memberships,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    Side,
    StoredDocument,
    Tags,
    Vectors,
)
from linkstore.core.vocabulary import Vocabulary
from linkstore.engines.bookkeeping import Backend, collect_record_names
from linkstore.engines.contract import (
    Finding,
    LinkedPage,
    Manifest,
    PageEntry,
    Reader,
    Record,
    StoredLinks,
    Survey,
    WriteBatch,
    WriteCounts,
    as_operation,
    check_dimension,
)
from linkstore.errors import CapabilityError, StoreClosedError

Tag = tuple[str, str]


def refuse_words(reader: Reader, fetch: Lexical) -> EngineOperation[LexicalMatches]:
    """Refuse to search by words, as an engine without an index of words does."""
    yield from ()
    raise CapabilityError(f"{type(reader).__name__} has no lexical search; use a strategy such as Eager")


class OracleReader(Reader):
    """Answers every fetch by looking at every document.

    Args:
        records: The documents that the reader sees, in any order.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        # Refs are in the reverse order of ids, to expose plans that take refs for an order.
        self._records = sorted(records, key=lambda record: record.id, reverse=True)
        self._groups = sorted({get_tag(link) for record in records for link in record.links}, reverse=True)
        sides: tuple[Side, Side] = ("out", "in")
        self._weights = {side: [_collect_weights(record, side) for record in self._records] for side in sides}

    @as_operation
    def nearest(self, fetch: Nearest) -> Candidates:
        """Score and sort all documents that pass."""
        passing = [ref for ref, r in enumerate(self._records) if fetch.filter.matches(r.metadata)]
        chosen = self._by_similarity(passing, fetch.vector)[: fetch.k]
        return self._candidates(chosen, fetch.vector)

    @as_operation
    def find(self, fetch: Find) -> Candidates:
        """Return each stored id once, where it was first requested."""
        ref_of = {record.id: ref for ref, record in enumerate(self._records)}
        found = [ref_of[id] for id in dict.fromkeys(fetch.ids) if id in ref_of]
        passing = [ref for ref in found if fetch.filter.matches(self._records[ref].metadata)]
        return self._candidates(passing, fetch.vector, filtered=len(found) - len(passing))

    @as_operation
    def groups(self, fetch: Groups) -> Memberships:
        """Return the tags of each document on that side, of those kinds."""
        kinds = tuple(sorted({kind for kind, _ in self._groups}))
        entries = [
            (position, self._records[ref], tag)
            for position, ref in enumerate(fetch.refs.tolist())
            for tag in self._weights[fetch.side][ref]
            if fetch.kinds is None or tag[0] in fetch.kinds
        ]
        rows = [
            (position, self._groups.index(tag), kinds.index(tag[0]), passing[tag])
            for position, record, tag in entries
            if tag in (passing := _collect_weights(record, fetch.side, fetch.links))
        ]
        document, group, kind, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
        return Memberships(
            document=_to_ints(document),
            group=_to_ints(group),
            kind=_to_ints(kind),
            weight=_to_floats(weights),
            kinds=kinds,
            filtered=len(entries) - len(rows),
        )

    @as_operation
    def resolve(self, fetch: Resolve) -> Ints:
        """Return the position of each tag among all tags."""
        return _to_ints([self._groups.index(tag) if tag in self._groups else -1 for tag in fetch.tags])

    @as_operation
    def members(self, fetch: Members) -> ReachedMembers:
        """Count each group's members, omit excluded ones, filter, sort and take, group by group."""
        rows: list[tuple[int, int, float]] = []
        sizes: list[int] = []
        filtered: set[int] = set()
        filtered_links = 0
        excluded = set(fetch.exclude.tolist())
        for position, group in enumerate(fetch.groups.tolist()):
            weight_of = self._members_of(self._groups[group], fetch.side)
            sizes.append(min(len(weight_of), fetch.cap + 1))
            if len(weight_of) > fetch.cap:
                continue
            wanted = [ref for ref in weight_of if ref not in excluded]
            passing = [ref for ref in wanted if fetch.filter.matches(self._records[ref].metadata)]
            filtered |= set(wanted) - set(passing)
            linked = {ref: _collect_weights(self._records[ref], fetch.side, fetch.links) for ref in passing}
            linking = [ref for ref in passing if self._groups[group] in linked[ref]]
            filtered_links += len(passing) - len(linking)
            taken = self._by_similarity(linking, fetch.vector)[: fetch.take]
            rows += [(position, ref, linked[ref][self._groups[group]]) for ref in taken]
        return ReachedMembers(
            group=_to_ints([position for position, _, _ in rows]),
            refs=_to_ints([ref for _, ref, _ in rows]),
            similarity=_to_floats([self._similarity(ref, fetch.vector) for _, ref, _ in rows]),
            weight=_to_floats([weight for _, _, weight in rows]),
            sizes=_to_ints(sizes),
            filtered=len(filtered),
            filtered_links=filtered_links,
        )

    @as_operation
    def lexical(self, fetch: Lexical) -> LexicalMatches:
        """Count every word of every document."""
        found = [extract_document_terms(record.text, record.metadata, record.id) for record in self._records]
        having = {word: sum(word in of for of in found) for word in fetch.terms}
        taken, left = select_affordable({word: min(count, POSTINGS + 1) for word, count in having.items()})
        average = sum(map(len, found)) / max(1, len(found))
        scores = {
            ref: float(np.float32(sum(self._weight(of, word, having[word], average) for word in taken)))
            for ref, of in enumerate(found)
            if set(of) & set(taken) and fetch.filter.matches(self._records[ref].metadata)
        }
        ordered = sorted(scores, key=lambda ref: (-scores[ref], self._records[ref].id))[: fetch.k]
        return LexicalMatches(
            refs=_to_ints(ordered),
            score=_to_floats([scores[ref] for ref in ordered]),
            left_out=tuple(left),
            document_frequency={word: min(having[word], POSTINGS + 1) for word in taken},
            documents=len(self._records),
        )

    def _weight(self, of: Sequence[str], word: str, having: int, average: float) -> float:
        idf = inverse_frequency(len(self._records), having)
        return idf * bm25_weight(of.count(word), len(of), average)

    @as_operation
    def matching(self, fetch: Matching) -> Bools:
        """Test each document's metadata."""
        passes = [fetch.filter.matches(self._records[ref].metadata) for ref in fetch.refs.tolist()]
        return np.array(passes, dtype=np.bool_)

    @as_operation
    def vectors(self, fetch: Vectors) -> Floats:
        """Stack the vectors."""
        vectors = [self._records[ref].vector for ref in fetch.refs.tolist()]
        return np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)

    @as_operation
    def ids(self, fetch: Ids) -> list[str]:
        """Return the ids."""
        return [self._records[ref].id for ref in fetch.refs.tolist()]

    @as_operation
    def tags(self, fetch: Tags) -> list[Tag]:
        """Return the kinds and tags."""
        return [self._groups[group] for group in fetch.groups.tolist()]

    @as_operation
    def documents(self, fetch: Documents) -> list[StoredDocument]:
        """Return copies of the documents."""
        records = [self._records[ref] for ref in fetch.refs.tolist()]
        return [StoredDocument(id=r.id, text=r.text, metadata=deepcopy(dict(r.metadata))) for r in records]

    def _similarity(self, ref: int, vector: Floats | None) -> float:
        if vector is None:
            return 0.0
        return float(cosine_similarities(self._records[ref].vector[None], vector)[0])

    def _by_similarity(self, refs: Sequence[int], vector: Floats | None) -> list[int]:
        """Sort the documents by similarity descending, then id."""
        return sorted(refs, key=lambda ref: (-self._similarity(ref, vector), self._records[ref].id))

    def _candidates(self, refs: list[int], vector: Floats | None, filtered: int = 0) -> Candidates:
        similarity = [self._similarity(ref, vector) for ref in refs]
        return Candidates(refs=_to_ints(refs), similarity=_to_floats(similarity), filtered=filtered)

    def _members_of(self, tag: Tag, side: Side) -> dict[int, float]:
        """Return the documents on one side of a link group, with the weight of their link."""
        return {ref: weight[tag] for ref, weight in enumerate(self._weights[side]) if tag in weight}


def _collect_weights(record: Record, side: Side, condition: Condition = EVERYTHING) -> dict[Tag, float]:
    """Return a document's link groups on one side, with the highest weight of its links that pass."""
    weights: dict[Tag, float] = {}
    for link in record.links:
        if not condition.matches(link.data or {}):
            continue
        if link.leads_out if side == "out" else link.leads_in:
            weights[get_tag(link)] = max(link.weight, weights.get(get_tag(link), 0.0))
    return weights


def get_tag(link: Link) -> Tag:
    """Return the kind and tag of a link."""
    return link.kind, link.tag


def _to_ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _to_floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float32)


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleState:
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
        self._state = OracleState(manifest=Manifest(), records={}, pages={})
        self._closed = False

    @as_operation
    def manifest(self) -> Manifest:
        """Return the manifest that was claimed."""
        return self._open().manifest

    @as_operation
    def claim(self, manifest: Manifest) -> Manifest:
        """Keep the manifest of the first claim."""
        state = self._open()
        if state.manifest == Manifest():
            self._state = replace(state, manifest=manifest)
        return self._state.manifest

    @as_operation
    def write(self, change: WriteBatch) -> WriteCounts:
        """Check, copy, remove and put, then replace the old state by the new one."""
        state = self._open()
        check_dimension(change.put, state.manifest.dimension)
        put = {record.id: _copy_record(record) for record in change.put}
        before = state.records
        removed = {id for id in change.remove if id in before and id not in put}
        pages = {key: page for key, page in state.pages.items() if key not in set(change.remove_pages)}
        pages |= {(page.source, page.url): page for page in change.put_pages}
        kept = {id: record for id, record in before.items() if id not in removed}
        accessed = {id: time for id, time in state.accessed.items() if id not in removed}
        self._state = replace(state, records=kept | put, pages=pages, accessed=accessed)
        known = [record for id, record in put.items() if id in before]
        unchanged = sum(_get_content(record) == _get_content(before[record.id]) for record in known)
        return WriteCounts(
            added=len(put) - len(known),
            updated=len(known) - unchanged,
            unchanged=unchanged,
            removed=len(removed),
        )

    @as_operation
    def relink(self, kinds: Collection[str], links: Mapping[str, Sequence[Link]]) -> WriteCounts:
        """Replace links document by document, in the state of the moment."""
        state = self._open()
        known = {id: state.records[id] for id in links if id in state.records}
        changed = {
            id: replace(record, metadata=metadata, links=parse_links(metadata, id))
            for id, record in known.items()
            if (metadata := _relink_metadata(record, kinds, links[id])) is not None
        }
        self._state = replace(state, records={**state.records, **changed})
        return WriteCounts(updated=len(changed), unchanged=len(known) - len(changed))

    @as_operation
    def touch(self, times: Mapping[str, int]) -> int:
        """Keep the latest time of each document."""
        state = self._open()
        known = {id: time for id, time in times.items() if id in state.records}
        latest = {id: max(time, state.accessed.get(id, time)) for id, time in known.items()}
        self._state = replace(state, accessed={**state.accessed, **latest})
        return len(known)

    @as_operation
    def accessed(self, ids: Sequence[str]) -> dict[str, int]:
        """Look the times up in the dict."""
        accessed = self._open().accessed
        return {id: accessed[id] for id in ids if id in accessed}

    @as_operation
    def pages(self, source: str | None, urls: Sequence[str] | None = None) -> list[PageEntry]:
        """Return the entries sorted by source and url."""
        entries = sorted(self._open().pages.items())
        return [
            page
            for (of, url), page in entries
            if (source is None or of == source) and (urls is None or url in urls)
        ]

    @as_operation
    def find_most_linked(self, kind: str, take: int) -> list[LinkedPage]:
        """Count page by page and link by link."""
        state = self._open()
        found = [
            LinkedPage(source=page.source, url=page.url, links=_count_links(page, state.records, kind))
            for page in state.pages.values()
        ]
        linked = [page for page in found if page.links]
        return sorted(linked, key=lambda page: (-page.links, page.source, page.url))[:take]

    @as_operation
    def scan(self, after: str | None, limit: int) -> list[Record]:
        """Return the records sorted by id."""
        records = self._open().records
        ids = sorted(id for id in records if after is None or id > after)
        return [_copy_record(records[id]) for id in ids[:limit]]

    @as_operation
    def survey(self) -> Survey:
        """Count link by link."""
        state = self._open()
        links = [link for record in state.records.values() for link in record.links]
        kinds = [link.kind for link in links]
        answered = {get_tag(link) for link in links if link.leads_in}
        asked = [get_tag(link) for link in links if link.leads_out and get_tag(link) not in answered]
        return Survey(
            documents=len(state.records),
            pages=len(state.pages),
            links={kind: kinds.count(kind) for kind in sorted(set(kinds))},
            groups=len({get_tag(link) for link in links}),
            dangling=tuple((*tag, asked.count(tag)) for tag in sorted(set(asked))),
        )

    @as_operation
    def links(self) -> StoredLinks:
        """Number the documents and link groups."""
        records = self._open().records
        groups = sorted({get_tag(link) for record in records.values() for link in record.links})
        rows = [
            (at, groups.index(get_tag(link)), link.leads_out, link.leads_in)
            for at, record in enumerate(records.values())
            for link in record.links
        ]
        document, group, leads_out, leads_in = np.array(rows, np.int64).reshape(-1, 4).T
        return StoredLinks(list(records), groups, document, group, leads_out != 0, leads_in != 0)

    @as_operation
    def read_notes(self, names: Sequence[str] | None) -> dict[str, str]:
        """Look the notes up in the dict."""
        notes = self._open().notes
        return {name: text for name, text in notes.items() if names is None or name in names}

    @as_operation
    def add_notes(self, names: Collection[str]) -> None:
        """Add them to the dict."""
        state = self._open()
        self._state = replace(state, notes={**dict.fromkeys(names, ""), **state.notes})

    @as_operation
    def exchange_note(self, name: str, value: str | None, expected: str | None) -> str | None:
        """Set the note in the dict."""
        state = self._open()
        if state.notes.get(name) == expected:
            others = {key: text for key, text in state.notes.items() if key != name}
            self._state = replace(state, notes=others if value is None else {**others, name: value})
        return self._state.notes.get(name)

    @as_operation
    def collect_names(self) -> Vocabulary:
        """Collect the names record by record."""
        return collect_record_names(self._open().records.values())

    def vocabulary(self, asked: Vocabulary | None = None) -> EngineOperation[Vocabulary]:
        """Collect the names record by record, so that nothing has to be recorded."""
        found = yield from self.collect_names()
        return found if asked is None else asked & found

    @as_operation
    def flush(self) -> None:
        """Do nothing: no data are derived that could be late."""
        self._open()

    @as_operation
    def compact(self) -> None:
        """Do nothing: deleted content is gone already."""
        self._open()

    @as_operation
    def inspect(self, *, repair: bool) -> list[Finding]:
        """Find nothing: no data are derived that could differ."""
        self._open()
        return []

    def run(self, operation: EngineOperation[T]) -> T:
        """Drive an operation, which never waits."""
        return calls.drive(operation, _refuse_to_wait)

    async def arun(self, operation: EngineOperation[T]) -> T:
        """Drive an operation, which never waits."""
        return await calls.adrive(operation, _refuse_to_wait)

    def answer(self, plan: Plan[T], scope: Condition = EVERYTHING) -> EngineOperation[T]:
        """Answer from the state of the moment when the plan starts, as if only the scope were stored."""
        records = self._open().records.values()
        reader = OracleReader([record for record in records if scope.matches(record.metadata)])
        return (yield from calls.answer_plan(plan, reader.answer))

    def close(self) -> None:
        """Refuse all further use."""
        self._closed = True

    def _open(self) -> OracleState:
        if self._closed:
            raise StoreClosedError("this store was closed; open it again to use it")
        return self._state


def _relink_metadata(record: Record, kinds: Collection[str], links: Sequence[Link]) -> dict[str, Any] | None:
    """Return the metadata with other links of these kinds, or None if it has these links already."""
    written = replace_kinds(record.metadata, kinds, links)
    return None if written is None else {**record.metadata, LINKS_KEY: written}


def _copy_record(record: Record) -> Record:
    """Return a copy that shares nothing with the caller's record."""
    return replace(record, metadata=deepcopy(dict(record.metadata)), vector=record.vector.copy())


def _get_content(record: Record) -> tuple[Any, ...]:
    """Return the values that identify a record's content, as JSON, in which 1, 1.0 and true differ."""
    return record.text, json.dumps(record.metadata, sort_keys=True), record.vector.tobytes(), record.links


def _refuse_to_wait(request: object) -> Any:
    """Refuse to wait: this engine computes its answers in place."""
    raise AssertionError(f"the oracle never waits, but was asked to wait for {request!r}")


def _count_links(page: PageEntry, records: Mapping[str, Record], kind: str) -> int:
    """Count the links of a kind that lead to a page's documents from documents of other pages."""
    own = [records[id] for id in page.ids if id in records]
    answered = {
        get_tag(link) for record in own for link in record.links if link.leads_in and link.kind == kind
    }
    others = [record for id, record in records.items() if id not in page.ids]
    return sum(
        len({get_tag(link) for link in record.links if link.leads_out} & answered) for record in others
    )
