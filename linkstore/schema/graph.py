"""The documents of a store as a graph of types and kinds, for checking a schema and for drafting one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from linkstore.errors import SchemaError
from linkstore.links import Link
from linkstore.schema.model import Problem, Relation, Schema

Tag = tuple[str, str]
SHOWN: Final = 1_000
"""How many problems, and how many ids, a report lists at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReport:
    """The problems of a store under a schema.

    Args:
        problems: The first of them, by document.
        count: How many there are.
        documents: How many documents there are of each type. None stands for those without one.
        links: How many links there are of each kind.
    """

    problems: tuple[Problem, ...]
    count: int
    documents: Mapping[str | None, int]
    links: Mapping[str, int]

    @property
    def sound(self) -> bool:
        """Whether the schema allows everything."""
        return not self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Which documents links lead to from the documents of a type.

    Args:
        type: The type that was started from.
        reached: How many documents of each type links lead to, those of ``type`` included.
        unreached: How many of each type they do not lead to.
        ids: Ids of the first documents that they do not lead to.
    """

    type: str
    reached: Mapping[str | None, int]
    unreached: Mapping[str | None, int]
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The numbers of documents of a type that links connect to other documents.

    Args:
        documents: How many there are.
        reached: To how many of them a link of another document leads.
        leading: From how many of them a link leads to another document.
        alone: How many have neither.
    """

    documents: int
    reached: int
    leading: int
    alone: int


