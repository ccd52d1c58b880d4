"""Checks that two backends answer alike, by random graphs and random searches.

Everything follows from a seed, so a failure can be run again::

    def test_my_backend_answers_as_the_oracle_does(my_backend):
        assert_congruent(my_backend, OracleBackend(), seed=7)
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from linkstore.core.arrays import Floats, normalize_vector
from linkstore.core.filters import EVERYTHING, Condition, Filter, parse_filter
from linkstore.core.hits import Hit, Hits
from linkstore.core.links import Direction, Link, merge_links
from linkstore.engines.bookkeeping import Backend
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.strategies.all_paths import AllPaths
from linkstore.strategies.base import Question, Strategy
from linkstore.strategies.eager import Eager
from linkstore.strategies.first_stage import Similarity, Words
from linkstore.strategies.mmr import Mmr
from linkstore.strategies.pagerank import PageRank

DIMENSION = 6
TOLERANCE = 1e-6
"""The largest difference between scores that count as equal."""
_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
_SCOPES: tuple[Filter, ...] = (
    {"lang": "en"},
    {"lang": {"$ne": "en"}},
    {"$and": [{"lang": "de"}, {"year": {"$gte": 2005}}]},
    {"year": {"$ne": 2003}},
)
_LANGUAGES = ("en", "de", "fr")
_KINDS = ("hyperlink", "keyword", "section")
_WEIGHTS = (0.0, 0.25, 0.5, 0.5, 0.9, 1.0, 1.0, 1.0)
_DATA: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {"since": 2003},
    {"since": 2006, "source": "a"},
    {"source": "b"},
)
_LINK_FILTERS: tuple[Filter | None, ...] = (
    None,
    None,
    None,
    {"since": {"$gte": 2004}},
    {"source": {"$ne": "a"}},
    {"$or": [{"source": "b"}, {"since": {"$exists": False}}]},
)
_FILTERS: tuple[Filter | None, ...] = (
    None,
    None,
    None,
    {"lang": "en"},
    {"lang": {"$ne": "en"}},
    {"year": {"$gte": 2004}},
    {"$or": [{"lang": "de"}, {"year": {"$lt": 2002}}]},
    {"lang": "xx"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSearch:
    """One search: a strategy, its question, and the scope within which it is asked."""

    strategy: Strategy
    question: Question
    scope: Condition = EVERYTHING

    def on(self, backend: Backend) -> Hits:
        """Return the answer of a backend."""
        return backend.run(backend.answer(self.strategy.plan(self.question), self.scope))


class RandomGraph:
    """Changes and searches that follow from a seed.

    The graph has cycles, self links, dangling links, hubs, links in all directions and with all
    weights. It has few different vectors, so that ties are common, updates that relink, and deletes.

    Args:
        seed: The seed of the random numbers.
        documents: How many ids there are.
        words: Whether texts and questions have words in common and name documents.
    """

    def __init__(self, seed: int, documents: int = 60, *, words: bool = False) -> None:
        self._words = words
        self._random = random.Random(seed)
        self._ids = [f"doc {self._random.randrange(10**6):06}" for _ in range(documents)]
        self._vectors = [self._vector() for _ in range(max(2, documents // 4))]

    def changes(self) -> Iterator[WriteBatch]:
        """Yield changes that fill the store, relink a third, delete a fifth, and put some documents back."""
        ids, random = self._ids, self._random
        half = len(ids) // 2
        yield WriteBatch(put=[self._record(id) for id in ids[:half]])
        yield WriteBatch(put=[self._record(id) for id in ids[half:]])
        yield WriteBatch(put=[self._record(id) for id in random.sample(ids, len(ids) // 3)])
        gone = random.sample(ids, len(ids) // 5)
        yield WriteBatch(remove=gone, put=[self._record(id) for id in gone[:2]])
        yield WriteBatch(put=[self._record(id) for id in gone[:6]])

    def searches(self, count: int) -> list[RandomSearch]:
        """Return searches by every strategy, with bounds so small that they take effect."""
        strategies = [self._strategy() for _ in range(count)]
        return [self._search(strategy) for strategy in strategies]

    def scope(self) -> Condition:
        """Return a filter that some documents pass, and that some documents they link to do not."""
        return parse_filter(self._random.choice(_SCOPES))

    def _vector(self) -> Floats:
        return normalize_vector([self._random.gauss(0, 1) for _ in range(DIMENSION)])

    def _record(self, id: str) -> Record:
        random = self._random
        title = self._text(3) if self._words else ""
        links = merge_links(self._link() for _ in range(random.randrange(7)))
        if title:
            links = merge_links((*links, Link.incoming(kind="mention", tag=title)))
        return Record(
            id=id,
            text=self._text(12) if self._words else f"text {random.randrange(100)}",
            metadata={
                **({"title": title} if title else {}),
                "lang": random.choice(_LANGUAGES),
                "year": random.randrange(2000, 2008),
                "url": f"/{id}",
                "links": [link.to_dict() for link in links],
            },
            vector=random.choice(self._vectors),
            links=links,
        )

    def _text(self, most: int) -> str:
        return " ".join(self._random.choice(_WORDS) for _ in range(self._random.randint(1, most)))

    def _link(self) -> Link:
        random = self._random
        directions: Sequence[Direction] = ("in", "out", "bidir")
        kind = random.choice(_KINDS)
        return Link(
            kind=kind,
            tag=self._section() if kind == "section" else self._tag(),
            direction=random.choice(directions),
            label=random.choice((None, None, "a label", "another")),
            weight=random.choice(_WEIGHTS),
            data=random.choice(_DATA),
        )

    def _tag(self) -> str:
        """Return a tag: one of a few that many documents have, or one of many that few documents have."""
        if self._random.random() < 0.2:
            return f"hub {self._random.randrange(2)}"
        return f"tag {self._random.randrange(max(1, len(self._ids) // 2))}"

    def _section(self) -> str:
        """Return a section of one of a few pages, each with more chunks than ``per_page`` leaves."""
        return f"/page{self._random.randrange(max(1, len(self._ids) // 6))}#{self._random.randrange(4)}"

    def _strategy(self) -> Strategy:
        random = self._random
        chosen = random.random()
        if self._words and chosen < 0.05:
            return Words(k=random.choice((1, 5, 40)), per_page=self._per_page())
        if chosen < 0.1:
            return Similarity(k=random.choice((1, 5, 40)), per_page=self._per_page())
        if chosen < 0.25:
            return PageRank(
                start_k=random.choice((0, 1, 3, 16)),
                k=random.choice((1, 4, 50)),
                depth=random.choice((0, 1, 1, 2)),
                lexical=random.choice((None, 0.0, 0.5)),
                named=random.choice((0, 5)),
                **self._controls(),
            )
        if chosen < 0.4:
            return AllPaths(
                start_k=random.choice((0, 1, 3, 10)),
                depth=random.choice((0, 2, 3)),
                k=random.choice((1, 4, 50)),
                chains=random.choice((1, 2, 8)),
                lexical=random.choice((0.0, 1.0)),
                **{**self._controls(), **self._wide()},
            )
        if chosen < 0.8:
            return Eager(
                start_k=random.choice((0, 1, 3, 10)),
                depth=random.randrange(4),
                k=random.choice((1, 4, 50)),
                **self._controls(),
            )
        return Mmr(
            k=random.choice((1, 4, 12)),
            depth=random.randrange(4),
            fetch_k=random.choice((0, 2, 10)),
            lambda_mult=random.choice((0.0, 0.3, 0.5, 1.0)),
            score_threshold=random.choice((float("-inf"), -0.2)),
            **self._controls(),
        )

    def _controls(self) -> dict[str, Any]:
        random = self._random
        return {
            "min_similarity": random.choice((-1.0, -1.0, 0.0, 0.6)),
            "kinds": random.choice((None, None, ("keyword",), {"hyperlink": 0.5, "section": 1.0}, ())),
            "adjacent_k": random.choice((1, 3, 10)),
            "hub_cap": random.choice((0, 3, 6, 200)),
            "beam": random.choice((1, 3, 32)),
            "max_nodes": random.choice((4, 20, 1000)),
            "direction": random.choice(("forward", "backward", "both")),
            "per_page": self._per_page(),
        }

    def _wide(self) -> dict[str, Any]:
        """Return the bounds' defaults, mostly, so that several chains lead to one document."""
        wide = {"min_similarity": -1.0, "kinds": None, "hub_cap": 200, "beam": 32, "max_nodes": 1000}
        return wide if self._random.random() < 0.7 else {}

    def _per_page(self) -> int | None:
        return self._random.choice((None, None, 1, 2))

    def _search(self, strategy: Strategy) -> RandomSearch:
        scope = self._condition()
        question = replace(self._question(strategy), filtered=not scope.always)
        if self._words:
            question = replace(question, text=self._text(5))
        return RandomSearch(strategy=strategy, question=question, scope=scope)

    def _question(self, strategy: Strategy) -> Question:
        random = self._random
        near_a_document = random.random() < 0.5
        roots = tuple(self._roots())
        links = tuple(self._link() for _ in range(random.choice((0, 0, 2))))
        from_the_query_alone = isinstance(strategy, Similarity | Words)
        return Question(
            vector=random.choice(self._vectors) if near_a_document else self._vector(),
            roots=() if from_the_query_alone else roots,
            links=() if from_the_query_alone else links,
            seed_filter=self._condition(),
            hop_filter=self._condition(),
            link_filter=parse_filter(random.choice(_LINK_FILTERS)),
            result_filter=self._condition(),
        )

    def _condition(self) -> Condition:
        return parse_filter(self._random.choice(_FILTERS) if self._random.random() < 0.5 else None)

    def _roots(self) -> list[str]:
        random = self._random
        return random.choice(([], [], random.choices([*self._ids, "no such id"], k=3)))


