"""The state of a reading, its budget, and what the model may say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypedDict, cast, get_origin, get_type_hints

from pydantic import BaseModel, Field, field_validator

from linkstore.agents.facts import is_text
from linkstore.core.arguments import require_at_least
from linkstore.errors import StrategyError

DEFAULT_STEPS: Final = 8


class ActionRecord(TypedDict):
    """An action of a reading.

    Keys: ``action``, what was decided, empty where something is only looked up; ``to``, the ids that it led
    to; ``text``, the action in words.
    """

    action: str
    to: list[str]
    text: str


class ChunkSource(TypedDict):
    """A chunk that was read: ``url`` with fragment, and ``title``; either may be empty."""

    url: str
    title: str


class ReadingCandidate(TypedDict):
    """A passage that may be read next.

    Keys: ``score``, higher for one that was near the top of a list, or in several; ``of``, the chunk whose
    link led to it, empty for a search; ``how``, that link in words; ``facts``, those of it that were found.
    """

    score: float
    of: str
    how: str
    facts: list[str]


class ReadingStatement(TypedDict):
    """A statement of the notes, or of the answer: its ``text``, and the ``chunks`` that it cites."""

    text: str
    chunks: list[str]


class Reading(TypedDict):
    """The state of a reading."""

    question: str
    notes: list[ReadingStatement]
    """What was found out, as long as it is not the whole answer."""
    queries: list[str]
    """What to search for."""
    wanted: list[str]
    """Chunks that the model chose to read next, in order."""
    candidates: dict[str, ReadingCandidate]
    """What may be read, by id."""
    shown: list[str]
    """The chunks that the model was shown; to it, the first is P1."""
    searched: list[str]
    read: list[str]
    citable: dict[str, ChunkSource]
    """Chunks that were read."""
    ways: dict[str, str]
    """For each chunk that was read, the chunk whose link led to it, or an empty string."""
    actions: list[ActionRecord]
    refused: dict[str, int]
    """How many ``chunks`` and ``citations`` were invented, and ``statements`` not supported."""
    malformed: int
    steps: int
    prompt_tokens: int
    output_tokens: int
    seconds: float
    stopped: str
    """The budget that ended the reading: ``steps``, ``tokens``, ``seconds``, or empty."""
    room: int
    """Characters of passages that a prompt may have; fewer once one was too long."""
    outcome: str
    """Empty until the reading ends."""
    statements: list[ReadingStatement]


def begin_reading(question: str) -> Reading:
    """Return the state in which a reading begins: all values but the question are empty."""
    empty = {name: (get_origin(kind) or kind)() for name, kind in get_type_hints(Reading).items()}
    return cast("Reading", {**empty, "question": question, "queries": [question]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The budget of a reading. When it is used up, the answer is what was found out until then.

    Args:
        steps: The most calls of the model, repeated ones included; default 8.
        tokens: No call is made whose prompt would exceed this, None: no limit. Outputs are counted once they
            are there, so the last one may exceed it.
        seconds: Seconds of work after which no call is waited for; None, no limit.

    Raises:
        StrategyError: If a limit is not positive.
    """

    steps: int = DEFAULT_STEPS
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        require_at_least(1, steps=self.steps)
        if self.tokens is not None:
            require_at_least(1, tokens=self.tokens)
        if self.seconds is not None and not self.seconds > 0:
            raise StrategyError(f"seconds must be a number above 0, not {self.seconds!r}")


LONGEST_STATEMENT: Final = 600
"""Characters of a statement."""
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

    text: str = Field(
        max_length=LONGEST_STATEMENT,
        description="The name, number, date or short phrase that answers; sentences only where needed.",
    )
    passages: list[str] = Field(
        default_factory=list,
        max_length=4,
        json_schema_extra={"minItems": 1},
        description="The numbers of the passages that say so; at least one.",
    )


class CitedReply(Action):
    """What the passages say to the question, and what they lack."""

    statements: list[CitedStatement] = Field(
        default_factory=list,
        max_length=5,
        description="The direct answer, each part of it; empty if the passages do not have it.",
    )
    answered: bool = Field(
        default=False, description="True if the statements are the whole answer, else false."
    )
    read: list[str] = Field(
        default_factory=list,
        max_length=5,
        description="If not answered: numbers of unread passages to read next, the best first.",
    )
    search: list[str] = Field(
        default_factory=list,
        max_length=3,
        description="If not answered: short searches, of names and keywords, for what is missing.",
    )
