"""The documents of a store as a graph of types and kinds: checked against a schema, or drafted as one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson
from langchain_core.documents import Document

from linkstore.core.arguments import require, require_list
from linkstore.core.calls import Operation, call_engine, call_plan
from linkstore.core.documents import Draft
from linkstore.core.links import Link, parse_links
from linkstore.core.plans import read_documents
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Record
from linkstore.errors import SchemaError
from linkstore.store.schema import TYPE_FIELD, Mode, Problem, RecordedSchema, Relation, Schema, check_mode
from linkstore.strategies.traversal import follow_tags

Tag = tuple[str, str]
MAX_SHOWN: Final = 1_000
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
class TypeConnectivity:
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
        number, value = len(self._ids), metadata.get(self._type_field)
        self._ids.append(id)
        self._types.append(value if isinstance(value, str) else None)
        for link in links:
            self._links[link.kind] += 1
            side = {"out": self._out, "in": self._in}.get(link.direction, self._both)
            side[link.kind, link.tag].append(number)

    def counts(self) -> tuple[Mapping[str | None, int], Mapping[str, int]]:
        """Return how many documents there are of each type, and links of each kind."""
        return _count_types(self._types), dict(sorted(self._links.items()))

    def wrong_ends(self, schema: Schema) -> Iterator[Problem]:
        """Yield a problem for each link to no document, or to a type that the schema does not allow there."""
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
        ends: dict[str | None, str] = {}
        for side in (self._in, self._both):
            for number in side.get(tag, ()):
                ends.setdefault(self._types[number], self._ids[number])
        return ends

    def _describe_wrong_end(
        self, schema: Schema, type: str, kind: str, tag: str, ends: Mapping[str | None, str]
    ) -> str | None:
        link = Link.outgoing(kind=kind, tag=tag)
        if not ends:
            return describe_missing_end(link) if schema.leads_on(type, link) else None
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
            type_names = ", ".join(sorted(type_name for type_name in set(self._types) if type_name)) or "none"
            raise SchemaError(f"no document has the type {type!r}; the types in the store are {type_names}")
        reached = self._find_reached(start, depth)
        unreached, ids = self._count_left(reached)
        counts = _count_types(self._types[number] for number in reached)
        return Reach(type=type, reached=counts, unreached=unreached, ids=ids)

    def count_unreached(self, roots: Collection[str]) -> tuple[Mapping[str | None, int], tuple[str, ...]]:
        """Count the documents of each type that cannot be reached from documents of these types.

        Returns the counts, and ids of the first of these documents.
        """
        return self._count_left(
            self._find_reached({at for at, of in enumerate(self._types) if of in roots}, None)
        )

    def count_connectivity(self) -> Mapping[str | None, TypeConnectivity]:
        """Count, for each type, the documents that links connect to other documents."""
        leading, led = set[int](), set[int]()
        for tag in self._out.keys() | self._in.keys() | self._both.keys():
            both = self._both.get(tag, ())
            outs, ins = {*self._out.get(tag, ()), *both}, {*self._in.get(tag, ()), *both}
            if outs and ins:
                leading |= outs if len(ins) > 1 else outs - ins
                led |= ins if len(outs) > 1 else ins - outs
        of = {name: [0, 0, 0, 0] for name in _count_types(self._types)}
        for number, name in enumerate(self._types):
            counts = of[name]
            counts[0] += 1
            counts[1] += number in led
            counts[2] += number in leading
            counts[3] += number not in led and number not in leading
        return {
            name: TypeConnectivity(documents=count, reached=to, leading=on, alone=alone)
            for name, (count, to, on, alone) in of.items()
        }

    def _find_reached(self, start: set[int], depth: int | None) -> set[int]:
        """Return the documents that links lead to from the given ones, these included."""
        leaving = self._list_leaving()
        reached, frontier, followed, hops = start, start, set[Tag](), 0
        while frontier and (depth is None or hops < depth):
            tags = {tag for number in frontier for tag in leaving.get(number, ())} - followed
            followed |= tags
            ends = {end for tag in tags for side in (self._in, self._both) for end in side.get(tag, ())}
            frontier = ends - reached
            reached = reached | frontier
            hops += 1
        return reached

    def _count_left(self, reached: Collection[int]) -> tuple[Mapping[str | None, int], tuple[str, ...]]:
        """Count the documents of each type that are not in ``reached``, and return ids of the first."""
        left = [number for number in range(len(self._ids)) if number not in reached]
        ids = sorted(self._ids[number] for number in left)[:MAX_SHOWN]
        return _count_types(self._types[number] for number in left), tuple(ids)

    def relations(self) -> tuple[Relation, ...]:
        """Return the relations of the links of typed documents, dangling if some of these lead nowhere."""
        pairs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        dangling: set[str] = set()
        for tag, sources in self._out.items():
            ends = self._find_types([*self._in.get(tag, ()), *self._both.get(tag, ())])
            dangling |= set() if ends else {tag[0]}
            for source in self._find_types(sources):
                pairs[tag[0]][source] |= ends
        relations = [
            Relation(kind, froms, to, may_dangle=kind in dangling)
            for kind, by_type in sorted(pairs.items())
            for to, froms in _group_by_ends(by_type)
        ]
        both: dict[str, set[str]] = defaultdict(set)
        for tag, members in self._both.items():
            both[tag[0]] |= self._find_types(members)
        relations += [
            Relation(kind, types, types, both_ways=True) for kind, types in sorted(both.items()) if types
        ]
        return tuple(relations)

    def types(self) -> frozenset[str]:
        """Return the types that documents have."""
        return frozenset(type_name for type_name in self._types if type_name is not None)

    def _find_types(self, numbers: Iterable[int]) -> set[str]:
        return {type_name for number in numbers if (type_name := self._types[number]) is not None}

    def _list_leaving(self) -> dict[int, list[Tag]]:
        leaving: dict[int, list[Tag]] = defaultdict(list)
        for side in (self._out, self._both):
            for tag, numbers in side.items():
                for number in numbers:
                    leaving[number].append(tag)
        return leaving


def describe_missing_end(link: Link) -> str:
    """Return the message about a link that leads to no document."""
    return (
        f"its link of kind {link.kind!r} leads to no document: none has an incoming link with the tag"
        f" {link.tag!r}"
    )


def _group_by_ends(by_type: Mapping[str, set[str]]) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Group types that lead to the same types: (to, from)."""
    joined: dict[frozenset[str], set[str]] = defaultdict(set)
    for source, ends in by_type.items():
        if ends:
            joined[frozenset(ends)].add(source)
    return sorted(((to, frozenset(froms)) for to, froms in joined.items()), key=lambda pair: sorted(pair[1]))


