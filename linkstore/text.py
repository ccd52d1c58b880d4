"""One normalisation of words, for whoever writes a tag and whoever looks it up."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import normalize

_WORD: Final = re.compile(r"\w+(?:['\u2019]\w+)*")

_ENGLISH: Final = """
    a about above after again against ain't all also am an and any are aren't as at be because been
    before being below between both but by can can't cannot could couldn't did didn't do does
    doesn't doing don't down during each either else etc ever every few for from further had hadn't
    has hasn't have haven't having he her here hers herself him himself his how however i i'm i've
    if in into is isn't it it's its itself just let's like many may me might more most much must my
    myself neither no nor not now of off on once one only or other others ought our ours ourselves
    out over own per rather same shall she should shouldn't since so some such than that that's the
    their theirs them themselves then there there's therefore these they they're this those though
    through thus to too under until up upon us use used uses using very via was wasn't we we're were
    weren't what when where whether which while who whom whose why will with within without won't
    would wouldn't yet you you're your yours yourself yourselves
"""

STOP_WORDS: Final = frozenset(_ENGLISH.split())
"""English words that say nothing about a text's subject, folded."""


def fold(text: str) -> str:
    """The one spelling under which words are compared.

    Unicode compatibility forms (NFKC) and case are folded as in Unicode's NFKC_Casefold (The Unicode
    Standard, section 3.13), curly apostrophes become straight, white space becomes single spaces and
    is trimmed. Folding twice is the same as once.
    """
    if not text.isascii():
        text = _casefolded(normalize("NFD", text))
        text = _casefolded(text).replace("\u2019", "'")
        return " ".join(text.split())
    return " ".join(text.lower().split())


def tokens(text: str) -> tuple[str, ...]:
    """The words of a text in order, folded: letters, digits and ``_``, with inner apostrophes."""
    return tuple(_WORD.findall(fold(text)))


def _casefolded(text: str) -> str:
    return normalize("NFKC", text.casefold())
