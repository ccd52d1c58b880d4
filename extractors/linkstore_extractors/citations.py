"""Citations: the works that a document cites, and the work it is itself.

Works are named by identifier (DOI, ISBN, RFC, CVE, laws, judgments, trials and the like, see
:data:`~linkstore_extractors.identifiers.IDENTIFIERS`), or by title where a reference has none. These shapes
of a reference list are read, in some twenty languages: entries with a number or another label, cited as
``[12]``, ``[3, 5-7]``, ``[5]-[7]`` or ``[Vas17]``; entries that begin with an author's name, cited as "Smith
et al. (2019)" or "(Smith & Jones, 2019)"; and footnotes, cited as ``[^4]`` or "note 4". Text that cannot be
resolved in the document's own list is not a reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.links import MAX_TAG_BYTES, Link, merge_links
from linkstore.core.text import fold, split_sentences, split_unspaced, tokenize
from linkstore_extractors.identifiers import BY_KEY, find_identifiers

MAX_ENTRIES: Final = 2000
"""Entries of a list beyond this number are not read."""
MAX_ENTRY: Final = 1000
"""Characters of an entry that are read."""
LAST_HEADINGS: Final = 3
"""Number of headings, from the end, one of which may have the list."""
FEWEST_TITLE_WORDS: Final = 3
"""Shorter titles ("Introduction") say too little to tell works apart."""
_TABLE: Final = files("linkstore_extractors").joinpath("headings.txt").read_text(encoding="utf-8")
_HEADINGS: Final = {
    heading: kind == "loose"
    for kind, _, headings in (line.partition(": ") for line in _TABLE.splitlines() if line[0] != "#")
    for heading in headings.split("|")
}
"""Headings of reference lists, folded, and whether sections of prose are called so too."""
_HEADING: Final = re.compile(
    r"\n[ \t]{0,3}[#*\d. \t]{0,12}([^\W\d_][^\n#*:\uff1a]{1,40}+)[:\uff1a#* \t]{0,8}(?=\n|\r|\Z)"
)
_NEXT_HEADING: Final = re.compile(
    r"^(?:\#{1,6}[ \t]{1,3}\S.*|[ \t]{0,3}(?:\d{1,2}\.?[ \t]{1,3})?"
    r"(?:appendix|appendices|copyright|acknowledge?ments?|author information|see also|external links)"
    r"\b.{0,60})$",
    re.IGNORECASE | re.MULTILINE,
)
_LABELLED: Final = re.compile(
    r"^[ \t]{0,8}(?:[-*][ \t]{1,3}|\.\.[ \t]{1,3})?"
    r"(?:\\?\[\^?\#?([\w+.-]{1,20})\\?\]:?|(\d{1,3})[.)])[ \t]{1,8}(?=\S)",
    re.MULTILINE,
)
_BULLET: Final = re.compile(r"[ \t]{0,8}[-*\u2022][ \t]{1,4}")
_LINE: Final = re.compile(r"\n(?![ \t])")
_BREAK: Final = re.compile(r"\n[ \t]{0,80}\n\s{0,80}")
_NO_YEAR: Final = "in press|forthcoming|n\\.d\\.|im Druck|o\\.J\\.|sous presse|s\\.d\\.|en prensa"
"""What stands in the place of the year."""
_DATE: Final = rf"(?:(?:1[89]|20)\d\d[a-z]?|{_NO_YEAR})"
_YEAR: Final = re.compile(rf"(?<!\w)(?:(?:1[89]|20)\d\d([a-z]?)|\((?:{_NO_YEAR})\))(?![a-zA-Z\d_])")
_QUOTED: Final = re.compile(
    r"[\"\u201c\u201e\u00ab]\s?([^\"\u201c-\u201e\u00ab\u00bb]{8,300})[\"\u201c\u201d\u00bb]|[\u300a\u300c\u300e]([^\u300a-\u300f]{4,100})"
)
_AFTER_YEAR: Final = re.compile(rf"(?:\({_DATE}\)[.:,]?|\b{_DATE}[.:,])\s{{1,3}}([^\s].{{0,300}})", re.DOTALL)
_AUTHORS: Final = re.compile(
    r"(?:[^\W\d_][\w'\u2019-]{1,30},?\s(?:[^\W\d_a-z]\.[\s-]?){1,3}"
    r"(?::\s?|[,;&]\s{0,2}|(?:and|und|et(?!\sal)|y|e|en|och|og|i|\u0438)\s){0,2}){1,8}(?:et\sal\.?\s)?"
)
"""Surnames, each with its initials behind it."""
_MEDIUM: Final = re.compile(r"\s?\[(?:[A-Z]|[A-Z]{2}/OL)\]$")
"""The kind of a work in China's standard GB/T 7714."""
_URL: Final = re.compile(r"[(<]?https?://[^\s)>]{1,500}[)>]?", re.IGNORECASE)
_SURNAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]{1,40}")
_LABELS: Final = re.compile(
    r"(?<![a-zA-Z\d_\])])\\?\[\^?([\w+.-]{1,20}(?:\s?[,;\u2013-]\s?\d{1,4}){0,30}(?:\]\s?[\u2013-]\s?\[\d{1,4})?)\\?\](?![(:a-zA-Z\d_])"
    r"|\b(?:notes?|footnotes?|Anm\.|Anmerkung|Fu\u00dfnote|nota|noot|\u043f\u0440\u0438\u043c\.)\s(\d{1,3})\b",
    re.IGNORECASE,
)
_NAMES: Final = re.compile(
    r"\b([^\W\d_a-z](?:[\w-]|['\u2019](?!s\b)){1,40})"
    r"(?:\s(?:et\sal\.?|u\.\s?a\.|(?:and|&|und|et|y|e|en|och|og|i|\u0438)\s[^\W\d_a-z][\w'\u2019-]{1,40}))?"
    rf"(?:['\u2019]s)?,?\s[(\[]?({_DATE})(?!\w)"
)
_AFTER_IDENTIFIER: Final = re.compile(r"\s{0,3}(?:$|[:|\u2013\u2014]|-{1,3}\s|\.\s)")
_RANGE: Final = re.compile(r"(\d{1,4})\]?\s?[\u2013-]\s?\[?(\d{1,4})")
_FOOTNOTE: Final = re.compile(r"^\[\^([\w-]{1,20})\]:()[ \t]{1,8}(?=\S)", re.MULTILINE)
_AUTHOR: Final = re.compile(
    rf"{_AUTHORS.pattern}|(?:[^\W\d_a-z]\.[\s-]?){{1,3}}[^\W\d_a-z]|[^\W\d_a-z][\w-]{{1,30}},\s[^\W\d_a-z].{{0,60}}\({_DATE}\)"
)
"""The start of an entry: a surname with initials on either side, or with a forename and the year."""
_EXTENSION: Final = re.compile(r"\.(?:html?|md|rst|txt|pdf)$", re.IGNORECASE)
_LONGEST_LABEL: Final = 120
_LONGEST_LINE: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One entry of a reference list.

    Args:
        text: The entry, white space folded.
        label: Its number, or what else stands in its brackets.
        author: The first author's surname, folded, if the entry seems to begin with one.
        year: The year, with the letter that tells entries of a year apart.
        title: The title, as far as it could be told from the rest.
    """

    text: str
    label: str | None = None
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
    """Find the last reference list of a text that has entries, or its footnotes.

    Below headings that sections of prose have too, and in footnotes, an entry counts if it has a year or an
    identifier, and a title in quotes or authors with initials.
    """
    nothing = ReferenceList(start=len(text), end=len(text))
    headings = [
        (match, loose)
        for match in _HEADING.finditer("\n" + text)  # so it begins where the line does in the text
        if (loose := _HEADINGS.get(fold(match[1]))) is not None
    ]
    for heading, loose in reversed(headings[-LAST_HEADINGS:]):
        following = _NEXT_HEADING.search(text, heading.end())
        end = following.start() if following else len(text)
        entries = tuple(_read_entries(text[heading.end() - 1 : end]))
        if entries := tuple(filter(_is_work, entries)) if loose else entries:
            return ReferenceList(start=heading.start(), end=end, entries=entries)
    if "[^" not in text:
        return nothing
    footnotes = _read_labelled_entries(text, _FOOTNOTE)
    return replace(nothing, entries=tuple(filter(_is_work, footnotes)))


def make_title_key(title: str) -> str | None:
    """Return the spelling under which titles are compared: folded words, or None if they say too little.

    In scripts without spaces, pairs of letters are counted in the place of words.
    """
    words = tokenize(title)
    return " ".join(words) if len(split_unspaced(words)) >= FEWEST_TITLE_WORDS else None


def find_cited(references: ReferenceList, text: str) -> Iterator[tuple[int, Reference]]:
    """Yield each place of the text, outside the list, that refers to an entry, in order of the text.

    Yields:
        The place, and the entry.
    """
    labels = {fold(entry.label): entry for entry in references.entries if entry.label is not None}
    names = {(entry.author, entry.year): entry for entry in reversed(references.entries) if entry.author}
    citations = [
        (match.start(), labels[label])
        for match in (_LABELS.finditer(text) if labels else ())
        for label in _expand_labels(match[1] or match[2])
        if label in labels
    ]
    citations += [
        (match.start(), names[key])
        for match in (_NAMES.finditer(text) if names else ())
        if (key := (fold(match[1]), match[2])) in names
    ]
    citations.sort(key=itemgetter(0))
    yield from (item for item in citations if not references.start <= item[0] < references.end)


def _expand_labels(labels: str) -> Iterator[str]:
    """Yield 3, 5, 6, 7 for "3, 5-7", "vas17" for "Vas17", and the ends of a range of more than 50."""
    for part in re.split(r"\s?[,;]\s?", labels):
        match = _RANGE.fullmatch(part)
        if match is None:
            yield fold(part)
            continue
        first, last = int(match[1]), int(match[2])
        yield from map(str, range(first, last + 1) if first <= last <= first + 50 else (first, last))


def _is_work(entry: Reference) -> bool:
    """Say whether an entry surely names a work, as a note of prose does not."""
    quoted = entry.title is not None and _QUOTED.search(entry.text)
    dated = entry.year is not None or bool(find_identifiers(entry.text))
    return dated and bool(quoted or _AUTHOR.match(entry.text))


def _read_entries(text: str) -> Iterator[Reference]:
    """Yield the entries of a list. The entries are labelled if the first one is."""
    text = text.lstrip("=-~ \t\r\n")
    if _LABELLED.match(text):
        yield from _read_labelled_entries(text)
        return
    for block in _split_blocks(text)[:MAX_ENTRIES]:
        reference = _make_reference(block, None)
        if reference.year:
            yield reference


def _read_labelled_entries(text: str, label: re.Pattern[str] = _LABELLED) -> Iterator[Reference]:
    starts = list(islice(label.finditer(text), MAX_ENTRIES))
    ends = [match.start() for match in starts[1:]]
    for match, end in zip(starts, [*ends, len(text)], strict=False):
        body = text[match.end() : min(end, match.end() + MAX_ENTRY)]
        yield _make_reference(_BREAK.split(body, maxsplit=1)[0], match[1] or match[2])


def _split_blocks(text: str) -> list[str]:
    """Split a list into unnumbered entries, at blank lines if there are any, else one a line.

    A line that is indented continues the one before.
    """
    text = text.rstrip()
    blocks = _BREAK.split(text) if _BREAK.search(text) else _LINE.split(text)
    return [_BULLET.sub("", block, count=1) for block in blocks if block.strip()]


def _make_reference(text: str, label: str | None) -> Reference:
    text = " ".join(text[:MAX_ENTRY].split())
    years = list(_YEAR.finditer(text))
    year = next((match for match in years if match[1]), years[0] if years else None)
    surname = _SURNAME.search(text, 0, 60)
    return Reference(
        text=text,
        label=label,
        author=fold(surname[0]) if surname and surname[0][0].isupper() else None,
        year=year[0].strip("()") if year else None,
        title=_find_cited_title(text),
    )


def _find_cited_title(text: str) -> str | None:
    """Return the title in quotes, else the sentence after a year near the start, else after the authors."""
    text = _URL.sub("", text)
    quoted = _QUOTED.search(text)
    after_year = _AFTER_YEAR.search(text, 0, 400)
    authors = _AUTHORS.match(text)
    if quoted:
        title = quoted[1] or quoted[2]
    elif after_year:
        title = split_sentences(after_year[1])[0]
    elif authors:
        title = "".join(split_sentences(text[authors.end() :])[:1])
    else:
        first, *others = split_sentences(text) or [""]
        title = first if others and _YEAR.fullmatch(others[0].strip(" .")) else "".join(others[:1])
    title = _MEDIUM.sub("", title.strip(" .,*_?!:"))
    looks_like_one = title[:1].isalnum() and not title[0].islower()
    return title if looks_like_one and make_title_key(title) else None


class CitationExtractor:
    """Incoming links for the works that a document is, outgoing ones for the works it cites.

    A document *is*

    - what its metadata say under ``doi``, ``arxiv``, ``pmid``, ``pmcid``, ``isbn``, ``rfc``, ``pep``
      and the other identifiers' names (case does not matter; one value or a list of them; a value that
      is not such an identifier is ignored);
    - the identifier with which its title, or the first line of a text without one, begins, when the
      title ends there or goes on after a colon, bar or dash: "PEP 8: Style Guide", "RFC 9110 - HTTP
      Semantics", but not "RFC 9110 explained";
    - the identifier that is the last part of its ``url`` or ``source``: ``/pep-0008.html``;
    - a work of its title (in the metadata, or a Markdown heading on the first line), as the tag ``ref:``
      and the title's words, folded: ``ref:attention is all you need``; if they are three or more, and
      without the site's name after a bar.

    The last three do not hold for a part of a page, whose ``url`` has a fragment.

    It *cites* every other identifier in its text, and every entry of its own reference list (under a
    heading such as References or Bibliography): by the entry's identifiers, else by ``ref:`` and its
    title. Citations such as ``[3, 5-7]`` or "(Smith & Jones, 2019)" count for the entry they resolve
    to; they, and an identifier's mentions, are counted as n, and the link's weight is 1 - 0.5 ** n.
    Links stand in the order in which the text first cites them.

    Args:
        kind: Kind of the links.
    """

    source = Document

    def __init__(self, *, kind: str = "citation") -> None:
        self._kind = kind

    def extract(self, source: Document | str) -> tuple[Link, ...]:
        """Return the links of the work that the document is, then of the works it cites.

        A string is a document without metadata.
        """
        text = source if isinstance(source, str) else source.page_content
        written = {} if isinstance(source, str) else source.metadata
        metadata = {str(key).lower().replace(" ", "_"): value for key, value in written.items()}
        first_line = text.lstrip()[:_LONGEST_LINE].partition("\n")[0].strip()
        title = _find_title(metadata, first_line)
        tags = dict.fromkeys(_find_own_tags(metadata, title, first_line))
        own = {tag: Link.incoming(kind=self._kind, tag=tag, label=title) for tag in tags}
        return (*own.values(), *(link for link in self._yield_outgoing(text) if link.tag not in own))

    def extract_query(self, text: str) -> tuple[Link, ...]:
        """Return outgoing links to the works that a question names by identifier, in order."""
        return merge_links(
            Link.outgoing(kind=self._kind, tag=mention.tag, label=mention.written)
            for mention in find_identifiers(text)
        )

    def _yield_outgoing(self, text: str) -> Iterator[Link]:
        citations = sorted(_list_citations(text, find_references(text)), key=itemgetter(0))
        counts: dict[str, int] = {}
        labels: dict[str, str] = {}
        for _, tag, label, weight in citations:
            counts[tag] = counts.get(tag, 0) + weight
            labels.setdefault(tag, label)
        for tag, label in labels.items():
            yield Link.outgoing(kind=self._kind, tag=tag, label=label, weight=1 - 0.5 ** max(1, counts[tag]))


def _list_citations(text: str, references: ReferenceList) -> Iterator[tuple[int, str, str, int]]:
    """Yield all citations: place, tag, label, and 1, or 0 for an entry of the list itself."""
    listed = range(references.start, references.end)
    for mention in find_identifiers(text):
        inside = mention.start in listed
        yield references.end if inside else mention.start, mention.tag, mention.written, not inside
    named = {id(entry): tuple(_tag_entry(entry)) for entry in references.entries}
    for place, entry in find_cited(references, text):
        yield from ((place, tag, label, 1) for tag, label in named[id(entry)])
    for place, entry in enumerate(references.entries, references.start):
        yield from ((place, tag, label, 0) for tag, label in named[id(entry)])


def _tag_entry(entry: Reference) -> Iterator[tuple[str, str]]:
    """Yield the tags of an entry of the reference list, each with its label."""
    label = entry.title or entry.text
    label = label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
    tags = dict.fromkeys(mention.tag for mention in find_identifiers(entry.text))
    key = make_title_key(entry.title) if entry.title else None
    if key and not tags:
        tags = {_make_title_tag(key): None}
    yield from ((tag, label) for tag in tags)


def _find_own_tags(metadata: Mapping[str, Any], title: str | None, first_line: str) -> Iterator[str]:
    """Yield the tags of what a document is."""
    yield from _find_declared(metadata)
    url = str(metadata.get("url") or metadata.get("source") or "")
    if "#" in url:
        return
    yield from _find_leading(title or first_line, at_end=False)
    yield from _find_leading(_EXTENSION.sub("", url.rstrip("/").rpartition("/")[2]), at_end=True)
    key = make_title_key(title.partition(" | ")[0]) if title else None
    if key:
        yield _make_title_tag(key)


def _find_declared(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tags of the identifiers that the metadata state."""
    for key, rule in [(key, rule) for key, rule in BY_KEY.items() if key in metadata]:
        stated = metadata[key]
        for value in stated if isinstance(stated, list | tuple) else (stated,):
            tag = rule.tag_of(str(value).strip()) if isinstance(value, str | int) else None
            if tag:
                yield tag


def _find_leading(text: str, *, at_end: bool) -> Iterator[str]:
    """Yield the identifier a text begins with, if the text ends there or goes on as a title does."""
    for mention in find_identifiers(text)[:1]:
        ends = mention.end == len(text) if at_end else _AFTER_IDENTIFIER.match(text, mention.end)
        if mention.start == 0 and ends:
            yield mention.tag


def _find_title(metadata: Mapping[str, Any], first_line: str) -> str | None:
    """Return the title that the metadata state, else the heading on the first line."""
    stated = metadata.get("title")
    if isinstance(stated, str) and stated.strip():
        return stated.strip()
    return first_line.strip("# ") if first_line.startswith("# ") else None


def _make_title_tag(key: str) -> str:
    return "ref:" + key.encode()[: MAX_TAG_BYTES - 4].decode(errors="ignore")
