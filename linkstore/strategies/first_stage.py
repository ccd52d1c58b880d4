"""Where a search starts: documents by similarity, words, names, ids and links; searches that end there."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from linkstore.core import plans
from linkstore.core.arrays import (
    Floats,
    Ints,
    cosine_similarities,
    find_positions,
    is_member,
    mark_first,
    sort_unique,
)
from linkstore.core.hits import Hits
from linkstore.core.lexical import (
    MAX_QUESTION_WORDS,
    POSTINGS,
    extract_document_terms,
    extract_question_terms,
)
from linkstore.core.plans import Plan
from linkstore.errors import CapabilityError, StrategyError
from linkstore.strategies.base import HOP_SIDES, Question, Strategy, Traversing
from linkstore.strategies.names import find_named_documents, leave_query
from linkstore.strategies.results import fetch_first_returned, make_hits
from linkstore.strategies.traversal import (
    NO_REFS,
    NO_SCORES,
    Edges,
    FoundDocuments,
    Trail,
    follow_groups,
    record_cuts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStage:
    """Documents found by similarity or by words.

    Args:
        refs: (n,) documents, ascending.
        similarity: (n,) to the question.
        words: (n,) BM25 over the largest BM25, in [0, 1], 0 for those that words did not find.
        best: The largest similarity, 1 where none is above 0.
        lexical: Weight of words relative to meaning.
        highest: The highest similarity of any document, even below the minimum, None for an empty store.
        lexical_refs: Those that match words, best first, even below the minimum.
        document_frequency: How many documents have each word of the question, as far as they were looked up.
        documents: How many documents were searched for words.
        unknown: The words of the question that no document has.
    """

    refs: Ints
    similarity: Floats
    words: Floats
    best: float
    lexical: float
    highest: float | None
    lexical_refs: Ints
    document_frequency: Mapping[str, int]
    documents: int
    unknown: tuple[str, ...]

    def scores(self, refs: Ints, similarity: Floats) -> Floats:
        """Return (m,) scores of any documents in [0, 1], from meaning and words.

        A document that links led to may be more similar than ``best``, if a filter keeps it from being a
        start. It counts as the best one then. A negative similarity counts as 0: it takes nothing from words.
        """
        meaning = np.clip(similarity, 0, np.float32(self.best)) / np.float32(self.best)
        raw = meaning + np.float32(self.lexical) * self._find_words(refs)
        return (raw / self._most).astype(np.float32)

    def by_words(self, refs: Ints) -> Floats:
        """Return (m,) what words alone give to the scores of any documents."""
        return (np.float32(self.lexical) * self._find_words(refs) / self._most).astype(np.float32)

    def join(self, others: FoundDocuments) -> FoundDocuments:
        """Return the first stage's documents and others, each once, with the links that led to the others."""
        return FoundDocuments.from_refs(
            np.concatenate((self.refs, others.refs)),
            np.concatenate((self.similarity, others.similarity)),
            others.edges,
        )

    @property
    def _most(self) -> np.float32:
        return np.float32(1.0 + (self.lexical if self.words.any() else 0.0))

    def _find_words(self, refs: Ints) -> Floats:
        words = np.zeros(len(refs), dtype=np.float32)
        at = find_positions(refs, self.refs)
        words[at >= 0] = self.words[at[at >= 0]]
        return words


DOUBT_MARGIN: Final = 0.02
"""How far below the least similarity a store of 1,000 documents leaves doubt about words that none has."""
DOUBT_BY_SIZE: Final = 0.08
"""By how much the similarity that leaves no doubt grows when a store has ten times as many documents."""
DOUBT_BY_WORDS: Final = 0.2
"""By how much it falls when the nearest documents have all words instead of none. Fitted on 2026-12-01 with
wordllama, then lowered by 0.1, as a right answer that is doubted costs more; docs/benchmarks.md has both."""
UNKNOWN_WORDS: Final = "no document has the words"
"""How a doubt begins if there are such words."""
MAX_LISTED: Final = 8
"""How many of the words that are lacking are named."""
NEAREST: Final = 30
"""How many of the nearest documents are read for the words of a question."""
READ_CHARACTERS: Final = 10_000
"""How much of each of them."""
SLIP_RATIO: Final = 0.8
"""How much of a word and of its slip must be the same, as :class:`difflib.SequenceMatcher` measures it."""


