"""The first stage: documents by similarity and by words; searches that end there.

The first stage: documents by similarity and by words, on one scale.

Plain k-NN search.

Plain search by words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.core.arrays import Floats, Ints, cosine_similarities, find_positions, is_member, sort_unique
from linkstore.core.hits import Hits
from linkstore.core.lexical import MAX_QUESTION_WORDS, POSTINGS, extract_question_terms
from linkstore.core.plans import Candidates, Lexical, LexicalMatches, Nearest, Plan, Vectors
from linkstore.errors import CapabilityError, StrategyError
from linkstore.strategies.base import Question, Strategy, Traversing
from linkstore.strategies.results import fetch_first_returned, make_hits
from linkstore.strategies.traversal import NO_REFS, NO_SCORES, FoundDocuments, Trail


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
    """

    refs: Ints
    similarity: Floats
    words: Floats
    best: float
    lexical: float
    highest: float | None

    def scores(self, refs: Ints, similarity: Floats) -> Floats:
        """Return (m,) scores of any documents in [0, 1], from meaning and words.

        A document that links led to may be more similar than ``best``, if a filter keeps it from being a
        start. It counts as the best one then.
        """
        meaning = np.minimum(similarity, np.float32(self.best)) / np.float32(self.best)
        raw = meaning + np.float32(self.lexical) * self._find_words(refs)
        return (np.maximum(raw, 0) / self._most).astype(np.float32)

    def scores_of(self, found: FoundDocuments) -> Floats:
        """Return (n,) scores of documents found."""
        return self.scores(found.refs, found.similarity)

    def by_words(self, refs: Ints) -> Floats:
        """Return (m,) what words alone give to the scores of any documents."""
        return (np.float32(self.lexical) * self._find_words(refs) / self._most).astype(np.float32)

    def joined(self, others: FoundDocuments) -> FoundDocuments:
        """Return the first stage's documents and others, each once, with the links that led to the others."""
        refs, at = np.unique(np.concatenate((self.refs, others.refs)), return_index=True)
        return FoundDocuments(
            refs=refs,
            similarity=np.concatenate((self.similarity, others.similarity))[at],
            weight=np.ones(len(refs), dtype=np.float32),
            edges=others.edges,
        )

    @property
    def _most(self) -> np.float32:
        return np.float32(1.0 + (self.lexical if self.words.any() else 0.0))

    def _find_words(self, refs: Ints) -> Floats:
        words = np.zeros(len(refs), dtype=np.float32)
        at = find_positions(refs, self.refs)
        words[at >= 0] = self.words[at[at >= 0]]
        return words


def run_first_stage(
    trail: Trail, question: Question, controls: Traversing, pool: int, lexical: float
) -> Plan[FirstStage]:
    """Find the ``pool`` nearest documents and the ``pool`` that match words best, none below the floor.

    If the backend has no lexical search, only similarity counts, and the trail says so.
    """
    near: Candidates = yield Nearest(vector=question.vector, k=pool, filter=question.seed_filter)
    found = yield from _search_by_words(trail, question, pool if lexical else 0)
    refs = sort_unique(np.concatenate((near.refs, found.refs)))
    similarity = np.zeros(len(refs), dtype=np.float32)
    similarity[np.searchsorted(refs, near.refs)] = near.similarity
    others = refs[~is_member(refs, near.refs)]
    if len(others):
        vectors: Floats = yield Vectors(refs=others)
        similarity[np.searchsorted(refs, others)] = cosine_similarities(vectors, question.vector)
    words = np.zeros(len(refs), dtype=np.float32)
    if len(found.refs):
        words[np.searchsorted(refs, found.refs)] = found.score / found.score.max()
    above = similarity >= np.float32(controls.floor)
    trail.cut("floor", int((~above).sum()), 0, f"min_similarity {controls.floor}")
    highest = float(near.similarity[0]) if len(near.refs) else None
    return FirstStage(
        refs=refs[above],
        similarity=similarity[above],
        words=words[above],
        best=highest if highest is not None and highest > 0 else 1.0,
        lexical=lexical,
        highest=highest,
    )


def _search_by_words(trail: Trail, question: Question, pool: int) -> Plan[LexicalMatches]:
    none = LexicalMatches(refs=NO_REFS, score=NO_SCORES)
    asked, more = extract_question_terms(question.text)
    if not asked or not pool:
        return none
    try:
        found: LexicalMatches = yield Lexical(terms=asked, k=pool, filter=question.seed_filter)
    except CapabilityError as error:
        trail.cut("lexical", len(asked), 0, f"words not looked up: {error}")
        return none
    note_cut_words(trail, more, found)
    return found


def note_cut_words(trail: Trail, more: int, found: LexicalMatches) -> None:
    """Note which words of a question were not looked up, or not in all documents.

    Args:
        trail: Takes the notes.
        more: Number of words past the first ones of the question.
        found: The answer for the first ones.
    """
    left, sampled = ", ".join(found.left_out), ", ".join(found.sampled)
    trail.cut("lexical", more, 0, f"words past the first {MAX_QUESTION_WORDS} of the question")
    trail.cut("lexical", len(found.left_out), 0, f"words in too many documents: {left}")
    of_them = f"only about {POSTINGS:,} of the documents with a word were looked at: {sampled}"
    trail.cut("lexical", len(found.sampled), 0, of_them)


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

        def nearest(k: int) -> Nearest:
            return Nearest(vector=question.vector, k=k, filter=condition)

        near, kept = yield from fetch_first_returned(trail, nearest, self.k, self.per_page)
        refs, similarity = near.refs[kept], near.similarity[kept]
        if not len(refs):
            narrowed = question.filtered or not condition.always
            reason = "no document passes the filter" if narrowed else "the store is empty"
            return Hits(hits=(), reason=reason, strategy=str(self))
        found = FoundDocuments(refs=refs, similarity=similarity, weight=np.ones(len(refs), dtype=np.float32))
        return (yield from make_hits(trail, trail.add(found), self, question))


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

        def matching(k: int) -> Lexical:
            return Lexical(terms=asked, k=k, filter=condition)

        found, kept = yield from fetch_first_returned(trail, matching, self.k, self.per_page)
        note_cut_words(trail, more, found)
        if not len(found.refs):
            # The filter of the whole search hides documents from all that is said, this reason included.
            passing = "" if condition.always else " and passes the filter"
            reason = f"no document contains a word of the query{passing}"
            if found.sampled:
                reason += f", of the about {POSTINGS:,} that were looked at"
            return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(self))
        refs, score = found.refs[kept], found.score[kept]
        vectors: Floats = yield Vectors(refs=refs)
        similarity = cosine_similarities(vectors, question.vector)
        weight = np.ones(len(refs), dtype=np.float32)
        positions = trail.add(FoundDocuments(refs=refs, similarity=similarity, weight=weight))
        return (yield from make_hits(trail, positions, self, question, score, {"words": score}))
