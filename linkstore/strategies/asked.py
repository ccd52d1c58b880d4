"""Documents that a question asks for: by names, by its links, and by its roots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkstore.plans import Candidates, Plan
from linkstore.strategies.base import Question, Traversing
from linkstore.strategies.named import Asked, named
from linkstore.strategies.trail import NO_REFS, Found, Trail
from linkstore.strategies.walk import linked, rooted, unlinked
from linkstore.vectors import Floats


def asked(
    trail: Trail, question: Question, controls: Traversing, kinds: Sequence[str], most: int, cap: int
) -> Plan[Asked]:
    """Return all documents that the question itself leads to, each once, with its surest share.

    Roots have the share 1. Documents that ``initial_links`` lead to have the weight of the link.

    Args:
        trail: The trail of the search.
        question: The question.
        controls: How its links are followed.
        kinds: See :func:`~linkstore.strategies.named.named`, as for ``most`` and ``cap``.
        most: How many documents names lead to at most.
        cap: A name of more documents than this is ignored.
    """
    parts = [(yield from named(question, kinds, most, cap))]
    if question.roots:
        roots: Candidates = yield from rooted(trail, question)
        found = unlinked(roots.refs, roots.similarity)
        parts.append(Asked(found=found, share=np.ones(len(found), dtype=np.float32)))
    if question.links:
        found = yield from linked(trail, NO_REFS, question, controls)
        parts.append(Asked(found=found, share=found.weight))
    return _joined(parts) if len(parts) > 1 else parts[0]


def _joined(parts: list[Asked]) -> Asked:
    refs = np.concatenate([part.found.refs for part in parts])
    similarity = np.concatenate([part.found.similarity for part in parts])
    share: Floats = np.concatenate([part.share for part in parts])
    order = np.lexsort((-share, refs))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = refs[order][1:] != refs[order][:-1]
    chosen = order[new]
    found = Found(
        refs=refs[chosen],
        similarity=similarity[chosen],
        weight=np.ones(len(chosen), dtype=np.float32),
        edges=tuple(edges for part in parts for edges in part.found.edges),
    )
    return Asked(found=found, share=share[chosen])