def run_first_stage(
    trail: Trail, question: Question, controls: Traversing, pool: int, lexical: float | None
) -> Plan[FirstStage]:
    """Find the ``pool`` nearest documents above the minimum, and the ``pool`` that match words best.

    If the backend has no lexical search, only similarity counts, and the trail says so. Without a weight of
    words ``lexical``, the question has it.
    """
    lexical = question.lexical if lexical is None else lexical
    near = yield from plans.ask(plans.Nearest(vector=question.vector, k=pool, filter=question.seed_filter))
    matches, unknown = yield from _search_by_words(trail, question, pool if lexical else 0)
    refs = sort_unique(np.concatenate((near.refs, matches.refs)))
    similarity = np.zeros(len(refs), dtype=np.float32)
    similarity[np.searchsorted(refs, near.refs)] = near.similarity
    others = refs[~is_member(refs, near.refs)]
    if len(others):
        vectors = yield from plans.ask(plans.Vectors(refs=others))
        similarity[np.searchsorted(refs, others)] = cosine_similarities(vectors, question.vector)
    words = np.zeros(len(refs), dtype=np.float32)
    if len(matches.refs):
        words[np.searchsorted(refs, matches.refs)] = matches.score / matches.score.max()
    above = similarity >= np.float32(controls.threshold)
    trail.cut("min_similarity", int((~above).sum()), 0, f"below {controls.threshold}")
    highest = float(near.similarity[0]) if len(near.refs) else None
    return FirstStage(
        refs=refs[above],
        similarity=similarity[above],
        words=words[above],
        best=highest if highest is not None and highest > 0 else 1.0,
        lexical=lexical,
        highest=highest,
        lexical_refs=matches.refs,
        document_frequency=matches.document_frequency,
        documents=matches.documents,
        unknown=unknown,
    )


def find_doubt(
    trail: Trail, stage: FirstStage, question: Question, controls: Traversing, named: bool
) -> Plan[None]:
    """Record why a question, unless it means a document by name, seems to be about something else.

    It does if no document is similar enough: as similar as the least similarity, more in a large store, where
    something similar is found for any question, and less if the nearest documents have many of its words
    together. A word counts the more the fewer documents have it, and slips, which the nearest documents spell
    otherwise, do not. A question of one word is not doubted, nor one whose words the nearest have. If the
    caller or the store sets a minimum similarity, that decides instead.
    """
    least, highest = question.least_similarity, stage.highest
    if least is None:
        return
    trail.least_similarity = -1.0 if named else least
    asked = dict.fromkeys(stage.unknown, 0) | dict(stage.document_frequency)
    if named or controls.min_similarity is not None or highest is None or len(asked) < 2:
        return
    enough = least - DOUBT_MARGIN + DOUBT_BY_SIZE * math.log10(max(stage.documents, 10) / 1_000)
    if highest >= enough:
        return
    nearest = stage.refs[np.argsort(-stage.similarity, kind="stable")[:NEAREST]]
    texts = yield from plans.ask(plans.Documents(refs=nearest))
    parts = (extract_document_terms(text.text[:READ_CHARACTERS], text.metadata, text.id) for text in texts)
    written = set(chain.from_iterable(parts))
    lacking = [word for word in asked if word not in written and (asked[word] or not _is_slip(word, written))]
    slips = set(asked).difference(written, lacking)
    weights = {word: (1 + count) ** -0.5 for word, count in asked.items() if word not in slips}
    has = 1 - sum(map(weights.__getitem__, lacking)) / max(sum(weights.values()), 1e-9)
    if lacking and highest < enough - DOUBT_BY_WORDS * has:
        unknown = [word for word in lacking if not asked[word]]
        words = unknown or lacking
        more = f" and {len(words) - MAX_LISTED:,} more" if len(words) > MAX_LISTED else ""
        lack = UNKNOWN_WORDS if unknown else "the nearest documents lack the words"
        listed = f"{', '.join(words[:MAX_LISTED])}{more}"
        trail.doubt = f"{lack} {listed}, and the most similar one has {highest:.2f}"


def _is_slip(word: str, written: Iterable[str]) -> bool:
    """Say whether a word is a slip of a written word with the same first letter."""
    alike = [candidate for candidate in written if candidate[0] == word[0]]
    return bool(difflib.get_close_matches(word, alike, 1, SLIP_RATIO))


def _search_by_words(
    trail: Trail, question: Question, pool: int
) -> Plan[tuple[plans.LexicalMatches, tuple[str, ...]]]:
    """Return the matches of the words, and the words that no document has."""
    none = plans.LexicalMatches(refs=NO_REFS, score=NO_SCORES), ()
    asked, more = extract_question_terms(question.text)
    if not asked or not pool:
        return none
    try:
        matches = yield from plans.ask(plans.Lexical(terms=asked, k=pool, filter=question.seed_filter))
    except CapabilityError as error:
        trail.cut("lexical", len(asked), 0, f"words not looked up: {error}")
        return none
    record_cut_words(trail, more, matches)
    return matches, tuple(
        word for word in asked if not matches.document_frequency.get(word) and word not in matches.left_out
    )