def _count_types(types: Iterable[str | None]) -> Mapping[str | None, int]:
    counts = Counter(types)
    return {count: counts[count] for count in sorted(counts, key=lambda count: (count is None, count or ""))}


class ScannableSource(Protocol):
    """A store, or anything else that can be read document by document."""

    def scan(self) -> Iterator[Document]:
        """Iterate over all documents."""
        ...


def infer_schema(source: ScannableSource | Iterable[Document], type_field: str = TYPE_FIELD) -> Schema:
    """Draft a schema from documents: see :meth:`~linkstore.store.Schema.infer`."""
    if not hasattr(source, "scan"):
        require_list("documents, or a store", source=source)
    documents = source if isinstance(source, Iterable) else source.scan()
    graph = TypedGraph(type_field)
    for document in documents:
        graph.add(document.id or "", document.metadata, parse_links(document.metadata, document.id))
    if not graph.types():
        raise SchemaError(
            f"no document has a type: give documents metadata[{type_field!r}], or name the field that holds"
            " it as type_field"
        )
    return Schema(types=graph.types(), relations=graph.relations(), type_field=type_field)


SCHEMA_NOTE: Final = "schema"
"""The note that holds the schema of a store."""
PROBLEMS_NOTE: Final = "schema problems"
"""The note that holds what the mode ``warn`` recorded."""
KEPT: Final = 1_000
"""How many recorded problems are kept, the last ones."""
_MAX_NAMED_PROBLEMS: Final = 5
_MAX_TRIES: Final = 20


