"""Times in questions about what was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from time import perf_counter

import pytest
from internals import find_spans, make_near_filters, make_time_filter

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
        ("what did we talk about on 8 May, 2023?", "2023-05-08", "2023-05-09"),
        ("what did I say on the 8th of May 2023?", "2023-05-08", "2023-05-09"),
        ("what did I say on May 8th, 2023?", "2023-05-08", "2023-05-09"),
        ("what did I say on Sept. 3 2023?", "2023-09-03", "2023-09-04"),
        ("what did I say on 5 March?", "2026-03-05", "2026-03-06"),
        ("what did I say on March 20?", "2025-03-20", "2025-03-21"),
        ("what did I say in early August 2023?", "2023-08-01", "2023-09-01"),
        ("what did I say in 2023?", "2023-01-01", "2024-01-01"),
        ("what did I say on 2024/06/05?", "2024-06-05", "2024-06-06"),
        ("what did I say on 2024-6-5?", "2024-06-05", "2024-06-06"),
        ("what did I say on 25/6/2024?", "2024-06-25", "2024-06-26"),
        ("what did I say on 06-25-2024?", "2024-06-25", "2024-06-26"),
        ("what did I say on 5.6.2024?", "2024-06-05", "2024-06-06"),
        ("what did I say on 6/6/2024?", "2024-06-06", "2024-06-07"),
    ],
)
def test_a_time_is_counted_from_now(question, first, end):
    start, stop = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, end))
    assert find_spans(question, NOW) == ((start, stop),)
    assert make_time_filter(question, NOW) is not None


@pytest.mark.parametrize(
    "question",
    [
        "When did Ada move last week?",
        "what is Kubernetes?",
        "what did I say?",
        "did I say 2026-99-99?",
        "did I say 30 February 2024?",
        "did I say 31/2/2024?",
        "did I say 13/13/2024?",
        "did I say 6.25.2024?",
        "did I say 0/5/2024?",
        "did I say 1.5.6.2024?",
        "did I say 5/6-2024?",
        "did I say 5/6/20245?",
        "did I say May 2023456?",
        "did I say that I may 5 times?",
        "",
    ],
)
def test_other_questions_are_not_limited_to_a_time(question):
    assert make_time_filter(question, NOW) is None


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01", "0000-01-01"])
def test_a_day_beyond_the_calendar_is_no_time(day):
    zone = timezone(timedelta(hours=1))
    assert make_time_filter(f"what did I say on {day}?", NOW.astimezone(zone)) is None


@pytest.mark.parametrize(
    ("question", "limits"),
    [
        ("what did I say before 5 March?", {"$lt": "2026-03-05"}),
        ("what did I say until 5 March?", {"$lt": "2026-03-06"}),
        ("what did I say since Monday?", {"$gte": "2026-03-09"}),
        ("what did I say after March 5?", {"$gte": "2026-03-06"}),
        ("what did I say since last month?", {"$gte": "2026-02-01"}),
    ],
)
def test_what_was_said_before_or_after_a_time(question, limits):
    found = make_time_filter(question, NOW)
    assert found is not None
    assert {name: time[:10] for name, time in found["time"].items()} == limits


@pytest.mark.parametrize(
    ("question", "day"),
    [
        ("What did Ann cook on 8 May, 2023?", "2023-05-08"),
        ("Where was Ann in the week before August 16 2023?", "2023-08-16"),
        ("What did Ann cook yesterday?", "2026-03-10"),
    ],
)
def test_turns_of_a_time_and_those_near_it(question, day):
    limits = make_near_filters(question, NOW)
    assert limits is not None
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    bounds = [[datetime.fromisoformat(end) for end in one["time"].values()] for one in limits]
    week = timedelta(days=7)
    assert bounds == [[start, start + timedelta(days=1)], [start - week, start + timedelta(days=8)]]


@pytest.mark.parametrize("day", ["5/6/2024", "05/06/2024", "5-6-2024", "6/5/2024"])
def test_a_day_in_numbers_that_can_be_read_in_two_ways_is_either(day):
    """6 May or 5 June 2024."""
    said = make_time_filter(f"what did I say on {day}?", NOW)
    near = make_near_filters(f"What did Ann cook on {day}?", NOW)
    assert said is not None
    assert near is not None
    for limits, starts in (
        (said, ["2024-05-06", "2024-06-05"]),
        (near[0], ["2024-05-06", "2024-06-05"]),
        (near[1], ["2024-04-29", "2024-05-29"]),
    ):
        assert [one["time"]["$gte"][:10] for one in limits["$or"]] == starts


@pytest.mark.parametrize(
    ("word", "limit"),
    [
        ("before", {"$lt": "2024-06-05"}),
        ("until", {"$lt": "2024-06-06"}),
        ("since", {"$gte": "2024-05-06"}),
        ("after", {"$gte": "2024-05-07"}),
    ],
)
def test_before_or_after_a_day_that_can_be_read_in_two_ways_leaves_out_neither(word, limit):
    found = make_time_filter(f"what did I say {word} 5/6/2024?", NOW)
    assert found is not None
    assert {name: time[:10] for name, time in found["time"].items()} == limit


@pytest.mark.parametrize(
    "question", ["What shall I cook today?", "What is due this week?", "What is tea?", "on 31 June 2020?", ""]
)
def test_the_present_is_no_time_that_things_were_said_at(question):
    assert make_near_filters(question, NOW) is None


def test_a_long_text_is_read_once():
    begun = perf_counter()
    for text in (
        "on the 8 of " * 50_000,
        "may " * 100_000,
        "1" * 200_000,
        "before the " * 50_000,
        "5/6/" * 20_000,
    ):
        assert make_near_filters(text, NOW) is None
    assert perf_counter() - begun < 10