def record_cut_words(trail: Trail, more: int, found: plans.LexicalMatches) -> None:
    """Record which words of a question were not looked up, or not in all documents.

    Args:
        trail: Takes the cuts.
        more: Number of words past the first ones of the question.
        found: The answer for the first ones.
    """
    left, sampled = ", ".join(found.left_out), ", ".join(found.sampled)
    trail.cut("lexical", more, 0, f"words past the first {MAX_QUESTION_WORDS} of the question")
    trail.cut("lexical", len(found.left_out), 0, f"words in too many documents: {left}")
    of_them = f"only about {POSTINGS:,} of the documents with a word were looked at: {sampled}"
    trail.cut("lexical", len(found.sampled), 0, of_them)


def find_seeds(
    trail: Trail, k: int, question: Question, controls: Traversing
) -> Plan[tuple[FoundDocuments, float | None]]:
    """Find the documents that a search starts from: the ``k`` nearest, the named roots, the linked ones.

    Returns them and the highest similarity of any document, even below the minimum, None for an empty store.
    """
    near = yield from plans.ask(plans.Nearest(vector=question.vector, k=k, filter=question.seed_filter))
    above = near.similarity >= np.float32(controls.threshold)
    trail.cut("min_similarity", int((~above).sum()), 0, f"below {controls.threshold}")
    documents = FoundDocuments.from_refs(near.refs[above], near.similarity[above])
    best = float(near.similarity[0]) if len(near.refs) else None
    return (yield from add_own_starts(trail, documents, question, controls)), best


def add_own_starts(
    trail: Trail, documents: FoundDocuments, question: Question, controls: Traversing
) -> Plan[FoundDocuments]:
    """Add the roots of the question and the targets of its own links to the documents found."""
    if question.roots:
        roots = yield from fetch_roots(trail, question)
        documents = FoundDocuments.from_refs(
            np.concatenate((documents.refs, roots.refs)),
            np.concatenate((documents.similarity, roots.similarity)),
            documents.edges,
        )
    if not question.links:
        return documents
    linked = yield from fetch_linked(trail, documents.refs, question, controls)
    return FoundDocuments(
        refs=np.concatenate((documents.refs, linked.refs)),
        similarity=np.concatenate((documents.similarity, linked.similarity)),
        weight=np.concatenate((documents.weight, linked.weight)),
        edges=Edges.concatenate([documents.edges, linked.edges]),
    )


def fetch_roots(trail: Trail, question: Question) -> Plan[plans.Candidates]:
    """Fetch the roots that the question names by id."""
    candidates = yield from plans.ask(
        plans.Find(ids=question.roots, vector=question.vector, filter=question.seed_filter)
    )
    trail.cut("filter", candidates.filtered, 0, "initial_roots that seed_filter excludes")
    missing = len(set(question.roots)) - len(candidates.refs) - candidates.filtered
    trail.cut("missing", missing, 0, "initial_roots that are not in the store")
    return candidates


def fetch_linked(trail: Trail, known: Ints, question: Question, controls: Traversing) -> Plan[FoundDocuments]:
    """Fetch the documents that the question's own links lead to, except the known ones.

    The links are followed as if the query were a document with these links.
    """
    parts: list[Edges] = []
    asked: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    for leave, arrive in HOP_SIDES[controls.direction]:
        usable = [
            link
            for link in question.links
            if (link.leads_out if leave == "out" else link.leads_in) and controls.weight_of(link.kind) > 0
        ]
        tags = tuple((link.kind, link.tag) for link in usable)
        refs = yield from plans.ask(plans.Resolve(tags=tags))
        weights = np.array([link.weight * controls.weight_of(link.kind) for link in usable], dtype=np.float32)
        hop = yield from follow_groups(
            refs[refs >= 0],
            arrive,
            weights[refs >= 0],
            question.link_filter,
            vector=question.vector,
            take=controls.adjacent_k,
            cap=controls.hub_cap,
            exclude=known,
            filter=question.seed_filter,
        )
        yield from record_cuts(trail, hop, 0, controls)
        asked.update(tags)
        peopled = is_member(refs, hop.groups[hop.reached.sizes > 0])
        answered.update(tag for tag, leads in zip(tags, peopled, strict=True) if leads)
        parts.append(leave_query(hop.edges))
    trail.cut("missing", len(asked - answered), 0, "initial_links that lead to no document")
    return FoundDocuments.from_edges(Edges.concatenate(parts))


