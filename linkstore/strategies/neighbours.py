"""The neighbours of a document, along links in both directions, by link group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.core.arrays import Floats, Ints
from linkstore.core.links import LINKS_KEY, Link, merge_links, parse_links
from linkstore.core.plans import Documents, Find, Ids, Plan, Side, Tags, Vectors, ask
from linkstore.strategies.traversal import follow_links

MAX_SHOWN_MEMBERS: Final = 1000
"""How many members of a link group are listed at most."""


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
