"""Sentences of English text, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 600
"""Longer sentences, in characters, are tables and code; they are cut between words."""
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|Mt|Ft|Jr|Sr|No|Nos|Vol|vs|etc|cf|ca|c|b|d|approx|Inc|Ltd|Co|Corp"
    r"|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Gov|Sen|Rep|Pres|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec|Fig|Eq)"
    r"|\b[a-z]\.[a-z])\.$"
)
"""A full stop that does not end a sentence, at the end of the text before it."""
_END: Final = re.compile(
    r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s+[\"'\u201c\u2018(\[]*[A-Z0-9\u00c0-\u00de\u0391-\u042f])"
)
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*\u2022#|]|\d+[.)])\s)")
_MARK: Final = re.compile(r"^(?:[-*\u2022#|]+|\d+[.)])\s+")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, white space folded. Lines of a list are sentences."""
    for block in _BLOCK.split(text):
        folded = _MARK.sub("", " ".join(block.split()))
        for sentence in _of_block(folded):
            yield from _cut(sentence)


def _of_block(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        sentence = text[start : end.end()]
        if not _ABBREVIATED.search(sentence[-12:]):
            yield sentence.strip()
            start = end.end()
    if text[start:].strip():
        yield text[start:].strip()


def _cut(sentence: str) -> Iterator[str]:
    """Yield the sentence in parts of at most :data:`LONGEST` characters."""
    while len(sentence) > LONGEST:
        at = sentence.rfind(" ", 1, LONGEST)
        at = at if at > 0 else LONGEST
        yield sentence[:at]
        sentence = sentence[at:].lstrip()
    if sentence:
        yield sentence
