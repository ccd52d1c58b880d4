"""A strategy has few settings: what was tuned on benchmarks is a constant of its module."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from linkstore.strategies import PageRank

MAX_SETTINGS: Final = 14
"""Those that a user has a reason to set: how much to return, where to start, and what to follow."""


def test_pagerank_has_few_settings() -> None:
    assert len(fields(PageRank)) <= MAX_SETTINGS, [field.name for field in fields(PageRank)]
