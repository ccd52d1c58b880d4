"""Items of a list that was answered, and references to them by position: "the second one"."""

from __future__ import annotations

import re
from typing import Final

_ORDINALS: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1}
_NUMBERS: Final = {name: at for at, name in enumerate(("one", "two", "three", "four", "five"))}
_POSITIONS: Final = {
    **_ORDINALS,
    **_NUMBERS,
    **{str(at + 1): at for at in range(5)},
    "former": 0,
    "latter": 1,
}
_OF_TWO: Final = ("former", "latter")
_MEANT: Final = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)}) (?:one|option|item|of (?:them|those|these))\b"
    rf"|\b(?:number|the) ({'|'.join(_ORDINALS)}|{'|'.join(_NUMBERS)}|[1-5])(?=\W*$)"
    r"|\bthe (former|latter)\b",
    re.IGNORECASE,
)
_BULLET: Final = re.compile(r"^\s*[-*\u2022]\s+(\S.*)$", re.MULTILINE)
_NUMBERED: Final = re.compile(r"(?:^|\s)(\d{1,2})[.)]\s+(\S.*?)(?=\s\d{1,2}[.)]\s|\n|$)")
_NAME: Final = r"[A-Z][\w'-]*(?:\.(?=\s[A-Z]))?(?: (?:van|de|of|[A-Z\d][\w.'-]*[\w'-]))*"
_SERIES: Final = re.compile(rf"^({_NAME}(?:, {_NAME})*),? (?:and|or) ({_NAME})\W*$")
_REST: Final = re.compile(r"\s[-\u2013\u2014]+\s|[:,;(]|\.(?:\s|$)|\s(?:on|by|for|is|are|which|that)\s")
_LONGEST: Final = 60
"""Characters of an item; a longer one has no name that could take the place of its position."""


def item_meant(question: str, answer: str) -> tuple[str, str] | None:
    """Return the phrase of a question that names an item of an answer by its position, and the item.

    None if there is no such phrase, or the answer is not one list that has the position.
    """
    match = _MEANT.search(question)
    if match is None:
        return None
    named = next(filter(None, match.groups())).lower()
    items = items_of(answer)
    position = _POSITIONS[named]
    if len(items) <= max(position, 1) or (named in _OF_TWO and len(items) != len(_OF_TWO)):
        return None
    item = items[position]
    return (match.group(), item) if len(item) <= _LONGEST else None


def items_of(text: str) -> list[str]:
    """Return the items of the list in a text: numbered from one, with bullets, or names ("A, B and C").

    There are none if there are several lists. An item ends before a dash, a colon, a comma and the like.
    """
    numbered = _NUMBERED.findall(text)
    bullets = _BULLET.findall(text)
    if numbered and not bullets:
        counted = [int(number) for number, _ in numbered] == list(range(1, len(numbered) + 1))
        return [_beginning(item) for _, item in numbered] if counted else []
    if bullets:
        return [] if numbered else list(map(_beginning, bullets))
    series = _SERIES.match(text.strip())
    return [] if series is None else [*series[1].split(", "), series[2]]


def _beginning(item: str) -> str:
    return _REST.split(item, maxsplit=1)[0].strip(" *_`\"'.")
