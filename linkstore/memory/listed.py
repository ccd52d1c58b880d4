"""Items of a list that was said, and references to them by position: "the second one"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from linkstore.memory.entities import EntityFinder
from linkstore.memory.turns import Turn

_POSITIONS: Final = {
    "first": 0,
    "second": 1,
    "third": 2,
    "fourth": 3,
    "fifth": 4,
    "former": 0,
    "latter": -1,
    "last": -1,
    **{word: at for at, word in enumerate(("one", "two", "three", "four", "five"))},
    **{str(at + 1): at for at in range(5)},
}
_OF_TWO: Final = ("former", "latter")
_ORDINAL: Final = "first|second|third|fourth|fifth|last"
_MEANT: Final = re.compile(
    rf"\bthe ({_ORDINAL}) (?:one|option|item|of (?:them|those|these))\b"
    r"|\bnumber (one|two|three|four|five|[1-5])\b"
    rf"|\bthe ({_ORDINAL})(?=\W*$|[?.!,;]| (?:is|was|does|do|did|has|have|can|and|or|in|for|with)\b)"
    r"|\bthe (former|latter)\b",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(
    r"(?:^|\s)(?:\d{1,2}[.)]|[-*\u2022])\s+(\S.*?)(?=\s(?:\d{1,2}[.)]|[-*\u2022])\s|\n|$)"
)
_SERIES: Final = re.compile(
    r"(?<![^,.;:!?\n])(?!(?<=[^,.;:!?\n],) )"  # only where no earlier start gives a longer series
    r"([^,.;:!?\n]+(?:, [^,.;:!?\n]+)*),? (?:and|or) ([^,.;:!?\n]+)"
)
_OF_SEVERAL: Final = re.compile(
    r"\b(?:which|what|one|any|each|either|both|all) (of (?:them|(?:these|those)(?=\W*$|[?.!,;]|"
    r" (?:is|are|was|were|do|does|did|has|have|can|will|would|should|and|or|in|for|with|to)\b)))\b",
    re.IGNORECASE,
)
_LONGEST: Final = 60
"""Characters of an item; of a longer one, what stands before its first dash, colon or comma."""
_MOST_TURNS: Final = 3
"""How many turns ago the list may have been said."""


def item_meant(question: str, before: Sequence[Turn], entities: EntityFinder) -> tuple[str, str] | None:
    """The phrase of a question that names an item by its position, and the item; None if there is none."""
    match = _MEANT.search(question)
    if match is None:
        return None
    named = next(filter(None, match.groups())).lower()
    position = _POSITIONS[named]
    for turn in reversed(before[-_MOST_TURNS:]):
        for text in (turn.response or "", turn.query):
            items = items_of(text)
            if len(items) > max(position, 1):
                return match.group(), items[position]
            if named in _OF_TWO and len(names := proper_names(text, entities)) == len(_OF_TWO):
                return match.group(), names[position]
    return None


def several_meant(question: str, before: Sequence[Turn], entities: EntityFinder) -> tuple[str, str] | None:
    """The words "of them" of "which of them", and "of" the things meant; None if there are none.

    They are the items of the last list, or else what the last two questions were about.
    """
    match = _OF_SEVERAL.search(question)
    if match is None or not before:
        return None
    last = before[-1]
    listed = (items_of(text) for text in (last.response or "", last.query))
    items = next((items for items in listed if items and all(map(entities, items))), [])
    if not items:
        first = (next(iter(entities(turn.query)), None) for turn in before[-len(_OF_TWO) :])
        items = [name for name in first if name is not None]
    return (match.group(1), f"of {' and '.join(items)}") if len(items) > 1 else None


def proper_names(text: str, entities: EntityFinder) -> list[str]:
    """The entities of a text that begin with a capital."""
    return [name for name in entities(text) if name[:1].isupper()]


def items_of(text: str) -> list[str]:
    """The items of the first list in a text: numbered, with bullets, or a series ("A, B and C")."""
    numbered = [_short(item) for item in _NUMBERED.findall(text)]
    if len(numbered) > 1:
        return numbered
    for match in _SERIES.finditer(text):
        items = [*match.group(1).split(", "), match.group(2)]
        head = items[0].split()
        if len(items) > 1 and all(len(item.split()) <= 6 for item in items[1:-1]):
            return [" ".join(head[-2:] if len(head) > 3 else head), *map(_series_item, items[1:])]
    return []


def _series_item(item: str) -> str:
    words = item.split()
    return " ".join(words[:4])


def _short(item: str) -> str:
    item = item.strip().rstrip(".;,")
    if len(item) <= _LONGEST:
        return item
    return re.split(r"\s[-\u2013]\s|[:,;.]", item, maxsplit=1)[0][:_LONGEST].strip()
