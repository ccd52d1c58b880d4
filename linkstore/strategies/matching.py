"""The plan of a query about typed links: exact sets of documents, and a chain to each result.

A branch is a row of *layers*. The first has its starts, and each link that is followed makes another one. A
layer keeps the links by which it was reached, so that chains are made only of what is returned. A branch that
becomes empty follows its last step once more without conditions, to say what there is.

A chain from a named document never comes back to it, and no link leads from a document to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain as chain_iterables
from itertools import pairwise
from time import monotonic
from typing import Any, Final

import numpy as np
from langchain_core.documents import Document

from linkstore.core import plans
from linkstore.core.arguments import quote_value
from linkstore.core.arrays import Floats, Ints, find_positions, is_member, sort_unique
from linkstore.core.display import format_count
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.graph_answer import GraphAnswer, GraphHit
from linkstore.core.graph_query import Branch, GraphQuery, Step
from linkstore.core.hits import Chain, Triple
from linkstore.core.plans import Plan, Side, StoredDocument
from linkstore.errors import QueryError
from linkstore.strategies.base import Question
from linkstore.strategies.names import list_choices
from linkstore.strategies.resolver import resolve_name
from linkstore.strategies.results import LinkTexts
from linkstore.strategies.traversal import NO_REFS, Edges, follow_links

MAX_NODES: Final = 100_000
"""How many documents a step of a query may lead to, by default."""
MAX_SECONDS: Final = 10.0
"""For how many seconds a query follows links, by default."""
_MAX_READ: Final = 1_000
"""How many documents are read for the values that they have."""
_MAX_VALUES: Final = 8
_MAX_SHOWN: Final = 60
"""Characters of a value that a reason shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchSettings:
    """What a plan needs beside the query.

    Args:
        vector: (d,) any unit vector.
        type_field: The metadata field that holds types.
        valid_from: The field that says from when a document or link is valid.
        valid_until: The field that says until when.
        max_nodes: How many documents a step may lead to.
        deadline: When to stop, by ``time.monotonic``.
    """

    vector: Floats
    type_field: str
    valid_from: str
    valid_until: str
    max_nodes: int
    deadline: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Documents that a branch leads to.

    Args:
        refs: (n,) ascending.
        length: (n,) number of links of the shortest chain to each.
        before: The layers that it was made of, by position.
        edges: The links from the one before to it, with positions in that as sources; None: it has the
            documents of several layers.
    """

    refs: Ints
    length: Ints
    before: tuple[int, ...] = ()
    edges: Edges | None = None

    def take(self, kept: Any) -> _Layer:
        """Return the layer with only the chosen documents."""
        return replace(self, refs=self.refs[kept], length=self.length[kept])


@dataclass(slots=True, kw_only=True)
class _Walk:
    """How a branch went: its layers, the last of which has what it leads to, and why it led nowhere."""

    branch: Branch
    name: str
    start: str | None = None
    layers: list[_Layer] = field(default_factory=list)
    reason: str | None = None

    @property
    def refs(self) -> Ints:
        return self.layers[-1].refs if self.layers else NO_REFS

    def add(self, layer: _Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1


@dataclass(frozen=True, slots=True)
class _Test:
    """A condition on documents, as a reason names it, and the fields whose values it then shows."""

    condition: Condition
    text: str
    fields: tuple[str, ...]


def make_validity_filter(as_of: str, valid_from: str, valid_until: str) -> Filter:
    """Return the filter for what is valid on a date.

    Bounds may be years, as strings or numbers, months, dates, or dates with a time.
    """
    year = int(as_of[:4])
    bounds = {
        valid_from: [{"$lte": f"{as_of}~"}, {"$lte": year}],  # "~" is behind what follows a date
        valid_until: [{"$gte": as_of}, {"$in": [as_of[:4], as_of[:7]]}, {"$gte": year}],
    }
    return {
        "$and": [
            {"$or": [{name: {"$exists": False}}, {name: None}, *({name: test} for test in tests)]}
            for name, tests in bounds.items()
        ]
    }


def match_query(query: GraphQuery, settings: MatchSettings) -> Plan[GraphAnswer]:
    """Plan a query.

    Raises:
        QueryError: If a start is not there, or several documents may be meant; or if a branch of ``but_not``
            reaches a limit.
    """
    return (yield from _Matcher(query, settings).plan())


class _Matcher:
    """One query while it is answered."""

    def __init__(self, query: GraphQuery, settings: MatchSettings) -> None:
        self._query = query
        self._settings = settings
        self._limits: dict[str, None] = {}
        self._valid, self._valid_tests = EVERYTHING, list[_Test]()
        if query.as_of is not None:
            fields = settings.valid_from, settings.valid_until
            self._valid = parse_filter(make_validity_filter(query.as_of, *fields))
            self._valid_tests = [_Test(self._valid, f"valid on {query.as_of}", fields)]

    def plan(self) -> Plan[GraphAnswer]:
        walks = []
        for number, branch in enumerate(self._query.branches, 1):
            walks.append((yield from self._walk(branch, f"branch {number}")))
        excluded = []
        for number, branch in enumerate(self._query.but_not, 1):
            before = len(self._limits)
            excluded.append((yield from self._walk(branch, f"branch {number} of but_not")))
            if len(self._limits) > before:
                raise QueryError(
                    f"what is not wanted cannot be told: {list(self._limits)[-1]}; narrow {branch} down, or"
                    " raise the limit"
                )
        refs, reason = yield from self._select_results(walks, excluded)
        answer = yield from self._make_answer(walks, refs)
        starts = {
            walk.branch.start or "": walk.start for walk in (*walks, *excluded) if walk.start is not None
        }
        return replace(answer, total=len(refs), starts=starts, limits=tuple(self._limits), reason=reason)

    def _walk(self, branch: Branch, name: str) -> Plan[_Walk]:
        """Follow a branch."""
        walk = _Walk(branch=branch, name=f"{name} ({branch})")
        first = yield from self._find_starts(walk)
        at = walk.add(_Layer(refs=first, length=np.zeros(len(first), dtype=np.int64)))
        exclude = first if branch.start is not None else NO_REFS
        for number, step in enumerate(branch.path, 1):
            if not len(walk.refs):
                break
            end = yield from self._take_step(walk, at, step, exclude, self._list_tests(step.type, step.where))
            if not len(walk.layers[end].refs) and not self._is_late():
                reason = yield from self._explain_step(walk, at, step, exclude)
                walk.reason = f"{walk.name}, step {number} {step.text!r}: {reason}"
            at = end
        return walk

    def _list_tests(self, type: str | None, where: Filter | None) -> list[_Test]:
        """Return the conditions on documents at some place: type, validity, filter."""
        tests = list(self._valid_tests)
        if type is not None:
            condition = parse_filter({self._settings.type_field: type})
            tests.insert(0, _Test(condition, f"of type {type}", (self._settings.type_field,)))
        if where:
            tests.append(_Test(parse_filter(where), _describe_filter(where), tuple(_list_fields(where))))
        return tests

    def _find_starts(self, walk: _Walk) -> Plan[Ints]:
        branch = walk.branch
        tests = self._list_tests(branch.start_type, branch.where)
        if branch.start is None:
            most = self._settings.max_nodes
            nearest = plans.Nearest(vector=self._settings.vector, k=most + 1, filter=_join(tests))
            refs = (yield from plans.ask(nearest)).refs
            if len(refs) > most:
                self._note_limit(f"{walk.name} starts from more than max_nodes={most:,} documents")
            if not len(refs):
                walk.reason = f"{walk.name}: {(yield from self._explain_no_start(tests))}"
            return sort_unique(refs[:most])
        walk.start = yield from self._resolve_start(branch)
        refs = (yield from plans.ask(plans.Find(ids=(walk.start,)))).refs
        kept = yield from _select(refs, tests)
        if not len(kept):
            walk.reason = f"{walk.name}: {(yield from self._explain_tests(refs, tests))}"
        return kept

    def _resolve_start(self, branch: Branch) -> Plan[str]:
        """Return the id of the document that the start of a branch means."""
        name, type_name = branch.start or "", branch.start_type
        typed = self._list_types(type_name)
        resolution = yield from resolve_name(name, self._settings.vector, _join(typed))
        if resolution.document is not None:
            return resolution.document.id
        called = f"document of type {type_name}" if type_name else "document"
        choices = resolution.candidates
        if not choices and type_name:
            other = yield from resolve_name(name, self._settings.vector)
            choices = (other.document,) if other.document else other.candidates
        if choices:
            what = "may mean" if resolution.candidates else f"is the name of no {called}, but there are"
            shown = list_choices(choices, self._settings.type_field)
            raise QueryError(f"the start {name[:200]!r} {what} {shown}; name one by its id")
        raise QueryError(
            f"no {called} has the id or name {name[:200]!r}; search for it, or start from all of a type"
        )

    def _list_types(self, type: str | None) -> list[_Test]:
        return [test for test in self._list_tests(type, None) if test not in self._valid_tests]

    def _take_step(
        self, walk: _Walk, at: int, step: Step, exclude: Ints, tests: Sequence[_Test], *, links: bool = True
    ) -> Plan[int]:
        """Follow a step from a layer, and return the layer that it leads to.

        Args:
            walk: Takes the layers.
            at: The layer to start from.
            step: The step.
            exclude: Documents that are not arrived at.
            tests: Conditions on the documents at its end.
            links: Whether what is on the way must be valid too.
        """
        low, high = step.repeat
        valid = self._valid if links else EVERYTHING
        condition = _join(tests) if high == 1 else valid
        reached, seen, place = ([at] if low == 0 else []), (walk.layers[at].refs if low == 0 else NO_REFS), at
        for depth in range(1, high + 1):
            layer = yield from self._follow(walk, place, step, condition, valid, exclude)
            if low <= 1:  # from a document that was reached before, the same would be reached again
                layer = layer.take(find_positions(layer.refs, seen) < 0)
                seen = np.union1d(seen, layer.refs)
            if not len(layer.refs):
                break
            place = walk.add(layer)
            if depth >= low:
                reached.append(place)
        end = self._merge(walk, reached)
        if high > 1 or low == 0:
            kept = yield from _select(walk.layers[end].refs, tests)
            end = walk.add(
                _Layer(
                    refs=kept,
                    length=walk.layers[end].length[find_positions(kept, walk.layers[end].refs)],
                    before=(end,),
                )
            )
        return end

    def _follow(
        self, walk: _Walk, at: int, step: Step, condition: Condition, valid: Condition, exclude: Ints
    ) -> Plan[_Layer]:
        """Follow links of a step once."""
        before, most = walk.layers[at], self._settings.max_nodes
        if self._is_late():
            self._note_limit(f"{walk.name} was not followed to its end: the time was up")
            return _Layer(refs=NO_REFS, length=NO_REFS)
        leave: Side = "in" if step.backward else "out"
        hop = yield from follow_links(
            before.refs,
            leave,
            kinds=frozenset(step.relations),
            links=valid,
            take=most,
            cap=most,
            exclude=exclude,
            filter=condition,
        )
        if (hop.reached.sizes > most).any():
            self._note_limit(f"{walk.name}: a link of {step.text!r} leads to more than max_nodes={most:,}")
        edges = hop.edges.take(hop.edges.target != before.refs[hop.edges.source])
        refs = sort_unique(edges.target)
        if len(refs) > most:
            self._note_limit(f"{walk.name}: {step.text!r} leads to more than max_nodes={most:,} documents")
            refs = refs[:most]
            edges = edges.take(find_positions(edges.target, refs) >= 0)
        length = np.full(len(refs), np.iinfo(np.int64).max)
        np.minimum.at(length, find_positions(edges.target, refs), before.length[edges.source] + 1)
        return _Layer(refs=refs, length=length, before=(at,), edges=edges)

    @staticmethod
    def _merge(walk: _Walk, layers: Sequence[int]) -> int:
        """Return a layer with the documents of several ones."""
        if len(layers) == 1:
            return layers[0]
        parts = [walk.layers[at] for at in layers]
        refs = sort_unique(np.concatenate([NO_REFS, *(part.refs for part in parts)]))
        length = np.full(len(refs), np.iinfo(np.int64).max)
        for part in parts:
            np.minimum.at(length, find_positions(part.refs, refs), part.length)
        return walk.add(_Layer(refs=refs, length=length, before=tuple(layers)))

    def _is_late(self) -> bool:
        return monotonic() > self._settings.deadline

    def _note_limit(self, text: str) -> None:
        self._limits[text] = None

    def _explain_step(self, walk: _Walk, at: int, step: Step, exclude: Ints) -> Plan[str]:
        """Say why a step leads nowhere: what there is without its conditions."""
        tests = self._list_tests(step.type, step.where)
        again = _Walk(branch=walk.branch, name=walk.name, layers=walk.layers[: at + 1])
        end = yield from self._take_step(again, at, step, exclude, (), links=False)
        there = again.layers[end].refs
        before = format_count(len(walk.layers[at].refs), "document")
        if len(there):
            reason = yield from self._explain_tests(there, tests)
            if not reason:
                reason = f"{format_count(len(there), 'document')}, 0 by links valid on {self._query.as_of}"
            return f"{before} before; {reason}"
        refs, kinds = walk.layers[at].refs[:_MAX_READ], []
        sides: tuple[Side, Side] = ("out", "in")
        for side, mark in zip(sides, ("", "<"), strict=True):
            own = yield from plans.ask(plans.Groups(refs=refs, side=side))
            kinds += [f"{mark}{own.kinds[kind]}" for kind in np.unique(own.kind).tolist()]
        here = f"; links here: {', '.join(sorted(kinds)[: 2 * _MAX_VALUES])}" if kinds else ""
        return f"{before} before, 0 after{here}"

    def _explain_no_start(self, tests: Sequence[_Test]) -> Plan[str]:
        """Say why no document passes the tests of a start without a name."""
        there = NO_REFS
        for at in range(len(tests) + 1):
            fetch = plans.Nearest(vector=self._settings.vector, k=_MAX_READ, filter=_join(tests[:at]))
            kept = (yield from plans.ask(fetch)).refs
            if not len(kept):
                return (yield from _explain_test(there, tests[:at])) if at else "there is no document"
            there = kept
        return "there is no document"

    def _explain_tests(self, refs: Ints, tests: Sequence[_Test]) -> Plan[str]:
        """Say which test no document passes that passes the ones before; "" if some pass all."""
        there = refs
        for at, test in enumerate(tests, 1):
            kept = yield from _select(there, [test])
            if not len(kept):
                return (yield from _explain_test(there, tests[:at]))
            there = kept
        return ""

    def _select_results(
        self, walks: Sequence[_Walk], excluded: Sequence[_Walk]
    ) -> Plan[tuple[Ints, str | None]]:
        """Join the branches and test the results; return them, or why there are none."""
        every = self._query.combine == "all"
        refs = reduce(np.intersect1d if every else np.union1d, [walk.refs for walk in walks])
        if not len(refs):
            empty = [walk.reason for walk in walks if walk.reason]
            counts = (f"{walk.name} leads to {format_count(len(walk.refs), 'document')}" for walk in walks)
            return refs, "; ".join(empty or [*counts, "no document is in all of them"])
        unwanted = reduce(np.union1d, [walk.refs for walk in excluded], NO_REFS)
        kept = refs[find_positions(refs, unwanted) < 0]
        if not len(kept):
            return kept, f"{format_count(len(refs), 'document')}, and but_not leads to each"
        tests = self._list_tests(self._query.result_type, self._query.where)
        results = yield from _select(kept, tests)
        if not len(results):
            return results, f"the results: {(yield from self._explain_tests(kept, tests))}"
        return results, None

    def _make_answer(self, walks: Sequence[_Walk], refs: Ints) -> Plan[GraphAnswer]:
        query = self._query
        if query.returns == "count" or not len(refs):
            return GraphAnswer(starts={})
        if query.field is not None:
            documents = yield from plans.ask(plans.Documents(refs=refs))
            counts = _count_values(documents, query.field)
            if query.returns == "groups":
                ordered = sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))
                groups = tuple((value, count) for _, (value, count) in ordered[: query.limit])
                return GraphAnswer(starts={}, groups=groups, distinct=len(counts))
            keys = sorted(counts, reverse=query.descending)
            values = tuple(counts[key][0] for key in keys[: query.limit])
            return GraphAnswer(starts={}, values=values, distinct=len(counts))
        chosen = yield from self._choose_returned(refs)
        stored = yield from plans.ask(plans.Documents(refs=chosen))
        chains: dict[int, list[Chain]] = {ref: [] for ref in chosen.tolist()}
        for walk in walks:
            for ref, way in (yield from self._make_chains(walk, chosen)).items():
                chains[ref].append(way)
        hits = tuple(
            GraphHit(
                document=Document(id=document.id, page_content=document.text, metadata=document.metadata),
                chains=tuple(sorted(chains[ref], key=len)),
            )
            for ref, document in zip(chosen.tolist(), stored, strict=True)
        )
        return GraphAnswer(starts={}, hits=hits)

    def _choose_returned(self, refs: Ints) -> Plan[Ints]:
        """Return the documents to return, in order."""
        query, name = self._query, self._query.order_by
        if name is None:
            ids = yield from plans.ask(plans.Ids(refs=refs))
            order = sorted(range(len(ids)), key=ids.__getitem__, reverse=query.descending)
            return refs[order[: query.limit]]
        documents = yield from plans.ask(plans.Documents(refs=refs))
        by_id = sorted(range(len(refs)), key=lambda at: documents[at].id)
        having = [at for at in by_id if name in documents[at].metadata]
        having.sort(key=lambda at: _rank_value(documents[at].metadata[name]), reverse=query.descending)
        lacking = [at for at in by_id if name not in documents[at].metadata]
        return refs[[*having, *lacking][: query.limit]]

    def _make_chains(self, walk: _Walk, chosen: Ints) -> Plan[dict[int, Chain]]:
        """Return a shortest chain of a branch to each of the documents that it leads to."""
        ends = chosen[find_positions(chosen, walk.refs) >= 0]
        parents = yield from _trace(walk.layers, ends)
        last = len(walk.layers) - 1
        ways = {end: _list_way(parents, last, end) for end in ends.tolist()}
        refs = sort_unique(np.array([ref for way in ways.values() for ref, _ in way], dtype=np.int64))
        stored = yield from plans.ask(plans.Documents(refs=refs))
        documents = dict(zip(refs.tolist(), stored, strict=True))
        texts = LinkTexts(documents, Question(vector=self._settings.vector, link_filter=self._valid))
        return {end: _make_chain(way, documents, texts) for end, way in ways.items()}


Arrival = tuple[tuple[str, str], bool] | None
"""The (kind, tag) of the link that led to a document, and whether it was followed forward."""
Parents = Mapping[tuple[int, int], tuple[int, int, Arrival]]
"""For a (layer, document), the layer and document before it, and the link between them."""


def _trace(layers: Sequence[_Layer], ends: Ints) -> Plan[Parents]:
    """Choose the way to each of some documents of the last layer, by the least ids of those before."""
    parents: dict[tuple[int, int], tuple[int, int, Arrival]] = {}
    needed: list[set[int]] = [set() for _ in layers]
    if layers:
        needed[-1] = set(ends.tolist())
    for at in range(len(layers) - 1, 0, -1):
        layer = layers[at]
        refs = np.array(sorted(needed[at]), dtype=np.int64)
        if not len(refs):
            continue
        if layer.edges is None:
            for ref, source in _choose_layers(layers, layer, refs).items():
                parents[at, ref] = source, ref, None
                needed[source].add(ref)
            continue
        before = layers[layer.before[0]]
        edges = layer.edges.take(is_member(layer.edges.target, refs))
        shortest = before.length[edges.source] + 1 == layer.length[find_positions(edges.target, layer.refs)]
        edges = edges.take(shortest)
        sources = before.refs[edges.source]
        once, place = np.unique(sources, return_inverse=True)
        ids = yield from plans.ask(plans.Ids(refs=once))
        groups, group = np.unique(edges.group, return_inverse=True)
        tags = yield from plans.ask(plans.Tags(groups=groups))
        best: dict[int, tuple[Any, ...]] = {}
        rows = zip(
            *(column.tolist() for column in (edges.target, sources, place, group, edges.forward)), strict=True
        )
        for target, source, of_id, of_tag, forward in rows:
            way = (ids[of_id], tags[of_tag], not forward, source)
            if target not in best or way < best[target]:
                best[target] = way
        for target, (_, tag, backward, source) in best.items():
            parents[at, target] = layer.before[0], source, (tag, not backward)
            needed[layer.before[0]].add(source)
    return parents


def _choose_layers(layers: Sequence[_Layer], layer: _Layer, refs: Ints) -> dict[int, int]:
    """Return for each document of a layer of several ones that which has it with the shortest chain."""
    chosen: dict[int, int] = {}
    lengths = dict(zip(layer.refs.tolist(), layer.length.tolist(), strict=True))
    for source in layer.before:
        own = layers[source]
        place = find_positions(refs, own.refs)
        for ref, at in zip(refs.tolist(), place.tolist(), strict=True):
            if at >= 0 and own.length[at] == lengths[ref]:
                chosen.setdefault(ref, source)
    return chosen


def _list_way(parents: Parents, layer: int, ref: int) -> list[tuple[int, Arrival]]:
    """Return the documents of a chain from its start, each with the link that led to it."""
    way: list[tuple[int, Arrival]] = []
    while (layer, ref) in parents:
        before, source, arrival = parents[layer, ref]
        if arrival is not None:
            way.append((ref, arrival))
        layer, ref = before, source
    return [(ref, None), *reversed(way)]


def _make_chain(
    way: Sequence[tuple[int, Arrival]], documents: Mapping[int, StoredDocument], texts: LinkTexts
) -> Chain:
    triples = []
    for (before, _), (ref, arrival) in pairwise(way):
        assert arrival is not None
        tag, forward = arrival
        subject, object_ = (before, ref) if forward else (ref, before)
        triples.append(
            Triple(
                subject=documents[subject].id,
                kind=tag[0],
                object=documents[object_].id,
                label=texts.label(tag, subject, object_),
                data=texts.data(tag, subject),
            )
        )
    return Chain(documents[way[0][0]].id, tuple(triples))


def _join(tests: Iterable[_Test]) -> Condition:
    return reduce(Condition.__and__, (test.condition for test in tests), EVERYTHING)


def _select(refs: Ints, tests: Sequence[_Test]) -> Plan[Ints]:
    """Return the documents that pass all tests."""
    for test in tests:
        if len(refs):
            passing = yield from plans.ask(plans.Matching(refs=refs, filter=test.condition))
            refs = refs[passing]
    return refs


def _explain_test(refs: Ints, tests: Sequence[_Test]) -> Plan[str]:
    """Say that none of the documents that pass all tests but the last pass it, and what values they have."""
    values = yield from _list_values(refs, tests[-1].fields)
    count = (
        f"{_MAX_READ:,} or more documents" if len(refs) == _MAX_READ else format_count(len(refs), "document")
    )
    before = " ".join([count, *(test.text for test in tests[:-1])])
    return f"{before}, 0 {tests[-1].text}; {values}"


def _list_values(refs: Ints, fields: Sequence[str]) -> Plan[str]:
    """List the commonest values of some fields, in words."""
    documents = yield from plans.ask(plans.Documents(refs=refs[:_MAX_READ]))
    texts = []
    for name in dict.fromkeys(fields):
        counts = sorted(_count_values(documents, name).values(), key=lambda entry: -entry[1])
        shown = ", ".join(quote_value(value)[:_MAX_SHOWN] for value, _ in counts[:_MAX_VALUES])
        more = len(counts) - _MAX_VALUES
        more_text = f" and {more} more" if more > 0 else ""
        texts.append(f"values of {name!r} here: {shown or 'none'}{more_text}")
    return "; ".join(texts)


def _count_values(documents: Iterable[StoredDocument], name: str) -> dict[Any, tuple[Any, int]]:
    """Count the values of a field, of a list each member, by a key that orders them."""
    values: dict[Any, Any] = {}
    counts: Counter[Any] = Counter()
    for document in documents:
        if name in document.metadata:
            value = document.metadata[name]
            for item in value if isinstance(value, list) else [value]:
                values.setdefault(key := _rank_value(item), item)
                counts[key] += 1
    return {key: (values[key], count) for key, count in counts.items()}


def _rank_value(value: Any) -> tuple[int, float, str]:
    """Return a key that orders values: numbers, then strings, then others."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0, value, ""
    return (1, 0, value) if isinstance(value, str) else (2, 0, repr(value))


def _list_fields(where: Filter) -> Iterator[str]:
    """Yield the fields that a filter names."""
    for name, value in where.items():
        if name in ("$and", "$or"):
            yield from chain_iterables.from_iterable(map(_list_fields, value))
        elif name == "$not":
            yield from _list_fields(value)
        else:
            yield name


_WORDS: Final[Mapping[str, Callable[[str, str], str]]] = {
    "$ne": lambda name, value: f"with another {name} than {value}",
    "$gt": lambda name, value: f"with {name} > {value}",
    "$gte": lambda name, value: f"with {name} >= {value}",
    "$lt": lambda name, value: f"with {name} < {value}",
    "$lte": lambda name, value: f"with {name} <= {value}",
}


def _describe_filter(where: Filter) -> str:
    """Describe a filter in words, if it is a simple one."""
    ((name, value), *more) = where.items()
    if isinstance(value, Mapping) and len(value) == 1:
        ((operator, operand),) = value.items()
        if operator in _WORDS and not more:
            return _WORDS[operator](name, quote_value(operand))
    elif not more and not name.startswith("$"):
        return f"with {name} {quote_value(value)}"
    return f"with {quote_value(dict(where))}"
