"""Times that a question names: "what did I say last week?"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from linkstore.filters import Filter
from linkstore.memory.turns import written_time

Span = tuple[datetime, datetime]
"""From the first moment to the one after the last."""

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
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_AGO: Final = re.compile(
    r"\b(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten) (day|week|month)s? ago\b"
)
_PERIOD: Final = re.compile(r"\b(this|last) (week|month|year)\b")
_WEEKDAY: Final = re.compile(rf"\b(?:on|last) ({'|'.join(_DAYS)})\b")
_MONTH: Final = re.compile(rf"\b(?:in|last) ({'|'.join(_MONTHS)})(?: (\d{{4}}))?\b")
_DATE: Final = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")


def time_filter(question: str, now: datetime) -> Filter | None:
    """The filter for turns of the time that a question asks about; None if it asks about none.

    Only questions about what was said are limited to a time: in others, a time is when something happened,
    and that may have been said at any other.
    """
    if not _SAID.search(question):
        return None
    try:
        span = span_of(question, now)
        return span and {"time": {"$gte": written_time(span[0]), "$lt": written_time(span[1])}}
    except OverflowError:  # a day at an end of the calendar
        return None


def span_of(question: str, now: datetime) -> Span | None:
    """The time that a question names, relative to ``now`` and in its time zone; None if it names none.

    Weeks begin on Monday. "last Monday" and "in March" are the latest that have begun.
    """
    text = question.lower()
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    if "yesterday" in text:
        return today - day, today
    if re.search(r"\b(?:today|this morning|tonight)\b", text):
        return today, today + day
    return _of_date(text, today) or _of_ago(text, today) or _of_period(text, today) or _of_name(text, today)


def _of_date(text: str, today: datetime) -> Span | None:
    match = _DATE.search(text)
    if match is None:
        return None
    try:
        start = today.replace(year=int(match[1]), month=int(match[2]), day=int(match[3]))
    except ValueError:
        return None
    return start, start + timedelta(days=1)


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


def _of_name(text: str, today: datetime) -> Span | None:
    weekday, month = _WEEKDAY.search(text), _MONTH.search(text)
    if weekday is not None:
        ago = (today.weekday() - _DAYS.index(weekday[1])) % 7 or 7
        start = today - timedelta(days=ago)
        return start, start + timedelta(days=1)
    if month is None:
        return None
    number = _MONTHS.index(month[1]) + 1
    year = int(month[2]) if month[2] else today.year - (number > today.month)
    start = today.replace(year=max(year, 1), month=number, day=1)
    return start, (start + timedelta(days=32)).replace(day=1)
