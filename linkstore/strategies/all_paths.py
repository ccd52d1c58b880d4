"""Every chain of links that leads to a document; documents where independent chains meet rank first."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from linkstore.core.arguments import omit_none, require_at_least, require_within
from linkstore.core.arrays import Floats, Ints, find_positions, is_member
from linkstore.core.hits import Chain, Hits, Triple
from linkstore.core.plans import Documents, Ids, Plan, Tags, ask, rank_refs
from linkstore.strategies.base import DEFAULT_SEEDS, Question, Traversing
from linkstore.strategies.first_stage import FirstStage, add_own_starts, find_doubt, run_first_stage
from linkstore.strategies.names import find_named_documents
from linkstore.strategies.resolver import NAMING_KINDS
from linkstore.strategies.results import (
    LinkTexts,
    make_hits,
    report_none_found,
    report_none_returned,
    select_returned,
)
from linkstore.strategies.traversal import (
    NO_EDGES,
    Edges,
    FoundDocuments,
    Trail,
    apply_beam,
    limit_nodes,
    make_hop,
)

REFERENCE_KINDS: Final = frozenset(
    {
        "category",
        "citation",
        "entity",
        "heading",
        "hyperlink",
        "keyword",
        "mention",
        "next",
        "next_turn",
        "previous",
        "section",
        "tag",
    }
)
"""Kinds of link that say no more than that two texts have to do with each other."""
MAX_FIRST_CHAINS: Final = 20
"""Of how many chains to a document each is tried as the first of those that are independent."""
MAX_CHAINS: Final = 10_000
"""How many chains one search makes at most, before it stops making longer ones."""
ROOT_MATCH: Final = 1.0
"""How well a start matches that the caller named; of others the first stage says it, from 0 to 1."""


class PathEdge(NamedTuple):
    """A link between two documents of a trail, by their positions.

    Attributes:
        source: The document that was left.
        target: The document arrived at.
        kind: Of the link.
        tag: Of the link.
        forward: Whether it was followed in its direction.
        weight: Product of the weights of both links and of the kind.
    """

    source: int
    target: int
    kind: str
    tag: str
    forward: bool
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeChain:
    """A chain of edges.

    Args:
        positions: The positions of its documents, from the start, one more than edges.
        edges: In order.
        strength: How well its start matches the question, times its weight: in [0, 1].
        rank: What ways are ordered by: stronger, then shorter ones, then by the ids and links on the way.
    """

    positions: tuple[int, ...]
    edges: tuple[PathEdge, ...]
    strength: float
    rank: tuple[object, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of link that the chain follows, in order."""
        return tuple(edge.kind for edge in self.edges)

    @property
    def documents(self) -> tuple[int, ...]:
        """Its documents, by position."""
        return self.positions

    def may_follow(self, edge: PathEdge) -> bool:
        """Say whether an edge leads to a new document, and not back along the kind just followed."""
        back = self.edges and self.edges[-1].kind == edge.kind and self.edges[-1].forward != edge.forward
        return not back and edge.target not in self.positions


ChainsTo = Mapping[int, Sequence[EdgeChain]]
"""Chains to documents, by position, the strongest first."""


def select_edges(trail: Trail, edges: Edges) -> Plan[list[PathEdge]]:
    """Return the links between documents of the trail, the best one for each pair and kind.

    Args:
        trail: The trail of the search.
        edges: From positions in the trail to documents.
    """
    by_ref = np.argsort(trail.refs)
    place = find_positions(edges.target, trail.refs[by_ref])
    target = np.where(place >= 0, by_ref[place], -1)
    kept = (target >= 0) & (target != edges.source)
    edges = replace(edges, target=target).take(kept)
    path = trail.weight[edges.source]
    weight = np.divide(edges.path_weight, path, out=np.zeros_like(path), where=path > 0)
    groups, at = np.unique(edges.group, return_inverse=True)
    if not len(groups):
        return []
    tags = yield from ask(Tags(groups=groups))
    columns = (edges.source, edges.target, at, edges.forward, weight)
    best: dict[tuple[int, int, str], PathEdge] = {}
    for source, target, group, forward, weight in zip(*(column.tolist() for column in columns), strict=True):
        kind, tag = tags[group]
        edge = PathEdge(source, target, kind, tag, forward, weight)
        best_edge = best.setdefault((source, target, kind), edge)
        if (-weight, not forward, tag) < (-best_edge.weight, not best_edge.forward, best_edge.tag):
            best[source, target, kind] = edge
    return list(best.values())