def assert_congruent(
    backend: Backend, reference: Backend, seed: int, *, documents: int = 60, searches: int = 30
) -> None:
    """Fail unless two empty backends answer alike through all changes of a random graph.

    Args:
        backend: The backend to test; empty.
        reference: The backend to compare with; empty. Usually the oracle.
        seed: The seed of the graph and the searches.
        documents: How many ids there are; keep it small enough for exact answers.
        searches: How many searches after each change.

    Raises:
        AssertionError: If they differ; the message has the seed and the first differences.
    """
    found = find_differences(backend, reference, seed, documents=documents, searches=searches)
    if found:
        raise AssertionError("\n".join([f"seed {seed}: {len(found)} differences", *found[:20]]))


def find_differences(
    backend: Backend, reference: Backend, seed: int, *, documents: int = 60, searches: int = 30
) -> list[str]:
    """Say in words where two empty backends differ through all changes of a random graph.

    Every change is followed by the same searches on both. Hits are compared in ids, order, depth,
    path and score, and so are cuts, reasons, counts, surveys and scans. See
    :func:`assert_congruent` for the arguments.
    """
    graph = RandomGraph(seed, documents)
    found: list[str] = []
    for one in (backend, reference):
        one.run(one.claim(Manifest(embedding="random", dimension=DIMENSION)))
    for stage, change in enumerate(graph.changes()):
        written = [one.run(one.write(change)) for one in (backend, reference)]
        found += _compare_values(f"change {stage}", *written)
        surveys = [one.run(one.survey()) for one in (backend, reference)]
        found += _compare_values(f"survey after change {stage}", *surveys)
        scans = [one.run(one.scan(None, 10 * documents)) for one in (backend, reference)]
        shown = [sorted(map(_format_record, scan), key=lambda record: str(record[0])) for scan in scans]
        found += _compare_values(f"scan after change {stage}", *shown)
        for search in graph.searches(searches):
            found += _compare_search(search, backend, reference, f"after change {stage}")
    return found


