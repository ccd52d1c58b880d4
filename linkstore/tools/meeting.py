"""Where chains of different relations meet, as far as a model may be told so.

Two chains say something together only if both are about what was asked, and each by relations of its own. So
they start from what the question names, or from one document if it names none; they have no document in
common but their ends; and no kind of link is in both. Links by which a text merely refers to another, as on
any site, are no relation: that two pages link to a third one says nothing about the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.documents import Document

from linkstore.hits import Chain
from linkstore.links import get_links
from linkstore.strategies.named import NAMES
from linkstore.text import tokens

REFERENCES: Final = frozenset(
    {
        "category",
        "citation",
        "entity",
        "heading",
        "hyperlink",
        "keyword",
        "mention",
        "next",
        "next_turn",
        "previous",
        "section",
        "tag",
    }
)
"""Kinds of link that say no more than that two texts have to do with each other."""
_PARTS: Final = re.compile(r"[/#]")


def meeting(chains: Sequence[Chain], named: Collection[str] = ()) -> tuple[Chain, ...]:
    """Mark the chains that meet as independent, and put them first. None is marked if there is but one.

    Args:
        chains: To one document, the best first.
        named: Ids of the documents that the question names; none: they start from one document.
    """
    typed = [chain for chain in chains if chain and not _kinds(chain) & REFERENCES]
    best: list[Chain] = []
    for first in typed:
        chosen = [first]
        for chain in typed:
            if all(_meet(chain, other, named) for other in chosen):
                chosen.append(chain)
        if len(chosen) > max(1, len(best)):
            best = chosen
    rest = [chain for chain in chains if chain not in best]
    return (
        *(replace(chain, independent=True) for chain in best),
        *(replace(chain, independent=False) for chain in rest),
    )


def is_named(document: Document, question: str) -> bool:
    """Say whether a question has the id of a document in it, its title or heading, or another name of it."""
    title, headings = document.metadata.get("title"), document.metadata.get("headings")
    names = [document.id or "", *_PARTS.split(document.id or "")[-1:]]
    names += [str(one) for one in (title, *(headings[-1:] if isinstance(headings, list) else ())) if one]
    names += [link.tag for link in get_links(document) if link.kind in NAMES and link.leads_in]
    asked = f" {' '.join(tokens(question))} "
    return any(words and f" {' '.join(words)} " in asked for words in map(tokens, names))


def _meet(one: Chain, other: Chain, named: Collection[str]) -> bool:
    """Say whether two chains to the same document are about what was asked, each by its own relations."""
    starts = {one.start, other.start}
    about = starts <= set(named) if named else len(starts) == 1
    common = set(_passed(one)) & set(_passed(other))
    return about and common <= {one.start} & {other.start} and not _kinds(one) & _kinds(other)


def _kinds(chain: Chain) -> frozenset[str]:
    return frozenset(triple.kind for triple in chain)


def _passed(chain: Chain) -> list[str]:
    """Return the documents of a chain, without the one that it leads to."""
    passed = [chain.start]
    for triple in chain:
        passed.append(triple.other(passed[-1]))
    return passed[:-1]
