"""The first stage: documents by meaning and by words, on one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkstore.errors import CapabilityError
from linkstore.filters import Condition
from linkstore.lexical import terms
from linkstore.plans import Candidates, Lexical, Nearest, Plan, Vectors, Worded
from linkstore.strategies.base import Question
from linkstore.strategies.trail import NO_REFS, NO_SCORES, Trail
from linkstore.vectors import Floats, Ints, similarities


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStage:
    """Documents that meaning or words found.

    Args:
        refs: (n,) documents, ascending.
        similarity: (n,) to the question.
        words: (n,) BM25 over the largest BM25, in [0, 1]; 0 for those that words did not find.
        best: The largest similarity; 1 where none is above 0.
        lexical: How much words count beside meaning.
    """

    refs: Ints
    similarity: Floats
    words: Floats
    best: float
    lexical: float

    def scores(self, refs: Ints, similarity: Floats) -> Floats:
        """(m,) scores of any documents in [0, 1], with words where the first stage knows them."""
        words = np.zeros(len(refs), dtype=np.float32)
        at = np.minimum(np.searchsorted(self.refs, refs), max(0, len(self.refs) - 1))
        if len(self.refs):
            known = self.refs[at] == refs
            words[known] = self.words[at[known]]
        most = 1.0 + (self.lexical if len(self.words) and self.words.any() else 0.0)
        raw = np.maximum(similarity / np.float32(self.best) + np.float32(self.lexical) * words, 0)
        return (raw / np.float32(most)).astype(np.float32)


def first_stage(
    trail: Trail, question: Question, condition: Condition, pool: int, lexical: float
) -> Plan[FirstStage]:
    """The ``pool`` nearest and the ``pool`` that match words best, joined.

    Where the backend cannot search by words, meaning alone decides, and the trail says so.
    """
    near: Candidates = yield Nearest(vector=question.vector, k=pool, filter=condition)
    found = yield from _by_words(trail, question, condition, pool if lexical else 0)
    refs = np.union1d(near.refs, found.refs)
    similarity = np.zeros(len(refs), dtype=np.float32)
    similarity[np.searchsorted(refs, near.refs)] = near.similarity
    others = refs[~np.isin(refs, near.refs)]
    if len(others):
        vectors: Floats = yield Vectors(refs=others)
        similarity[np.searchsorted(refs, others)] = similarities(vectors, question.vector)
    words = np.zeros(len(refs), dtype=np.float32)
    if len(found.refs):
        words[np.searchsorted(refs, found.refs)] = found.score / found.score.max()
    best = float(near.similarity[0]) if len(near.refs) and near.similarity[0] > 0 else 1.0
    return FirstStage(refs=refs, similarity=similarity, words=words, best=best, lexical=lexical)


def _by_words(trail: Trail, question: Question, condition: Condition, pool: int) -> Plan[Worded]:
    none = Worded(refs=NO_REFS, score=NO_SCORES)
    asked = tuple(dict.fromkeys(terms(question.text)))
    if not asked or not pool:
        return none
    try:
        found: Worded = yield Lexical(terms=asked, k=pool, filter=condition)
    except CapabilityError:
        trail.cut("lexical", len(asked), 0, "words not looked up: this backend has no lexical search")
        return none
    trail.cut("lexical", len(found.left_out), 0, f"words in too many documents: {', '.join(found.left_out)}")
    return found
