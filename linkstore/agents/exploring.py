"""The lookups of a reader: plans over the store of chunks and the store of facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any, Final

import numpy as np

from linkstore.agents.facts import CHUNK_KEY, ELEMENT_ID, KEY_ELEMENT, element_of_page
from linkstore.errors import CapabilityError
from linkstore.filters import Condition, parse_filter
from linkstore.links import LINKS_KEY, links_in
from linkstore.plans import (
    Candidates,
    Documents,
    Find,
    Groups,
    Ids,
    Lexical,
    Members,
    Memberships,
    Nearest,
    Plan,
    Reached,
    Resolve,
    Side,
    Stored,
    Tags,
    Worded,
)
from linkstore.strategies.base import SIDES
from linkstore.vectors import Floats, Ints

MOST_FACTS: Final = 100_000
"""Facts of a larger key element are not ranked."""
HUB: Final = 200
"""Links to more documents than this are not followed."""
PER_GROUP: Final = 10
SEQUENCE: Final = "section"
"""The kind of the links between chunks of a page."""
_ELEMENTS: Final = parse_filter({"type": "key element"})
_FACTS: Final = parse_filter({"type": "fact"})
_NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsOf:
    """The facts of a key element that are most similar to the question.

    Args:
        size: How many facts it has, counted to :data:`MOST_FACTS` and one more.
        facts: (chunk id, text), the most similar first.
        metadata: Of the chunk, as its facts carry it, by chunk id.
        beside: Other key elements of these facts, in order.
    """

    size: int = 0
    facts: tuple[tuple[str, str], ...] = ()
    metadata: dict[str, dict[str, Any]]
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A chunk that is linked with one that was read.

    Args:
        of: The chunk that was read.
        id: The linked chunk.
        how: The kind of the link, and its label.
        text: Its text.
        metadata: Its metadata.
    """

    of: str
    id: str
    how: str
    text: str
    metadata: dict[str, Any]


def likely_elements(vector: Floats, words: tuple[str, ...], most: int) -> Plan[list[str]]:
    """Find key elements by similarity to the question, by its words, and by facts found in these ways."""
    near: Candidates = yield Nearest(vector=vector, k=most, filter=_ELEMENTS)
    worded = yield from _by_words(words, most, _ELEMENTS)
    facts: Candidates = yield Nearest(vector=vector, k=most, filter=_FACTS)
    named = yield from _named_by(facts.refs)
    worded_facts = yield from _by_words(words, most, _FACTS)
    named_by_worded = yield from _named_by(worded_facts)
    by_meaning: list[str] = yield Ids(refs=near.refs)
    by_words: list[str] = yield Ids(refs=worded)
    lists = ([element_of_page(id) for id in ids] for ids in (by_meaning, by_words))
    return _taken_in_turn([*lists, named, named_by_worded], most)


def _by_words(words: tuple[str, ...], most: int, filter: Condition) -> Plan[Ints]:
    """Find documents with words of the question, none where the backend cannot search by words."""
    if not words:
        return _NONE
    try:
        found: Worded = yield Lexical(terms=words, k=most, filter=filter)
    except CapabilityError:
        return _NONE
    return found.refs


def _taken_in_turn(lists: Iterable[Sequence[str]], most: int) -> list[str]:
    taken = dict.fromkeys(one for one in chain(*zip_longest(*lists)) if one is not None)
    return list(taken)[:most]


def _named_by(refs: Ints) -> Plan[list[str]]:
    """Return the key elements of facts, in the order of the facts."""
    own: Memberships = yield Groups(refs=refs, side="out", kinds=frozenset({KEY_ELEMENT}))
    groups, place = np.unique(own.group, return_inverse=True)
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    order = np.argsort(own.document, kind="stable")
    names = ((own.document[at], tags[place[at]][1]) for at in order.tolist())
    return list(dict.fromkeys(name for _, name in sorted(names)))


def facts_of(name: str, vector: Floats, most: int) -> Plan[FactsOf]:
    """Find the ``most`` facts of a key element that are most similar to the question, however many it has."""
    groups: Ints = yield Resolve(tags=((KEY_ELEMENT, name),))
    if groups[0] < 0:
        return FactsOf(metadata={})
    reached: Reached = yield Members(
        groups=groups, side="out", vector=vector, take=most, cap=MOST_FACTS, exclude=_NONE
    )
    stored: list[Stored] = yield Documents(refs=reached.refs)
    beside = yield from _named_by(reached.refs)
    return FactsOf(
        size=int(reached.sizes[0]),
        facts=tuple((str(one.metadata[CHUNK_KEY]), one.text) for one in stored),
        metadata={str(one.metadata[CHUNK_KEY]): one.metadata for one in stored},
        beside=tuple(one for one in beside if one != name),
    )