def find_scope_differences(
    backend: Backend,
    reference: Backend,
    seed: int,
    *,
    documents: int = 60,
    searches: int = 30,
    words: bool = False,
    exactly: bool = False,
) -> list[str]:
    """Say in words where searches within a scope differ from those of a store of that scope alone.

    Args:
        backend: The backend to test; empty. All documents are written to it.
        reference: The backend to compare with; empty. Only the documents of the scope are written to it.
        seed: The seed of the graph, the scope and the searches.
        documents: How many ids there are; keep it small enough for exact answers.
        searches: How many searches after each change.
        words: Whether documents are searched by words, too.
        exactly: Whether scores must be equal to the last bit, as they are for two backends of one kind.
    """
    graph = RandomGraph(seed, documents, words=words)
    scope = graph.scope()
    found: list[str] = []
    for one in (backend, reference):
        one.run(one.claim(Manifest(embedding="random", dimension=DIMENSION)))
    for stage, change in enumerate(graph.changes()):
        backend.run(backend.write(change))
        reference.run(reference.write(_restrict_change(change, scope)))
        for search in graph.searches(searches):
            within = replace(search, scope=scope, question=replace(search.question, filtered=True))
            told = f"{scope.key} after change {stage}"
            found += _compare_search(within, backend, reference, told, exactly=exactly)
    return found


