"""One normal form of words, for writing tags and for looking them up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final
from unicodedata import category, normalize

TRAIL: Final = " > "
"""Stands between the headings above a chunk."""
_IGNORED: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point, for a character class: soft hyphens, joiners, bidi controls, variation
selectors. Not the zero-width space, which stands between words."""
_IGNORABLE: Final = re.compile(f"[{_IGNORED}]+")
_DOTTED_I: Final = re.compile("i\u0307+")
_ZERO_WIDTH_SPACE: Final = "\u200b"
_PLAIN_TEXT: Final = re.compile("[\x00-\x7f\u2013\u2014\u2018\u2019\u201c\u201d]*+")
"""Text of ASCII, dashes and quotes, as most English is: of these only letters and an apostrophe fold."""
_SIGNS: Final = (("\u2019", "'"), *((sign, " ") for sign in "\u2013\u2014\u2018\u201c\u201d"))
_LETTERS: Final = "".join(
    chr(code).lower() if chr(code).isalnum() or chr(code) in "_'" else " " for code in range(128)
)
"""For ``str.translate``: ASCII in lower case, with a space for all that stands between words."""

_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z\u00c0-\u00de\u0410-\u042f]\.)(?<!\b(?:Dr|Mr|Ms|St|cf|vs)\.)(?<!\b(?:Mrs|e\.g|i\.e)\.)(?<!\bProf\.)\s+|\n+"
)
"""After an initial, a name goes on, and so does a sentence after these short forms."""

_MOST_PHRASE_WORDS: Final = 8
"""Longer phrases are headlines."""
_CAPITAL: Final = "[A-Z\u00c0-\u00d6\u00d8-\u00de\u0386-\u038f\u0391-\u03ab\u0400-\u042f\u0531-\u0556]"
"""Capital letters of Latin, Greek, Cyrillic and Armenian."""
_SMALL: Final = (
    "al|and|av|bin|da|de|del|della|den|der|des|di|do|dos|du|el|et|ibn|la|las|le|les|los|of|ten|ter|the"
    "|van|von|zu|zur"
)
"""Words that may stand inside a name, as in "Leonardo da Vinci" or "University of the West".

Not "in", "on" and the like, which more often stand between two names: "Steven Spielberg in New York"."""
_WORD: Final = (
    rf"{_CAPITAL}\w*(?:['\u2019.-]\w+)*"
    rf"(?:(?:(?<=\b{_CAPITAL})|(?<=\b(?:Dr|Ft|Jr|Mr|Mt|Sr|St)))\.)?"
)
"""A full stop belongs to an initial and to a few abbreviations; after all others a sentence ends."""
_GAP: Final = "[ \u00a0\n]"
_PHRASE: Final = rf"\b{_WORD}(?:{_GAP}(?:(?:(?:{_SMALL}){_GAP}){{0,2}}{_WORD}|\d{{4}}\b))+"
_SMALL_WORDS: Final = re.compile(rf"(?:{_GAP}(?:{_SMALL})(?={_GAP}))+{_GAP}")

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

HIRAGANA: Final = "\u3041-\u309f"
"""Letters of endings and particles, which in Japanese stand between other words, for a character class."""
_SCRIPTS: Final = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",  # Chinese characters
    "\u30a1-\u30ff\u31f0-\u31ff",  # katakana
    "\u0e00-\u0eff",  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff",  # Burmese, Khmer
)
UNSPACED: Final = HIRAGANA + "".join(_SCRIPTS)
"""Letters and marks of scripts that leave no space between words, for a character class."""
_HANGUL: Final = "\uac00-\ud7a3"
_PAIRED: Final = f"[{UNSPACED}{_HANGUL}]"
_RUN: Final = (
    rf"(?P<hiragana>[{HIRAGANA}]+)|(?P<paired>{'|'.join(f'[{script}]+' for script in (*_SCRIPTS, _HANGUL))})"
    rf"|[^{UNSPACED}{_HANGUL}]+"
)
_LETTER: Final = re.compile(r"\w\W*")

_compile: Final = cache(re.compile)
"""Compiles at first use what takes some milliseconds, and what a command may not need."""


def is_unicode(text: str) -> bool:
    """Say whether UTF-8 can hold a text, which may have no lone surrogates."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by a question mark, as tokenizers and databases need it."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def escape_surrogates(text: str) -> str:
    """Spell out lone surrogates by their numbers, as in paths that are not valid UTF-8."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def fold(text: str) -> str:
    """Return the one spelling under which words are compared.

    Unicode compatibility forms (NFKC) and case are folded as in Unicode's NFKC_Casefold (The Unicode
    Standard, section 3.13): soft hyphens, joiners and other characters that show nothing are removed. Beyond
    that, a zero-width space is a space, the dot of a Turkish capital i is dropped (``İ`` is ``i``), curly
    apostrophes become straight, white space becomes single spaces and is trimmed. Folding twice is the same
    as once.
    """
    if not _is_plain_text(text):
        text = _IGNORABLE.sub("", text.replace(_ZERO_WIDTH_SPACE, " "))
        text = _casefold(normalize("NFD", text))
        text = _casefold(text).replace("\u2019", "'")
        return " ".join(text.split())
    return " ".join(text.lower().replace("\u2019", "'").split())


