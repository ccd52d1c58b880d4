"""Documents that a question names or asks for, as starts of a search.

Names in a query, which lead to documents as the links of a document do.

Documents that a question asks for: by names, by its links, and by its roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from linkstore.core.arrays import Floats, Ints, find_positions, sort_unique
from linkstore.core.lexical import MAX_QUESTION_CHARACTERS
from linkstore.core.plans import Candidates, Ids, Members, Plan, ReachedMembers, Resolve
from linkstore.core.text import tokenize
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.traversal import (
    NO_REFS,
    NO_SCORES,
    QUERY,
    Edges,
    FoundDocuments,
    Trail,
    fetch_linked,
    fetch_roots,
    make_unlinked,
)

NAMING_KINDS: Final = ("mention", "heading")
"""Kinds of links by which texts and questions lead to what they name: documents and sections."""
MAX_NAME_WORDS: Final = 12
"""How many words of a query a name may have."""
MAX_SEARCHED_WORDS: Final = 256
"""Number of words of a query that are searched for names."""
SURE_NAME_WORDS: Final = 3
"""A name with fewer words than this is often an ordinary word, and counts less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTargets:
    """Documents that a question itself leads to: by names in it, by its links, by ids.

    Args:
        found: The documents, with the links that led to them.
        share: (n,) how surely each is meant, in (0, 1].
    """

    found: FoundDocuments
    share: Floats

    def shares(self, refs: Ints) -> Floats:
        """Return (m,) the shares of any documents, 0 for those not asked for."""
        shares = np.zeros(len(refs), dtype=np.float32)
        order = np.argsort(self.found.refs)
        at = find_positions(refs, self.found.refs[order])
        shares[at >= 0] = self.share[order[at[at >= 0]]]
        return shares


NO_TARGETS: Final = QuestionTargets(
    found=FoundDocuments(refs=NO_REFS, similarity=NO_SCORES, weight=NO_SCORES), share=NO_SCORES
)


def find_named_documents(
    question: Question, kinds: Sequence[str], most: int, cap: int
) -> Plan[QuestionTargets]:
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
    words = tokenize(question.text[:MAX_QUESTION_CHARACTERS])[:MAX_SEARCHED_WORDS]
    grams = [
        (at, size, kind, name)
        for at in range(len(words))
        for size in range(min(MAX_NAME_WORDS, len(words) - at), 0, -1)
        for name in _list_spellings(" ".join(words[at : at + size]))
        for kind in kinds
    ]
    if not grams or not most:
        return NO_TARGETS
    refs: Ints = yield Resolve(tags=tuple((kind, name) for _, _, kind, name in grams))
    groups = _drop_repeated_refs(refs[refs >= 0])
    if not len(groups):
        return NO_TARGETS
    answer: ReachedMembers = yield Members(
        groups=groups,
        side="in",
        vector=question.vector,
        take=cap,
        cap=cap,
        exclude=NO_REFS,
        filter=question.seed_filter,
    )
    borne = set(groups[answer.sizes > 0].tolist())
    meant = _select_longest_names([(at, size) for at, size, _, _ in grams], refs.tolist(), borne)
    lengths = {ref: size for (_, size, _, _), ref in zip(grams, refs.tolist(), strict=True)}
    sureness = np.array(
        [min(SURE_NAME_WORDS, lengths[ref]) / SURE_NAME_WORDS for ref in groups.tolist()], dtype=np.float32
    )
    return (yield from _select_surest(groups, answer, sureness, meant, most))


def _list_spellings(words: str) -> list[str]:
    """Return the words, and what they name as a possessive or as a plural of several words."""
    if words.endswith("'s"):
        return [words, words.removesuffix("'s")]
    plural = " " in words and words.endswith("s") and not words.endswith("ss")
    return [words, words.removesuffix("s")] if plural else [words]


def _drop_repeated_refs(refs: Ints) -> Ints:
    """Return each ref once, in order: of equally rare names the first one makes the path."""
    _, first = np.unique(refs, return_index=True)
    return refs[np.sort(first)]


