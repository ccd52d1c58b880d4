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


def cut_excerpt(name: str, text: str, question: str, room: int, counter: TokenCounter) -> str | None:
    """Return the best whole sentences of a text in their order, or None if not one fits.

    A line above them names the document, and says how many of its sentences they are.

    Args:
        name: The id of the document.
        text: Its text.
        question: What they are to answer.
        room: Most tokens of the excerpt.
        counter: Counts them.
    """
    sentences = [" ".join(one.split()) for one in split_sentences(text)][:_MOST_SENTENCES]
    terms = set(extract_question_terms(question)[0])
    worth = [
        len(terms.intersection(extract_terms(one))) + (_OPENING if not at else 0.0)
        for at, one in enumerate(sentences)
    ]
    costs = counter.count([f"{GAP}{one}" for one in sentences])
    free = room - counter.count([_format(name, sentences, [])])[0]
    chosen: list[int] = []
    for at in sorted(range(len(sentences)), key=lambda at: (-worth[at], at)):
        if worth[at] and costs[at] <= free:
            chosen.append(at)
            free -= costs[at]
    while chosen:
        excerpt = _format(name, sentences, sorted(chosen))
        if counter.count([excerpt])[0] <= room:
            return excerpt
        chosen.pop()  # the least of those taken
    return None


def _format(name: str, sentences: Sequence[str], chosen: Sequence[int]) -> str:
    parts: list[str] = []
    for before, at in zip([-1, *chosen], chosen, strict=False):
        gap = GAP if at > before + 1 else " "
        parts.append(f"{gap}{sentences[at]}".lstrip(" " if not parts else ""))
    end = GAP if chosen and chosen[-1] < len(sentences) - 1 else ""
    head = f"[{escape_unprintable(name)}: {len(chosen)} of {len(sentences)} sentences]"
    return f"{head}\n{''.join(parts)}{end}".rstrip()
