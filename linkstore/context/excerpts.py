"""Excerpts: the sentences of a document that have most to do with a question, where it does not fit whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from linkstore.context.compiled import TokenCounter
from linkstore.core.display import escape_unprintable
from linkstore.core.lexical import extract_question_terms, extract_terms
from linkstore.core.text import split_sentences

GAP: Final = " […] "
"""Stands for the sentences that an excerpt leaves out."""
_OPENING: Final = 0.5
"""How much the first sentence counts, which says what a text is about; a word of the question counts 1."""
_MOST_SENTENCES: Final = 500
"""How many sentences of a document are looked at."""


def cut_excerpt(
    text: str, question: str, room: int, counter: TokenCounter, name: str | None = None
) -> str | None:
    """Return the best whole sentences of a text in their order, or None if not one fits.

    Args:
        text: Of a document.
        question: What they are to answer.
        room: Most tokens of the excerpt.
        counter: Counts them.
        name: The id in the line above them, which says how many sentences they are; None: without the line.
    """
    sentences, worth = _weigh_sentences(text, question)
    costs = counter.count([f"{GAP}{one}" for one in sentences])
    free = room - counter.count([_format(sentences, [], name)])[0]
    best = sorted((at for at, value in enumerate(worth) if value), key=lambda at: (-worth[at], at))
    chosen: list[int] = []
    for at in best:
        if costs[at] <= free:
            chosen.append(at)
            free -= costs[at]
    while chosen:
        excerpt = _format(sentences, sorted(chosen), name)
        if counter.count([excerpt])[0] <= room:
            return excerpt
        chosen.pop()  # the least of those taken
    single = [_format(sentences, [at], name) for at in best]
    return next((one for one, cost in zip(single, counter.count(single), strict=True) if cost <= room), None)


def list_shortest(text: str, question: str) -> list[str]:
    """Return each sentence that may be an excerpt, as the shortest one."""
    sentences, worth = _weigh_sentences(text, question)
    return [_format(sentences, [at], None) for at, value in enumerate(worth) if value]


def _weigh_sentences(text: str, question: str) -> tuple[list[str], list[float]]:
    sentences = [" ".join(one.split()) for one in split_sentences(text)][:_MOST_SENTENCES]
    terms = set(extract_question_terms(question)[0])
    return sentences, [
        len(terms.intersection(extract_terms(one))) + (_OPENING if not at else 0.0)
        for at, one in enumerate(sentences)
    ]


def _format(sentences: Sequence[str], chosen: Sequence[int], name: str | None) -> str:
    parts: list[str] = []
    for before, at in zip([-1, *chosen], chosen, strict=False):
        gap = GAP if at > before + 1 else " "
        parts.append(f"{gap}{sentences[at]}".lstrip(" " if not parts else ""))
    end = GAP if chosen and chosen[-1] < len(sentences) - 1 else ""
    counted = f"{len(chosen)} of {len(sentences)} sentences"
    head = "" if name is None else f"[{escape_unprintable(name)}: {counted}]\n"
    return f"{head}{''.join(parts)}{end}".rstrip()
