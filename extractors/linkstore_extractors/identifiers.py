"""Identifiers of works, laws, judgments, trials and codes: their spellings, and one tag for each.

A rule is a row in :data:`IDENTIFIERS`; a new kind of identifier is a new row. All patterns are linear:
what repeats is bounded. The spellings follow the DOI Handbook and Crossref's advice on matching DOIs,
arXiv's identifier scheme, ISO 2108 (ISBN), ISO 3297 (ISSN), the CVE, CWE and GHSA rules, the IETF's document
names, the EU's Interinstitutional Style Guide, and what ``official.txt`` says. What is a number to everybody
else counts only behind its name: "ICD-10 I21.9", but not "room I21.9".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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


def _normalise_act(match: re.Match[str]) -> str | None:
    """Return the tag of an act of the EU, or None without ``(EU)``, ``/EC`` or the like."""
    kind = next(kind for kind, words in _ACTS.items() if match["kind"].lower() in words.split("|"))
    return f"eu-{kind}:{match['number']}" if match["before"] or match["behind"] else None


def _normalise_section(match: re.Match[str]) -> str:
    """Return the tag of a section of a law, whose name is written in one of several languages."""
    law = match["law"].lower().replace("-", "")
    return f"law:{'gdpr' if law in _GDPR else law} {match['section'].lower()}"


def _normalise_checked(match: re.Match[str]) -> str | None:
    """Return the tag of an ISSN, a CAS number or an ORCID, or None if its check digit is wrong."""
    name, number = next((name, number) for name, number in match.groupdict().items() if number)
    *digits, last = number.replace("-", "").upper()
    check = 10 if last == "X" else int(last)
    weighted = sum(int(digit) * weight for weight, digit in enumerate(reversed(digits), 1 + (name == "issn")))
    doubled = sum(int(digit) * 2**power for power, digit in enumerate(reversed(digits), 1))  # ISO 7064
    right = {"issn": -weighted % 11, "cas": weighted % 10, "orcid": (12 - doubled % 11) % 11}[name]
    return f"{name}:{number.lower()}" if check == right else None


def _join_groups(name: str, match: re.Match[str]) -> str:
    """Make a tag of a name and the groups of a match, without spaces after dots and commas in numbers."""
    groups = (_JOINT.sub("", group.lower()).translate(_HYPHENS) for group in match.groups() if group)
    return f"{name}:{' '.join(groups)}"


def _make_rule(
    name: str,
    pattern: str,
    *,
    hints: tuple[str, ...] = (),
    normalise: Callable[[re.Match[str]], str | None] | None = None,
    prefix: str = "",
    keys: tuple[str, ...] = (),
    exact_case: bool = False,
) -> IdentifierRule:
    """Make a rule. By default the name is its hint, and the last group what follows it in the tag."""
    return IdentifierRule(
        name=name,
        hints=hints or (name,),
        pattern=re.compile(pattern, re.ASCII if exact_case else re.ASCII | re.IGNORECASE),
        normalise=normalise or (lambda match: f"{name}:{match[match.lastindex or 0].lower()}"),
        prefix=prefix,
        keys=keys,
    )


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
                normalise=partial(_join_groups, name),
                prefix=prefix,
                keys=tuple(filter(None, keys.split(";"))),
            )


_ACTS: Final = {
    "regulation": "regulation|verordnung|règlement|reglamento|regolamento|regulamento|verordening",
    "directive": "directive|richtlinie|directiva|direttiva|diretiva|richtlijn",
    "decision": "decision|beschluss|décision|decisión|decisione|decisão|besluit",
}
"""The kinds of act of the EU, by their names in several languages."""
_EU: Final = "(?:EU|UE|EC|CE|EG|EEC|CEE|EWG|WE|JHA|Euratom)"
_GDPR: Final = ("gdpr", "dsgvo", "rgpd", "avg")
_LAWS: Final = (
    "GDPR|DS-?GVO|RGPD|AVG|BGB|StGB|GG|ZPO|StPO|HGB|AktG|GmbHG|InsO|AO|EStG|UStG|SGB\\s[IVX]{1,4}|VwGO|VwVfG|UrhG|UWG"
    "|GWB|BDSG|TKG|BetrVG|KSchG|BauGB|StVO|StVG|OWiG|FamFG|GVG|AufenthG|AsylG|EGBGB|ABGB|EMRK|TFEU|AEUV|TFUE|ECHR"
)
_DASH: Final = "[- \u00a0\u2010-\u2015\u2212]"

IDENTIFIERS: Final[tuple[IdentifierRule, ...]] = (
    _make_rule(
        "doi",
        r"(?:(?:https?://)?(?:dx\.|www\.)?doi\.org/|(?<![\w.])doi:\s?|(?<![\w.]))"
        r"(10\.\d{4,9}(?:/|%2F)(?:[-._;()/:\w]|%[0-9A-F]{2}){1,200})",
        hints=("10.",),
        normalise=_normalise_doi,
        prefix="doi:",
    ),
    _make_rule(
        "arxiv",
        r"(?<![\w])(?:https?://)?(?:[a-z]{2,9}\.)?arxiv"
        r"(?:\.org/(?:abs|pdf|html|format)/|:\s?|\s(?:preprint\s)?(?:arxiv:\s?)?)"
        r"(?:(?P<archive>[a-z]{2,10}(?:-[a-z]{2,4})?)(?:\.[a-z]{2})?/(?P<old>)|)"
        r"(?P<number>(?(old)\d{7}|\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}))(?:v\d{1,2})?(?:\.pdf)?(?![\w])",
        normalise=_normalise_arxiv,
        prefix="arXiv:",
        keys=("arxiv_id", "eprint", "entry_id"),
    ),
    _make_rule(
        "isbn",
        r"(?<![\w])isbn(?:-?1[03])?(?::[\s\u00a0]?|[\s\u00a0])?"
        rf"((?:97[89]{_DASH}?)?\d(?:{_DASH}?\d){{8}}{_DASH}?[\dX])(?![\w])",
        normalise=_normalise_isbn,
        prefix="ISBN ",
        keys=("isbn10", "isbn13", "isbn_10", "isbn_13"),
    ),
    _make_rule(
        "draft",
        r"(?<![\w-])(?P<name>draft-[a-z0-9]{1,30}(?:-(?!\d\d(?![\w-]))[a-z0-9]{1,30}){1,12})"
        r"(?:-(?P<version>\d\d))?(?![\w-])",
        hints=("draft-",),
        normalise=_normalise_draft,
    ),
    _make_rule(
        "eu-act",
        rf"(?<![\w])(?P<kind>{'|'.join(_ACTS.values())})s?\s(?P<before>\({_EU}\)\s)?"
        rf"(?:(?:no|nr|n°|nº)\.?\s?)?(?P<number>\d{{1,4}}/\d{{1,4}})(?P<behind>/{_EU})?(?![\w/])",
        hints=(
            "(eu)",
            "(ue)",
            "(ec)",
            "(ce)",
            "(eg)",
            "(we)",
            "(eec)",
            "/eu",
            "/ue",
            "/ec",
            "/ce",
            "/eg",
            "/we",
            "/eec",
            "/jha",
        ),
        normalise=_normalise_act,
    ),
    _make_rule(
        "law",
        r"(?<![\w])(?:§§?|[Aa]rt(?:\.|icles?|ikel|ículo|igo|icolo))[\s\u00a0]?(?P<section>\d{1,4}[a-z]?)(?:\(\w{1,3}\))*"
        r"(?:,?\s(?:ff?\.|(?:Abs|Nr|Alt|Rn|S|Satz|Absatz|Nummer)\.?\s?\d{1,3}[a-z]?|lit\.?\s[a-z]\b)){0,5}"
        rf"\s(?:of\sthe\s|du\s|del\s|da\s|der\s|des\s)?(?P<law>{_LAWS})(?![\w])",
        hints=("§", "art.", "article", "artikel", "artículo", "artigo", "articolo"),
        normalise=_normalise_section,
        exact_case=True,
    ),
    _make_rule(
        "checked",
        r"(?<![\w])(?:issn:?\s(?P<issn>\d{4}-\d{3}[\dX])|cas(?:\s(?:no\.?|nr\.?|rn|number))?:?\s(?P<cas>\d{2,7}-\d\d-\d)"
        r"|(?:https?://)?orcid(?:\.org/|:?\s)(?P<orcid>\d{4}-\d{4}-\d{4}-\d{3}[\dX]))(?![\w-])",
        hints=("issn", "cas ", "cas:", "orcid"),
        normalise=_normalise_checked,
    ),
    *_read_rules(),
)
"""The kinds of identifier, one row each."""
_HINTS: Final = tuple((hint, at) for at, rule in enumerate(IDENTIFIERS) for hint in rule.hints)
"""Each hint, with the place of its rule."""
_HINT_SEARCH: Final = AhoCorasick([hint for hint, _ in _HINTS])

BY_KEY: Final = {key: rule for rule in IDENTIFIERS for key in (rule.name, *rule.keys)}
"""The rule for each metadata key that declares an identifier."""