def find_question_targets(
    trail: Trail,
    question: Question,
    controls: Traversing,
    stage: FirstStage,
    kinds: Sequence[str],
    most: int,
    cap: int,
    rare: int | None = None,
) -> Plan[tuple[FoundDocuments, bool]]:
    """Return all documents that the question itself leads to: by names, by ids, and by its links.

    Returns them, and whether it means one of them by more than a rare word.

    The weight of each is how surely it is meant, in (0, 1]: 1 for roots, the weight of the link for documents
    that ``initial_links`` lead to, and for others as :func:`.find_named_documents` says.

    Args:
        trail: The trail of the search.
        question: The question.
        controls: How its links are followed.
        stage: The first stage.
        kinds: See :func:`.find_named_documents`, as for ``most``, ``cap`` and ``rare``.
        most: How many documents names lead to at most.
        cap: A name of more documents than this is ignored.
        rare: Says which names of their own count.
    """
    named, sure = yield from find_named_documents(
        trail, question, stage.document_frequency, stage.unknown, stage.lexical_refs, kinds, most, cap, rare
    )
    parts = [named]
    if question.roots:
        roots = yield from fetch_roots(trail, question)
        parts.append(FoundDocuments.from_refs(roots.refs, roots.similarity))
    if question.links:
        parts.append((yield from fetch_linked(trail, NO_REFS, question, controls)))
    targets = FoundDocuments(
        refs=np.concatenate([part.refs for part in parts]),
        similarity=np.concatenate([part.similarity for part in parts]),
        weight=np.concatenate([part.weight for part in parts]),
        edges=Edges.concatenate([part.edges for part in parts]),
    )
    order = np.lexsort((-targets.weight, targets.refs))
    first = mark_first(targets.refs[order])
    return targets.take(order[first]), sure or any(map(len, parts[1:]))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Similarity(Strategy):
    """The ``k`` documents most similar to the query. No link is followed.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
    """

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan one fetch of the nearest, one of their texts."""
        if question.roots or question.links:
            raise StrategyError("Similarity does not take initial_roots or initial_links; use Eager(depth=0)")
        condition = question.seed_filter & question.result_filter
        trail = Trail()

        def nearest(k: int) -> plans.Nearest:
            return plans.Nearest(vector=question.vector, k=k, filter=condition)

        near, kept = yield from fetch_first_returned(trail, nearest, self.k, self.per_page)
        refs, similarity = near.refs[kept], near.similarity[kept]
        if not len(refs):
            narrowed = question.filtered or not condition.always
            reason = "no document passes the filter" if narrowed else "the store is empty"
            return Hits(hits=(), reason=reason, strategy=str(self))
        documents = FoundDocuments(
            refs=refs, similarity=similarity, weight=np.ones(len(refs), dtype=np.float32)
        )
        return (yield from make_hits(trail, trail.add(documents), self, question))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Words(Strategy):
    """The ``k`` documents that match the query's words best, by BM25. No link is followed.

    A hit's score is its BM25 (:mod:`linkstore.core.lexical`). On a backend without lexical search
    it raises CapabilityError.

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Maximum number of documents of one page to return. Default None, no maximum.
    """

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan one fetch by words, one of their vectors, one of their texts."""
        if question.roots or question.links:
            raise StrategyError("Words does not take initial_roots or initial_links; use Eager(depth=0)")
        asked, more = extract_question_terms(question.text)
        if not asked:
            reason = "the query has no words to look up: it is a vector or contains only stop words"
            return Hits(hits=(), reason=reason, strategy=str(self))
        condition = question.seed_filter & question.result_filter
        trail = Trail()

        def matching(k: int) -> plans.Lexical:
            return plans.Lexical(terms=asked, k=k, filter=condition)

        matches, kept = yield from fetch_first_returned(trail, matching, self.k, self.per_page)
        record_cut_words(trail, more, matches)
        if not len(matches.refs):
            # The filter of the whole search hides documents from all that is said, this reason included.
            passing = "" if condition.always else " and passes the filter"
            reason = f"no document contains a word of the query{passing}"
            if matches.sampled:
                reason += f", of the about {POSTINGS:,} that were looked at"
            return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(self))
        refs, score = matches.refs[kept], matches.score[kept]
        vectors = yield from plans.ask(plans.Vectors(refs=refs))
        similarity = cosine_similarities(vectors, question.vector)
        weight = np.ones(len(refs), dtype=np.float32)
        positions = trail.add(FoundDocuments(refs=refs, similarity=similarity, weight=weight))
        return (yield from make_hits(trail, positions, self, question, score, {"words": score}))
