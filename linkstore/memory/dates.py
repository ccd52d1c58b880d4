"""Dates of the calendar that a text names: "5 June 2024", "May 8th", "in August 2023", "5/6/2024".

Numbers with stops have the day first: "5.6.2024" is in June. With slashes or hyphens people write the day or
the month first. Both readings count if both are dates: "5/6/2024" is 5 June or 6 May, "25/6/2024" is 25 June.
If the year comes first, the month follows it.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

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
_NUMBERS: Final = re.compile(
    r"(?<![\w./-])(?P<one>\d{1,2})(?P<sign>[-/.])(?P<other>\d{1,2})(?P=sign)(?P<year>\d{4})(?![\w/-]|\.\w)"
)
_BEHIND: Final = r"\b(?:on|since|until|till|by|before|after|of|from|between|around)(?: the)? "
"""What stands before a day without a year: "may 5" alone may be no date."""
_FORMS: Final = tuple(
    re.compile(form)
    for form in (
        r"\b(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})\b",
        rf"\b{_DAY} (?:of )?{_MONTH},? {_YEAR}",
        rf"\b{_MONTH} {_DAY},? {_YEAR}",
        rf"\b{_MONTH},? {_YEAR}",
        rf"{_BEHIND}{_DAY} (?:of )?{_MONTH}",
        rf"{_BEHIND}{_MONTH} {_DAY}",
        rf"\b(?:in|last|during|since|until|till|before|after) {_MONTH}",
        r"\b(?:in|during|since) (?P<year>(?:19|20)\d\d)\b",
    )
)


def dates_in(text: str, today: datetime) -> tuple[Span, ...]:
    """Return the day, month or year that a text in lower case names, several if it can be read in two ways.

    Without a year it is the latest that has begun. The most exact date counts, and of those the first.

    Returns:
        One span, two for such a day as "5/6/2024", earliest first, or none.

    Raises:
        ValueError: If the calendar has no such day.
        OverflowError: If it is at an end of the calendar.
    """
    numbers = _NUMBERS.search(text)
    if numbers is not None:
        return tuple(sorted({_span(named, today) for named in _readings(**numbers.groupdict())}))
    for form in _FORMS:
        match = form.search(text)
        if match is not None:
            return (_span(match.groupdict(), today),)
    return ()


def _readings(one: str, sign: str, other: str, year: str) -> list[dict[str, str | None]]:
    """Read a date in numbers with the day first, or with the month first, or both."""
    day_first: dict[str, str | None] = {"day": one, "month": other, "year": year}
    month_first: dict[str, str | None] = {"day": other, "month": one, "year": year}
    if sign == "." or int(one) > len(MONTHS):
        return [day_first]
    return [month_first] if int(other) > len(MONTHS) else [day_first, month_first]


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