def _select_longest_names(grams: list[tuple[int, int]], refs: list[int], borne: set[int]) -> set[int]:
    """Return the names in the query from left to right, the longest at each place."""
    meant: set[int] = set()
    free = 0
    last = (-1, 0)
    for (at, size), ref in zip(grams, refs, strict=True):
        if ref in borne and (at >= free or (at, size) == last):
            meant.add(ref)
            free, last = at + size, (at, size)
    return meant


def _select_surest(
    groups: Ints, answer: ReachedMembers, sureness: Floats, meant: set[int], most: int
) -> Plan[QuestionTargets]:
    rows = [row for row, group in enumerate(groups[answer.group].tolist()) if group in meant]
    ids: list[str] = yield Ids(refs=answer.refs[rows])
    share: Floats = (sureness / np.maximum(answer.sizes, 1)).astype(np.float32)[answer.group]
    best: dict[str, int] = {}
    for row, id in zip(rows, ids, strict=True):
        if id not in best or share[row] > share[best[id]]:
            best[id] = row
    ordered = sorted(best, key=lambda id: (-share[best[id]], -answer.similarity[best[id]], id))
    chosen = np.array([best[id] for id in ordered[:most]], dtype=np.int64)
    return QuestionTargets(found=_collect_found(groups, answer, chosen), share=share[chosen])


def _collect_found(groups: Ints, answer: ReachedMembers, rows: Ints) -> FoundDocuments:
    """Return members of link groups, as reached from the query by their links."""
    through = groups[answer.group[rows]]
    left = sort_unique(through)
    edges = Edges(
        out_group=left,
        out_source=np.full(len(left), QUERY),
        out_strength=np.ones(len(left), dtype=np.float32),
        in_group=through,
        in_ref=answer.refs[rows],
        in_weight=answer.weight[rows],
        in_strength=answer.weight[rows],
    )
    return FoundDocuments(
        refs=answer.refs[rows],
        similarity=answer.similarity[rows],
        weight=np.ones(len(rows), dtype=np.float32),
        edges=(edges,),
    )


def find_question_targets(
    trail: Trail, question: Question, controls: Traversing, kinds: Sequence[str], most: int, cap: int
) -> Plan[QuestionTargets]:
    """Return all documents that the question itself leads to, each once, with its surest share.

    Roots have the share 1. Documents that ``initial_links`` lead to have the weight of the link.

    Args:
        trail: The trail of the search.
        question: The question.
        controls: How its links are followed.
        kinds: See :func:`find_named_documents`, as for ``most`` and ``cap``.
        most: How many documents names lead to at most.
        cap: A name of more documents than this is ignored.
    """
    parts = [(yield from find_named_documents(question, kinds, most, cap))]
    if question.roots:
        roots: Candidates = yield from fetch_roots(trail, question)
        found = make_unlinked(roots.refs, roots.similarity)
        parts.append(QuestionTargets(found=found, share=np.ones(len(found), dtype=np.float32)))
    if question.links:
        found = yield from fetch_linked(trail, NO_REFS, question, controls)
        parts.append(QuestionTargets(found=found, share=found.weight))
    return _join_targets(parts) if len(parts) > 1 else parts[0]


def _join_targets(parts: list[QuestionTargets]) -> QuestionTargets:
    refs = np.concatenate([part.found.refs for part in parts])
    similarity = np.concatenate([part.found.similarity for part in parts])
    share: Floats = np.concatenate([part.share for part in parts])
    order = np.lexsort((-share, refs))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = refs[order][1:] != refs[order][:-1]
    chosen = order[new]
    found = FoundDocuments(
        refs=refs[chosen],
        similarity=similarity[chosen],
        weight=np.ones(len(chosen), dtype=np.float32),
        edges=tuple(edges for part in parts for edges in part.found.edges),
    )
    return QuestionTargets(found=found, share=share[chosen])
