"""A batch of operations on a LangGraph store: first all reads, then all writes."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, Result, SearchOp, validate_op_namespace

from linkstore.arguments import require_at_least
from linkstore.backends.base import Manifest
from linkstore.errors import ArgumentError
from linkstore.memory.graphstore.expiry import alive, refreshed, require_minutes, swept
from linkstore.memory.graphstore.filtering import matcher
from linkstore.memory.graphstore.items import Kept, documents_of
from linkstore.memory.graphstore.namespaces import listed, prefix_of
from linkstore.memory.graphstore.order import Listed
from linkstore.memory.graphstore.places import TEXT_OF, item_id, namespace_tag
from linkstore.memory.graphstore.reading import (
    Ranked,
    kept_items,
    listed_items,
    namespaces_below,
    similar_items,
)
from linkstore.memory.requests import add, delete, embed
from linkstore.plans import Operation, Stored
from linkstore.store import LinkStore
from linkstore.twins import Twin, answered_by, of_backend
from linkstore.vectors import Floats, unit_vector

_FIRST: Final = 32
"""Minimum number of texts that are read first; four times as many each time that too few items match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Carries out operations on the items of a store.

    Args:
        store: Where the items are.
        fields: Paths of the texts to search by meaning.
        now: The time of the batch.
    """

    store: LinkStore
    fields: Sequence[str]
    now: datetime

    def carried_out(self, ops: Sequence[Op]) -> Operation[list[Result]]:
        """The results, in the order of the operations.

        Raises:
            ArgumentError: If one is not an operation of LangGraph, or has a time to live that is none.
        """
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                require_minutes("ttl", op.ttl)
        manifest: Manifest = yield of_backend(self.store, self.store.backend.manifest())
        results: list[Result] = []
        for op in ops:
            results += [(yield from self._result(op, manifest.dimension))]
        puts = {item_id(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if puts:
            yield from self._written(puts)
        return results

    def swept(self) -> Operation[int]:
        """Remove the expired items; how many there were."""
        manifest: Manifest = yield of_backend(self.store, self.store.backend.manifest())
        if manifest.dimension is None:
            return 0
        return (yield from swept(self.store, manifest.dimension, self.now))

    def _result(self, op: Op, dimension: int | None) -> Operation[Result]:
        """The result of a read; of a write None. A store without a dimension is empty."""
        match op:
            case GetOp():
                return (yield from self._got(op)) if dimension else None
            case SearchOp():
                require_at_least(0, limit=op.limit, offset=op.offset)
                matches = matcher(op.filter)
                return (yield from self._found(op, matches, dimension)) if dimension else []
            case ListNamespacesOp():
                require_at_least(0, limit=op.limit, offset=op.offset)
                return (yield from self._namespaces(op, dimension)) if dimension else []
            case PutOp():
                return None
        raise ArgumentError(f"not an operation of a LangGraph store: {op!r}")

    def _got(self, op: GetOp) -> Operation[Result]:
        found: dict[str, Kept] = yield self._fetched(kept_items([item_id(op.namespace, op.key)]))
        items = yield from alive(self.store, list(found.values()), self.now)
        if op.refresh_ttl:
            yield from refreshed(self.store, items, self.now)
        return items[0].item() if items else None

    def _found(self, op: SearchOp, matches: Any, dimension: int) -> Operation[Result]:
        scored: list[tuple[Kept, float]] = []
        read: dict[str, Stored] = {}
        if op.query:
            scored = yield from self._similar(op, matches, dimension, read)
        page: list[tuple[Kept, float | None]] = [*scored[op.offset : op.offset + op.limit]]
        if len(page) < op.limit:
            known = read.keys() | {one.id for one, _ in scored}
            start = max(0, op.offset - len(scored))
            others = yield from self._others(op, matches, dimension, known, start)
            page += ((one, None) for one in others[: op.limit - len(page)])
        if op.refresh_ttl:
            yield from refreshed(self.store, [one for one, _ in page], self.now)
        return [one.found(score) for one, score in page]

    def _similar(
        self, op: SearchOp, matches: Any, dimension: int, read: dict[str, Stored]
    ) -> Operation[list[tuple[Kept, float]]]:
        """The items that match, most similar first: as many as the page needs, or all.

        The documents of their texts are added to ``read``.
        """
        given: Any = yield embed(self.store, str(op.query))
        vector: Floats = unit_vector(given, dimension)
        wanted = op.offset + op.limit
        take = max(_FIRST, wanted)
        while True:
            plan = similar_items(TEXT_OF, namespace_tag(op.namespace_prefix), vector, take, read)
            ranked: Ranked = yield self._fetched(plan)
            living = yield from alive(self.store, [one for one, _ in ranked.items], self.now)
            ids = {one.id for one in living if matches(one.value)}
            found = [(one, score) for one, score in ranked.items if one.id in ids]
            if ranked.complete or len(found) >= wanted:
                return found
            take *= 4

    def _others(
        self, op: SearchOp, matches: Any, dimension: int, known: AbstractSet[str], start: int
    ) -> Operation[list[Kept]]:
        """The items that match and are not known, oldest first, from the ``start`` on: at least a page."""
        skip = 0 if op.filter else start
        plan = listed_items(namespace_tag(op.namespace_prefix), dimension, but=known, skip=skip)
        listed: Listed = yield self._fetched(plan)
        start -= listed.passed
        found: list[Kept] = []
        for ids in listed.portions(start + op.limit):
            items: dict[str, Kept] = yield self._fetched(kept_items(ids))
            oldest = sorted(items.values(), key=lambda one: (one.created, one.id))
            living = yield from alive(self.store, oldest, self.now)
            found += (one for one in living if matches(one.value))
            if len(found) >= start + op.limit:
                break
        return found[start:]

    def _namespaces(self, op: ListNamespacesOp, dimension: int) -> Operation[Result]:
        plan = namespaces_below(namespace_tag(prefix_of(op)), dimension)
        namespaces, expiring = yield self._fetched(plan)
        living = yield from alive(self.store, expiring, self.now)
        return listed(op, {*namespaces, *(one.namespace for one in living)})

    def _written(self, puts: dict[str, PutOp]) -> Operation[None]:
        """Store and remove items; an item keeps the time when it was first put."""
        before: dict[str, Kept] = yield self._fetched(kept_items(list(puts)))
        living = {one.id: one for one in (yield from alive(self.store, list(before.values()), self.now))}
        documents = []
        for number, (id, op) in enumerate(puts.items()):
            if op.value is not None:
                at = self.now + timedelta(microseconds=number)
                created = living[id].created if id in living else at
                documents += documents_of(op, self.fields, created, at)
        if documents:
            yield add(self.store, documents)
        kept = {document.id for document in documents}
        gone = [id for one in before.values() for id in one.document_ids if id not in kept]
        if gone:
            yield delete(self.store, gone)

    def _fetched(self, plan: Any) -> Twin:
        return answered_by(self.store, plan)


def batch_now(store: LinkStore, fields: Sequence[str]) -> Batch:
    """A batch of this moment."""
    return Batch(store=store, fields=fields, now=datetime.now(UTC))
