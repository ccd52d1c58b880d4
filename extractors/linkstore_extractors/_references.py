"""The reference list of a document, and the places in its text that refer to the list.

Two common shapes are read: numbered entries, cited as ``[12]`` or ``[3, 5-7]``, and entries that begin
with an author's name, cited as "Smith et al. (2019)" or "(Smith & Jones, 2019)". Text that cannot be
resolved in the document's own list is not a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from linkstore.text import fold, tokens
from linkstore_extractors._identifiers import in_lower_ascii

MAX_ENTRIES: Final = 2000
"""Entries of a list beyond this number are not read."""
MAX_ENTRY: Final = 1000
"""Characters of an entry that are read."""
LAST_HEADINGS: Final = 3
"""Number of headings, from the end, one of which may have the list."""
FEWEST_TITLE_WORDS: Final = 3
"""Shorter titles ("Introduction") say too little to tell works apart."""

_HEADING: Final = re.compile(
    r"^[ \t]{0,3}(?:\#{1,6}[ \t]{1,3})?(?:\d{1,2}(?:\.\d{1,2})?\.?[ \t]{1,3})?\**"
    r"(?:references(?: and notes| cited)?|bibliography|works cited|literature(?: cited)?|citations|footnotes)"
    r":?\**:?[ \t]{0,3}#{0,6}[ \t]{0,3}$",
    re.IGNORECASE | re.MULTILINE,
)
_NAMED: Final = ("references", "bibliography", "works cited", "literature", "citations", "footnotes")
"""Each such heading has one of these in it, in either case."""
_CASED_LIKE_ASCII: Final = "\u017f\u0130\u0131\u212a"
"""Letters that a pattern takes for s, i or k where case does not matter."""
_NEXT_HEADING: Final = re.compile(
    r"^(?:\#{1,6}[ \t]{1,3}\S.*|[ \t]{0,3}(?:\d{1,2}\.?[ \t]{1,3})?"
    r"(?:appendix|appendices|copyright|acknowledge?ments?|author information|see also|external links)"
    r"\b.{0,60})$",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED: Final = re.compile(
    r"^[ \t]{0,8}(?:[-*][ \t]{1,3}|\.\.[ \t]{1,3})?"
    r"(?:\\?\[\^?\#?(\d{1,4})\\?\]:?|(\d{1,3})[.)])[ \t]{1,8}(?=\S)",
    re.MULTILINE,
)
_BULLET: Final = re.compile(r"[ \t]{0,8}[-*\u2022][ \t]{1,4}")
_LINE: Final = re.compile(r"\n(?![ \t])")
_BREAK: Final = re.compile(r"\n[ \t]{0,80}\n\s{0,80}")
_YEAR: Final = re.compile(r"\b((?:1[89]|20)\d\d)([a-z]?)\b")
_QUOTED: Final = re.compile(r"[\"\u201c\u00ab]([^\"\u201c\u201d\u00ab\u00bb]{8,300})[\"\u201d\u00bb]")
_AFTER_YEAR: Final = re.compile(
    r"(?:\((?:1[89]|20)\d\d[a-z]?\)[.:,]?|\b(?:1[89]|20)\d\d[a-z]?[.:,])\s{1,3}([^\s].{0,300})", re.DOTALL
)
_SENTENCE: Final = re.compile(r"(?<!\b[A-Z])[.?!](?=\s|$)")
_URL: Final = re.compile(r"[(<]?https?://[^\s)>]{1,500}[)>]?", re.IGNORECASE)
_SURNAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]{1,40}")
_NUMBERS: Final = re.compile(
    r"(?<![\w\])])\\?\[\^?(\d{1,4}(?:\s?[,;\u2013-]\s?\d{1,4}){0,30})\\?\](?![(:\w])"
)
_NAMES: Final = re.compile(
    r"\b([^\W\d_a-z](?:[\w-]|['\u2019](?!s\b)){1,40})"
    r"(?:\s(?:et\sal\.?|(?:and|&)\s[^\W\d_a-z][\w'\u2019-]{1,40}))?"
    r"(?:['\u2019]s)?,?\s[(\[]?((?:1[89]|20)\d\d[a-z]?)\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One entry of a reference list.

    Args:
        text: The entry, white space folded.
        number: Its number, if the list is numbered.
        author: The first author's surname, folded, if the entry seems to begin with one.
        year: The year, with the letter that tells entries of a year apart.
        title: The title, as far as it could be told from the rest.
    """

    text: str
    number: int | None = None
    author: str | None = None
    year: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceList:
    """A document's reference list.

    Args:
        start: Where the list begins in the text, heading included.
        end: Where it ends.
        entries: Its entries, in order; none if the document has no list.
    """

    start: int
    end: int
    entries: tuple[Reference, ...] = ()


