"""Dates and times in a text or a question: "what did Ann cook on 5 June 2024?", "last week".

Numbers with stops have the day first: "5.6.2024" is in June. With slashes or hyphens people write the day or
the month first. Both readings count if both are dates: "5/6/2024" is 5 June or 6 May, "25/6/2024" is 25 June.
If the year comes first, the month follows it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from linkstore.core.filters import Filter
from linkstore.memory.turns import format_time

Span = tuple[datetime, datetime]
"""The first moment of a time, and the moment after its last."""

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
"""The first letters of each month."""
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR: Final = r"(?P<year>\d{4})\b"
_NUMERIC_DATE: Final = re.compile(
    r"(?<![\w./-])(?P<one>\d{1,2})(?P<sign>[-/.])(?P<other>\d{1,2})(?P=sign)(?P<year>\d{4})(?![\w/-]|\.\w)"
)
_DATE_PREPOSITION: Final = r"\b(?:on|since|until|till|by|before|after|of|from|between|around)(?: the)? "
"""What stands before a day without a year: "may 5" alone may be no date."""
_DATE_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        r"\b(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})\b",
        rf"\b{_DAY} (?:of )?{_MONTH},? {_YEAR}",
        rf"\b{_MONTH} {_DAY},? {_YEAR}",
        rf"\b{_MONTH},? {_YEAR}",
        rf"{_DATE_PREPOSITION}{_DAY} (?:of )?{_MONTH}",
        rf"{_DATE_PREPOSITION}{_MONTH} {_DAY}",
        rf"\b(?:in|last|during|since|until|till|before|after) {_MONTH}",
        r"\b(?:in|during|since) (?P<year>(?:19|20)\d\d)\b",
    )
)
_ASKS_WHAT_WAS_SAID: Final = re.compile(
    r"^(?>.*?\b(?:did|have|had|was|were)\b)(?>.*?\b(?:i|we|you)\b).*\b"
    r"(?:say|said|tell|told|mention|mentioned|ask|asked|talk|talked|talking|discuss|discussed|discussing)\b"
    r"|\b(?:i|we|you) (?:said|told|mentioned|asked|talked|discussed|were talking|were discussing)\b",
    re.IGNORECASE | re.MULTILINE,
)
_COUNT_WORDS: Final[Mapping[str, int]] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AGO: Final = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_COUNT_WORDS)}) (day|week|month)s? ago\b")
_PERIOD: Final = re.compile(r"\b(this|last) (week|month|year)\b")
_WEEKDAY: Final = re.compile(rf"\b(?:on|last|since|until|till|before|after) ({'|'.join(_DAYS)})\b")
_PRESENT: Final = re.compile(r"\b(?:today|this morning|tonight)\b")
_OPEN: Final = re.compile(
    rf"\b(before|until|till|since|after) (?:the )?(?:\d|this\b|last\b|yesterday|today"
    rf"|{'|'.join((*_DAYS, *MONTHS))})"
)
_NEAR: Final = timedelta(days=7)
"""How long before a time plans for it are spoken of, and after it what happened."""


def find_dates(text: str, today: datetime) -> tuple[Span, ...]:
    """Return the day, month or year that a text in lower case names, several if it can be read in two ways.

    Without a year it is the latest that has begun. The most exact date counts, and of those the first.

    Returns:
        One span, two for such a day as "5/6/2024", earliest first, or none.

    Raises:
        ValueError: If the calendar has no such day.
        OverflowError: If it is at an end of the calendar.
    """
    numbers = _NUMERIC_DATE.search(text)
    if numbers is not None:
        orders = (("day", "month"),) if numbers["sign"] == "." else (("day", "month"), ("month", "day"))
        spans: set[Span] = set()
        for order in orders:
            with suppress(ValueError):
                named = dict(zip(order, numbers.group("one", "other"), strict=True))
                spans.add(_make_span(named | {"year": numbers["year"]}, today))
        return tuple(sorted(spans))
    for form in _DATE_FORMS:
        match = form.search(text)
        if match is not None:
            return (_make_span(match.groupdict(), today),)
    return ()


def _make_span(named: Mapping[str, str | None], today: datetime) -> Span:
    month, day, year = named.get("month"), named.get("day"), named.get("year")
    start = today.replace(day=1, month=1, year=today.year if year is None else int(year))
    if month is None:
        return start, start.replace(year=start.year + 1)
    number = int(month) if month.isdigit() else MONTHS.index(month[:3]) + 1
    start = start.replace(month=number, day=1 if day is None else int(day))
    if year is None and start > today:
        start = start.replace(year=start.year - 1)
    if day is not None:
        return start, start + timedelta(days=1)
    return start, (start + timedelta(days=32)).replace(day=1)


def make_time_filter(question: str, now: datetime) -> Filter | None:
    """Return the filter for turns of the time that a question asks about, or None if it asks about none.

    Only questions about what was said are limited to a time: in others, a time is when something happened,
    and that may have been said at any other.
    """
    spans = find_spans(question, now) if _ASKS_WHAT_WAS_SAID.search(question) else ()
    if not spans:
        return None
    side = _OPEN.search(question.lower())
    if side is None:
        return _filter_spans(spans)
    (first, after_first), (last, after_last) = spans[0], spans[-1]
    limits = {"before": ("$lt", last), "since": ("$gte", first), "after": ("$gte", after_first)}
    operator, moment = limits.get(side[1], ("$lt", after_last))
    return {"time": {operator: format_time(moment)}}


def make_near_filters(question: str, now: datetime) -> tuple[Filter, Filter] | None:
    """Return filters for the time that a question names and for a week around it, or None.

    What happened at a time is spoken of then, or a little later. The present is no such time: what a question
    about today asks may have been said at any time.
    """
    text = question.lower()
    if _PRESENT.search(text) or re.search(r"\bthis (?:week|month|year)\b", text):
        return None
    spans = find_spans(question, now)
    return (_filter_spans(spans), _filter_spans([_widen_span(span) for span in spans])) if spans else None


def _filter_spans(spans: Sequence[Span]) -> Filter:
    times = [{"time": {"$gte": format_time(start), "$lt": format_time(end)}} for start, end in spans]
    return times[0] if len(times) == 1 else {"$or": times}


def _widen_span(span: Span) -> Span:
    return span[0] - _NEAR, span[1] + _NEAR


def find_spans(question: str, now: datetime) -> tuple[Span, ...]:
    """Return the time that a question names, relative to ``now`` and in its time zone, if it names one.

    There are two, the earlier first, if a day can be read in two ways.
    Weeks begin on Monday. "last Monday" and "in March" are the latest that have begun.
    """
    text = question.lower()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        spans = _find_named(text, today)
        for span in spans:
            _filter_spans([_widen_span(span)])
    except (OverflowError, ValueError):  # not a valid date, or at the limit of the calendar
        return ()
    return spans


def _find_named(text: str, today: datetime) -> tuple[Span, ...]:
    if "yesterday" in text:
        return ((today - timedelta(days=1), today),)
    if _PRESENT.search(text):
        return ((today, today + timedelta(days=1)),)
    dates = find_dates(text, today)
    if dates:
        return dates
    if match := _AGO.search(text):
        count = int(match[1]) if match[1].isdigit() else _COUNT_WORDS[match[1]]
        days = {"day": 1, "week": 7, "month": 30}[match[2]]
        middle = today - timedelta(days=count * days)
        around = timedelta(days=days // 2)
        return ((middle - around, middle + around + timedelta(days=1)),)
    if match := _PERIOD.search(text):
        start = _find_beginning(match[2], today)
        after = start + timedelta(days={"week": 7, "month": 32, "year": 366}[match[2]])
        if match[1] == "this":
            return ((start, _find_beginning(match[2], after)),)
        return ((_find_beginning(match[2], start - timedelta(days=1)), start),)
    if match := _WEEKDAY.search(text):
        ago = (today.weekday() - _DAYS.index(match[1])) % 7 or 7
        start = today - timedelta(days=ago)
        return ((start, start + timedelta(days=1)),)
    return ()


def _find_beginning(period: str, day: datetime) -> datetime:
    """Return the first day of the week, the month or the year of a day."""
    if period == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if period == "month" else day.replace(day=1, month=1)
