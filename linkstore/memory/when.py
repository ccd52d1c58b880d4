"""Times that a question names: "what did I say last week?", "what did Ann cook on 5 June 2024?"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from linkstore.filters import Filter
from linkstore.memory.dates import MONTHS, Span, dates_in
from linkstore.memory.turns import written_time

_SAID: Final = re.compile(
    r"^(?>.*?\b(?:did|have|had|was|were)\b)(?>.*?\b(?:i|we|you)\b).*\b"
    r"(?:say|said|tell|told|mention|mentioned|ask|asked|talk|talked|talking|discuss|discussed|discussing)\b"
    r"|\b(?:i|we|you) (?:said|told|mentioned|asked|talked|discussed|were talking|were discussing)\b",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERS: Final[Mapping[str, int]] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AGO: Final = re.compile(
    r"\b(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (day|week|month)s? ago\b"
)
_PERIOD: Final = re.compile(r"\b(this|last) (week|month|year)\b")
_WEEKDAY: Final = re.compile(rf"\b(?:on|last|since|until|till|before|after) ({'|'.join(_DAYS)})\b")
_PRESENT: Final = re.compile(r"\b(?:today|this morning|tonight)\b")
_OPEN: Final = re.compile(
    rf"\b(before|until|till|since|after) (?:the )?(?:\d|this\b|last\b|yesterday|today"
    rf"|{'|'.join((*_DAYS, *MONTHS))})"
)
_NEAR: Final = timedelta(days=7)
"""How long before a time plans for it are spoken of, and after it what happened."""


def time_filter(question: str, now: datetime) -> Filter | None:
    """Return the filter for turns of the time that a question asks about, or None if it asks about none.

    Only questions about what was said are limited to a time: in others, a time is when something happened,
    and that may have been said at any other.
    """
    spans = spans_of(question, now) if _SAID.search(question) else ()
    if not spans:
        return None
    side = _OPEN.search(question.lower())
    if side is None:
        return _within(spans)
    match side[1]:
        case "before":
            return {"time": {"$lt": written_time(spans[-1][0])}}
        case "since":
            return {"time": {"$gte": written_time(spans[0][0])}}
        case "after":
            return {"time": {"$gte": written_time(spans[0][1])}}
    return {"time": {"$lt": written_time(spans[-1][1])}}


def near_time(question: str, now: datetime) -> tuple[Filter, Filter] | None:
    """Return the filters for turns of the time that a question names, and for those a week around, or None.

    What happened at a time is spoken of then, or a little later. The present is no such time: what a question
    about today asks may have been said at any time.
    """
    text = question.lower()
    if _PRESENT.search(text) or re.search(r"\bthis (?:week|month|year)\b", text):
        return None
    spans = spans_of(question, now)
    return (_within(spans), _within([_around(span) for span in spans])) if spans else None


def _within(spans: Sequence[Span]) -> Filter:
    times = [{"time": {"$gte": written_time(start), "$lt": written_time(end)}} for start, end in spans]
    return times[0] if len(times) == 1 else {"$or": times}


def _around(span: Span) -> Span:
    return span[0] - _NEAR, span[1] + _NEAR


def spans_of(question: str, now: datetime) -> tuple[Span, ...]:
    """Return the time that a question names, relative to ``now`` and in its time zone, if it names one.

    There are two, the earlier first, if a day can be read in two ways (:mod:`linkstore.memory.dates`).
    Weeks begin on Monday. "last Monday" and "in March" are the latest that have begun.
    """
    text = question.lower()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        spans = _named(text, today)
        for span in spans:
            _within([_around(span)])
    except (OverflowError, ValueError):  # not a valid date, or at the limit of the calendar
        return ()
    return spans


def _named(text: str, today: datetime) -> tuple[Span, ...]:
    day = timedelta(days=1)
    if "yesterday" in text:
        return ((today - day, today),)
    if _PRESENT.search(text):
        return ((today, today + day),)
    dates = dates_in(text, today)
    if dates:
        return dates
    span = _of_ago(text, today) or _of_period(text, today) or _of_day(text, today)
    return () if span is None else (span,)


def _of_ago(text: str, today: datetime) -> Span | None:
    match = _AGO.search(text)
    if match is None:
        return None
    count = int(match[1]) if match[1].isdigit() else _NUMBERS[match[1]]
    days = {"day": 1, "week": 7, "month": 30}[match[2]]
    middle = today - timedelta(days=count * days)
    around = timedelta(days=days // 2)
    return middle - around, middle + around + timedelta(days=1)


def _of_period(text: str, today: datetime) -> Span | None:
    match = _PERIOD.search(text)
    if match is None:
        return None
    if match[2] == "week":
        start = today - timedelta(days=today.weekday())
        before, after = start - timedelta(days=7), start + timedelta(days=7)
    elif match[2] == "month":
        start = today.replace(day=1)
        before, after = (
            (start - timedelta(days=1)).replace(day=1),
            (start + timedelta(days=32)).replace(day=1),
        )
    else:
        start = today.replace(month=1, day=1)
        before, after = start.replace(year=start.year - 1), start.replace(year=start.year + 1)
    return (start, after) if match[1] == "this" else (before, start)


def _of_day(text: str, today: datetime) -> Span | None:
    match = _WEEKDAY.search(text)
    if match is None:
        return None
    ago = (today.weekday() - _DAYS.index(match[1])) % 7 or 7
    start = today - timedelta(days=ago)
    return start, start + timedelta(days=1)
