"""Documents at the other ends of links.

They are its neighbours, what depends on it, and what is linked with the chunks of a reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from linkstore.core.arrays import Floats, Ints, find_positions, sort_unique
from linkstore.core.links import LINKS_KEY, SECTION, Link, merge_links, parse_links
from linkstore.core.plans import Documents, Find, Ids, Plan, Side, StoredDocument, Tags, Vectors, ask
from linkstore.strategies.base import HOP_SIDES
from linkstore.strategies.traversal import Edges, Hop, follow_groups, follow_links

MAX_SHOWN_MEMBERS: Final = 1000
"""How many members of a link group are listed at most."""
MAX_MEMBERS: Final = 10_000
"""Link groups with more documents are not followed, and depend on no one document."""
LARGEST_GROUP: Final = 200
"""Links to more documents than this are not followed."""
MOST_PER_GROUP: Final = 10
_BESIDE: Final = frozenset({"next", "previous"})
"""The labels of links between chunks that follow each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """One link of a document, and who is at its other end.

    Args:
        link: The document's own link.
        ids: The other documents, most similar to this one first.
        more: Whether there are more than are listed: the link group is a hub.
    """

    link: Link
    ids: tuple[str, ...]
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Both directions of a document's links.

    Args:
        id: The document.
        outgoing: Links that lead away from it, with the documents they lead to.
        incoming: Links that lead to it, with the documents they come from.
    """

    id: str
    outgoing: tuple[Neighbour, ...]
    incoming: tuple[Neighbour, ...]


def find_neighbours(id: str, *others: str) -> Plan[Neighbours | None]:
    """Return the neighbours of the document with this id, or None if there is no such document.

    With the ids of others, such as the other chunks of a page, all of them are taken for one document.
    """
    candidates = yield from ask(Find(ids=(id, *others)))
    if not len(candidates.refs):
        return None
    documents = yield from ask(Documents(refs=candidates.refs))
    vectors = yield from ask(Vectors(refs=candidates.refs))
    own = merge_links(
        link
        for document in documents
        for link in parse_links({LINKS_KEY: document.metadata.get(LINKS_KEY)}, document.id)
    )
    outgoing = yield from _find_side(
        candidates.refs, vectors[0], "out", [link for link in own if link.leads_out]
    )
    incoming = yield from _find_side(
        candidates.refs, vectors[0], "in", [link for link in own if link.leads_in]
    )
    return Neighbours(id=id, outgoing=outgoing, incoming=incoming)


def _find_side(refs: Ints, vector: Floats, leave: Side, own: list[Link]) -> Plan[tuple[Neighbour, ...]]:
    hop = yield from follow_links(
        refs, leave, vector=vector, take=MAX_SHOWN_MEMBERS, cap=MAX_SHOWN_MEMBERS, exclude=refs
    )
    tags = yield from ask(Tags(groups=hop.groups))
    members = yield from ask(Ids(refs=hop.reached.refs))
    ids: dict[tuple[str, str], list[str]] = {}
    for position, other in zip(hop.reached.group.tolist(), members, strict=True):
        ids.setdefault(tags[position], []).append(other)
    large = {tags[at] for at in np.flatnonzero(hop.reached.sizes > MAX_SHOWN_MEMBERS).tolist()}
    return tuple(
        Neighbour(
            link=link,
            ids=tuple(dict.fromkeys(ids.get((link.kind, link.tag), ()))),
            more=(link.kind, link.tag) in large,
        )
        for link in own
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What depends on some documents.

    Args:
        linking: Ids of other documents that link to them.
        dangling: Those of them with a link that would lead to no document.
        orphaned: Ids of documents to which no link of another document leads.
    """

    linking: tuple[str, ...]
    dangling: tuple[str, ...]
    orphaned: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the lists as plain JSON."""
        return {
            "linking": list(self.linking), "dangling": list(self.dangling), "orphaned": list(self.orphaned)
        }  # fmt: skip


def find_impact(ids: Sequence[str]) -> Plan[Impact]:
    """Plan what depends on the documents with these ids."""
    own = (yield from ask(Find(ids=tuple(ids)))).refs
    inward = yield from follow_links(own, "in", take=MAX_MEMBERS, cap=MAX_MEMBERS, exclude=own)
    linking = sort_unique(inward.edges.target)
    others = yield from follow_groups(inward.groups, "in", take=1, cap=MAX_MEMBERS, exclude=own)
    alone = inward.groups[_count_reached(others, inward.groups) == 0]
    dangling = inward.edges.target[find_positions(inward.edges.group, alone) >= 0]
    outward = yield from follow_links(own, "out", take=MAX_MEMBERS, cap=MAX_MEMBERS, exclude=own)
    ends = sort_unique(outward.edges.target)
    back = yield from follow_links(ends, "in", take=2, cap=MAX_MEMBERS, exclude=own)
    large = back.source[back.size > MAX_MEMBERS]
    led = back.edges.source[back.edges.target != ends[back.edges.source]]
    orphaned = np.delete(ends, np.union1d(led, large).astype(np.int64))
    return Impact(
        linking=(yield from _list_ids(linking)),
        dangling=(yield from _list_ids(sort_unique(dangling))),
        orphaned=(yield from _list_ids(orphaned)),
    )


def _count_reached(hop: Hop, groups: Ints) -> Ints:
    """Count the documents behind each group; one that is too large has some."""
    counts = np.bincount(hop.edges.source, minlength=len(groups))
    counts[find_positions(hop.groups[hop.reached.sizes > MAX_MEMBERS], groups)] += 1
    return counts


def _list_ids(refs: Ints) -> Plan[tuple[str, ...]]:
    return tuple(sorted((yield from ask(Ids(refs=refs)))))


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
    candidates = yield from ask(Find(ids=tuple(ids)))
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
    tags = yield from ask(Tags(groups=ways.group))
    names = yield from ask(Ids(refs=ways.target))
    owners = yield from ask(Documents(refs=candidates.refs))
    chunks = [
        _describe_link(owners[at], tag, id)
        for at, tag, id in zip(ways.source.tolist(), tags, names, strict=True)
    ]
    return sorted(chunks, key=lambda chunk: not chunk.beside)[:most]


def _describe_link(owner: StoredDocument, tag: tuple[str, str], id: str) -> LinkedChunk:
    """Return a linked chunk with the kind of the link, and its label where its owner gave it one."""
    own = parse_links({LINKS_KEY: owner.metadata.get(LINKS_KEY)}, owner.id)
    label = next((link.label for link in own if (link.kind, link.tag) == tag and link.label), None)
    if tag[0] == SECTION and label in _BESIDE:
        return LinkedChunk(id=id, of=owner.id, how=f"{label} of", beside=True)
    how = f'{tag[0]} "{label}" with' if label else f"{tag[0]} with"
    return LinkedChunk(id=id, of=owner.id, how=how)
