"""Times in questions about what was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from linkstore.memory.when import span_of, time_filter

NOW = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("question", "first", "end"),
    [
        ("what did I say yesterday?", "2026-03-10", "2026-03-11"),
        ("what did we discuss today", "2026-03-11", "2026-03-12"),
        ("what did I say last week?", "2026-03-02", "2026-03-09"),
        ("what did I say this week?", "2026-03-09", "2026-03-16"),
        ("what did I say last month?", "2026-02-01", "2026-03-01"),
        ("what did I say last year?", "2025-01-01", "2026-01-01"),
        ("what did I say two days ago?", "2026-03-09", "2026-03-10"),
        ("what did I tell you on Monday?", "2026-03-09", "2026-03-10"),
        ("what did I tell you on Wednesday?", "2026-03-04", "2026-03-05"),
        ("what did I ask in december?", "2025-12-01", "2026-01-01"),
        ("what did I ask in May 2023?", "2023-05-01", "2023-06-01"),
        ("what did we talk about on 2026-02-28?", "2026-02-28", "2026-03-01"),
    ],
)
def test_a_time_is_counted_from_now(question, first, end):
    start, stop = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, end))
    assert span_of(question, NOW) in {(start, stop), (start.replace(hour=0), stop)}
    assert time_filter(question, NOW) is not None


@pytest.mark.parametrize(
    "question",
    ["When did Ada move last week?", "what is Kubernetes?", "what did I say?", "did I say 2026-99-99?", ""],
)
def test_other_questions_are_not_limited_to_a_time(question):
    assert time_filter(question, NOW) is None


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01", "0000-01-01"])
def test_a_day_beyond_the_calendar_is_no_time(day):
    zone = timezone(timedelta(hours=1))
    assert time_filter(f"what did I say on {day}?", NOW.astimezone(zone)) is None
