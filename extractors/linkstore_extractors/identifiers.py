"""Identifiers of works, laws, judgments, trials and codes: their spellings, and one tag for each.

A rule is a line of ``official.txt``, and a new kind of identifier a new line. All patterns are linear: what
repeats is bounded. The spellings follow the DOI Handbook and Crossref's advice on matching DOIs,
arXiv's identifier scheme, ISO 2108 (ISBN), ISO 3297 (ISSN), the CVE, CWE and GHSA rules, the IETF's document
names, the EU's Interinstitutional Style Guide, and what ``official.txt`` says. What is a number to everybody
else counts only behind its name: "ICD-10 I21.9", but not "room I21.9".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Final, NamedTuple
from urllib.parse import unquote

from ahocorasick_rs import AhoCorasick

_LIST: Final = re.compile(
    r"(?<![\w.])(RFC|PEP)s\s(\d{1,5}(?:(?:,\s?|,?\s(?:and|or|&)\s)\d{1,5}){0,30})(?![\w])",
    re.ASCII | re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\d+")
_JOINT: Final = re.compile(r"(?<=\.)\s|(?<=\d),(?=\d{3})")
_HYPHENS: Final = dict.fromkeys(range(0x2010, 0x2014), "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifierRule:
    """How one kind of identifier is found and normalised.

    Args:
        name: Its name, which is also the key under which metadata may declare it.
        hints: Lower-case strings of which a text must contain one; a quick test that spares the pattern.
        pattern: Finds it, URL forms included.
        normalise: Gives the tag for a match, or None if it is not one after all (a wrong check digit).
        prefix: What makes a bare value recognisable, as in ``"RFC "`` for the value 9110.
        keys: Further metadata keys that declare it, lower case.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    normalise: Callable[[re.Match[str]], str | None]
    prefix: str = ""
    keys: tuple[str, ...] = ()

    def tag_of(self, value: str) -> str | None:
        """Return the tag for a value that is this identifier and nothing else, with or without prefix."""
        match = self.pattern.fullmatch(value) or self.pattern.fullmatch(self.prefix + value)
        return self.normalise(match) if match else None


class IdentifierMention(NamedTuple):
    """One identifier in a text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        tag: Its tag.
        written: How it is written there.
    """

    start: int
    end: int
    tag: str
    written: str


def find_identifiers(text: str) -> list[IdentifierMention]:
    """Return all identifiers in a text, in order. Of overlapping ones the first counts, then the longest."""
    lowered = text.lower()
    mentions: list[IdentifierMention] = []
    hints = {place for place, *_ in _HINT_SEARCH.find_matches_as_indexes(lowered, overlapping=True)}
    for at in {_HINTS[place][1] for place in hints}:
        mentions.extend(_find_mentions(IDENTIFIERS[at], text))
    mentions.extend(_find_in_lists(text, lowered))
    kept: list[IdentifierMention] = []
    for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def isbn13(digits: str) -> str | None:
    """Return the ISBN-13 for an ISBN-10 or ISBN-13 without hyphens, or None if its check digit is wrong."""
    if len(digits) == 10:
        total = sum((10 - i) * (10 if digit == "X" else int(digit)) for i, digit in enumerate(digits.upper()))
        if total % 11:
            return None
        stem = "978" + digits[:9]
        return stem + str(-_sum_weighted(stem) % 10)
    return digits if len(digits) == 13 and _sum_weighted(digits) % 10 == 0 else None


def _sum_weighted(digits: str) -> int:
    return sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(digits))


def _find_mentions(rule: IdentifierRule, text: str) -> Iterator[IdentifierMention]:
    for match in rule.pattern.finditer(text):
        tag = rule.normalise(match)
        if tag is not None:
            written = _trim_identifier(match[0])
            yield IdentifierMention(match.start(), match.start() + len(written), tag, written)


def _find_in_lists(text: str, lowered: str) -> Iterator[IdentifierMention]:
    """Yield the identifiers in a list, such as "RFCs 2616, 7230 and 9110"."""
    if "rfcs" not in lowered and "peps" not in lowered:
        return
    for match in _LIST.finditer(text):
        for number in _NUMBER.finditer(text, match.start(2), match.end(2)):
            start = match.start() if number.start() == match.start(2) else number.start()
            tag = f"{match[1].lower()}:{int(number[0])}"
            yield IdentifierMention(start, number.end(), tag, text[start : number.end()])


