"""Plans that read the items of a LangGraph store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkstore.ids import is_storable
from linkstore.memory.graphstore.items import Kept
from linkstore.memory.graphstore.places import ALL, EXPIRING
from linkstore.plans import Candidates, Documents, Find, Members, Plan, Reached, Resolve, Stored
from linkstore.vectors import Floats, Ints

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


def items_linked(kind: str, tag: str, dimension: int) -> Plan[list[Kept]]:
    """The items in a link group, in the order in which they were first put."""
    refs, _ = yield from _members(kind, tag, _any_vector(dimension), ANY)
    items = [Kept.of(one) for one in (yield from _documents(refs))]
    return sorted(items, key=lambda one: (one.created, one.id))


def expiring_items(dimension: int) -> Plan[list[Kept]]:
    """The items that have a time to live."""
    return (yield from items_linked(EXPIRING, ALL, dimension))


def similar_items(kind: str, tag: str, vector: Floats, take: int) -> Plan[Ranked]:
    """The items of the ``take`` texts in a link group that are most similar to a vector."""
    refs, scores = yield from _members(kind, tag, vector, take)
    texts = yield from _documents(refs)
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
    groups: Ints = yield Resolve(tags=((kind, tag),))
    known = groups[groups >= 0]
    reached: Reached = yield Members(
        groups=known, side="in", vector=vector, take=take, cap=ANY, exclude=_NONE
    )
    return reached.refs, reached.similarity


def _documents(refs: Ints) -> Plan[list[Stored]]:
    if not len(refs):
        return []
    found: Any = yield Documents(refs=refs)
    return list(found)


def _any_vector(dimension: int) -> Floats:
    vector = np.zeros(dimension, dtype=np.float32)
    vector[0] = 1.0
    return vector