def find_references(text: str) -> ReferenceList:
    """Find the last reference list of a text that has entries."""
    if not _may_have_a_list(text):
        return ReferenceList(start=len(text), end=len(text))
    headings = list(_HEADING.finditer(text))
    for heading in reversed(headings[-LAST_HEADINGS:]):
        following = _NEXT_HEADING.search(text, heading.end() + 1)
        end = following.start() if following else len(text)
        entries = tuple(_entries(text[heading.end() : end]))
        if entries:
            return ReferenceList(start=heading.start(), end=end, entries=entries)
    return ReferenceList(start=len(text), end=len(text))


def _may_have_a_list(text: str) -> bool:
    """Say whether a text contains a word that headings of reference lists have. The check is quick."""
    lowered = in_lower_ascii(text)
    for name in _NAMED:  # a loop is faster than any()
        if name in lowered:
            return True
    return not text.isascii() and any(letter in text for letter in _CASED_LIKE_ASCII)


def title_key(title: str) -> str | None:
    """Return the spelling under which titles are compared: folded words, or None if they say too little."""
    words = tokens(title)
    return " ".join(words) if len(words) >= FEWEST_TITLE_WORDS else None


def cited(references: ReferenceList, text: str) -> Iterator[tuple[int, Reference]]:
    """Yield each place of the text, outside the list, that refers to an entry, in order of the text.

    Yields:
        The place, and the entry.
    """
    numbers = {entry.number: entry for entry in references.entries if entry.number is not None}
    names = {(entry.author, entry.year): entry for entry in reversed(references.entries) if entry.author}
    found: list[tuple[int, Reference]] = []
    if numbers:
        found += [
            (match.start(), numbers[number])
            for match in _NUMBERS.finditer(text)
            for number in _spelt_out(match[1])
            if number in numbers
        ]
    if names:
        found += [
            (match.start(), names[key])
            for match in _NAMES.finditer(text)
            if (key := (fold(match[1]), match[2])) in names
        ]
    found.sort(key=lambda item: item[0])
    yield from (item for item in found if not references.start <= item[0] < references.end)


def _spelt_out(numbers: str) -> Iterator[int]:
    """Yield 3, 5, 6, 7 for "3, 5-7". A range of more than 50 is taken for its ends only."""
    for part in re.split(r"[,;]", numbers):
        ends = [int(number) for number in re.split(r"[\u2013-]", part)]
        first, last = ends[0], ends[-1]
        yield from range(first, last + 1) if first <= last <= first + 50 else (first, last)


def _entries(text: str) -> Iterator[Reference]:
    """Yield the entries of a list. The list is numbered if it begins with a number."""
    text = text.lstrip("=-~ \t\r\n")
    if _NUMBERED.match(text):
        yield from _numbered_entries(text)
        return
    for block in _blocks(text)[:MAX_ENTRIES]:
        reference = _reference(block, None)
        if reference.year:
            yield reference


def _numbered_entries(text: str) -> Iterator[Reference]:
    starts = list(islice(_NUMBERED.finditer(text), MAX_ENTRIES))
    ends = [match.start() for match in starts[1:]]
    for match, end in zip(starts, [*ends, len(text)], strict=True):
        body = text[match.end() : min(end, match.end() + MAX_ENTRY)]
        yield _reference(_BREAK.split(body, maxsplit=1)[0], int(match[1] or match[2]))


def _blocks(text: str) -> list[str]:
    """Split a list into unnumbered entries, at blank lines if there are any, else one a line.

    A line that is indented continues the one before.
    """
    text = text.rstrip()
    blocks = _BREAK.split(text) if _BREAK.search(text) else _LINE.split(text)
    return [_BULLET.sub("", block, count=1) for block in blocks if block.strip()]


def _reference(text: str, number: int | None) -> Reference:
    text = " ".join(text[:MAX_ENTRY].split())
    years = list(_YEAR.finditer(text))
    year = next((match for match in years if match[2]), years[0] if years else None)
    surname = _SURNAME.search(text, 0, 60)
    return Reference(
        text=text,
        number=number,
        author=fold(surname[0]) if surname and surname[0][0].isupper() else None,
        year=year[0] if year else None,
        title=_title(text),
    )


def _title(text: str) -> str | None:
    """Return the title in quotes, else the sentence after a year near the start, else after the authors."""
    text = _URL.sub("", text)
    quoted = _QUOTED.search(text)
    after_year = _AFTER_YEAR.search(text, 0, 400)
    if quoted:
        title = quoted[1]
    elif after_year:
        title = _SENTENCE.split(after_year[1])[0]
    else:
        title = "".join(_SENTENCE.split(text)[1:2])
    title = title.strip(" .,*_")
    looks_like_one = title[:1].isalnum() and not title[0].islower() and title[-1] != ":"
    return title if looks_like_one and title_key(title) else None
