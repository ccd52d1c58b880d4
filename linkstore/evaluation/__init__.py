"""Measures on questions with known answers what searches find, and whether links help.

:func:`evaluate` compares strategies on a corpus or a store. :func:`read_corpus` and :func:`read_questions`
read their JSON Lines; :func:`with_links` gives a corpus the links to compare. :func:`profile` describes the
links of a store and whether they help. :func:`calibrate` fits the value of candidates for
:mod:`linkstore.context`, and :func:`calibrate_floor` proposes a minimum similarity.
"""

from __future__ import annotations

from linkstore.evaluation.calibrating import calibrate
from linkstore.evaluation.comparison import Comparison, compared
from linkstore.evaluation.contenders import STRATEGIES
from linkstore.evaluation.flooring import Floor, calibrate_floor
from linkstore.evaluation.linking import with_links
from linkstore.evaluation.metrics import Estimate
from linkstore.evaluation.outcomes import Evaluation, Outcome
from linkstore.evaluation.profiles import GoldEdges, GoldProfile, KindProfile, LinkGroup, Profile, size_labels
from linkstore.evaluation.profiling import profile
from linkstore.evaluation.rows import GoldQuestion, read_corpus, read_questions
from linkstore.evaluation.running import Progress, evaluate
from linkstore.evaluation.units import GOLD_KINDS, GoldKind

__all__ = [
    "GOLD_KINDS",
    "STRATEGIES",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Floor",
    "GoldEdges",
    "GoldKind",
    "GoldProfile",
    "GoldQuestion",
    "KindProfile",
    "LinkGroup",
    "Outcome",
    "Profile",
    "Progress",
    "calibrate",
    "calibrate_floor",
    "compared",
    "evaluate",
    "profile",
    "read_corpus",
    "read_questions",
    "size_labels",
    "with_links",
]