def elements_of(facts: tuple[str, ...]) -> Plan[list[str]]:
    """Return the key elements that these facts mention."""
    found: Candidates = yield Find(ids=facts)
    return (yield from _named_by(found.refs))


def elements_beside(names: Sequence[str], vector: Floats, most: int) -> Plan[list[str]]:
    """Return the given key elements that are most similar to the question, best first."""
    ids = tuple(f"{ELEMENT_ID}{name}" for name in names)
    found: Candidates = yield Find(ids=ids, vector=vector)
    best = found.refs[np.argsort(-found.similarity, kind="stable")[:most]]
    kept: list[str] = yield Ids(refs=best)
    return [element_of_page(id) for id in kept]


def stored_among(ids: Sequence[str]) -> Plan[list[str]]:
    """Return the given chunks that are in the store."""
    found: Candidates = yield Find(ids=tuple(ids))
    there: list[str] = yield Ids(refs=found.refs)
    return there


def beside_on_page(id: str, label: str, vector: Floats) -> Plan[str | None]:
    """Return the chunk before or after one on its page, by the label of its section link, or None."""
    found: Candidates = yield Find(ids=(id,))
    stored: list[Stored] = yield Documents(refs=found.refs)
    own = links_in({LINKS_KEY: stored[0].metadata.get(LINKS_KEY)}, id) if stored else ()
    tags = tuple((one.kind, one.tag) for one in own if one.kind == SEQUENCE and one.label == label)
    if not tags:
        return None
    groups: Ints = yield Resolve(tags=tags[:1])
    if groups[0] < 0:
        return None
    reached: Reached = yield Members(
        groups=groups, side="in", vector=vector, take=1, cap=HUB, exclude=found.refs
    )
    ids: list[str] = yield Ids(refs=reached.refs)
    return ids[0] if ids else None


def linked_with(ids: Sequence[str], vector: Floats, left_out: Sequence[str], most: int) -> Plan[list[Linked]]:
    """Find the chunks linked with given ones, in either direction, the most similar to the question first."""
    found: Candidates = yield Find(ids=tuple(ids))
    excluded: Candidates = yield Find(ids=tuple(dict.fromkeys((*left_out, *ids))))
    ways: dict[int, tuple[float, int, tuple[str, str]]] = {}
    for leave, arrive in SIDES["both"]:
        yield from _followed(found.refs, leave, arrive, vector, excluded.refs, ways)
    best = sorted(ways, key=lambda ref: -ways[ref][0])[:most]
    owners: list[Stored] = yield Documents(refs=found.refs)
    others: list[Stored] = yield Documents(refs=np.array(best, dtype=np.int64))
    return [
        Linked(
            of=owners[ways[ref][1]].id,
            id=other.id,
            how=_how(owners[ways[ref][1]], ways[ref][2]),
            text=other.text,
            metadata=other.metadata,
        )
        for ref, other in zip(best, others, strict=True)
    ]


def _followed(
    refs: Ints,
    leave: Side,
    arrive: Side,
    vector: Floats,
    excluded: Ints,
    ways: dict[int, tuple[float, int, tuple[str, str]]],
) -> Plan[None]:
    """Follow the links of documents on one side. Note how similar each document reached is, and by what.

    Links between the sections of a page are left out: the reader follows them by separate actions.
    """
    own: Memberships = yield Groups(refs=refs, side=leave)
    wanted = np.array([kind != SEQUENCE for kind in own.kinds], dtype=np.bool_)
    kept = wanted[own.kind] if len(own.kind) else np.empty(0, dtype=np.bool_)
    groups, first = np.unique(own.group[kept], return_index=True)
    if not len(groups):
        return
    owner = own.document[kept][first]
    tags: list[tuple[str, str]] = yield Tags(groups=groups)
    reached: Reached = yield Members(
        groups=groups, side=arrive, vector=vector, take=PER_GROUP, cap=HUB, exclude=excluded
    )
    rows = zip(reached.refs.tolist(), reached.group.tolist(), reached.similarity.tolist(), strict=True)
    for ref, group, similarity in rows:
        ways.setdefault(ref, (similarity, int(owner[group]), tags[group]))


def _how(owner: Stored, tag: tuple[str, str]) -> str:
    """Return the kind of a link, and its label where its owner gave it one."""
    own = links_in({LINKS_KEY: owner.metadata.get(LINKS_KEY)}, owner.id)
    label = next((one.label for one in own if (one.kind, one.tag) == tag and one.label), None)
    return f'{tag[0]} "{label}"' if label else tag[0]
