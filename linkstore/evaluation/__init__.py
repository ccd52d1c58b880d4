"""Does a search find what answers a question, and would links help? Measured on questions with known answers.

:func:`evaluate` compares strategies on a corpus or a store. :func:`read_corpus` and :func:`read_questions`
read their JSON Lines; :func:`with_links` gives a corpus the links to compare.
"""

from __future__ import annotations

from linkstore.evaluation.contenders import STRATEGIES
from linkstore.evaluation.linking import with_links
from linkstore.evaluation.metrics import Estimate
from linkstore.evaluation.outcomes import Evaluation, Outcome
from linkstore.evaluation.rows import GoldQuestion, read_corpus, read_questions
from linkstore.evaluation.running import Progress, evaluate

__all__ = [
    "STRATEGIES",
    "Estimate",
    "Evaluation",
    "GoldQuestion",
    "Outcome",
    "Progress",
    "evaluate",
    "read_corpus",
    "read_questions",
    "with_links",
]
