"""Queries of a backend for tests: short plans with ids and tags in place of refs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from linkstore.core.arrays import Floats, Ints, normalize_vector
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.hits import Hits
from linkstore.core.links import Link, parse_links
from linkstore.core.plans import (
    Candidates,
    Documents,
    EngineOperation,
    Fetch,
    Find,
    Groups,
    Ids,
    Members,
    Memberships,
    Nearest,
    Plan,
    ReachedMembers,
    Resolve,
    Side,
    StoredDocument,
    Tags,
)
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Record, WriteBatch, WriteCounts
from linkstore.strategies.base import Question, Strategy

T = TypeVar("T")
Drive = Callable[[Backend, EngineOperation[Any]], Any]
"""Drives an operation of a backend to its end: by ``run``, or by ``arun`` in a new event loop."""
DIMENSION = 4
CLAIM = Manifest(embedding="conformance", dimension=DIMENSION)
"""The manifest that the cases claim before they put anything."""


def drive_by_run(backend: Backend, operation: EngineOperation[T]) -> T:
    """Drive as synchronous callers do."""
    return backend.run(operation)


def drive_by_arun(backend: Backend, operation: EngineOperation[T]) -> T:
    """Drive as asynchronous callers do."""
    return asyncio.run(backend.arun(operation))


def make_vector(cosine: float, axis: int = 1) -> Floats:
    """Return a unit vector (DIMENSION,) with this cosine to the usual query, leaning to ``axis``."""
    vector = np.zeros(DIMENSION)
    vector[0], vector[axis] = cosine, np.sqrt(1 - cosine**2)
    return normalize_vector(vector)


QUERY_VECTOR: Floats = make_vector(1.0)
"""The query vector of the cases."""


def make_record(id: str, cosine: float = 0.5, *links: Link, text: str = "", **metadata: Any) -> Record:
    """Make a record with this cosine to the usual query, and with its links in its metadata."""
    if links:
        metadata["links"] = [link.to_dict() for link in links]
    return Record(
        id=id,
        text=text or f"text of {id}",
        metadata=metadata,
        vector=make_vector(cosine),
        links=parse_links(metadata, id),
    )


def link_out(tag: str, *, kind: str = "k", **told: Any) -> Link:
    """Make an outgoing link with this label, weight and data."""
    return Link.outgoing(kind=kind, tag=tag, **told)


def link_in(tag: str, *, kind: str = "k", **told: Any) -> Link:
    """Make an incoming link."""
    return Link.incoming(kind=kind, tag=tag, **told)


def link_both(tag: str, *, kind: str = "k", **told: Any) -> Link:
    """Make a bidirectional link."""
    return Link.bidir(kind=kind, tag=tag, **told)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEntry:
    """One entry of Memberships, in ids and tags."""

    id: str
    kind: str
    tag: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembers:
    """The answer to a Members fetch, in ids and tags.

    Args:
        of: For each requested tag, the ids of its members in the order of the answer.
        weights: Weight of each member, by tag and id.
        sizes: For each requested tag, the size of its side; 0 for an unknown tag.
        filtered: As in the answer.
        raw: The answer itself.
    """

    of: Mapping[str, list[str]]
    weights: Mapping[tuple[str, str], float]
    sizes: Mapping[str, int]
    filtered: int
    raw: ReachedMembers


class Probe:
    """A backend and a way to drive it, with one method for each action of the cases.

    Args:
        backend: The backend to test.
        drive: Drives its operations.
        scope: The filter that documents must pass to exist for its plans.
    """

    def __init__(self, backend: Backend, drive: Drive, scope: Condition = EVERYTHING) -> None:
        self.backend = backend
        self._drive = drive
        self._scope = scope

    def do(self, operation: EngineOperation[T]) -> T:
        """Drive one of the backend's operations."""
        result: T = self._drive(self.backend, operation)
        return result

    def write(self, **fields: Any) -> WriteCounts:
        """Apply a :class:`WriteBatch` of these fields."""
        return self.do(self.backend.write(WriteBatch(**fields)))

    def put(self, *records: Record) -> WriteCounts:
        """Put records."""
        return self.write(put=records)

    def remove(self, *ids: str) -> WriteCounts:
        """Remove documents."""
        return self.write(remove=ids)

    def within(self, scope: Filter) -> Probe:
        """Return a probe of the same backend, for whose plans only documents exist that pass a filter."""
        return Probe(self.backend, self._drive, parse_filter(scope))

    def plan(self, plan: Plan[T]) -> T:
        """Have a plan answered."""
        return self.do(self.backend.answer(plan, self._scope))

    def ask(self, fetch: Fetch) -> Any:
        """Have one fetch answered."""
        return self.plan(_ask_fetch(fetch))

    def search(self, strategy: Strategy, **question: Any) -> Hits:
        """Search for the usual query, or for another ``vector``."""
        asked = {"vector": QUERY_VECTOR, "filtered": not self._scope.always, **question}
        return self.plan(strategy.plan(Question(**asked)))

    def near(self, k: int, filter: Filter | None = None, vector: Floats = QUERY_VECTOR) -> list[str]:
        """Return ids of the nearest documents, best first."""
        return [id for id, _ in self.near_scored(k, filter, vector)]

    def near_scored(
        self, k: int, filter: Filter | None = None, vector: Floats = QUERY_VECTOR
    ) -> list[tuple[str, float]]:
        """Return ids and similarities of the nearest documents, best first."""
        return self.plan(_fetch_named(Nearest(vector=vector, k=k, filter=parse_filter(filter))))

    def found(self, ids: Iterable[str], filter: Filter | None = None) -> list[tuple[str, float]]:
        """Return ids and similarities of the documents with these ids."""
        return self.plan(_fetch_named(Find(ids=tuple(ids), vector=QUERY_VECTOR, filter=parse_filter(filter))))

    def lying(
        self,
        ids: Sequence[str],
        side: Side,
        kinds: frozenset[str] | None = None,
        links: Filter | None = None,
    ) -> list[GroupEntry]:
        """Return the link groups of documents, sorted."""
        return self.plan(_fetch_entries(tuple(ids), side, kinds, parse_filter(links)))

    def met(
        self, tags: Sequence[str], side: Side = "in", *, kind: str = "k", **controls: Any
    ) -> GroupMembers:
        """Return members of link groups.

        Args:
            tags: The groups' tags.
            side: The side.
            kind: The groups' kind.
            controls: ``vector``, ``take`` and ``cap`` (default 100), ``exclude`` (ids), ``filter`` and
                ``links``.
        """
        return self.plan(_fetch_members(tuple((kind, tag) for tag in tags), side, controls))

    def stored(self, *ids: str) -> list[StoredDocument]:
        """Return the documents with these ids, which must be stored, in the order of the ids."""
        return self.plan(_fetch_stored(ids))

    def ids(self) -> list[str]:
        """Return every id in the store, sorted."""
        return sorted(scanned.id for scanned in self.do(self.backend.scan(None, 100_000)))


