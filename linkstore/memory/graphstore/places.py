"""Where an item of a LangGraph store is stored: ids of its documents, and the links of its namespaces.

Ids and tags are JSON arrays, so that labels and keys may have any characters: ``["users", "ann"]`` and
``["users/ann"]`` differ, and no label is the prefix of another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from linkstore.arguments import require_list
from linkstore.links import Link

ITEM_OF: Final = "item_of"
"""Link kind: an item, and the namespaces above it."""
TEXT_OF: Final = "text_of"
"""Link kind: a text of an item that is searched by meaning, and the namespaces above it."""
EXPIRING: Final = "expiring"
"""Link kind of the items that have a time to live."""

Namespace = tuple[str, ...]


def item_id(namespace: Sequence[str], key: str) -> str:
    """The id of an item's document.

    Raises:
        ArgumentError: If the namespace is a string.
    """
    require_list("labels", namespace=namespace)
    return _json([*namespace, key])


def part_id(namespace: Sequence[str], key: str, number: int) -> str:
    """The id of the document of a further text of an item; a number is the key of no item."""
    return _json([*namespace, key, number])


def namespace_tag(namespace: Sequence[str]) -> str:
    """The tag of all items in a namespace and in those below it."""
    require_list("labels", namespace=namespace)
    return _json(list(namespace))


def namespace_of(tag: str) -> Namespace:
    """The namespace that a tag was made of."""
    return tuple(json.loads(tag))


ALL: Final = "[]"
"""The tag of the namespace above all others."""


def links_of(namespace: Namespace, *, weights: Mapping[str, float], expires: bool) -> list[Link]:
    """The links of a document of an item: of each kind one for each namespace above it.

    Args:
        namespace: Of the item.
        weights: The kinds, with the weight of their links.
        expires: Whether the item has a time to live, and this document is its own.
    """
    tags = list(_tags_above(namespace))
    links = [
        Link.incoming(kind=kind, tag=tag, weight=weight) for kind, weight in weights.items() for tag in tags
    ]
    return [*links, Link.incoming(kind=EXPIRING, tag=ALL)] if expires else links


def _tags_above(namespace: Namespace) -> Iterator[str]:
    for depth in range(len(namespace) + 1):
        yield namespace_tag(namespace[:depth])


def _json(values: Sequence[str | int]) -> str:
    return json.dumps(values, ensure_ascii=False)
