"""Figures of a window of searches, and when they are cause for alarm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from linkstore.arguments import given, require_at_least, require_within
from linkstore.display import in_percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The record of a search.

    Args:
        question: The question as text; empty for a search by a vector.
        strategy: The strategy, as text.
        began: When it began, in UTC.
        seconds: How long it took.
        reached: How many documents it reached along links, each step counted.
        hits: How many documents it found.
        types: How many of them are of each type.
        kinds: How many of their paths follow each kind of link.
        failed: Whether it ended with an error.
        reason: Why it found nothing, or the message of the error.
    """

    question: str
    strategy: str
    began: datetime
    seconds: float
    reached: int
    hits: int
    types: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)
    failed: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the figures of a window are cause for alarm.

    Args:
        empty: The highest share of searches that may find nothing; default 0.1, so 11 of 100 raise an alarm.
        failed: The highest share of searches that may fail, such as those that name a kind the store does
            not have; default 0.1.
        reached: How many documents 99 % of searches may come to along links; default 20,000. None: any
            number.
        seconds: How long 99 % of searches may take; default None, any time.
        least: With fewer searches than this in the window no alarm is raised; default 20.

    Raises:
        StrategyError: If a limit is out of range.
    """

    empty: float = 0.1
    failed: float = 0.1
    reached: int | None = 20_000
    seconds: float | None = None
    least: int = 20

    def __post_init__(self) -> None:
        require_within(0, 1, empty=self.empty, failed=self.failed)
        require_at_least(0, least=self.least, **given(reached=self.reached))
        require_within(0, math.inf, **given(seconds=self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """Figures of the searches in a window.

    Args:
        searches: How many there were.
        empty: How many found nothing.
        failed: How many ended with an error; they are not among the empty ones.
        seconds_p50: Half of them took no longer; 0 without searches.
        seconds_p99: 99 % of them took no longer.
        reached_p50: Half of them came to no more documents along links.
        reached_p99: 99 % of them came to no more.
        reached_most: The largest number that one search reached.
        types: How many hits were of each document type.
        kinds: How many paths of hits follow each kind of link.
    """

    searches: int
    empty: int
    failed: int
    seconds_p50: float
    seconds_p99: float
    reached_p50: int
    reached_p99: int
    reached_most: int
    types: Mapping[str, int]
    kinds: Mapping[str, int]

    @property
    def empty_share(self) -> float:
        """The share of searches that found nothing, from 0 to 1, not counting those that failed."""
        answered = self.searches - self.failed
        return self.empty / answered if answered else 0.0

    @property
    def failed_share(self) -> float:
        """The share of searches that failed, from 0 to 1."""
        return self.failed / self.searches if self.searches else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as a plain JSON dict."""
        return {**asdict(self), "empty_share": self.empty_share, "failed_share": self.failed_share}

    def __str__(self) -> str:
        return (
            f"{self.searches:,} searches, {self.empty:,} found nothing ({in_percent(self.empty_share)}),"
            f" {self.failed:,} failed; p50 {self.seconds_p50 * 1000:.1f} ms, p99"
            f" {self.seconds_p99 * 1000:.1f} ms; along links p50 {self.reached_p50:,}, p99"
            f" {self.reached_p99:,}, at most {self.reached_most:,} documents"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A figure that is past its limit.

    Args:
        name: ``empty``, ``failed``, ``reached`` or ``seconds``.
        value: The figure.
        limit: Its limit.
        text: Both in words.
    """

    name: str
    value: float
    limit: float
    text: str

    def __str__(self) -> str:
        return self.text


def vitals_of(searches: Collection[Search]) -> Vitals:
    """Return the figures of some searches."""
    seconds = sorted(search.seconds for search in searches)
    reached = sorted(search.reached for search in searches)
    types: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for search in searches:
        types.update(search.types)
        kinds.update(search.kinds)
    return Vitals(
        searches=len(searches),
        empty=sum(not search.hits and not search.failed for search in searches),
        failed=sum(search.failed for search in searches),
        seconds_p50=_percentile(seconds, 50),
        seconds_p99=_percentile(seconds, 99),
        reached_p50=int(_percentile(reached, 50)),
        reached_p99=int(_percentile(reached, 99)),
        reached_most=reached[-1] if reached else 0,
        types=dict(sorted(types.items())),
        kinds=dict(sorted(kinds.items())),
    )


def past_limits(search: Search, limits: Limits) -> list[str]:
    """Return the names of the alarms that a search counts towards."""
    return [
        name
        for name, past in (
            ("empty", not search.hits and not search.failed),
            ("failed", search.failed),
            ("reached", limits.reached is not None and search.reached > limits.reached),
            ("seconds", limits.seconds is not None and search.seconds > limits.seconds),
        )
        if past
    ]


def alarmed(searches: int, past: Mapping[str, int], limits: Limits) -> frozenset[str]:
    """Return the names of the alarms to raise, from how many of the searches count towards each.

    The 99th percentile is past its limit if more than 1 % of the searches are.
    """
    if searches < limits.least:
        return frozenset()
    failed = past.get("failed", 0)
    raised = {
        "empty": past.get("empty", 0) > 0 and past["empty"] / (searches - failed) > limits.empty,
        "failed": failed / searches > limits.failed if searches else False,
        "reached": past.get("reached", 0) > searches // 100,
        "seconds": past.get("seconds", 0) > searches // 100,
    }
    return frozenset(name for name, one in raised.items() if one)


def alarms_of(vitals: Vitals, limits: Limits) -> tuple[Alarm, ...]:
    """Return the figures that are past their limits, as alarms."""
    if vitals.searches < limits.least:
        return ()
    count = f"of the last {vitals.searches:,} searches"
    slow = f"1 % {count} took {vitals.seconds_p99:.2f} s or more"
    none = f"{in_percent(vitals.empty_share)} {count} found nothing"
    lost = f"{in_percent(vitals.failed_share)} {count} failed"
    wide = f"1 % {count} came to {vitals.reached_p99:,} documents or more along links"
    figures = (
        ("empty", vitals.empty_share, limits.empty, none),
        ("failed", vitals.failed_share, limits.failed, lost),
        ("reached", vitals.reached_p99, limits.reached, wide),
        ("seconds", vitals.seconds_p99, limits.seconds, slow),
    )
    return tuple(
        Alarm(name=name, value=value, limit=limit, text=f"{text}; the limit is {_shown(name, limit)}")
        for name, value, limit, text in figures
        if limit is not None and value > limit
    )


def _shown(name: str, limit: float) -> str:
    return {"reached": f"{limit:,.0f}", "seconds": f"{limit:g} s"}.get(name, in_percent(limit, 0))


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the nearest-rank percentile of ascending values, or 0 without any."""
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else 0
