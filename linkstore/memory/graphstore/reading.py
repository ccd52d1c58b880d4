"""Plans that read the items of a LangGraph store."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkstore.ids import is_storable
from linkstore.memory.graphstore.items import Kept
from linkstore.memory.graphstore.order import Listed, crowded, in_runs
from linkstore.memory.graphstore.places import ALL, EXPIRING, ITEM_OF, TEXT_OF, Namespace, namespace_of
from linkstore.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Members,
    Memberships,
    Plan,
    Reached,
    Resolve,
    Stored,
    Tags,
)
from linkstore.vectors import Floats, Ints, some_vector

ANY: Final = 1 << 30
"""More than a namespace has items."""
_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The items that texts similar to a question belong to, best first.

    Args:
        items: With their similarity, that of the best text.
        complete: Whether there are no others.
    """

    items: tuple[tuple[Kept, float], ...]
    complete: bool


def kept_items(ids: Sequence[str]) -> Plan[dict[str, Kept]]:
    """The items with these ids, without those that are not stored."""
    found: Candidates = yield Find(ids=tuple(filter(is_storable, ids)))
    return {one.id: Kept.of(one) for one in (yield from _documents(found.refs))}


def listed_items(tag: str, dimension: int, *, but: Container[str], skip: int) -> Plan[Listed]:
    """The items in a namespace and below it, none of which is read.

    Args:
        tag: Of the namespace.
        dimension: Of the store's vectors.
        but: Ids of items to leave out.
        skip: So many of the oldest are not needed. Of these, those are left out that are older than all
            that may expire, since it is not known how many of the others count.
    """
    vector = some_vector(dimension)
    reached = yield from _reached(ITEM_OF, tag, vector, ANY)
    refs, ticks = reached.refs, reached.weight
    if but:
        ids: list[str] = yield Ids(refs=refs)
        stays = np.array([id not in but for id in ids], dtype=np.bool_)
        refs, ticks = refs[stays], ticks[stays]
    within = np.zeros(len(refs), dtype=np.float32)
    if crowded(ticks):
        texts = yield from _reached(TEXT_OF, tag, vector, ANY)
        _, own, of = np.intersect1d(refs, texts.refs, return_indices=True)
        within[own] = texts.weight[of]
    order, ends = in_runs(ticks, within)
    refs = refs[order]
    passed = yield from _lasting(refs[:skip])
    passed = int(ends[ends <= passed].max(initial=0))
    ids = yield Ids(refs=refs[passed:])
    return Listed(ids=ids, ends=ends[ends > passed] - passed, passed=passed)


def _lasting(refs: Ints) -> Plan[int]:
    """How many items there are before the first that may expire."""
    expiring: Memberships = yield Groups(refs=refs, side="in", kinds=frozenset({EXPIRING}))
    return int(expiring.document.min(initial=len(refs)))


def expiring_items(dimension: int) -> Plan[list[Kept]]:
    """The items that have a time to live."""
    refs, _ = yield from _members(EXPIRING, ALL, some_vector(dimension), ANY)
    return [Kept.of(one) for one in (yield from _documents(refs))]


def namespaces_below(tag: str, dimension: int) -> Plan[tuple[set[Namespace], list[Kept]]]:
    """The namespaces of the items in a namespace that live for ever, and the other items.

    The namespaces are read from the links, and no such item is.
    """
    vector = some_vector(dimension)
    refs, _ = yield from _members(ITEM_OF, tag, vector, ANY)
    expiring, _ = yield from _members(EXPIRING, ALL, vector, ANY)
    lasting = np.setdiff1d(refs, expiring)
    above: Memberships = yield Groups(refs=lasting, side="in", kinds=frozenset({ITEM_OF}))
    groups, at = np.unique(above.group, return_inverse=True)
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    namespaces = [namespace_of(name) for _, name in tags]
    depth = np.array([len(one) for one in namespaces], dtype=np.int64)[at]
    deepest = np.zeros(len(lasting), dtype=np.int64)
    np.maximum.at(deepest, above.document, depth)
    own = np.unique(at[depth == deepest[above.document]])
    items = [Kept.of(one) for one in (yield from _documents(np.intersect1d(refs, expiring)))]
    return {namespaces[one] for one in own.tolist()}, items


def similar_items(kind: str, tag: str, vector: Floats, take: int, read: dict[str, Stored]) -> Plan[Ranked]:
    """The items of the ``take`` texts in a link group that are most similar to a vector.

    Args:
        kind: Of the link group.
        tag: Of the link group.
        vector: To compare with.
        take: How many texts.
        read: Documents that were read before, by id; those that are read now are added.
    """
    refs, scores = yield from _members(kind, tag, vector, take)
    ids: list[str] = yield Ids(refs=refs)
    read |= {one.id: one for one in (yield from _documents((yield from _without(refs, read))))}
    texts = [read[id] for id in ids]
    missing = {str(one.metadata["item"]) for one in texts if "item" in one.metadata}
    items = {one.id: Kept.of(one) for one in texts if "item" not in one.metadata}
    items |= yield from kept_items(sorted(missing - items.keys()))
    best: dict[str, tuple[Kept, float]] = {}
    for text, score in zip(texts, scores.tolist(), strict=True):
        item = items.get(text.metadata.get("item", text.id))
        if item is not None and item.writing == text.metadata["writing"]:
            best.setdefault(item.id, (item, score))
    return Ranked(items=tuple(best.values()), complete=len(texts) < take)


def _members(kind: str, tag: str, vector: Floats, take: int) -> Plan[tuple[Ints, Floats]]:
    reached = yield from _reached(kind, tag, vector, take)
    return reached.refs, reached.similarity


def _reached(kind: str, tag: str, vector: Floats, take: int) -> Plan[Reached]:
    groups: Ints = yield Resolve(tags=((kind, tag),))
    known = groups[groups >= 0]
    return (yield Members(groups=known, side="in", vector=vector, take=take, cap=ANY, exclude=_NONE))  # type: ignore[no-any-return]


def _documents(refs: Ints) -> Plan[list[Stored]]:
    if not len(refs):
        return []
    found: Any = yield Documents(refs=refs)
    return list(found)


def _without(refs: Ints, known: Container[str]) -> Plan[Ints]:
    """The documents whose ids are not among those that are known."""
    ids: list[str] = yield Ids(refs=refs)
    return refs[np.array([id not in known for id in ids], dtype=np.bool_)]
