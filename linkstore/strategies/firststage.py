"""The first stage: documents by similarity and by words, on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.arrays import contained, distinct, located
from linkstore.errors import CapabilityError
from linkstore.lexical import POSTINGS, QUESTION_WORDS, question_terms
from linkstore.plans import Candidates, Lexical, Nearest, Plan, Vectors, Worded
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.trail import NO_REFS, NO_SCORES, Found, Trail
from linkstore.vectors import Floats, Ints, similarities


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

    def scores_of(self, found: Found) -> Floats:
        """Return (n,) scores of documents found."""
        return self.scores(found.refs, found.similarity)

    def by_words(self, refs: Ints) -> Floats:
        """Return (m,) what words alone give to the scores of any documents."""
        return (np.float32(self.lexical) * self._find_words(refs) / self._most).astype(np.float32)

    def joined(self, others: Found) -> Found:
        """Return the first stage's documents and others, each once, with the links that led to the others."""
        refs, at = np.unique(np.concatenate((self.refs, others.refs)), return_index=True)
        return Found(
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
        at = located(refs, self.refs)
        words[at >= 0] = self.words[at[at >= 0]]
        return words


def first_stage(
    trail: Trail, question: Question, controls: Traversing, pool: int, lexical: float
) -> Plan[FirstStage]:
    """Find the ``pool`` nearest documents and the ``pool`` that match words best, none below the floor.

    If the backend has no lexical search, only similarity counts, and the trail says so.
    """
    near: Candidates = yield Nearest(vector=question.vector, k=pool, filter=question.seed_filter)
    found = yield from _by_words(trail, question, pool if lexical else 0)
    refs = distinct(np.concatenate((near.refs, found.refs)))
    similarity = np.zeros(len(refs), dtype=np.float32)
    similarity[np.searchsorted(refs, near.refs)] = near.similarity
    others = refs[~contained(refs, near.refs)]
    if len(others):
        vectors: Floats = yield Vectors(refs=others)
        similarity[np.searchsorted(refs, others)] = similarities(vectors, question.vector)
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


def _by_words(trail: Trail, question: Question, pool: int) -> Plan[Worded]:
    none = Worded(refs=NO_REFS, score=NO_SCORES)
    asked, more = question_terms(question.text)
    if not asked or not pool:
        return none
    try:
        found: Worded = yield Lexical(terms=asked, k=pool, filter=question.seed_filter)
    except CapabilityError as error:
        trail.cut("lexical", len(asked), 0, f"words not looked up: {error}")
        return none
    cut_words(trail, more, found)
    return found


def cut_words(trail: Trail, more: int, found: Worded) -> None:
    """Note which words of a question were not looked up, or not in all documents.

    Args:
        trail: Takes the notes.
        more: Number of words past the first ones of the question.
        found: The answer for the first ones.
    """
    left, sampled = ", ".join(found.left_out), ", ".join(found.sampled)
    trail.cut("lexical", more, 0, f"words past the first {QUESTION_WORDS} of the question")
    trail.cut("lexical", len(found.left_out), 0, f"words in too many documents: {left}")
    of_them = f"only about {POSTINGS:,} of the documents with a word were looked at: {sampled}"
    trail.cut("lexical", len(found.sampled), 0, of_them)
