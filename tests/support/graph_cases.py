"""Random typed graphs and queries, and what the queries mean in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from langchain_core.documents import Document

from linkstore import Link, LinkStore, add_links, get_links
from linkstore.core.filters import parse_filter
from linkstore.core.graph_answer import GraphAnswer
from linkstore.core.graph_query import Branch, GraphQuery, Step
from linkstore.store import Relation, Schema

TYPES = ("Ship", "Flag", "Rule")
KINDS = ("FLIES", "OWNS", "KEEPS")
DATES = ("2019", "2019-06", "2020-01-01", "2021-03-05T10:00", "2023-12-31")
AS_OF = ("2019-06-15", "2020-01-01", "2021-03-05", "2024-02-02")
SCHEMA = Schema(
    types=set(TYPES),
    relations=[Relation(kind, TYPES, TYPES, both_ways=True, may_dangle=True) for kind in KINDS],
)


def make_graph(rng: random.Random, size: int = 24) -> list[Document]:
    """Make documents with types, dates and links of all directions, some of which lead nowhere."""
    documents = []
    for number in range(size):
        metadata: dict[str, Any] = {
            "type": rng.choice(TYPES),
            "n": rng.randrange(4),
            "rights": rng.choice("ab"),
        }
        metadata |= {} if rng.random() < 0.5 else {"status": rng.choice(["active", "over"])}
        metadata |= _make_dates(rng)
        document = Document(id=f"d{number}", page_content=f"Document {number}.", metadata=metadata)
        links = [Link.incoming(kind=kind, tag=f"d{number}") for kind in KINDS]
        for _ in range(rng.randrange(4)):
            kind, tag = rng.choice(KINDS), f"d{rng.randrange(size + 2)}"
            links.append(Link.outgoing(kind=kind, tag=tag, data=_make_dates(rng) or None))
        if rng.random() < 0.2:
            links.append(Link.bidir(kind=rng.choice(KINDS), tag=f"shared {rng.randrange(3)}"))
        add_links(document, *links)
        documents.append(document)
    return documents


def _make_dates(rng: random.Random) -> dict[str, str]:
    return {name: rng.choice(DATES) for name in ("valid_from", "valid_until") if rng.random() < 0.25}


def make_query(rng: random.Random, size: int = 24) -> GraphQuery:
    """Make a query, some of which have an empty result."""
    branches = tuple(_make_branch(rng, size) for _ in range(rng.choice([1, 1, 2, 3])))
    return GraphQuery(
        branches=branches,
        combine=rng.choice(["all", "any"]),
        but_not=(_make_branch(rng, size),) if rng.random() < 0.3 else (),
        result_type=rng.choice([None, None, *TYPES]),
        where=rng.choice([None, None, {"status": "active"}, {"n": {"$gte": 1}}]),
        as_of=rng.choice([None, None, *AS_OF]),
        order_by=rng.choice([None, "n", "status", "<FLIES", ">OWNS|KEEPS"]),
        descending=rng.random() < 0.5,
        limit=rng.choice([3, 100]),
        ties=rng.random() < 0.3,
    )


def _make_branch(rng: random.Random, size: int, *, nested: bool = False) -> Branch:
    path = tuple(_make_step(rng, size, nested=nested) for _ in range(rng.randrange(4)))
    if rng.random() < 0.7:
        return Branch(f"d{rng.randrange(size)}", path=path)
    return Branch(start_type=rng.choice(TYPES), path=path, where=rng.choice([None, {"n": {"$ne": 2}}]))


def _make_step(rng: random.Random, size: int, *, nested: bool) -> Step:
    inner = [_make_branch(rng, size, nested=True) for _ in range(0 if nested else 2)]
    return Step(
        rng.sample(KINDS, rng.choice([1, 1, 2])),
        backward=rng.random() < 0.5,
        repeat=rng.choice([(1, 1), (1, 1), (1, 3), (0, 2), (2, 3)]),
        type=rng.choice([None, None, *TYPES]),
        where=rng.choice([None, None, None, {"status": "active"}]),
        also=inner[:1] if rng.random() < 0.2 else (),
        but_not=inner[1:] if rng.random() < 0.2 else (),
    )


def is_valid(data: dict[str, Any], as_of: str | None) -> bool:
    """Say whether the bounds in metadata or in the data of a link include a date."""
    if as_of is None:
        return True
    first, last = data.get("valid_from", ""), data.get("valid_until", "9999")
    return first[:10] <= as_of[: len(first)] and as_of[: len(last[:10])] <= last[:10]


class Oracle:
    """What queries mean: every document and link is looked at in each step."""

    def __init__(self, documents: Iterable[Document], rights: str | None = None) -> None:
        self.documents = {
            str(document.id): document
            for document in documents
            if rights is None or document.metadata["rights"] == rights
        }

    def follow(self, id: str, step: Step, as_of: str | None) -> set[str]:
        """Return where one link of a step leads to."""
        own = {
            (link.kind, link.tag)
            for link in get_links(self.documents[id])
            if (link.leads_in if step.backward else link.leads_out)
            and link.kind in step.relations
            and (step.backward or is_valid(link.data or {}, as_of))
        }
        return {
            other
            for other, document in self.documents.items()
            if other != id and is_valid(document.metadata, as_of)
            for link in get_links(document)
            if (link.kind, link.tag) in own
            and (link.leads_out if step.backward else link.leads_in)
            and (not step.backward or is_valid(link.data or {}, as_of))
        }

    def walk(self, branch: Branch, as_of: str | None) -> dict[str, int]:
        """Return where a branch leads to, each with the number of links of the shortest chain."""
        starts = [branch.start] if branch.start else list(self.documents)
        reached = {
            id: 0
            for id in starts
            if self._passes(id, branch.start_type, branch.where)
            and is_valid(self.documents[id].metadata, as_of)
        }
        barred = {branch.start}
        for step in branch.path:
            low, high = step.repeat
            ends: dict[str, int] = {}
            level = dict(reached)
            for depth in range(high + 1):
                for id, length in level.items() if depth >= low else ():
                    ends[id] = min(length, ends.get(id, length))
                further: dict[str, int] = {}
                for id, length in level.items():
                    for other in self.follow(id, step, as_of) - barred:
                        further[other] = min(length + 1, further.get(other, length + 1))
                level = further
            reached = {id: length for id, length in ends.items() if self._passes(id, step.type, step.where)}
            for other in step.also:
                reached = {id: reached[id] for id in reached.keys() & self.walk(other, as_of).keys()}
            for other in step.but_not:
                reached = {id: reached[id] for id in reached.keys() - self.walk(other, as_of).keys()}
        return reached

    def _passes(self, id: str, type: str | None, where: Any) -> bool:
        metadata = self.documents[id].metadata
        return (type is None or metadata["type"] == type) and parse_filter(where).matches(metadata)

    def match(self, query: GraphQuery) -> tuple[list[str], list[dict[str, int]]]:
        """Return the ids of the results in order, and where each branch leads to."""
        walks = [self.walk(branch, query.as_of) for branch in query.branches]
        sets = [set(walk) for walk in walks]
        results = reduce(set.intersection if query.combine == "all" else set.union, sets)
        for branch in query.but_not:
            results = results - set(self.walk(branch, query.as_of))
        kept = sorted(id for id in results if self._passes(id, query.result_type, query.where))
        name = query.order_by
        if name is None:
            return sorted(kept, reverse=query.descending), walks
        values = self.rank(kept, query)
        having = sorted((id for id in kept if id in values), key=values.__getitem__, reverse=query.descending)
        return [*having, *(id for id in kept if id not in values)], walks

    def rank(self, ids: Iterable[str], query: GraphQuery) -> dict[str, Any]:
        """Return what orders documents: values of a field, or to how many others links lead."""
        name = query.order_by or ""
        if name[:1] in ("<", ">"):
            step = Step.parse(name.removeprefix(">"))
            return {id: len(self.follow(id, step, query.as_of)) for id in ids}
        return {id: own[name] for id in ids if name in (own := self.documents[id].metadata)}


def check_answer(answer: GraphAnswer, query: GraphQuery, oracle: Oracle) -> None:
    """Compare an answer with the oracle: results, order, number, and a shortest chain for each branch."""
    ids, walks = oracle.match(query)
    assert answer.total == len(ids)
    expected = ids[: query.limit]
    if query.ties and query.order_by and len(expected) == query.limit:
        values = oracle.rank(ids, query)
        expected += [id for id in ids[query.limit :] if values.get(id, id) == values.get(expected[-1])]
    assert list(answer.ids) == expected
    assert answer.complete
    assert (answer.reason is None) is bool(ids), answer.reason
    for hit in answer:
        id = str(hit.document.id)
        lengths = sorted(walk[id] for walk in walks if id in walk)
        assert [len(chain) for chain in hit.chains] == lengths
        for chain in hit.chains:
            assert chain.documents[-1] == id
            for triple in chain:
                step = Step(triple.kind)
                assert triple.object in oracle.follow(triple.subject, step, query.as_of)


def check_queries(store: LinkStore, seed: int, count: int, ask: Callable[..., GraphAnswer]) -> None:
    """Answer random queries with and without an access rule, and compare with the oracle."""
    rng = random.Random(seed)
    documents = make_graph(rng)
    store.add_documents(documents)
    for _ in range(count):
        query = make_query(rng)
        assert GraphQuery.from_dict(query.to_dict()) == query
        check_answer(ask(query), query, Oracle(documents))
        starts = [branch.start for branch in query.all_branches if branch.start]
        allowed = Oracle(documents, "a")
        if set(starts) <= allowed.documents.keys():
            check_answer(ask(query, filter={"rights": "a"}), query, allowed)