def tokenize(text: str) -> tuple[str, ...]:
    """Return the words of a text in order, folded: letters with marks, digits, ``_``, inner apostrophes.

    Marks are the vowel signs, points and accents of Unicode's category M: they belong to the letter before.
    """
    plain = text if text.isascii() else _convert_to_ascii(text)
    if plain is not None:
        return tuple(_tokenize_ascii(plain) if "'" in plain else plain.translate(_LETTERS).split())
    folded = fold(text)
    return tuple(_compile_word_pattern(find_joining(folded)).findall(folded))


def _convert_to_ascii(text: str) -> str | None:
    """Return text of ASCII, dashes and quotes as ASCII with the same words, or None for any other text."""
    for sign, instead in _SIGNS:
        text = text.replace(sign, instead)
    return text if text.isascii() else None


def _tokenize_ascii(text: str) -> list[str]:
    """Return the words of a text in ASCII, as the pattern finds them, four times as fast."""
    before, *after = text.translate(_LETTERS).split("'")
    parts = [before]
    for part in after:
        inner = part[:1].strip() and before[-1:].strip()  # between letters, digits or _
        parts += ("'" if inner else " ", part)
        before = part
    return "".join(parts).split()


def find_words(text: str) -> Iterator[re.Match[str]]:
    """Yield the words of a text in order, as they are written. Folded, they equal :func:`tokenize`.

    The two differ for the few characters that fold to several words, or to none.
    """
    return _compile_word_pattern(find_joining(text)).finditer(text)


def split_unspaced(words: Sequence[str]) -> Sequence[str]:
    """Split the folded words of scripts without spaces into pairs of neighbouring letters, in order.

    Only runs of one script have pairs, and a single letter stays itself. Korean is split too, because its
    particles are attached. Hiragana, which mostly spells endings and particles, counts only if there is no
    other word. Source: J. Savoy, "Comparative Study of Monolingual and Multilingual Search Models for Use
    with Asian Languages", ACM Transactions on Asian Language Information Processing 4(2), 2005.
    """
    joined = "".join(words)
    if joined.isascii() or not _compile(_PAIRED).search(joined):
        return words
    split: list[str] = []
    hiragana: list[str] = []
    for run in (run for word in words for run in _compile(_RUN).finditer(word)):
        letters = _LETTER.findall(run[0])
        if run.lastgroup is None:
            split += ["".join(letters)] if letters else []
        else:
            pairs = map("".join, pairwise(letters)) if len(letters) > 1 else letters
            (hiragana if run["hiragana"] else split).extend(pairs)
    return split or hiragana


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences and lines, none of them blank; white space around them stays."""
    return [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def make_word_pattern(text: str) -> str:
    """Return a regular expression without groups that finds the words of this text."""
    return _build_word_pattern(find_joining(text))


def _is_plain_text(text: str) -> bool:
    return text.isascii() or _PLAIN_TEXT.fullmatch(text) is not None


def find_joining(text: str) -> str:
    r"""Return the characters of a text, each once, that belong to the letter before but not to ``\w``."""
    if _is_plain_text(text):
        return ""
    return "".join(sorted(char for char in set(text) if char > "\x80" and _is_joining(char)))


@lru_cache(maxsize=4096)
def _is_joining(character: str) -> bool:
    return category(character)[0] == "M" or _IGNORABLE.match(character) is not None


def _build_word_pattern(joined: str) -> str:
    letters = rf"\w[\w{joined}]*" if joined else r"\w+"
    unseen = f"[{ignorable}]*" if (ignorable := "".join(_IGNORABLE.findall(joined))) else ""
    return rf"{letters}(?:['\u2019]{unseen}{letters})*"


@lru_cache(maxsize=256)
def _compile_word_pattern(joined: str) -> re.Pattern[str]:
    return re.compile(_build_word_pattern(joined))


def _casefold(text: str) -> str:
    return _DOTTED_I.sub("i", normalize("NFKC", text.casefold()))


def find_phrases(text: str) -> Iterator[tuple[str, str]]:
    """Yield the capitalised phrases of at least two words, in order, as (tag, as written).

    Words follow each other with a single space or line break between. Up to two small words ("of the") and
    years may stand inside. The words between small words form a phrase too, since only the sense tells
    "University of the West Indies" from "Home of the Space Needle". Words that open sentences ("The",
    "After") and numbers are taken off the front.
    """
    for match in _compile(_PHRASE).finditer(normalize("NFC", text)):
        whole = match[0]
        yield from _tag_phrase(whole)
        parts = _SMALL_WORDS.split(whole)
        if len(parts) > 1:
            for part in parts:
                yield from _tag_phrase(part)


def _tag_phrase(phrase: str) -> Iterator[tuple[str, str]]:
    written = _strip_openers(phrase)
    if written is not None:
        words = tokenize(written)
        if len(words) <= _MOST_PHRASE_WORDS:
            yield " ".join(words), written


def _strip_openers(phrase: str) -> str | None:
    """Strip stop words and numbers from the front of a phrase, or return None if not two words are left."""
    word, *others = phrase.split(None, 1)
    while others and (word.lower() in STOP_WORDS or word.isdigit()):
        phrase = others[0]
        word, *others = phrase.split(None, 1)
    return phrase if others else None
