"""Dates of the calendar that a text names: "5 June 2024", "May 8th", "in August 2023", "2023-05-08"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

Span = tuple[datetime, datetime]
"""From the first moment to the one after the last."""

MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
"""The first letters of each month."""
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR: Final = r"(?P<year>\d{4})\b"
_BEHIND: Final = r"\b(?:on|since|until|till|by|before|after|of|from|between|around)(?: the)? "
"""What stands before a day without a year: "may 5" alone may be no date."""
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b",
        rf"\b{_DAY} (?:of )?{_MONTH},? {_YEAR}",
        rf"\b{_MONTH} {_DAY},? {_YEAR}",
        rf"\b{_MONTH},? {_YEAR}",
        rf"{_BEHIND}{_DAY} (?:of )?{_MONTH}",
        rf"{_BEHIND}{_MONTH} {_DAY}",
        rf"\b(?:in|last|during|since|until|till|before|after) {_MONTH}",
        r"\b(?:in|during|since) (?P<year>(?:19|20)\d\d)\b",
    )
)


def date_in(text: str, today: datetime) -> Span | None:
    """The day, month or year that a text in lower case names; None if it names none.

    Without a year it is the latest that has begun. The most exact date counts, and of those the first.

    Raises:
        ValueError: If the calendar has no such day.
        OverflowError: If it is at an end of the calendar.
    """
    for form in _FORMS:
        match = form.search(text)
        if match is not None:
            return _span(match.groupdict(), today)
    return None


def _span(named: dict[str, str | None], today: datetime) -> Span:
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
