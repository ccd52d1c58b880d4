"""The state of a reading, its budget, and the answer that it becomes."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypedDict, cast, get_origin, get_type_hints

from linkstore.core.arguments import omit_none, require_at_least, require_positive
from linkstore.core.display import escape_unprintable, format_count

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

    Keys: ``score``, higher for one that was near the top of a list, or in several; ``how``, the link that led
    to it, in words, empty for a search; ``facts``, those of it that were found.
    """

    score: float
    how: str
    facts: list[str]


class ReadingStatement(TypedDict):
    """A finding, or a statement of the answer: its ``text``, and the ``chunks`` that it cites."""

    text: str
    chunks: list[str]


class Reading(TypedDict):
    """The state of a reading."""

    question: str
    findings: list[ReadingStatement]
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
    actions: list[ActionRecord]
    refused: int
    """How many statements were not supported."""
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
        require_at_least(1, **omit_none(steps=self.steps, tokens=self.tokens))
        require_positive(**omit_none(seconds=self.seconds))


ANSWERED: Final = "answered"
NOT_IN_SOURCES: Final = "not in the sources"
PARTLY: Final = "partly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A chunk that a statement rests on.

    Args:
        id: Of the chunk.
        url: Its URL with fragment; empty if it has none.
        title: Of its page, with the innermost heading; may be empty.
    """

    id: str
    url: str = ""
    title: str = ""

    def __str__(self) -> str:
        return self.id if self.url in ("", self.id) else f"{self.id} {self.url}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStatement:
    """A part of an answer.

    Args:
        text: One or two sentences.
        citations: The chunks that say so; at least one.
    """

    text: str
    citations: tuple[Citation, ...]

    def __str__(self) -> str:
        return f"{self.text} [{', '.join(citation.id for citation in self.citations)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a reading.

    Args:
        question: As it was asked.
        outcome: ``answered``; ``partly``, if something is missing; ``not in the sources``, if no statement is
            left that the passages which it cites can have said; empty while a reading is not at its end.
        statements: The answer, each part with what it rests on; empty if it is not in the sources. While a
            reading is not at its end, what was found out until now.
        stopped: The budget that ended the exploration early: ``steps``, ``tokens``, ``seconds``, or empty.
            The statements are then what was found out until then.
        searched: What was searched for, in order: the question first.
        shown: Ids of the chunks that the model was shown, whole or in part, in order; to it, the first is P1.
        read: Ids of the chunks that were read, in order.
        actions: All actions, in order.
        refused: How many statements cite nothing, or have names or numbers that what they cite lacks.
        malformed: How many outputs of the model were malformed.
        steps: Calls of the model.
        prompt_tokens: Tokens that were sent.
        output_tokens: Tokens of the model's outputs.
        seconds: Of work.
        reading: The state after the last step, with which a reader can go on. JSON can express it.
    """

    question: str
    outcome: str
    statements: tuple[AnswerStatement, ...] = ()
    stopped: str = ""
    searched: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    actions: tuple[ActionRecord, ...] = ()
    refused: int = 0
    malformed: int = 0
    steps: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    reading: Reading | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The answer in words, without its citations, or what is missing if there is none."""
        missing = "The sources do not answer this." if self.outcome else "The reading has not ended."
        return " ".join(statement.text for statement in self.statements) or missing

    @property
    def tokens(self) -> int:
        """Tokens of prompts and outputs."""
        return self.prompt_tokens + self.output_tokens

    def compute_cost(self, sent: float, received: float) -> float:
        """Return what the reading cost, at these prices of a million tokens."""
        return (self.prompt_tokens * sent + self.output_tokens * received) / 1e6

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations, each once, in order."""
        cited = (citation for statement in self.statements for citation in statement.citations)
        return tuple({citation.id: citation for citation in cited}.values())

    def explain(self) -> str:
        """Return a readable report: each action, and the answer with its citations."""
        lines = [f"question: {self.question}"]
        lines += [f"{number:>3}. {action['text']}" for number, action in enumerate(self.actions, 1)]
        lines += [f"P{self.shown.index(id) + 1}: {id}" for id in self.read]
        lines += [f"stopped: the budget of {self.stopped} was used up"] if self.stopped else []
        if self.refused:
            statements = format_count(self.refused, "statement")
            lines.append(f"refused: {statements} that what they cite does not support")
        if self.malformed:
            lines.append(f"malformed: {format_count(self.malformed, 'output')} of the model")
        calls, tokens = format_count(self.steps, "call"), format_count(self.tokens, "token")
        lines.append(f"{self.outcome or 'not ended'}: {calls}, {tokens}")
        lines += [f"  {statement}" for statement in self.statements] or [f"  {self.text}"]
        lines += ["  " + ", ".join(filter(None, (f"{own}", own.title))) for own in self.citations]
        return "\n".join(escape_unprintable(line) for line in lines)

    def __str__(self) -> str:
        return self.text


def make_answer(state: Reading) -> Answer:
    """Make the answer from the state of a reading, which may not be at its end."""
    values: dict[str, Any] = {
        field.name: tuple(of) if isinstance(of, list) else copy(of)
        for field in fields(Answer)
        if (of := state.get(field.name)) is not None
    }
    values["statements"] = tuple(
        AnswerStatement(
            text=statement["text"],
            citations=tuple(Citation(id=id, **state["citable"][id]) for id in statement["chunks"]),
        )
        for statement in state["statements"] or state["findings"]
    )
    return Answer(**values, reading=state)
