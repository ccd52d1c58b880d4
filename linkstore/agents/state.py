"""The state of a reading, its budget, and what the model may decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypedDict, cast, get_origin, get_type_hints

from pydantic import BaseModel, Field, field_validator

from linkstore.agents.facts import is_text
from linkstore.core.arguments import require_at_least
from linkstore.errors import StrategyError

DEFAULT_STEPS: Final = 40
ANSWER_SHARE: Final = 0.2
"""The part of the seconds that is kept for the answer."""


class ActionRecord(TypedDict):
    """An action of a reading.

    Keys: ``step``, the node of the graph; ``action``, what was decided, empty where a step only looks
    something up; ``to``, the ids and key elements that it led to; ``said``, the action in words.
    """

    step: str
    action: str
    to: list[str]
    said: str


class ChunkSource(TypedDict):
    """A chunk that was read: ``url`` with fragment, and ``title``; either may be empty."""

    url: str
    title: str


class ReadingCandidate(TypedDict):
    """A passage that may be read next.

    Keys: ``score``, higher for one that was found near the top, or in several ways; ``of``, what led to it:
    ``chunk:…``, ``element:…``, or empty for a search; ``how``, the link that did; ``facts``, those of it that
    were found; ``passed``, how often it was shown when the model wanted none.
    """

    score: float
    of: str
    how: str
    facts: list[str]
    passed: int


class ElementFacts(TypedDict):
    """The facts of a key element that are shown next: how many it has, and the best, each with its chunk."""

    size: int
    facts: list[tuple[str, str]]


class Reading(TypedDict):
    """The state of a reading."""

    question: str
    plan: list[str]
    notebook: list[str]
    queries: list[str]
    """What to search for."""
    elements: list[str]
    """Key elements whose facts to look up."""
    follow: list[str]
    """Chunks whose links to look up."""
    chunks: list[str]
    """Chunks to read, in order."""
    candidates: dict[str, ReadingCandidate]
    """What may be read, by id."""
    linked: list[str]
    """Some of those that are linked with what is read next."""
    offered: list[str]
    """Key elements that may be explored."""
    facts: dict[str, ElementFacts]
    """Facts of key elements, which are shown with the next passages."""
    shown: list[str]
    """The chunks that the model was shown; to it, the first is P1."""
    searched: list[str]
    explored: list[str]
    read: list[str]
    parts: dict[str, int]
    """How many parts of a long chunk were read, while there are more."""
    citable: dict[str, ChunkSource]
    """Chunks that were read."""
    ways: dict[str, str]
    """For each chunk that was chosen, and each key element (``chunk:…``, ``element:…``), what led to it."""
    actions: list[ActionRecord]
    refused: dict[str, int]
    """How many ``elements``, ``chunks`` and ``citations`` were invented."""
    malformed: int
    failed: int
    """How many of the last steps in a row got nothing but malformed output."""
    steps: int
    prompt_tokens: int
    output_tokens: int
    seconds: float
    stopped: str
    """The budget that ended the exploration: ``steps``, ``tokens``, ``seconds``, or empty."""
    room: int
    """Characters of passages that a prompt may have; fewer once one was too long."""
    next: str
    """The node to go to."""
    outcome: str
    statements: list[dict[str, Any]]


def begin_reading(question: str) -> Reading:
    """Return the state in which a reading begins: all other values are empty."""
    empty = {name: (get_origin(kind) or kind)() for name, kind in get_type_hints(Reading).items()}
    return cast("Reading", {**empty, "question": question, "next": "begin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The budget of a reading. When it is used up, the answer is written from what was read.

    Args:
        steps: The most calls of the model, the answer's and repeated ones included; default 40.
        tokens: No call is made whose prompt, with that of the answer, would exceed this; None, no limit. The
            answer's prompt leaves out the oldest notes if it must, and is not sent if it still exceeds it.
            Outputs are counted once they are there, so that the last ones may exceed it.
        seconds: Seconds of work after which no call is waited for; a fifth of them is kept for the answer.
            None, no limit.

    Raises:
        StrategyError: If a limit is not positive.
    """

    steps: int = DEFAULT_STEPS
    tokens: int | None = None
    seconds: float | None = None

    def seconds_for(self, *, last: bool) -> float:
        """Return after how many seconds calls end: the answer's, or all others."""
        whole = math.inf if self.seconds is None else self.seconds
        return whole if last else whole * (1 - ANSWER_SHARE)

    def __post_init__(self) -> None:
        require_at_least(1, steps=self.steps)
        if self.tokens is not None:
            require_at_least(1, tokens=self.tokens)
        if self.seconds is not None and not self.seconds > 0:
            raise StrategyError(f"seconds must be a number above 0, not {self.seconds!r}")


LONGEST_STATEMENT: Final = 600
"""Characters of a statement."""
MOST_SEARCHES: Final = 4
LONGEST_TEXT: Final = 10_000
"""Characters of a text. A longer one is malformed: all prompts that follow would carry it."""


class Action(BaseModel):
    """Structured output of one step.

    A text of more than 10,000 characters is malformed, and one with a NUL character or a lone surrogate.
    """

    @field_validator("*")
    @classmethod
    def _check_texts(cls, value: object) -> object:
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and len(text) > LONGEST_TEXT:
                raise ValueError(f"a text has {len(text):,} characters; write at most {LONGEST_TEXT:,}")
            if isinstance(text, str) and not is_text(text):
                raise ValueError("a text has a NUL character or a lone surrogate")
        return value


class CitedStatement(Action):
    """A sentence of the answer, and what it rests on."""

    text: str = Field(max_length=LONGEST_STATEMENT, description="One or two sentences.")
    passages: list[str] = Field(
        default_factory=list,
        max_length=4,
        json_schema_extra={"minItems": 1},
        description="The numbers of the passages that say so; at least one.",
    )


class CitedAnswer(Action):
    """The answer as far as the passages have it, and what they lack."""

    statements: list[CitedStatement] = Field(
        default_factory=list,
        max_length=5,
        description="The answer, the direct answer first; empty if the passages do not have it.",
    )
    search: list[str] = Field(
        default_factory=list,
        max_length=MOST_SEARCHES,
        description="If not answered: short searches, of names and keywords, for what is missing.",
    )
    answered: bool = Field(
        default=False, description="True if the statements are the whole answer, else false."
    )


class Decision(Action):
    """What the passages say, and what to do next."""

    notes: str = Field(
        default="",
        description="What the passages just read say that helps, in a sentence or two, with their numbers;"
        " empty if nothing.",
    )
    finished: bool = Field(
        default=False,
        description="True if notes and passages answer the question, or nothing promises what is missing.",
    )
    statements: list[CitedStatement] = Field(
        default_factory=list,
        max_length=5,
        description="If finished: the answer, the direct answer first; empty if the passages do not have it.",
    )
    read: list[str] = Field(
        default_factory=list,
        max_length=8,
        description="If not finished: numbers of unread passages to read next, the best first.",
    )
    sure: bool = Field(
        default=False, description="True if those to read certainly have what is missing. Else more are read."
    )
    key_elements: list[str] = Field(
        default_factory=list,
        max_length=8,
        description="If not finished: key elements of the list whose facts you want to see.",
    )
    search: list[str] = Field(
        default_factory=list,
        max_length=MOST_SEARCHES,
        description="If not finished: short searches, of names and keywords, for what the lists lack.",
    )