def _restrict_change(change: WriteBatch, scope: Condition) -> WriteBatch:
    """Restrict a change to its effect on the documents of a scope."""
    last = {record.id: record for record in change.put}
    put = [record for record in last.values() if scope.matches(record.metadata)]
    left = [record.id for record in last.values() if not scope.matches(record.metadata)]
    return WriteBatch(put=put, remove=[*change.remove, *left])


def _compare_search(
    search: RandomSearch, backend: Backend, reference: Backend, told: str, *, exactly: bool = False
) -> list[str]:
    unlike = compare_hits(search.on(backend), search.on(reference), 0.0 if exactly else TOLERANCE)
    return [f"{told}: {search.strategy} {_format_question(search.question)}: {one}" for one in unlike]


def compare_hits(found: Hits, expected: Hits, tolerance: float = TOLERANCE) -> list[str]:
    """Say in words where two results differ. Scores may differ by ``tolerance``."""
    unlike = _compare_values("ids", _get_ids(found), _get_ids(expected))
    if unlike:
        return unlike
    for hit, wanted in zip(found, expected, strict=True):
        unlike += [f"{hit.document.id}: {text}" for text in _compare_hit(hit, wanted, tolerance)]
    unlike += _compare_values("cuts", found.cuts, expected.cuts)
    unlike += _compare_values("reason", found.reason, expected.reason)
    return unlike


def _compare_hit(hit: Hit, wanted: Hit, tolerance: float) -> Iterator[str]:
    yield from _compare_values("document", hit.document, wanted.document)
    yield from _compare_values("depth", hit.depth, wanted.depth)
    yield from _compare_values("path", str(hit.path), str(wanted.path))
    yield from _compare_values("chains", hit.chains, wanted.chains)
    for name in ("score", "similarity"):
        if abs(getattr(hit, name) - getattr(wanted, name)) > tolerance:
            yield f"{name} {getattr(hit, name)!r}, expected {getattr(wanted, name)!r}"


def _compare_values(what: str, found: object, expected: object) -> list[str]:
    return [] if found == expected else [f"{what}: {found!r}, expected {expected!r}"]


def _get_ids(hits: Hits) -> list[str | None]:
    return [hit.document.id for hit in hits]


def _format_record(record: Record) -> tuple[object, ...]:
    links = [link.to_dict() for link in record.links]
    return record.id, record.text, dict(record.metadata), record.vector.tobytes(), links


def _format_question(question: Question) -> str:
    """Format a question for a failure message, without empty values."""
    values = {field.name: getattr(question, field.name) for field in fields(question)}
    vector = values.pop("vector")
    shown = ", ".join(f"{name}={getattr(value, 'key', value)}" for name, value in values.items() if value)
    return f"about {vector.tolist()} {shown}"
