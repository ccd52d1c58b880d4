"""Profiles a corpus: statistics of its links, and how much they can improve the results of questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from linkstore.errors import CapabilityError
from linkstore.evaluation.comparison import Comparison, compared, names
from linkstore.evaluation.counting import counted, largest_groups
from linkstore.evaluation.gold import gold_profile
from linkstore.evaluation.profiles import KindProfile, Profile
from linkstore.evaluation.rows import GoldQuestion
from linkstore.evaluation.running import evaluate
from linkstore.evaluation.units import GoldKind, gold_units
from linkstore.evaluation.verdict import verdict
from linkstore.store import LinkStore
from linkstore.store.checking import require_store


def profile(
    store: LinkStore, questions: Sequence[GoldQuestion] = (), *, gold: GoldKind | None = None
) -> Profile:
    """Describe the links of a store.

    Reads the store three times (more often where it has many millions of links), in batches, on any
    backend. What is written meanwhile may or may not be counted.

    Args:
        store: The store, which is not changed.
        questions: Questions with their answers, to measure how links help to find them. Without questions,
            the verdict can only say how well documents are linked.
        gold: What answers name: see :func:`~linkstore.evaluation.evaluate`.

    Raises:
        EvaluationError: If a gold answer is not in the store.
    """
    require_store(store=store)
    survey = store.survey()
    counts = counted(store.backend, sum(survey.links.values()))
    dangling = Counter[str]()
    for kind, _, links in survey.dangling:
        dangling[kind] += links
    units = gold_units(store, questions, gold) if questions else None
    found = gold_profile(store, questions, units) if units else None
    comparison = _compared(store, questions, units.kind) if units else None
    joined, reached = int(counts.joined.sum()), int(counts.reached.sum())
    documents = len(counts.joined)
    return Profile(
        documents=documents,
        links={
            kind: KindProfile(
                links=links,
                groups=counts.groups[kind],
                hubs=counts.hubs[kind],
                edges=counts.edges[kind],
                dangling=dangling[kind],
            )
            for kind, links in sorted(survey.links.items())
        },
        sizes=tuple(counts.sizes.tolist()),
        largest=largest_groups(store.backend, counts),
        isolated=documents - joined,
        reached=reached,
        gold=found,
        gold_kind=units.kind if units else None,
        comparison=comparison,
        verdict=verdict(reached / documents if documents else 0.0, found, comparison),
    )


def _compared(store: LinkStore, questions: Sequence[GoldQuestion], gold: GoldKind) -> Comparison | None:
    """Compare the default with the searches without links that the backend can do."""
    try:
        return compared(evaluate(store, questions, names(lexical=True), gold=gold))
    except CapabilityError:
        return compared(evaluate(store, questions, names(lexical=False), gold=gold))