def find_refs(*ids: str) -> Plan[Ints]:
    """Return the refs of documents that are stored."""
    found: Candidates = yield Find(ids=ids, vector=QUERY_VECTOR)
    return found.refs


def _ask_fetch(fetch: Fetch) -> Plan[Any]:
    return (yield fetch)


def _fetch_stored(ids: tuple[str, ...]) -> Plan[list[StoredDocument]]:
    stored: list[StoredDocument] = yield Documents(refs=(yield from find_refs(*ids)))
    return stored


def _fetch_named(fetch: Nearest | Find) -> Plan[list[tuple[str, float]]]:
    answer: Candidates = yield fetch
    ids: list[str] = yield Ids(refs=answer.refs)
    return list(zip(ids, answer.similarity.tolist(), strict=True))


def _fetch_entries(
    ids: tuple[str, ...], side: Side, kinds: frozenset[str] | None, links: Condition
) -> Plan[list[GroupEntry]]:
    refs = yield from find_refs(*ids)
    answer: Memberships = yield Groups(refs=refs, side=side, kinds=kinds, links=links)
    tags: list[tuple[str, str]] = yield Tags(groups=answer.group)
    rows = zip(answer.document.tolist(), answer.kind.tolist(), answer.weight.tolist(), tags, strict=True)
    lying = []
    for document, kind, weight, (group_kind, tag) in rows:
        assert answer.kinds[kind] == group_kind, "Memberships.kind is not the kind of the link group"
        lying.append(GroupEntry(id=ids[document], kind=group_kind, tag=tag, weight=weight))
    return sorted(lying, key=lambda entry: (entry.id, entry.kind, entry.tag, entry.weight))


def _fetch_members(
    tags: tuple[tuple[str, str], ...], side: Side, controls: Mapping[str, Any]
) -> Plan[GroupMembers]:
    exclude = yield from find_refs(*controls.get("exclude", ()))
    refs: Ints = yield Resolve(tags=tags)
    known = np.flatnonzero(refs >= 0).tolist()
    answer: ReachedMembers = yield Members(
        groups=refs[known],
        side=side,
        vector=controls.get("vector", QUERY_VECTOR),
        take=controls.get("take", 100),
        cap=controls.get("cap", 100),
        exclude=exclude,
        filter=parse_filter(controls.get("filter")) if controls.get("filter") else EVERYTHING,
        links=parse_filter(controls.get("links")),
    )
    ids: list[str] = yield Ids(refs=answer.refs)
    assert answer.group.tolist() == sorted(answer.group.tolist()), "not by group in the order asked"
    of: dict[str, list[str]] = {tag: [] for _, tag in tags}
    weights: dict[tuple[str, str], float] = {}
    for position, id, weight in zip(answer.group.tolist(), ids, answer.weight.tolist(), strict=True):
        tag = tags[known[position]][1]
        of[tag].append(id)
        weights[tag, id] = weight
    sizes = dict.fromkeys(of, 0)
    sizes.update((tags[at][1], size) for at, size in zip(known, answer.sizes.tolist(), strict=True))
    return GroupMembers(of=of, weights=weights, sizes=sizes, filtered=answer.filtered, raw=answer)
