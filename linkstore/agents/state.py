"""The state of a reading: everything that the next step depends on, as plain JSON for checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypedDict

from linkstore.arguments import require_at_least
from linkstore.errors import StrategyError

STEPS: Final = 40
FOR_ANSWER: Final = 0.2
"""The part of the seconds that is kept for the answer."""


class Done(TypedDict):
    """An action of a reading.

    Keys: ``step``, the node of the graph; ``of``, what it looked at (``element:…``, ``chunk:…`` or empty for
    the question); ``action``; ``to``, the elements and chunks that it led to, in the same form; ``said``, the
    action in words.
    """

    step: str
    of: str
    action: str
    to: list[str]
    said: str


class Source(TypedDict):
    """A chunk that was seen: ``url`` with fragment, and ``title``; either may be empty."""

    url: str
    title: str


class Reading(TypedDict):
    """The state of a reading."""

    question: str
    plan: str
    notebook: list[str]
    elements: list[str]
    """Key elements to explore, in order."""
    chunks: list[str]
    """Ids of chunks to read, in order."""
    queued: list[str]
    """Every element and chunk that was ever queued, in the form of :class:`Done`; none is queued again."""
    explored: list[str]
    read: list[str]
    citable: dict[str, Source]
    """Chunks that were read."""
    searched: dict[str, list[str]]
    """The ids that were shown, for each query."""
    query: str
    """The text to search for next; empty for the question."""
    actions: list[Done]
    refused: dict[str, int]
    """How many ``elements``, ``chunks`` and ``citations`` were invented."""
    malformed: int
    failed: int
    """How many of the last steps in a row got nothing but malformed output."""
    steps: int
    tokens: int
    seconds: float
    stopped: str
    """The budget that ended the exploration: ``steps``, ``tokens``, ``seconds``, or empty."""
    next: str
    """The node to go to."""
    outcome: str
    analysis: str
    statements: list[dict[str, Any]]


def begun(question: str) -> Reading:
    """Return the state in which a reading begins."""
    return Reading(
        question=question,
        plan="",
        notebook=[],
        elements=[],
        chunks=[],
        queued=[],
        explored=[],
        read=[],
        citable={},
        searched={},
        query="",
        actions=[],
        refused={},
        malformed=0,
        failed=0,
        steps=0,
        tokens=0,
        seconds=0.0,
        stopped="",
        next="plan",
        outcome="",
        analysis="",
        statements=[],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The budget of a reading. When it is used up, the answer is written from what was read.

    Args:
        steps: The most calls of the model, the answer's and repeated ones included; default 40.
        tokens: No call is made whose prompt, with that of the answer, would exceed this; None, no limit. The
            answer's prompt leaves out the oldest actions and notes if it must, and is not sent if it still
            exceeds it. Outputs are counted once they are there, so that the last ones may exceed it.
        seconds: Seconds of work after which no call is waited for; a fifth of them is kept for the answer.
            None, no limit.

    Raises:
        StrategyError: If a limit is not positive.
    """

    steps: int = STEPS
    tokens: int | None = None
    seconds: float | None = None

    def seconds_for(self, *, last: bool) -> float:
        """Return after how many seconds calls end: the answer's, or all others."""
        whole = math.inf if self.seconds is None else self.seconds
        return whole if last else whole * (1 - FOR_ANSWER)

    def __post_init__(self) -> None:
        require_at_least(1, steps=self.steps)
        if self.tokens is not None:
            require_at_least(1, tokens=self.tokens)
        if self.seconds is not None and not self.seconds > 0:
            raise StrategyError(f"seconds must be a number above 0, not {self.seconds!r}")