def read_schema(backend: Backend) -> Operation[RecordedSchema | None]:
    """Return the schema of a store with its mode, or None without one."""
    text = yield from call_engine(backend, backend.note(SCHEMA_NOTE))
    return None if text is None else RecordedSchema.from_json(text)


def check_documents(backend: Backend, documents: Sequence[Draft]) -> Operation[None]:
    """Check documents that are about to be written together.

    Raises:
        SchemaError: In the mode ``strict``, if the schema does not allow one of them.
    """
    recorded = (yield from read_schema(backend)) if documents else None
    if recorded is not None:
        yield from _check(backend, recorded, documents)


def check_links(backend: Backend, links: Mapping[str, tuple[Link, ...]]) -> Operation[None]:
    """Check links that stored documents are about to get.

    Raises:
        SchemaError: In the mode ``strict``, if the schema does not allow one of them.
    """
    recorded = (yield from read_schema(backend)) if links else None
    if recorded is None:
        return
    stored = yield from call_plan(backend, read_documents(tuple(links)))
    relinked = [
        Draft(document.id, document.text, document.metadata, links[document.id]) for document in stored
    ]
    yield from _check(backend, recorded, relinked)


def _check(backend: Backend, recorded: RecordedSchema, documents: Sequence[Draft]) -> Operation[None]:
    """Refuse documents that are written together, or record their problems, in the order of the documents."""
    schema = recorded.schema
    entered = {(link.kind, link.tag) for document in documents for link in document.links if link.leads_in}
    leading = [link for document in documents for link in _find_leading_links(schema, document)]
    asked = sorted({(link.kind, link.tag) for link in leading} - entered)
    entered |= yield from _find_entered_tags(backend, asked)
    problems: list[Problem] = []
    for document in documents:
        problems += schema.problems(document.id, document.metadata, document.links)
        missing = (
            link for link in _find_leading_links(schema, document) if (link.kind, link.tag) not in entered
        )
        problems += (Problem(id=document.id, text=describe_missing_end(link)) for link in missing)
    why = f"version {schema.version} of the schema does not allow this"
    yield from _enforce_mode(backend, recorded.mode, problems, why)


def _find_leading_links(schema: Schema, document: Draft) -> Iterable[Link]:
    """Return the links of a document that must lead to another one, or none if its type is unknown."""
    own = schema.type_of(document.metadata)
    if own is None or own not in schema.types:
        return ()
    return (link for link in document.links if link.kind in schema.kinds and schema.leads_on(own, link))


def _find_entered_tags(backend: Backend, tags: Sequence[Tag]) -> Operation[set[Tag]]:
    """Return the tags that links of a stored document lead in from."""
    if not tags:
        return set()
    hop = yield from call_plan(backend, follow_tags(tags, "in", take=1, cap=0))
    return {tags[at] for at in hop.source[hop.size > 0].tolist()}


def _enforce_mode(backend: Backend, mode: Mode, problems: Sequence[Problem], why: str) -> Operation[None]:
    """Refuse problems with a schema, or add them to the list in the store, of which the last ones stay."""
    if not problems:
        return
    if mode == "strict":
        named, left = "; ".join(map(str, problems[:_MAX_NAMED_PROBLEMS])), len(problems) - _MAX_NAMED_PROBLEMS
        more = f"; and {left} more" if left > 0 else ""
        details = [(problem.id, problem.text) for problem in problems]
        raise SchemaError(
            f"{why}, and nothing was written: {named}{more}. Correct the documents or the schema", details
        )

    def add(text: str | None) -> str:
        recorded: list[list[str]] = orjson.loads(text) if text else []
        added = [[problem.id, problem.text] for problem in problems]
        return orjson.dumps([*recorded, *added][-KEPT:]).decode()

    if not (yield from call_engine(backend, backend.change_note(PROBLEMS_NOTE, add, _MAX_TRIES))):
        raise SchemaError(
            f"{len(problems)} problems with the schema could not be recorded, because other writers recorded"
            f" some during each of {_MAX_TRIES} tries; nothing was written, so write the documents again"
        )