def find_chains(
    trail: Trail, starts: Mapping[int, float], edges: Sequence[PathEdge], depth: int, keep: int
) -> Plan[ChainsTo]:
    """Find the chains of at most ``depth`` edges from the starts of a search, by the position they lead to.

    No chain meets a document twice, or follows a kind of link against the direction in which it just came:
    that two documents link to the same third one, or are linked from it, relates them only by what they have
    in common. The strongest come first.

    Args:
        trail: The trail of the search, which records how many chains were not made longer.
        starts: Positions of its starts, and how well each matches the question, from 0 to 1.
        edges: The edges between its documents.
        depth: The maximum number of edges of a chain.
        keep: How many chains to one document are kept that have the same length and kinds, the strongest.
    """
    ids = yield from ask(Ids(refs=trail.refs))
    leaving: dict[int, list[PathEdge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: (-edge.weight, ids[edge.target], edge.kind)):
        leaving[edge.source].append(edge)
    ends = [_make_chain((at,), (), starts[at], ids) for at in sorted(starts, key=ids.__getitem__)]
    chains: dict[int, list[EdgeChain]] = defaultdict(list)
    made = unmade = 0
    for _ in range(depth):
        longer: list[EdgeChain] = []
        for way in ends:
            following = [edge for edge in leaving[way.positions[-1]] if way.may_follow(edge)]
            room = max(0, MAX_CHAINS - made)
            for edge in following[:room]:
                positions, passed = (*way.positions, edge.target), (*way.edges, edge)
                longer.append(_make_chain(positions, passed, way.strength * edge.weight, ids))
            unmade += max(0, len(following) - room)
            made += min(room, len(following))
        ends = _keep_strongest_chains(longer, keep)
        if not ends:
            break
        for way in ends:
            chains[way.positions[-1]].append(way)
    trail.cut("paths", unmade, None, f"links that would make more than {MAX_CHAINS:,} chains")
    return {position: sorted(ways, key=lambda way: way.rank) for position, ways in chains.items()}


def _make_chain(
    positions: tuple[int, ...], edges: tuple[PathEdge, ...], strength: float, ids: Sequence[str]
) -> EdgeChain:
    passed = tuple(ids[at] for at in positions)
    rank = (-strength, len(edges), passed, tuple((edge.kind, edge.tag) for edge in edges))
    return EdgeChain(positions=positions, edges=edges, strength=strength, rank=rank)


def _keep_strongest_chains(ways: Iterable[EdgeChain], keep: int) -> list[EdgeChain]:
    """Return the ``keep`` strongest ways to each document for each set of kinds, in order of rank."""
    kept: list[EdgeChain] = []
    counts: dict[tuple[int, frozenset[str]], int] = defaultdict(int)
    for way in sorted(ways, key=lambda way: way.rank):
        key = way.positions[-1], frozenset(way.kinds)
        counts[key] += 1
        if counts[key] <= keep:
            kept.append(way)
    return kept


class AnyChain(Protocol):
    """A chain of links, whatever stands for its documents."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its links, in order."""
        ...

    @property
    def documents(self) -> tuple[Any, ...]:
        """Its documents, from its start on."""
        ...


C = TypeVar("C", bound=AnyChain)


def select_independent_chains(chains: Sequence[C], named: Collection[object] = ()) -> list[C]:
    """Select chains to one document that say something together; none if fewer than two do.

    Two chains do if they are about the same thing, and each by relations of its own: they start from one
    document, or from two that the question names; no kind of link is in both; and they have no document in
    common but their ends. Links by which a text merely refers to another (:data:`REFERENCE_KINDS`) are no
    relation: that two pages link to a third one says nothing about the question.

    Args:
        chains: To one document, the best first.
        named: The documents that the question names.
    """
    rows = [
        (chain, documents[0], frozenset(documents[1:-1]), frozenset(chain.kinds))
        for chain in chains
        if chain.kinds and REFERENCE_KINDS.isdisjoint(chain.kinds) and (documents := chain.documents)
    ]
    meant = frozenset(named)
    for several_starts in (False, True):  # two relations of one document say more than those of two
        best: list[C] = []
        for chain, start, inside, kinds in rows[:MAX_FIRST_CHAINS]:
            chosen, starts, passed, followed = [chain], {start}, {start, *inside}, set(kinds)
            for other, its_start, its_inside, its_kinds in rows:
                about = {start, its_start} <= meant if several_starts else its_start == start
                apart = its_inside.isdisjoint(passed) and (its_start in starts or its_start not in passed)
                if about and apart and its_kinds.isdisjoint(followed):
                    chosen.append(other)
                    starts.add(its_start)
                    passed |= {its_start, *its_inside}
                    followed |= its_kinds
            if len(chosen) > max(1, len(best)):
                best = chosen
        if best:
            return best
    return []


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AllPaths(Traversing):
    """Follow links to ``depth``, and return every chain that led to a document, as typed triples.

    Documents where several independent chains meet rank above those with one. Two chains to a document are
    independent if they start from the same document, or from two that the question names or ``initial_roots``
    has; if no kind of link is in both, and none of :data:`REFERENCE_KINDS`; and if they share no document but
    their ends. So the answer to a question about two relations is the document where both arrive::

        drug —[BELONGS_TO]→ class —[GOVERNED_BY]→ regulation
        drug —[HAS_APPROVAL]→ approval —[IN_JURISDICTION]→ jurisdiction —[ENFORCES]→ regulation

    A search starts from the documents whose names the question contains. If it names none, it starts from the
    ``start_k`` best of a first stage that joins dense and lexical search. ``initial_roots`` and
    ``initial_links`` are further starts. A score is the sum of four
    :attr:`~linkstore.core.hits.Hit.contributions`: ``meeting``, 1 for each independent chain after the first;
    ``start``, half of how well the documents match that the independent chains start from, from 0 to 1 (1 for
    roots), times the weights of the links on the way, on average; ``meaning`` and ``words``, half of how well
    the document itself matches.

    Where the backend has no lexical search, meaning alone makes the first stage. ``explain()`` says so.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
        start_k: How many documents of the first stage to start from. Default 4.
        depth: Maximum number of links in a chain. Default 3.
        chains: Maximum number of chains of each hit. Default 8. Among the chains to one document that have
            the same length and the same kinds, only this many are considered, the strongest.
        pool: How many documents each search of the first stage gives. Default 100.
        lexical: Weight of the search by words, where the search by similarity has weight 1; 0 disables it.
            None, the default, takes that of the store (:attr:`LinkStore.lexical_weight
            <linkstore.LinkStore.lexical_weight>`).
        named: Maximum number of starts whose names the query contains. Default 5.
        named_cap: A name that more documents than this have is ignored. Default 3.
        references: Whether links of :data:`REFERENCE_KINDS` are followed. Default True.
    """

    start_k: int = DEFAULT_SEEDS
    depth: int = 3
    chains: int = 8
    pool: int = 100
    lexical: float | None = None
    named: int = 5
    named_cap: int = 3
    references: bool = True

    def __post_init__(self) -> None:
        Traversing.__post_init__(self)
        require_at_least(0, start_k=self.start_k, depth=self.depth, named=self.named)
        require_at_least(1, chains=self.chains, pool=self.pool, named_cap=self.named_cap)
        require_within(0, 100, **omit_none(lexical=self.lexical))

    def weight_of(self, kind: str) -> float:
        """Return the weight of a kind of link, from 0 (not followed) to 1."""
        if not self.references and kind in REFERENCE_KINDS:
            return 0.0
        return Traversing.weight_of(self, kind)

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan the first stage, ``depth`` hops that may reach documents again, the chains, one ranking."""
        trail = Trail()
        stage = yield from run_first_stage(trail, question, self, self.pool, self.lexical)
        cap = min(self.named_cap, self.hub_cap)
        named, sure = yield from find_named_documents(
            trail,
            question,
            stage.document_frequency,
            stage.unknown,
            stage.lexical_refs,
            NAMING_KINDS,
            self.named,
            cap,
        )
        yield from find_doubt(trail, stage, question, self, sure)
        start_k = 0 if len(named) else self.start_k
        best = yield from rank_refs(stage.refs, stage.scores(stage.refs, stage.similarity), start_k)
        documents = FoundDocuments.from_refs(
            np.concatenate((named.refs, stage.refs[best])),
            np.concatenate((named.similarity, stage.similarity[best])),
            named.edges,
        )
        starting = yield from add_own_starts(trail, documents, question, self)
        trail.add((yield from limit_nodes(trail, starting, 0, self)))
        if not len(trail):
            best_similarity = stage.highest if self.start_k else None
            return report_none_found(trail, question, self.start_k, self, best_similarity)
        starts = _score_starts(trail, stage, stage.refs[best])
        meant = set(np.flatnonzero(~is_member(trail.refs, stage.refs[best])).tolist())
        edges = yield from select_edges(trail, (yield from self._follow_all(trail, question)))
        ways = yield from find_chains(trail, starts, edges, self.depth, self.chains)
        met = {at: select_independent_chains(to, meant) for at, to in ways.items()}
        return (yield from self._rank(trail, stage, starts, ways, met, question))

    def _follow_all(self, trail: Trail, question: Question) -> Plan[Edges]:
        """Follow links hop by hop. Documents that are known already are reached again."""
        parts = [NO_EDGES]
        frontier = np.arange(len(trail))
        for depth in range(1, self.depth + 1):
            frontier = yield from apply_beam(trail, frontier, self)
            documents = yield from make_hop(trail, frontier, question, self)
            parts.append(documents.edges)
            fresh = documents.take(~is_member(documents.refs, trail.refs))
            frontier = trail.add((yield from limit_nodes(trail, fresh, depth, self)), depth)
            if not len(frontier):
                break
        return Edges.concatenate(parts)

    def _rank(
        self,
        trail: Trail,
        stage: FirstStage,
        starts: Mapping[int, float],
        ways: ChainsTo,
        met: ChainsTo,
        question: Question,
    ) -> Plan[Hits]:
        parts = _score_parts(trail, stage, starts, ways, met)
        scores = functools.reduce(np.add, parts.values())
        # Twice the part of chains: the other parts add up to at most 1, so they only decide among equals.
        chosen = yield from select_returned(trail, scores + parts["meeting"], self.k, question, self.per_page)
        if not len(chosen):
            return report_none_returned(trail, self)
        shown = self._choose_shown(trail, chosen, ways, met)
        taken = {name: part[chosen] for name, part in parts.items()}
        hits = yield from make_hits(trail, chosen, self, question, scores[chosen], taken)
        chains = yield from _make_chains(trail, shown, met, question)
        with_chains = (replace(hit, chains=chains[at]) for hit, at in zip(hits, chosen.tolist(), strict=True))
        return replace(hits, hits=tuple(with_chains))

    def _choose_shown(
        self, trail: Trail, chosen: Ints, ways: ChainsTo, met: ChainsTo
    ) -> dict[int, list[EdgeChain]]:
        """Choose the chains to show for each document that is returned, the independent ones first."""
        shown: dict[int, list[EdgeChain]] = {}
        left_out = 0
        for at in chosen.tolist():
            first = met.get(at, [])
            ordered = [*first, *(way for way in ways.get(at, ()) if way not in first)]
            shown[at] = ordered[: self.chains]
            left_out += len(ordered) - len(shown[at])
        trail.cut("paths", left_out, None, f"chains past the first {self.chains} of a document")
        return shown


def _score_starts(trail: Trail, stage: FirstStage, found: Ints) -> dict[int, float]:
    """Return how well each start matches.

    Args:
        trail: Holds only the starts yet.
        stage: The first stage.
        found: The refs of the starts that come from the first stage.
    """
    match = stage.scores(trail.refs, trail.similarity)
    match[~is_member(trail.refs, found)] = ROOT_MATCH
    return dict(enumerate((match * trail.weight).tolist()))


def _score_parts(
    trail: Trail, stage: FirstStage, starts: Mapping[int, float], ways: ChainsTo, met: ChainsTo
) -> dict[str, Floats]:
    """Return the parts of the scores, (n,) each."""
    meeting, start = np.zeros((2, len(trail)), dtype=np.float32)
    start[list(starts)] = list(starts.values())
    for position, to in ways.items():
        meeting[position] = max(0, len(met[position]) - 1)
        counted = met[position] or to[:1]
        start[position] = max(float(start[position]), sum(way.strength for way in counted) / len(counted))
    half = np.float32(0.5)
    words = half * stage.by_words(trail.refs)
    meaning = half * stage.scores(trail.refs, trail.similarity) - words
    return {"meeting": meeting, "start": half * start, "meaning": meaning, "words": words}


def _make_chains(
    trail: Trail, shown: ChainsTo, met: ChainsTo, question: Question
) -> Plan[dict[int, tuple[Chain, ...]]]:
    """Make the chains of each position, with the labels and data that documents give to their links."""
    involved = sorted({at for ways in shown.values() for way in ways for at in way.positions})
    stored = yield from ask(Documents(refs=trail.refs[involved]))
    documents = dict(zip(involved, stored, strict=True))
    texts = LinkTexts(documents, question)

    def triple(edge: PathEdge) -> Triple:
        subject, object_ = (edge.source, edge.target) if edge.forward else (edge.target, edge.source)
        link = (edge.kind, edge.tag)
        return Triple(
            subject=documents[subject].id,
            kind=edge.kind,
            object=documents[object_].id,
            label=texts.label(link, subject, object_),
            data=texts.data(link, subject),
        )

    return {
        position: tuple(
            Chain(documents[way.positions[0]].id, tuple(map(triple, way.edges)), way in met[position])
            for way in ways
        )
        for position, ways in shown.items()
    }
