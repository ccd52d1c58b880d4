"""The lookups of a reader: plans over the store of chunks and the store of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Final

import numpy as np

from linkstore.agents.facts import CHUNK_KEY, KEY_ELEMENT
from linkstore.core import plans
from linkstore.core.arrays import Floats, Ints
from linkstore.core.filters import parse_filter
from linkstore.core.links import LINKS_KEY, SECTION, parse_links
from linkstore.core.plans import Plan
from linkstore.errors import CapabilityError
from linkstore.strategies.base import HOP_SIDES
from linkstore.strategies.traversal import NO_REFS, Edges, follow_links, follow_tags

MOST_FACTS: Final = 100_000
"""Facts of a larger key element are not ranked."""
LARGEST_GROUP: Final = 200
"""Links to more documents than this are not followed."""
MOST_PER_GROUP: Final = 10
_BESIDE: Final = frozenset({"next", "previous"})
"""The labels of links between chunks that follow each other."""
_FACT_FILTER: Final = parse_filter({"type": "fact"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFacts:
    """Facts that a reader is shown.

    Args:
        facts: (chunk id, text), the best first.
        elements: Key elements that go with them, in order.
    """

    facts: tuple[tuple[str, str], ...]
    elements: tuple[str, ...]


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


def find_likely_facts(vector: Floats, words: tuple[str, ...], most: int) -> Plan[FoundFacts]:
    """Find facts by similarity to a question and by its words, with their key elements."""
    near = yield from plans.ask(plans.Nearest(vector=vector, k=most, filter=_FACT_FILTER))
    worded = yield from _find_by_words(words, most)
    lists = zip_longest(near.refs.tolist(), worded.tolist())
    taken = dict.fromkeys(ref for ref in chain.from_iterable(lists) if ref is not None)
    return (yield from _read_facts(np.array(list(taken)[:most], dtype=np.int64)))


def _find_by_words(words: tuple[str, ...], most: int) -> Plan[Ints]:
    """Find facts with words of the question, none where the backend cannot search by words."""
    if not words:
        return NO_REFS
    try:
        matches = yield from plans.ask(plans.Lexical(terms=words, k=most, filter=_FACT_FILTER))
    except CapabilityError:
        return NO_REFS
    return matches.refs


def _read_facts(refs: Ints) -> Plan[FoundFacts]:
    stored = yield from plans.ask(plans.Documents(refs=refs))
    facts = tuple((str(document.metadata[CHUNK_KEY]), document.text) for document in stored)
    return FoundFacts(facts=facts, elements=(yield from _read_elements(refs)))


def _read_elements(refs: Ints) -> Plan[tuple[str, ...]]:
    """Return the key elements of facts, in the order of the facts."""
    own = yield from plans.ask(plans.Groups(refs=refs, side="out", kinds=frozenset({KEY_ELEMENT})))
    groups, place = np.unique(own.group, return_inverse=True)
    tags = yield from plans.ask(plans.Tags(groups=groups))
    order = np.argsort(own.document, kind="stable")
    names = ((own.document[at], tags[place[at]][1]) for at in order.tolist())
    return tuple(dict.fromkeys(name for _, name in sorted(names)))


def find_facts(name: str, vector: Floats, most: int) -> Plan[FoundFacts]:
    """Find the ``most`` facts of a key element that are most similar to the question, however many it has."""
    hop = yield from follow_tags([(KEY_ELEMENT, name)], "out", vector=vector, take=most, cap=MOST_FACTS)
    return (yield from _read_facts(hop.edges.target))


def find_elements(facts: tuple[str, ...]) -> Plan[tuple[str, ...]]:
    """Return the key elements that these facts mention."""
    candidates = yield from plans.ask(plans.Find(ids=facts))
    return (yield from _read_elements(candidates.refs))


def find_linked(
    ids: Sequence[str], vector: Floats, left_out: Sequence[str], most: int
) -> Plan[list[LinkedChunk]]:
    """Find the chunks linked with given ones, in either direction.

    The chunks before and after come first, then the most similar to the question.
    """
    candidates = yield from plans.ask(plans.Find(ids=tuple(ids)))
    excluded = yield from plans.ask(plans.Find(ids=tuple(dict.fromkeys((*left_out, *ids)))))
    parts = []
    for leave, _ in HOP_SIDES["both"]:
        hop = yield from follow_links(
            candidates.refs,
            leave,
            vector=vector,
            take=MOST_PER_GROUP,
            cap=LARGEST_GROUP,
            exclude=excluded.refs,
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