class TypedGraph:
    """Documents by type and link group, gathered one by one.

    Args:
        type_field: The metadata field that holds the type of a document.
    """

    def __init__(self, type_field: str) -> None:
        self._type_field = type_field
        self._ids: list[str] = []
        self._types: list[str | None] = []
        self._links: Counter[str] = Counter()
        self._out: dict[Tag, list[int]] = defaultdict(list)
        self._in: dict[Tag, list[int]] = defaultdict(list)
        self._both: dict[Tag, list[int]] = defaultdict(list)

    def add(self, id: str, metadata: Mapping[str, Any], links: Iterable[Link]) -> None:
        """Add a document."""
        number, found = len(self._ids), metadata.get(self._type_field)
        self._ids.append(id)
        self._types.append(found if isinstance(found, str) else None)
        for link in links:
            self._links[link.kind] += 1
            side = {"out": self._out, "in": self._in}.get(link.direction, self._both)
            side[link.kind, link.tag].append(number)

    def counts(self) -> tuple[Mapping[str | None, int], Mapping[str, int]]:
        """Return how many documents there are of each type, and links of each kind."""
        return _counted(self._types), dict(sorted(self._links.items()))

    def wrong_ends(self, schema: Schema) -> Iterator[Problem]:
        """Yield links that lead to no document, or to a type that the schema does not allow there."""
        for (kind, tag), sources in self._out.items():
            ends = self._find_ends((kind, tag))
            for number in sources:
                source = self._types[number]
                if source not in schema.types or kind not in schema.kinds:
                    continue  # reported for the document already
                text = self._describe_wrong_end(schema, source, kind, tag, ends)
                if text:
                    yield Problem(id=self._ids[number], text=text)

    def _find_ends(self, tag: Tag) -> dict[str | None, str]:
        """Return the types of the documents that a tag leads to, with the id of one document of each."""
        found: dict[str | None, str] = {}
        for side in (self._in, self._both):
            for number in side.get(tag, ()):
                found.setdefault(self._types[number], self._ids[number])
        return found

    def _describe_wrong_end(
        self, schema: Schema, type: str, kind: str, tag: str, ends: Mapping[str | None, str]
    ) -> str | None:
        link = Link.outgoing(kind=kind, tag=tag)
        if not ends:
            return missing_end(link) if schema.leads_on(type, link) else None
        allowed = schema.ends_of(type, kind)
        for other, id in ends.items():
            if other in schema.types and other not in allowed and allowed:
                return (
                    f"its link of kind {kind!r} leads to {id!r} of type {other!r}; from type {type!r} it may"
                    f" lead to {', '.join(sorted(allowed))}"
                )
        return None

    def reach(self, type: str, depth: int | None = None) -> Reach:
        """Follow links forward from all documents of a type, at most ``depth`` in a row (None: any number).

        Raises:
            SchemaError: If no document has the type.
        """
        start = {number for number, of in enumerate(self._types) if of == type}
        if not start:
            known = ", ".join(sorted(one for one in set(self._types) if one)) or "none"
            raise SchemaError(f"no document has the type {type!r}; the types in the store are {known}")
        reached = self._find_reached(start, depth)
        unreached, ids = self._count_left(reached)
        found = _counted(self._types[number] for number in reached)
        return Reach(type=type, reached=found, unreached=unreached, ids=ids)

    def unreached(self, roots: Collection[str]) -> tuple[Mapping[str | None, int], tuple[str, ...]]:
        """Count the documents of each type that cannot be reached from documents of these types.

        Returns the counts, and ids of the first of these documents.
        """
        return self._count_left(
            self._find_reached({at for at, of in enumerate(self._types) if of in roots}, None)
        )

    def standing(self) -> Mapping[str | None, Standing]:
        """Count, for each type, the documents that links connect to other documents."""
        leading, led = set[int](), set[int]()
        for tag in self._out.keys() | self._in.keys() | self._both.keys():
            both = self._both.get(tag, ())
            outs, ins = {*self._out.get(tag, ()), *both}, {*self._in.get(tag, ()), *both}
            if outs and ins:
                leading |= outs if len(ins) > 1 else outs - ins
                led |= ins if len(outs) > 1 else ins - outs
        of = {name: [0, 0, 0, 0] for name in _counted(self._types)}
        for number, name in enumerate(self._types):
            counts = of[name]
            counts[0] += 1
            counts[1] += number in led
            counts[2] += number in leading
            counts[3] += number not in led and number not in leading
        return {
            name: Standing(documents=count, reached=to, leading=on, alone=alone)
            for name, (count, to, on, alone) in of.items()
        }

    def _find_reached(self, start: set[int], depth: int | None) -> set[int]:
        """Return the documents that links lead to from the given ones, these included."""
        leaving = self._list_leaving()
        reached, frontier, followed, hops = start, start, set[Tag](), 0
        while frontier and (depth is None or hops < depth):
            tags = {tag for number in frontier for tag in leaving.get(number, ())} - followed
            followed |= tags
            found = {end for tag in tags for side in (self._in, self._both) for end in side.get(tag, ())}
            frontier = found - reached
            reached = reached | frontier
            hops += 1
        return reached

    def _count_left(self, reached: Collection[int]) -> tuple[Mapping[str | None, int], tuple[str, ...]]:
        """Count the documents of each type that are not in ``reached``, and return ids of the first."""
        left = [number for number in range(len(self._ids)) if number not in reached]
        ids = sorted(self._ids[number] for number in left)[:SHOWN]
        return _counted(self._types[number] for number in left), tuple(ids)

    def relations(self) -> tuple[Relation, ...]:
        """Return the relations of the links of typed documents, dangling if some of these lead nowhere."""
        pairs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        dangling: set[str] = set()
        for tag, sources in self._out.items():
            ends = self._find_types([*self._in.get(tag, ()), *self._both.get(tag, ())])
            dangling |= set() if ends else {tag[0]}
            for source in self._find_types(sources):
                pairs[tag[0]][source] |= ends
        found = [
            Relation(kind, froms, to, may_dangle=kind in dangling)
            for kind, by_type in sorted(pairs.items())
            for to, froms in _by_ends(by_type)
        ]
        both: dict[str, set[str]] = defaultdict(set)
        for tag, members in self._both.items():
            both[tag[0]] |= self._find_types(members)
        found += [
            Relation(kind, types, types, both_ways=True) for kind, types in sorted(both.items()) if types
        ]
        return tuple(found)

    def types(self) -> frozenset[str]:
        """Return the types that documents have."""
        return frozenset(one for one in self._types if one is not None)

    def _find_types(self, numbers: Iterable[int]) -> set[str]:
        return {found for number in numbers if (found := self._types[number]) is not None}

    def _list_leaving(self) -> dict[int, list[Tag]]:
        leaving: dict[int, list[Tag]] = defaultdict(list)
        for side in (self._out, self._both):
            for tag, numbers in side.items():
                for number in numbers:
                    leaving[number].append(tag)
        return leaving


def missing_end(link: Link) -> str:
    """Return the message about a link that leads to no document."""
    return (
        f"its link of kind {link.kind!r} leads to no document: none has an incoming link with the tag"
        f" {link.tag!r}"
    )


def _by_ends(by_type: Mapping[str, set[str]]) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Group types that lead to the same types: (to, from)."""
    joined: dict[frozenset[str], set[str]] = defaultdict(set)
    for source, ends in by_type.items():
        if ends:
            joined[frozenset(ends)].add(source)
    return sorted(((to, frozenset(froms)) for to, froms in joined.items()), key=lambda one: sorted(one[1]))


def _counted(types: Iterable[str | None]) -> Mapping[str | None, int]:
    counts = Counter(types)
    return {one: counts[one] for one in sorted(counts, key=lambda one: (one is None, one or ""))}