def read_problems(backend: Backend) -> Operation[list[Problem]]:
    """Return the problems that the mode ``warn`` recorded, oldest first."""
    text = yield from call_engine(backend, backend.note(PROBLEMS_NOTE))
    recorded: Iterable[tuple[str, str]] = orjson.loads(text) if text else ()
    return [Problem(id=id, text=description) for id, description in recorded]


SCHEMA_BATCH: Final = 500
"""How many documents are read at once."""


def set_schema(backend: Backend, schema: Schema | None, mode: Mode) -> Operation[SchemaReport | None]:
    """Record a schema once the stored documents were checked, or remove it if it is None.

    Raises:
        SchemaError: If the version is not higher than the recorded one, or in the mode ``strict`` if the
            schema does not allow all stored documents.
    """
    before = yield from call_engine(backend, backend.note(SCHEMA_NOTE))
    if schema is None:
        yield from _write_schema_note(backend, None, before)
        return None
    require(Schema, "a Schema or None", schema=schema)
    check_mode(mode)
    _check_schema_version(schema, before)
    report = yield from check_against_schema(backend, schema)
    why = f"version {schema.version} of the schema does not fit the store in {report.count} places"
    yield from _enforce_mode(backend, mode, report.problems, why)
    yield from _write_schema_note(backend, RecordedSchema(schema=schema, mode=mode), before)
    return report


def _scan_graph(
    backend: Backend, type_field: str, look: Callable[[Record], object] = lambda _: None
) -> Operation[TypedGraph]:
    """Return the graph of all documents, each of which is looked at."""
    graph = TypedGraph(type_field)
    after: str | None = None
    while records := (yield from call_engine(backend, backend.scan(after, SCHEMA_BATCH))):
        for record in records:
            graph.add(record.id, record.metadata, record.links)
            look(record)
        after = records[-1].id
    return graph


def check_against_schema(backend: Backend, schema: Schema) -> Operation[SchemaReport]:
    """Hold all documents against a schema."""
    require(Schema, "a Schema", schema=schema)
    first: list[Problem] = []
    count = 0

    def note(problems: Iterable[Problem]) -> None:
        nonlocal count
        for problem in problems:
            count += 1
            first.extend([problem] if count <= MAX_SHOWN else [])

    graph = yield from _scan_graph(
        backend,
        schema.type_field,
        lambda record: note(schema.problems(record.id, record.metadata, record.links)),
    )
    note(graph.wrong_ends(schema))
    documents, links = graph.counts()
    return SchemaReport(problems=tuple(first), count=count, documents=documents, links=links)


def compute_reach(backend: Backend, type: str, depth: int | None, type_field: str | None) -> Operation[Reach]:
    """Return the documents that links lead to from the documents of a type."""
    recorded = yield from read_schema(backend)
    graph = yield from _scan_graph(
        backend, type_field or (recorded.schema.type_field if recorded else TYPE_FIELD)
    )
    return graph.reach(type, depth)


def _check_schema_version(schema: Schema, before: str | None) -> None:
    recorded = RecordedSchema.from_json(before).schema if before is not None else None
    if recorded is None or recorded == schema or schema.version > recorded.version:
        return
    raise SchemaError(
        f"the store has version {recorded.version} of its schema, so a version {schema.version} that differs"
        " cannot replace it: make the next one with store.schema().next(...)"
    )


def _write_schema_note(
    backend: Backend, recorded: RecordedSchema | None, before: str | None
) -> Operation[None]:
    value = recorded.to_json() if recorded else None
    if (yield from call_engine(backend, backend.set_note(SCHEMA_NOTE, value, before))) != value:
        raise SchemaError(
            "another client set a schema at the same time; look at store.schema() and try again"
        )
