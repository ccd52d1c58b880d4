"""A strategy that returns what a question names, to test how names in questions are found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkstore.core.arguments import require_at_least
from linkstore.core.hits import Hits
from linkstore.core.plans import Plan
from linkstore.strategies import Question, Strategy, first_stage
from linkstore.strategies.names import READ, find_named_documents
from linkstore.strategies.resolver import NAMING_KINDS
from linkstore.strategies.results import make_hits
from linkstore.strategies.traversal import Trail


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Named(Strategy):
    """The documents that a question names, the surest first, as first stages find them.

    A query without names finds nothing. A hit's score says how surely the document is meant, in (0, 1].

    Args:
        k: Maximum number of documents to return. Default 10.
        per_page: Has no effect.
        cap: A name that more documents than this have is ignored. Default 3.
    """

    cap: int = 3

    def __post_init__(self) -> None:
        Strategy.__post_init__(self)
        require_at_least(1, cap=self.cap)

    def plan(self, question: Question) -> Plan[Hits]:
        """Plan one fetch by words, one of the links that have names as tags, and the texts of candidates."""
        trail = Trail()
        question = replace(question, seed_filter=question.seed_filter & question.result_filter)
        worded, unknown = yield from first_stage._search_by_words(trail, question, READ)
        documents, _ = yield from find_named_documents(
            trail, question, worded.document_frequency, unknown, worded.refs, NAMING_KINDS, self.k, self.cap
        )
        if not len(documents):
            unclear = [f": {cut.detail}" for cut in trail.cuts if cut.reason == "name"]
            reason = "the query names no document" + "".join(unclear[:1])
            return Hits(hits=(), cuts=tuple(trail.cuts), reason=reason, strategy=str(self))
        score = documents.weight
        unlinked = replace(documents, weight=np.ones(len(documents), dtype=np.float32))
        return (yield from make_hits(trail, trail.add(unlinked), self, question, score, {"name": score}))
