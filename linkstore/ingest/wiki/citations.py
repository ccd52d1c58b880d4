"""Citation templates as text, from which an extractor recognizes the cited work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_NAMES: Final = re.compile(
    r"(?:cite|vcite|cita|citar|ref) (?!needed\b|check\b|quote\b)\w"
    r"|(?:cite|citation|literatur|internetquelle|ouvrage)$"
)
_MOST_AUTHORS: Final = 3
_YEAR: Final = re.compile(r"\b(?:1[5-9]|20)\d\d[a-z]?\b")

_AUTHOR: Final = ("author", "authors", "vauthors", "autor", "auteur", "autore", "editor")
_NUMBERED_AUTHORS: Final = (
    (("last", "last1", "surname", "surname1", "author1"), ("first", "first1", "given", "given1")),
    *(
        ((f"last{number}", f"surname{number}", f"author{number}"), (f"first{number}", f"given{number}"))
        for number in range(2, _MOST_AUTHORS + 2)
    ),
)
_TITLE: Final = ("title", "chapter", "titel", "titre", "título", "titulo", "titolo")
_WITHIN: Final = (
    *("journal", "work", "newspaper", "magazine", "website", "publisher", "encyclopedia", "periodical"),
    *("zeitschrift", "sammelwerk", "werk", "verlag", "périodique", "éditeur", "editorial", "editore"),
)
_IDENTIFIERS: Final = {
    "doi": "doi:",
    "pmid": "PMID ",
    "pmc": "PMC",
    "arxiv": "arXiv:",
    "eprint": "arXiv:",
    "isbn": "ISBN ",
    "rfc": "RFC ",
}
_STANDALONE: Final = {**_IDENTIFIERS, "hdl": "hdl:", "issn": "ISSN ", "oclc": "OCLC ", "jstor": "JSTOR "}
_KEYS: Final = frozenset({"doi", "pmid", "pmc", "arxiv"})


def may_cite(name: str, content: str) -> bool:
    """Say whether a template's parameters are worth reading, by its name (lower case) and its content."""
    return bool(_NAMES.match(name)) or any(key in content for key in _KEYS)


def is_citation(name: str, fields: Mapping[str, str]) -> bool:
    """Say whether a template cites a work: by its name (lower case), or since it states an identifier."""
    return bool(_NAMES.match(name)) or not _KEYS.isdisjoint(fields)


def citation(fields: Mapping[str, str]) -> str:
    """Write a work as reference lists show it, empty if the template states neither title nor identifier.

    Args:
        fields: The template's named parameters, names in lower case.
    """
    title, identifiers = list(_what(fields)), list(_identifiers(fields))
    if not title and not identifiers:
        return ""
    return " ".join((*_who(fields), *title, *_where(fields), *identifiers))


def title_of(fields: Mapping[str, str]) -> str:
    """Return the work's title, empty if the template states none."""
    return _first(fields, _TITLE).strip(".\"' ")


def identifier(name: str, value: str) -> str | None:
    """Write what a template of its own, such as ``{{doi|…}}``, shows, or None if it is no identifier."""
    before = _STANDALONE.get(name)
    return None if before is None or not value else _with(before, value)


def _who(fields: Mapping[str, str]) -> Iterator[str]:
    authors = list(_authors(fields))
    if authors:
        shown = "; ".join(authors[:_MOST_AUTHORS])
        yield f"{shown} et al." if len(authors) > _MOST_AUTHORS else shown
    year = _YEAR.search(_first(fields, ("year", "date", "jahr", "datum", "année", "año", "anno", "fecha")))
    if year:
        yield f"({year[0]})."


def _authors(fields: Mapping[str, str]) -> Iterator[str]:
    count = 0
    for last_names, first_names in _NUMBERED_AUTHORS:
        last = _first(fields, last_names)
        if last:
            first = _first(fields, first_names)
            yield f"{last}, {first}" if first else last
            count += 1
    other = "" if count else _first(fields, _AUTHOR)
    if other:
        yield other


def _what(fields: Mapping[str, str]) -> Iterator[str]:
    title = title_of(fields)
    if title:
        yield f'"{title}".'


def _where(fields: Mapping[str, str]) -> Iterator[str]:
    within = _first(fields, _WITHIN)
    if within:
        yield f"{within.rstrip('.')}."


def _identifiers(fields: Mapping[str, str]) -> Iterator[str]:
    for name, before in _IDENTIFIERS.items():
        value = fields.get(name)
        if value and (name != "eprint" or "arxiv" not in fields):
            yield _with(before, value)
    more = fields.get("id")
    if more:
        yield more


def _with(before: str, value: str) -> str:
    return value if value.lower().startswith(before.strip(": ").lower()) else f"{before}{value}"


def _first(fields: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if fields.get(name)), "")
