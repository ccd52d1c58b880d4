"""The reader of the oracle, which answers each fetch by looking at every document."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from linkstore.backends.base import Record
from linkstore.backends.reader import LexicalReader, immediate
from linkstore.filters import EVERYTHING, Condition
from linkstore.lexical import POSTINGS, affordable, document_terms, inverse_frequency, weight
from linkstore.links import Link
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
    Reached,
    Resolve,
    Side,
    Stored,
    Tags,
    Vectors,
    Worded,
)
from linkstore.vectors import Bools, Floats, Ints, similarities

Tag = tuple[str, str]


class OracleReader(LexicalReader):
    """Answers every fetch by looking at every document.

    Args:
        records: The documents that the reader sees, in any order.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        # Refs are in the reverse order of ids, to expose plans that take refs for an order.
        self._records = sorted(records, key=lambda record: record.id, reverse=True)
        self._groups = sorted({tag_of(link) for record in records for link in record.links}, reverse=True)
        sides: tuple[Side, Side] = ("out", "in")
        self._weights = {side: [_weights(record, side) for record in self._records] for side in sides}

    @immediate
    def nearest(self, fetch: Nearest) -> Candidates:
        """Score and sort all documents that pass."""
        passing = [ref for ref, r in enumerate(self._records) if fetch.filter.matches(r.metadata)]
        chosen = self._by_similarity(passing, fetch.vector)[: fetch.k]
        return self._candidates(chosen, fetch.vector)

    @immediate
    def find(self, fetch: Find) -> Candidates:
        """Return each stored id once, where it was first requested."""
        ref_of = {record.id: ref for ref, record in enumerate(self._records)}
        found = [ref_of[id] for id in dict.fromkeys(fetch.ids) if id in ref_of]
        passing = [ref for ref in found if fetch.filter.matches(self._records[ref].metadata)]
        return self._candidates(passing, fetch.vector, filtered=len(found) - len(passing))

    @immediate
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
            if tag in (passing := _weights(record, fetch.side, fetch.links))
        ]
        document, group, kind, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
        return Memberships(
            document=_ints(document),
            group=_ints(group),
            kind=_ints(kind),
            weight=_floats(weights),
            kinds=kinds,
            filtered=len(entries) - len(rows),
        )

    @immediate
    def resolve(self, fetch: Resolve) -> Ints:
        """Return the position of each tag among all tags."""
        return _ints([self._groups.index(tag) if tag in self._groups else -1 for tag in fetch.tags])

    @immediate
    def members(self, fetch: Members) -> Reached:
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
            linked = {ref: _weights(self._records[ref], fetch.side, fetch.links) for ref in passing}
            linking = [ref for ref in passing if self._groups[group] in linked[ref]]
            filtered_links += len(passing) - len(linking)
            taken = self._by_similarity(linking, fetch.vector)[: fetch.take]
            rows += [(position, ref, linked[ref][self._groups[group]]) for ref in taken]
        return Reached(
            group=_ints([position for position, _, _ in rows]),
            refs=_ints([ref for _, ref, _ in rows]),
            similarity=_floats([self._similarity(ref, fetch.vector) for _, ref, _ in rows]),
            weight=_floats([weight for _, _, weight in rows]),
            sizes=_ints(sizes),
            filtered=len(filtered),
            filtered_links=filtered_links,
        )

    @immediate
    def lexical(self, fetch: Lexical) -> Worded:
        """Count every word of every document."""
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
        """Test each document's metadata."""
        passes = [fetch.filter.matches(self._records[ref].metadata) for ref in fetch.refs.tolist()]
        return np.array(passes, dtype=np.bool_)

    @immediate
    def vectors(self, fetch: Vectors) -> Floats:
        """Stack the vectors."""
        vectors = [self._records[ref].vector for ref in fetch.refs.tolist()]
        return np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32)

    @immediate
    def ids(self, fetch: Ids) -> list[str]:
        """Return the ids."""
        return [self._records[ref].id for ref in fetch.refs.tolist()]

    @immediate
    def tags(self, fetch: Tags) -> list[Tag]:
        """Return the kinds and tags."""
        return [self._groups[group] for group in fetch.groups.tolist()]

    @immediate
    def documents(self, fetch: Documents) -> list[Stored]:
        """Return copies of the documents."""
        records = [self._records[ref] for ref in fetch.refs.tolist()]
        return [Stored(id=r.id, text=r.text, metadata=deepcopy(dict(r.metadata))) for r in records]

    def _similarity(self, ref: int, vector: Floats) -> float:
        return float(similarities(self._records[ref].vector[None], vector)[0])

    def _by_similarity(self, refs: Sequence[int], vector: Floats) -> list[int]:
        """Sort the documents by similarity descending, then id."""
        return sorted(refs, key=lambda ref: (-self._similarity(ref, vector), self._records[ref].id))

    def _candidates(self, refs: list[int], vector: Floats | None, filtered: int = 0) -> Candidates:
        similarity = [0.0 if vector is None else self._similarity(ref, vector) for ref in refs]
        return Candidates(refs=_ints(refs), similarity=_floats(similarity), filtered=filtered)

    def _members_of(self, tag: Tag, side: Side) -> dict[int, float]:
        """Return the documents on one side of a link group, with the weight of their link."""
        return {ref: weight[tag] for ref, weight in enumerate(self._weights[side]) if tag in weight}


def _weights(record: Record, side: Side, condition: Condition = EVERYTHING) -> dict[Tag, float]:
    """Return a document's link groups on one side, with the highest weight of its links that pass."""
    weights: dict[Tag, float] = {}
    for link in record.links:
        if not condition.matches(link.data or {}):
            continue
        if link.leads_out if side == "out" else link.leads_in:
            weights[tag_of(link)] = max(link.weight, weights.get(tag_of(link), 0.0))
    return weights


def tag_of(link: Link) -> Tag:
    """Return the kind and tag of a link."""
    return link.kind, link.tag


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _floats(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float32)
