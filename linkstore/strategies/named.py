"""The query as a document: what it names leads to documents, as a link would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.plans import Members, Names, Plan, Reached, Resolve
from linkstore.strategies.base import Question
from linkstore.strategies.trail import NO_REFS, NO_SCORES
from linkstore.text import tokens
from linkstore.vectors import Floats, Ints

MENTION: Final = "mention"
"""The kind of links by which a text leads to the document whose title it names."""
LONGEST: Final = 8
"""How many words of a query a title may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Documents that a query names.

    Args:
        refs: (n,) documents, the surest first.
        similarity: (n,) to the question.
        share: (n,) 1 over how many documents bear the name.
    """

    refs: Ints
    similarity: Floats
    share: Floats


NOBODY: Final = Named(refs=NO_REFS, similarity=NO_SCORES, share=NO_SCORES)


def named(question: Question, most: int, cap: int) -> Plan[Named]:
    """The documents whose titles the query names, longest names first from left to right.

    Args:
        question: What is asked.
        most: How many documents at most; those of the rarest names, then the most similar, then by id.
        cap: Of a name that more documents bear, none is meant.
    """
    words = tokens(question.text)
    grams = [
        (at, size, " ".join(words[at : at + size]))
        for at in range(len(words))
        for size in range(min(LONGEST, len(words) - at), 0, -1)
    ]
    if not grams or not most:
        return NOBODY
    refs: Ints = yield Resolve(tags=tuple((MENTION, gram) for _, _, gram in grams))
    groups = np.unique(refs[refs >= 0])
    if not len(groups):
        return NOBODY
    answer: Reached = yield Members(
        groups=groups,
        side="in",
        vector=question.vector,
        take=cap,
        cap=cap,
        exclude=NO_REFS,
        filter=question.filter & question.seed_filter,
    )
    titles = set(groups[answer.sizes > 0].tolist())
    meant = _longest(grams, refs.tolist(), titles)
    return (yield from _surest(groups, answer, meant, most))


def _longest(grams: list[tuple[int, int, str]], refs: list[int], titles: set[int]) -> set[int]:
    """The titles found by reading from left to right, each time the longest that stands there."""
    meant: set[int] = set()
    free = 0
    for (at, size, _), ref in zip(grams, refs, strict=True):
        if at >= free and ref in titles:
            meant.add(ref)
            free = at + size
    return meant


def _surest(groups: Ints, answer: Reached, meant: set[int], most: int) -> Plan[Named]:
    rows = [row for row, group in enumerate(groups[answer.group].tolist()) if group in meant]
    names: list[str] = yield Names(refs=answer.refs[rows])
    share = (1 / answer.sizes[answer.group]).astype(np.float32)
    best: dict[str, int] = {}
    for row, name in zip(rows, names, strict=True):
        if name not in best or share[row] > share[best[name]]:
            best[name] = row
    ordered = sorted(best, key=lambda name: (-share[best[name]], -answer.similarity[best[name]], name))
    chosen = [best[name] for name in ordered[:most]]
    return Named(refs=answer.refs[chosen], similarity=answer.similarity[chosen], share=share[chosen])
