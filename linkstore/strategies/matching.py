"""The plan of a query about typed links: exact sets of documents, and a chain to each result.

A branch is a row of *layers*. The first has its starts, and each link that is followed makes another one. A
layer keeps the links by which it was reached, so that chains are made only of what is returned. A branch that
becomes empty follows its last step once more without conditions, to say what there is.

A chain from a named document never comes back to it, and no link leads from a document to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain as chain
from time import monotonic
from typing import Any, Final

import numpy as np
from langchain_core.documents import Document

from linkstore.core import plans
from linkstore.core.arrays import Floats, Ints, find_positions, sort_unique
from linkstore.core.display import format_count
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.graph_answer import GraphAnswer, GraphHit
from linkstore.core.graph_query import Branch, GraphQuery, Step
from linkstore.core.hits import Chain
from linkstore.core.plans import Plan, Side, StoredDocument
from linkstore.errors import QueryError
from linkstore.strategies.base import Question
from linkstore.strategies.conditions import (
    MAX_READ,
    Test,
    count_values,
    describe_filter,
    explain_test,
    join_tests,
    list_fields,
    make_validity_filter,
    rank_value,
    select_passing,
)
from linkstore.strategies.resolver import list_choices, resolve_name
from linkstore.strategies.results import LinkTexts
from linkstore.strategies.traversal import NO_REFS, follow_links
from linkstore.strategies.walks import Layer, list_way, make_chain, trace_ways

_FEW_STARTS: Final = 500
"""So many documents of a type are looked up before all are."""
_MAX_LISTED: Final = 16
"""How many relations a reason lists."""


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


@dataclass(slots=True, kw_only=True)
class _Walk:
    """How a branch went: its layers, of which the last one has its ends, or why it led nowhere."""

    branch: Branch
    name: str
    layers: list[Layer] = field(default_factory=list)
    reason: str | None = None

    @property
    def refs(self) -> Ints:
        return self.layers[-1].refs if self.layers else NO_REFS

    def add(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1


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
        self._starts: dict[str, str] = {}
        self._valid, self._valid_tests = EVERYTHING, list[Test]()
        if query.as_of is not None:
            fields = settings.valid_from, settings.valid_until
            self._valid = parse_filter(make_validity_filter(query.as_of, *fields))
            self._valid_tests = [Test(self._valid, f"valid on {query.as_of}", fields)]

    def plan(self) -> Plan[GraphAnswer]:
        walks = []
        for number, branch in enumerate(self._query.branches, 1):
            walks.append((yield from self._walk(branch, f"branch {number}")))
        unwanted = NO_REFS
        for number, branch in enumerate(self._query.but_not, 1):
            away = yield from self._walk_away(branch, f"branch {number} of but_not")
            unwanted = np.union1d(unwanted, away)
        refs, reason = yield from self._select_results(walks, unwanted)
        answer = yield from self._make_answer(walks, refs)
        limits = tuple(self._limits)
        return replace(answer, total=len(refs), starts=self._starts, limits=limits, reason=reason)

    def _walk_away(self, branch: Branch, name: str) -> Plan[Ints]:
        """Follow a branch to what is not wanted; all of it must be known."""
        before = len(self._limits)
        walk = yield from self._walk(branch, name)
        if len(self._limits) > before:
            raise QueryError(
                f"what is not wanted cannot be told: {list(self._limits)[-1]}; narrow {branch} down, or raise"
                " the limit"
            )
        return walk.refs

    def _walk(self, branch: Branch, name: str) -> Plan[_Walk]:
        """Follow a branch."""
        walk = _Walk(branch=branch, name=f"{name} ({branch})")
        first = yield from self._find_starts(walk)
        at = walk.add(Layer(refs=first, length=np.zeros(len(first), dtype=np.int64)))
        exclude = first if branch.start is not None else NO_REFS
        for number, step in enumerate(branch.path, 1):
            if not len(walk.refs):
                break
            end = yield from self._take_step(walk, at, step, exclude, self._list_tests(step.type, step.where))
            if not len(walk.layers[end].refs) and not self._is_late():
                reason = yield from self._explain_step(walk, at, step, exclude)
                walk.reason = f"{walk.name}, step {number} {step.text!r}: {reason}"
            at = yield from self._narrow(walk, end, step, f"step {number} {step.text!r}")
        return walk

    def _narrow(self, walk: _Walk, at: int, step: Step, name: str) -> Plan[int]:
        """Keep the documents of a layer that the branches of a step lead to, or do not."""
        for branch in (*step.also, *step.but_not):
            there, place = walk.layers[at].refs, f"{walk.name}, {name}"
            if not len(there):
                break
            if branch in step.also:
                other = yield from self._walk(branch, f"{place}, also")
                refs, how = np.intersect1d(there, other.refs), "none"
                why = f" ({other.reason})" if other.reason else ""
            else:
                refs = np.setdiff1d(there, (yield from self._walk_away(branch, f"{place}, but_not")))
                how, why = "each", ""
            if not len(refs):
                counts = format_count(len(there), "document")
                walk.reason = f"{place}: {counts}, {how} of which {branch} leads to{why}"
            at = walk.add(self._keep(walk, at, refs))
        return at

    @staticmethod
    def _keep(walk: _Walk, at: int, refs: Ints) -> Layer:
        """Return a layer with only some of its documents."""
        length = walk.layers[at].length[find_positions(refs, walk.layers[at].refs)]
        return Layer(refs=refs, length=length, before=(at,))

    def _list_tests(self, type: str | None, where: Filter | None) -> list[Test]:
        """Return the conditions on documents at some place: type, validity, filter."""
        tests = list(self._valid_tests)
        if type is not None:
            condition = parse_filter({self._settings.type_field: type})
            tests.insert(0, Test(condition, f"of type {type}", (self._settings.type_field,)))
        if where:
            tests.append(Test(parse_filter(where), describe_filter(where), tuple(list_fields(where))))
        return tests

    def _find_starts(self, walk: _Walk) -> Plan[Ints]:
        branch = walk.branch
        tests = self._list_tests(branch.start_type, branch.where)
        if branch.start is None:
            most = self._settings.max_nodes
            # A server's index finds a few documents at once; more takes looking at all.
            few = min(_FEW_STARTS, most + 1)
            fetch = plans.Nearest(vector=self._settings.vector, k=few, filter=join_tests(tests))
            refs = (yield from plans.ask(fetch)).refs
            if len(refs) == few <= most:
                refs = (yield from plans.ask(replace(fetch, k=most + 1))).refs
            if len(refs) > most:
                self._record_limit(f"{walk.name} starts from more than max_nodes={most:,} documents")
            if not len(refs):
                walk.reason = f"{walk.name}: {(yield from self._explain_no_start(tests))}"
            return sort_unique(refs[:most])
        start = yield from self._resolve_start(branch)
        self._starts[branch.start] = start
        refs = (yield from plans.ask(plans.Find(ids=(start,)))).refs
        kept = yield from select_passing(refs, tests)
        if not len(kept):
            walk.reason = f"{walk.name}: {(yield from self._explain_tests(refs, tests))}"
        return kept

    def _resolve_start(self, branch: Branch) -> Plan[str]:
        """Return the id of the document that the start of a branch means."""
        name, type_name = branch.start or "", branch.start_type
        typed = [test for test in self._list_tests(type_name, None) if test not in self._valid_tests]
        resolution = yield from resolve_name(
            name, self._settings.vector, join_tests(typed), self._settings.type_field
        )
        if resolution.document is not None:
            return resolution.document.id
        able = yield from self._select_able(() if resolution.alike else resolution.candidates, branch)
        if len(able) == 1:
            return able[0]
        type_field = self._settings.type_field
        if type_name and not resolution.candidates:
            other = yield from resolve_name(name, self._settings.vector, type_field=type_field)
            if choices := (other.document,) if other.document else other.candidates:
                raise QueryError(
                    f"{name[:200]!r} is the name of no document of type {type_name}, but there are"
                    f" {list_choices(choices, type_field)}; name one by its id"
                )
        raise QueryError(resolution.explain(name, "search for it, or start from all of a type", type_field))

    def _select_able(self, candidates: Sequence[StoredDocument], branch: Branch) -> Plan[list[str]]:
        """Select the candidates for a start whose type alone the first step leads on from."""
        step = branch.path[0] if branch.path else None
        if not candidates or step is None or step.repeat[0] == 0:
            return []
        ids = tuple(document.id for document in candidates)
        refs = (yield from plans.ask(plans.Find(ids=ids))).refs
        leave: Side = "in" if step.backward else "out"
        groups = plans.Groups(refs=refs, side=leave, kinds=frozenset(step.relations))
        able = np.unique((yield from plans.ask(groups)).document)
        able_ids = set((yield from plans.ask(plans.Ids(refs=refs[able]))))
        types = {
            document.metadata.get(self._settings.type_field)
            for document in candidates
            if document.id in able_ids
        }
        return [
            document.id
            for document in candidates
            if document.metadata.get(self._settings.type_field) in types
        ]

    def _take_step(
        self, walk: _Walk, at: int, step: Step, exclude: Ints, tests: Sequence[Test], *, links: bool = True
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
        condition = join_tests(tests) if high == 1 else valid
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
            kept = yield from select_passing(walk.layers[end].refs, tests)
            end = walk.add(self._keep(walk, end, kept))
        return end

    def _follow(
        self, walk: _Walk, at: int, step: Step, condition: Condition, valid: Condition, exclude: Ints
    ) -> Plan[Layer]:
        """Follow links of a step once."""
        before, most = walk.layers[at], self._settings.max_nodes
        if self._is_late():
            self._record_limit(f"{walk.name} was not followed to its end: the time was up")
            return Layer(refs=NO_REFS, length=NO_REFS)
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
            self._record_limit(f"{walk.name}: a link of {step.text!r} leads to more than max_nodes={most:,}")
        edges = hop.edges.take(hop.edges.target != before.refs[hop.edges.source])
        refs = sort_unique(edges.target)
        if len(refs) > most:
            self._record_limit(f"{walk.name}: {step.text!r} leads to more than max_nodes={most:,} documents")
            refs = refs[:most]
            edges = edges.take(find_positions(edges.target, refs) >= 0)
        length = np.full(len(refs), np.iinfo(np.int64).max)
        np.minimum.at(length, find_positions(edges.target, refs), before.length[edges.source] + 1)
        return Layer(refs=refs, length=length, before=(at,), edges=edges)

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
        return walk.add(Layer(refs=refs, length=length, before=tuple(layers)))

    def _is_late(self) -> bool:
        return monotonic() > self._settings.deadline

    def _record_limit(self, text: str) -> None:
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
        refs, kinds = walk.layers[at].refs[:MAX_READ], []
        sides: tuple[Side, Side] = ("out", "in")
        for side, mark in zip(sides, ("", "<"), strict=True):
            own = yield from plans.ask(plans.Groups(refs=refs, side=side))
            kinds += [f"{mark}{own.kinds[kind]}" for kind in np.unique(own.kind).tolist()]
        here = f"; links here: {', '.join(sorted(kinds)[:_MAX_LISTED])}" if kinds else ""
        return f"{before} before, 0 after{here}"

    def _explain_no_start(self, tests: Sequence[Test]) -> Plan[str]:
        """Say why no document passes the tests of a start without a name."""
        there = NO_REFS
        for at in range(len(tests) + 1):
            fetch = plans.Nearest(vector=self._settings.vector, k=MAX_READ, filter=join_tests(tests[:at]))
            kept = (yield from plans.ask(fetch)).refs
            if not len(kept):
                return (yield from explain_test(there, tests[:at])) if at else "there is no document"
            there = kept
        return "there is no document"

    def _explain_tests(self, refs: Ints, tests: Sequence[Test]) -> Plan[str]:
        """Describe the first test that leaves no document; "" if some pass all."""
        there = refs
        for at, test in enumerate(tests, 1):
            kept = yield from select_passing(there, [test])
            if not len(kept):
                return (yield from explain_test(there, tests[:at]))
            there = kept
        return ""

    def _select_results(self, walks: Sequence[_Walk], unwanted: Ints) -> Plan[tuple[Ints, str | None]]:
        """Join the branches and test the results; return them, or why there are none."""
        every = self._query.combine == "all"
        refs = reduce(np.intersect1d if every else np.union1d, [walk.refs for walk in walks])
        if not len(refs):
            empty = [walk.reason for walk in walks if walk.reason]
            counts = (f"{walk.name} leads to {format_count(len(walk.refs), 'document')}" for walk in walks)
            return refs, "; ".join(empty or [*counts, "no document is in all of them"])
        kept = refs[find_positions(refs, unwanted) < 0]
        if not len(kept):
            return kept, f"{format_count(len(refs), 'document')}, and but_not leads to each"
        tests = self._list_tests(self._query.result_type, self._query.where)
        results = yield from select_passing(kept, tests)
        if not len(results):
            return results, f"the results: {(yield from self._explain_tests(kept, tests))}"
        return results, None

    def _make_answer(self, walks: Sequence[_Walk], refs: Ints) -> Plan[GraphAnswer]:
        query = self._query
        if query.returns == "count" or not len(refs):
            return GraphAnswer(starts={})
        if query.field is not None:
            documents = yield from plans.ask(plans.Documents(refs=refs))
            counts = count_values(documents, query.field)
            if query.returns == "groups":
                ordered = sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))
                groups = tuple((value, count) for _, (value, count) in ordered[: query.limit])
                return GraphAnswer(starts={}, groups=groups, distinct=len(counts))
            keys = sorted(counts, reverse=query.descending)
            values = tuple(counts[key][0] for key in keys[: query.limit])
            return GraphAnswer(starts={}, values=values, distinct=len(counts))
        chosen, ends = yield from self._choose_returned(refs)
        stored = yield from plans.ask(plans.Documents(refs=chosen))
        chains: dict[int, list[Chain]] = {ref: [] for ref in chosen.tolist()}
        for walk in walks:
            for ref, way in (yield from self._make_chains(walk, chosen)).items():
                chains[ref].append(way)
        hits = tuple(
            GraphHit(
                document=Document(id=document.id, page_content=document.text, metadata=document.metadata),
                chains=tuple(sorted(chains[ref], key=len)),
                count=ends.get(ref),
            )
            for ref, document in zip(chosen.tolist(), stored, strict=True)
        )
        return GraphAnswer(starts={}, hits=hits)

    def _choose_returned(self, refs: Ints) -> Plan[tuple[Ints, dict[int, int]]]:
        """Return the documents to return, in order, and what was counted to order them."""
        query = self._query
        ids = yield from plans.ask(plans.Ids(refs=refs))
        if query.order_by is None:
            order = sorted(range(len(ids)), key=ids.__getitem__, reverse=query.descending)
            return refs[order[: query.limit]], {}
        values = yield from self._rank_results(refs, query.order_by, query.counted)
        by_id = sorted(range(len(refs)), key=ids.__getitem__)
        order = sorted(filter(values.__contains__, by_id), key=values.__getitem__, reverse=query.descending)
        last = values.get(order[min(query.limit, len(order)) - 1]) if order and query.ties else None
        tied = [at for at in order[query.limit :] if values[at] == last]
        lacking = [at for at in by_id if at not in values]
        chosen = refs[[*[*order, *lacking][: query.limit], *tied]]
        return chosen, {ref: values[at] for at, ref in enumerate(refs.tolist())} if query.counted else {}

    def _rank_results(self, refs: Ints, name: str, step: Step | None) -> Plan[dict[int, Any]]:
        """Return what orders results, by position: values of a field, or the number of ends of a step."""
        if step is None:
            documents = yield from plans.ask(plans.Documents(refs=refs))
            fields = [document.metadata for document in documents]
            return {at: rank_value(own[name]) for at, own in enumerate(fields) if name in own}
        start = Layer(refs=refs, length=np.zeros(len(refs), dtype=np.int64))
        walk = _Walk(branch=self._query.branches[0], name=f"order_by {name!r}", layers=[start])
        end = yield from self._follow(walk, 0, step, EVERYTHING, self._valid, NO_REFS)
        edges = end.edges
        pairs = {*zip(edges.source.tolist(), edges.target.tolist(), strict=True)} if edges else ()
        return {**dict.fromkeys(range(len(refs)), 0), **Counter(source for source, _ in pairs)}

    def _make_chains(self, walk: _Walk, chosen: Ints) -> Plan[dict[int, Chain]]:
        """Return a shortest chain of a branch to each of the documents that it leads to."""
        ends = chosen[find_positions(chosen, walk.refs) >= 0]
        parents = yield from trace_ways(walk.layers, ends)
        last = len(walk.layers) - 1
        ways = {end: list_way(parents, last, end) for end in ends.tolist()}
        refs = sort_unique(np.array([ref for way in ways.values() for ref, _ in way], dtype=np.int64))
        stored = yield from plans.ask(plans.Documents(refs=refs))
        documents = dict(zip(refs.tolist(), stored, strict=True))
        texts = LinkTexts(documents, Question(vector=self._settings.vector, link_filter=self._valid))
        return {end: make_chain(way, documents, texts) for end, way in ways.items()}
