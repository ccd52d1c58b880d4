"""Measures on questions with known answers what searches find, and whether links help.

:func:`evaluate` compares strategies on a corpus or a store. :func:`read_corpus` and :func:`read_questions`
read their JSON Lines; :func:`with_links` gives a corpus the links to compare. :func:`profile` describes the
links of a store and whether they help. :func:`calibrate_floor` proposes a minimum similarity, and
:func:`estimate_lexical_weight` how much words count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkstore.core.lazy import lazy

if TYPE_CHECKING:
    from linkstore.evaluate.calibration import (
        Floor,
        LexicalWeight,
        calibrate_floor,
        estimate_lexical_weight,
    )
    from linkstore.evaluate.checkup import Checkup, Finding, aexamine, examine
    from linkstore.evaluate.link_groups import (
        GoldEdges,
        GoldProfile,
        KindProfile,
        LinkGroup,
        Profile,
        list_size_labels,
    )
    from linkstore.evaluate.metrics import (
        STRATEGIES,
        Comparison,
        Estimate,
        Evaluation,
        Outcome,
        compare_with_baseline,
    )
    from linkstore.evaluate.profiling import profile, with_links
    from linkstore.evaluate.running import (
        GOLD_KINDS,
        GoldKind,
        GoldQuestion,
        evaluate,
        read_corpus,
        read_questions,
    )
    from linkstore.evaluate.telemetry import Telemetry
    from linkstore.evaluate.watch import Alarm, Limits, SearchRecord, Vitals, Watch

__all__ = [
    "Alarm",
    "Checkup",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Finding",
    "Floor",
    "GOLD_KINDS",
    "GoldEdges",
    "GoldKind",
    "GoldProfile",
    "GoldQuestion",
    "KindProfile",
    "LexicalWeight",
    "Limits",
    "LinkGroup",
    "Outcome",
    "Profile",
    "STRATEGIES",
    "SearchRecord",
    "Telemetry",
    "Vitals",
    "Watch",
    "aexamine",
    "calibrate_floor",
    "compare_with_baseline",
    "estimate_lexical_weight",
    "evaluate",
    "examine",
    "list_size_labels",
    "profile",
    "read_corpus",
    "read_questions",
    "with_links",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "linkstore.evaluate.calibration": "Floor LexicalWeight calibrate_floor estimate_lexical_weight",
        "linkstore.evaluate.checkup": "Checkup Finding aexamine examine",
        "linkstore.evaluate.link_groups": (
            "GoldEdges GoldProfile KindProfile LinkGroup Profile list_size_labels"
        ),
        "linkstore.evaluate.metrics": (
            "Comparison Estimate Evaluation Outcome STRATEGIES compare_with_baseline"
        ),
        "linkstore.evaluate.profiling": "profile with_links",
        "linkstore.evaluate.running": (
            "GOLD_KINDS GoldKind GoldQuestion evaluate read_corpus read_questions"
        ),
        "linkstore.evaluate.telemetry": "Telemetry",
        "linkstore.evaluate.watch": "Alarm Limits SearchRecord Vitals Watch",
    },
)
