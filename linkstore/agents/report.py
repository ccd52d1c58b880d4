"""Reports which spellings of key elements were joined, and which similar ones were not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from langchain_core.documents import Document

from linkstore.agents.facts import ELEMENT_ID, KEY_ELEMENT, element_of_page
from linkstore.links import get_links
from linkstore.plans import Candidates, Find, Ids, Plan, Vectors
from linkstore.store import LinkStore
from linkstore.store.checking import require_store
from linkstore.twins import answered_by, wait
from linkstore.variants import SHOWN, NearMiss, VariantReport, Variants
from linkstore.vectors import Floats

COMPARED: Final = 2_000
"""Maximum number of key elements compared by meaning, those of the most facts."""
ALIKE: Final = 0.9
"""Minimum similarity of two key elements with a similar meaning."""
_DIGITS: Final = re.compile(r"\d+")


def element_report(facts: LinkStore, aliases: Mapping[str, Iterable[str]] | None = None) -> VariantReport:
    """Report which spellings of key elements are one name, and which key elements may be and are not joined.

    Spellings are joined by the rule of :class:`~linkstore.variants.Variants` and by aliases; each name lists
    its spellings by frequency. Near misses look alike, or mean alike: their reason is then ``meaning``.
    To join two, declare an alias and index the facts anew.

    Args:
        facts: The store of facts, as :func:`fact_store` gives it.
        aliases: As given to :func:`index_facts`.
    """
    require_store(facts=facts)
    counts: Counter[str] = Counter()
    found = Variants([KEY_ELEMENT], aliases).report(_counted(facts.scan(), counts))
    known = {miss.names for miss in found.near_misses}
    meaning = [
        NearMiss(names=pair, reason="meaning")
        for pair in _alike(facts, [name for name, _ in counts.most_common(COMPARED)])
        if pair not in known
    ]
    misses = sorted((*found.near_misses, *meaning), key=lambda miss: miss.names)
    return VariantReport(merges=found.merges, near_misses=tuple(misses[:SHOWN]))


def _counted(documents: Iterable[Document], counts: Counter[str]) -> Iterator[Document]:
    """Yield the facts, counting those of each key element on the way."""
    for document in documents:
        if document.metadata.get("type") == "fact":
            counts.update(link.tag for link in get_links(document) if link.kind == KEY_ELEMENT)
            yield document


def _alike(facts: LinkStore, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of key elements that mean alike. A different number means something else."""
    there, vectors = wait(answered_by(facts, _vectors(names)))
    above = np.triu(vectors @ vectors.T, 1) >= ALIKE
    pairs = ((there[one], there[other]) for one, other in np.argwhere(above).tolist())
    return [(min(pair), max(pair)) for pair in pairs if _DIGITS.findall(pair[0]) == _DIGITS.findall(pair[1])]


def _vectors(names: Sequence[str]) -> Plan[tuple[list[str], Floats]]:
    found: Candidates = yield Find(ids=tuple(f"{ELEMENT_ID}{name}" for name in names))
    if not len(found.refs):
        return [], np.empty((0, 1), dtype=np.float32)
    ids: list[str] = yield Ids(refs=found.refs)
    vectors: Floats = yield Vectors(refs=found.refs)
    return [element_of_page(id) for id in ids], vectors
