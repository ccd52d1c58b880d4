"""Names in a query, which lead to documents as the links of a document do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.arrays import distinct, located
from linkstore.lexical import QUESTION_CHARACTERS
from linkstore.plans import Ids, Members, Plan, Reached, Resolve
from linkstore.strategies.base import Question
from linkstore.strategies.trail import NO_REFS, NO_SCORES, QUERY, Edges, Found
from linkstore.text import tokens
from linkstore.vectors import Floats, Ints

NAMES: Final = ("mention", "heading")
"""Kinds of links by which texts and questions lead to what they name: documents and sections."""
LONGEST: Final = 12
"""How many words of a query a name may have."""
WORDS: Final = 256
"""Number of words of a query that are searched for names."""
SURE: Final = 3
"""A name with fewer words than this is often an ordinary word, and counts less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Documents that a question itself leads to: by names in it, by its links, by ids.

    Args:
        found: The documents, with the links that led to them.
        share: (n,) how surely each is meant, in (0, 1].
    """

    found: Found
    share: Floats

    def shares(self, refs: Ints) -> Floats:
        """Return (m,) the shares of any documents, 0 for those not asked for."""
        shares = np.zeros(len(refs), dtype=np.float32)
        order = np.argsort(self.found.refs)
        at = located(refs, self.found.refs[order])
        shares[at >= 0] = self.share[order[at[at >= 0]]]
        return shares


NOBODY: Final = Asked(found=Found(refs=NO_REFS, similarity=NO_SCORES, weight=NO_SCORES), share=NO_SCORES)


def named(question: Question, kinds: Sequence[str], most: int, cap: int) -> Plan[Asked]:
    """Find the documents that the query names, longest names first from left to right.

    A name leads to documents as a link with its words as the tag would, also as a possessive or, if it has
    several words, as a plural. Of n documents with the same name, each has a share of 1/n. A name of one
    word has a third of this, and one of two words two thirds.

    Args:
        question: The question.
        kinds: The kinds of the links that have names as tags.
        most: Maximum number of documents: those with the largest share, then the most similar, then by id.
        cap: A name of more documents than this is ignored.
    """
    words = tokens(question.text[:QUESTION_CHARACTERS])[:WORDS]
    grams = [
        (at, size, kind, name)
        for at in range(len(words))
        for size in range(min(LONGEST, len(words) - at), 0, -1)
        for name in _spellings(" ".join(words[at : at + size]))
        for kind in kinds
    ]
    if not grams or not most:
        return NOBODY
    refs: Ints = yield Resolve(tags=tuple((kind, name) for _, _, kind, name in grams))
    groups = _distinct(refs[refs >= 0])
    if not len(groups):
        return NOBODY
    answer: Reached = yield Members(
        groups=groups,
        side="in",
        vector=question.vector,
        take=cap,
        cap=cap,
        exclude=NO_REFS,
        filter=question.seed_filter,
    )
    borne = set(groups[answer.sizes > 0].tolist())
    meant = _longest([(at, size) for at, size, _, _ in grams], refs.tolist(), borne)
    lengths = {ref: size for (_, size, _, _), ref in zip(grams, refs.tolist(), strict=True)}
    sureness = np.array([min(SURE, lengths[ref]) / SURE for ref in groups.tolist()], dtype=np.float32)
    return (yield from _surest(groups, answer, sureness, meant, most))


def _spellings(words: str) -> list[str]:
    """Return the words, and what they name as a possessive or as a plural of several words."""
    if words.endswith("'s"):
        return [words, words.removesuffix("'s")]
    plural = " " in words and words.endswith("s") and not words.endswith("ss")
    return [words, words.removesuffix("s")] if plural else [words]


def _distinct(refs: Ints) -> Ints:
    """Return each ref once, in order: of equally rare names the first one makes the path."""
    _, first = np.unique(refs, return_index=True)
    return refs[np.sort(first)]


def _longest(grams: list[tuple[int, int]], refs: list[int], borne: set[int]) -> set[int]:
    """Return the names in the query from left to right, the longest at each place."""
    meant: set[int] = set()
    free = 0
    last = (-1, 0)
    for (at, size), ref in zip(grams, refs, strict=True):
        if ref in borne and (at >= free or (at, size) == last):
            meant.add(ref)
            free, last = at + size, (at, size)
    return meant


def _surest(groups: Ints, answer: Reached, sureness: Floats, meant: set[int], most: int) -> Plan[Asked]:
    rows = [row for row, group in enumerate(groups[answer.group].tolist()) if group in meant]
    ids: list[str] = yield Ids(refs=answer.refs[rows])
    share: Floats = (sureness / np.maximum(answer.sizes, 1)).astype(np.float32)[answer.group]
    best: dict[str, int] = {}
    for row, id in zip(rows, ids, strict=True):
        if id not in best or share[row] > share[best[id]]:
            best[id] = row
    ordered = sorted(best, key=lambda id: (-share[best[id]], -answer.similarity[best[id]], id))
    chosen = np.array([best[id] for id in ordered[:most]], dtype=np.int64)
    return Asked(found=_found(groups, answer, chosen), share=share[chosen])


def _found(groups: Ints, answer: Reached, rows: Ints) -> Found:
    """Return members of link groups, as reached from the query by their links."""
    through = groups[answer.group[rows]]
    left = distinct(through)
    edges = Edges(
        out_group=left,
        out_source=np.full(len(left), QUERY),
        out_strength=np.ones(len(left), dtype=np.float32),
        in_group=through,
        in_ref=answer.refs[rows],
        in_weight=answer.weight[rows],
        in_strength=answer.weight[rows],
    )
    return Found(
        refs=answer.refs[rows],
        similarity=answer.similarity[rows],
        weight=np.ones(len(rows), dtype=np.float32),
        edges=(edges,),
    )