def _trim_identifier(written: str) -> str:
    """Strip the punctuation of the sentence around an identifier, and brackets that were opened before it."""
    while written:
        last = written[-1]
        opening = {")": "(", "]": "["}.get(last)
        if last in ".,;:-_" or (opening and written.count(last) > written.count(opening)):
            written = written[:-1]
        else:
            break
    return written


def _normalise_doi(match: re.Match[str]) -> str | None:
    doi = _trim_identifier(unquote(match[1]).partition(" ")[0]).lower()
    if not doi.isprintable():
        return None
    if doi.startswith("10.48550/arxiv."):
        return "arxiv:" + re.sub(r"v\d+$", "", doi.removeprefix("10.48550/arxiv."))
    if re.fullmatch(r"10\.17487/rfc\d+", doi):
        return f"rfc:{int(doi[12:])}"
    return f"doi:{doi}" if not doi.endswith("/") else None


def _normalise_arxiv(match: re.Match[str]) -> str:
    archive, number = match["archive"], match["number"]
    return f"arxiv:{archive.lower()}/{number}" if archive else f"arxiv:{number}"


def _normalise_isbn(match: re.Match[str]) -> str | None:
    isbn = isbn13(re.sub(r"[^\dXx]", "", match[1]))
    return f"isbn:{isbn}" if isbn else None


def _normalise_draft(match: re.Match[str]) -> str | None:
    name, version = match["name"].lower(), match["version"]
    is_draft = version or name.startswith(("draft-ietf-", "draft-irtf-", "draft-iab-"))
    return f"draft:{name}" if is_draft else None


def _check_digit(name: str, match: re.Match[str]) -> str | None:
    """Return the tag of an ISSN, a CAS number or an ORCID, or None if its check digit is wrong."""
    *digits, last = list(match[1].replace("-", "").upper())
    check = 10 if last == "X" else int(last)
    weighted = sum(int(digit) * weight for weight, digit in enumerate(reversed(digits), 1 + (name == "issn")))
    doubled = sum(int(digit) * 2**power for power, digit in enumerate(reversed(digits), 1))  # ISO 7064
    right = {"issn": -weighted % 11, "cas": weighted % 10, "orcid": (12 - doubled % 11) % 11}[name]
    return f"{name}:{match[1].lower()}" if check == right else None


def _join_groups(name: str, match: re.Match[str]) -> str:
    """Make a tag of a name and the groups of a match, without spaces after dots and commas in numbers."""
    groups = (_JOINT.sub("", group.lower()).translate(_HYPHENS) for group in match.groups() if group)
    return f"{name}:{' '.join(groups)}"


def _read_rules() -> Iterator[IdentifierRule]:
    """Yield the rules of ``official.txt`` beside this module, which says how they are written."""
    table = files("linkstore_extractors").joinpath("official.txt").read_text(encoding="utf-8")
    for line in table.splitlines():
        if not line.startswith("#"):
            name, hints, prefix, keys, pattern = line.split("\t")
            yield IdentifierRule(
                name=name,
                hints=tuple(hints.split(";")),
                pattern=re.compile(rf"(?<![\w.]){pattern}(?!\w)", re.ASCII),
                normalise=_NORMALISERS.get(name, partial(_join_groups, name)),
                prefix=prefix,
                keys=tuple(filter(None, keys.split(";"))),
            )


_NORMALISERS: Final[Mapping[str, Callable[[re.Match[str]], str | None]]] = {
    "doi": _normalise_doi,
    "arxiv": _normalise_arxiv,
    "isbn": _normalise_isbn,
    "draft": _normalise_draft,
    **{name: partial(_check_digit, name) for name in ("issn", "cas", "orcid")},
}
"""What makes the tag of a match, or finds that it is none; for other kinds its groups do."""

IDENTIFIERS: Final = tuple(_read_rules())
"""The kinds of identifier."""
_HINTS: Final = tuple((hint, at) for at, rule in enumerate(IDENTIFIERS) for hint in rule.hints)
"""Each hint, with the place of its rule."""
_HINT_SEARCH: Final = AhoCorasick([hint for hint, _ in _HINTS])

BY_KEY: Final = {key: rule for rule in IDENTIFIERS for key in (rule.name, *rule.keys)}
"""The rule for each metadata key that declares an identifier."""
