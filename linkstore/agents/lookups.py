"""The lookup of a reader: chunks linked with the ones that it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import Floats
from linkstore.core.links import LINKS_KEY, SECTION, parse_links
from linkstore.core.plans import Plan
from linkstore.strategies.base import HOP_SIDES
from linkstore.strategies.traversal import Edges, follow_links

LARGEST_GROUP: Final = 200
"""Links to more documents than this are not followed."""
MOST_PER_GROUP: Final = 10
_BESIDE: Final = frozenset({"next", "previous"})
"""The labels of links between chunks that follow each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedChunk:
    """A chunk linked with a chunk that was read.

    Args:
        id: The linked chunk.
        of: The chunk that was read.
        how: What it is to that chunk: ``next of``, or ``hyperlink "the Meuse" with``.
        beside: Whether it is the chunk before or after.
    """

    id: str
    of: str
    how: str
    beside: bool = False


def find_linked(ids: Sequence[str], vector: Floats, most: int) -> Plan[list[LinkedChunk]]:
    """Find the other chunks that are linked with given ones, in either direction.

    The chunks before and after come first, then the most similar to the question.
    """
    candidates = yield from plans.ask(plans.Find(ids=tuple(ids)))
    parts = []
    for leave, _ in HOP_SIDES["both"]:
        hop = yield from follow_links(
            candidates.refs,
            leave,
            vector=vector,
            take=MOST_PER_GROUP,
            cap=LARGEST_GROUP,
            exclude=candidates.refs,
        )
        parts.append(hop.edges)
    edges = Edges.concatenate(parts)
    _, first = np.unique(edges.target, return_index=True)
    ways = edges.take(np.sort(first))
    ways = ways.take(np.argsort(-ways.similarity, kind="stable"))
    tags = yield from plans.ask(plans.Tags(groups=ways.group))
    names = yield from plans.ask(plans.Ids(refs=ways.target))
    owners = yield from plans.ask(plans.Documents(refs=candidates.refs))
    chunks = [
        _describe_link(owners[at], tag, id)
        for at, tag, id in zip(ways.source.tolist(), tags, names, strict=True)
    ]
    return sorted(chunks, key=lambda chunk: not chunk.beside)[:most]


def _describe_link(owner: plans.StoredDocument, tag: tuple[str, str], id: str) -> LinkedChunk:
    """Return a linked chunk with the kind of the link, and its label where its owner gave it one."""
    own = parse_links({LINKS_KEY: owner.metadata.get(LINKS_KEY)}, owner.id)
    label = next((link.label for link in own if (link.kind, link.tag) == tag and link.label), None)
    if tag[0] == SECTION and label in _BESIDE:
        return LinkedChunk(id=id, of=owner.id, how=f"{label} of", beside=True)
    how = f'{tag[0]} "{label}" with' if label else f"{tag[0]} with"
    return LinkedChunk(id=id, of=owner.id, how=how)
