"""The state of a reading, what the model can decide, and the answer with its citations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict

from pydantic import BaseModel, ConfigDict, Field, field_validator

from linkstore.agents.facts import is_text
from linkstore.core.arguments import require_at_least
from linkstore.core.display import escape_unprintable, format_count
from linkstore.errors import StrategyError
from linkstore.strategies.drawing import Box, Drawing, Line, draw_picture

DEFAULT_STEPS: Final = 40
ANSWER_SHARE: Final = 0.2
"""The part of the seconds that is kept for the answer."""


class ActionRecord(TypedDict):
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


class ChunkSource(TypedDict):
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
    """Every element and chunk that was ever queued, as an :class:`ActionRecord`; none is queued again."""
    explored: list[str]
    read: list[str]
    citable: dict[str, ChunkSource]
    """Chunks that were read."""
    searched: dict[str, list[str]]
    """The ids that were shown, for each query."""
    query: str
    """The text to search for next; empty for the question."""
    actions: list[ActionRecord]
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


def begin_reading(question: str) -> Reading:
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


LONGEST_TEXT: Final = 10_000
"""Characters of a text. A longer one is malformed: all prompts that follow would carry it."""
_NOTES = "What this adds to the notebook, with the ids in brackets that it comes from; empty if nothing."
_WHY = "Why, in one sentence."


def _remove_defaults(schema: dict[str, Any]) -> None:
    """Leave defaults out of a JSON schema: strict structured output of some providers refuses them."""
    for described in schema.get("properties", {}).values():
        described.pop("default", None)


class Action(BaseModel):
    """Structured output of one step.

    A text of more than 10,000 characters is malformed, and one with a NUL character or a lone surrogate.
    """

    model_config = ConfigDict(json_schema_extra=_remove_defaults)

    @field_validator("*")
    @classmethod
    def _check_text(cls, value: object) -> object:
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise ValueError(f"a text has {len(value):,} characters; write at most {LONGEST_TEXT:,}")
        if isinstance(value, str) and not is_text(value):
            raise ValueError("a text has a NUL character or a lone surrogate")
        return value


class RationalPlan(Action):
    """How to answer the question, step by step."""

    plan: str = Field(description="The steps to the answer, and the key information that each one needs.")


class ScoredElement(Action):
    """A key element and how much it promises."""

    key_element: str = Field(description="Exactly as it is listed.")
    score: int = Field(ge=0, le=100, description="From 0, unrelated, to 100, surely needed.")


class InitialElements(Action):
    """The key elements to start from."""

    elements: list[ScoredElement] = Field(description="The best first; at least 10 if so many are listed.")


class FactsAction(Action):
    """The next action after reading the facts of a key element."""

    notes: str = Field(default="", description=_NOTES)
    reason: str = Field(default="", description=_WHY)
    action: Literal["read_chunk", "stop_and_read_neighbor"] = Field(
        description="read_chunk: read passages that the facts come from;"
        " stop_and_read_neighbor: no fact helps, go on to neighbours."
    )
    chunk_ids: list[str] = Field(default_factory=list, description="For read_chunk: ids, the best first.")


class ChunkAction(Action):
    """The next action after reading a passage."""

    notes: str = Field(default="", description=_NOTES)
    reason: str = Field(default="", description=_WHY)
    action: Literal[
        "search_more", "read_previous_chunk", "read_subsequent_chunk", "read_neighbors", "termination"
    ] = Field(
        description="search_more: read the next passage in the queue, or search;"
        " read_previous_chunk, read_subsequent_chunk: the one before or after on its page;"
        " read_neighbors: see what it links to;"
        " termination: the notebook answers the question."
    )
    query: str = Field(default="", description="For search_more: what to search for; empty, the question.")


class NeighbourAction(Action):
    """The neighbours to continue with."""

    reason: str = Field(default="", description=_WHY)
    action: Literal["read_neighbor_node", "read_chunk", "termination"] = Field(
        description="read_neighbor_node: explore a key element; read_chunk: read linked passages;"
        " termination: none of them helps."
    )
    key_element: str = Field(default="", description="For read_neighbor_node: exactly as it is listed.")
    chunk_ids: list[str] = Field(default_factory=list, description="For read_chunk: ids, the best first.")


class SearchAction(Action):
    """The results of a search to read."""

    reason: str = Field(default="", description=_WHY)
    action: Literal["read_chunk", "termination"] = Field(
        description="read_chunk: read passages; termination: none of them helps."
    )
    chunk_ids: list[str] = Field(default_factory=list, description="For read_chunk: ids, the best first.")


class CitedStatement(Action):
    """A sentence of the answer, and what it rests on."""

    text: str = Field(description="One or two sentences.")
    chunk_ids: list[str] = Field(description="Ids of the passages that say so; at least one.")


class FinalAnswer(Action):
    """The answer to the question."""

    analysis: str = Field(default="", description="How the notes answer the question, or what is missing.")
    in_sources: bool = Field(description="False if what was read does not answer the question.")
    statements: list[CitedStatement] = Field(
        default_factory=list, description="The answer, the direct answer first; empty if not in the sources."
    )


_NO_ANSWER: Final = {
    "not in the sources": "The sources do not answer this.",
    "unsupported": "No statement of the model's answer cites what was read.",
    "out of budget": "The budget was used up before an answer was written.",
    "": "The reading has not ended.",
}


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
class Statement:
    """A part of an answer.

    Args:
        text: One or two sentences.
        citations: The chunks that say so; at least one.
    """

    text: str
    citations: tuple[Citation, ...]

    def __str__(self) -> str:
        return f"{self.text} [{', '.join(one.id for one in self.citations)}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a reading.

    Args:
        question: As it was asked.
        outcome: ``answered``; ``not in the sources``; ``unsupported``, if no statement of the model cites
            what was read; ``out of budget``, if it leaves no room for the answer; empty while a reading is
            not at its end.
        statements: The answer, each part with what it rests on; empty unless it is ``answered``.
        stopped: The budget that ended the exploration early: ``steps``, ``tokens``, ``seconds``, or empty.
            The statements are then the best answer from what was read.
        analysis: How the notes answer the question, or what is missing.
        plan: The plan.
        notebook: The notes, in order.
        explored: Key elements whose facts were read, in order.
        read: Ids of the chunks that were read, in order.
        actions: All actions, in order.
        refused: How many ``elements``, ``chunks`` and ``citations`` the model invented.
        malformed: How many outputs of the model were malformed.
        steps: Calls of the model.
        tokens: Tokens of prompts and outputs.
        seconds: Of work.
    """

    question: str
    outcome: str
    statements: tuple[Statement, ...] = ()
    stopped: str = ""
    analysis: str = ""
    plan: str = ""
    notebook: tuple[str, ...] = ()
    explored: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    actions: tuple[ActionRecord, ...] = ()
    refused: Mapping[str, int] = field(default_factory=dict)
    malformed: int = 0
    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """The answer in words, without its citations, or what is missing if there is none."""
        said = " ".join(one.text for one in self.statements)
        return said or _NO_ANSWER.get(self.outcome, self.outcome)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """All citations, each once, in order."""
        return tuple({one.id: one for statement in self.statements for one in statement.citations}.values())

    def explain(self) -> str:
        """Return a readable report: the plan, each action, the notes, and the answer with its citations."""
        lines = [f"question: {self.question}", f"plan: {self.plan or 'none'}"]
        lines += [f"{number:>3}. {one['step']}: {one['said']}" for number, one in enumerate(self.actions, 1)]
        lines += [f"note: {note}" for note in self.notebook]
        lines += [f"stopped: the budget of {self.stopped} was used up"] if self.stopped else []
        lines += [
            f"refused: {count} {sort} that were not shown" for sort, count in sorted(self.refused.items())
        ]
        lines += (
            [f"malformed: {format_count(self.malformed, 'output')} of the model"] if self.malformed else []
        )
        lines.append(
            f"{self.outcome or 'not ended'}: {format_count(self.steps, 'call')}, "
            f"{format_count(self.tokens, 'token')}"
        )
        lines += [f"  {statement}" for statement in self.statements] or [f"  {self.text}"]
        lines += [f"  {one}, {one.title}" if one.title else f"  {one}" for one in self.citations]
        return "\n".join(escape_unprintable(line) for line in lines)

    def __str__(self) -> str:
        return self.text


def make_answer(state: Reading) -> Answer:
    """Make the answer from the state of a reading, which may not be at its end."""
    citable = state["citable"]
    return Answer(
        question=state["question"],
        outcome=state["outcome"],
        statements=tuple(_make_statement(one, citable) for one in state["statements"]),
        stopped=state["stopped"],
        analysis=state["analysis"],
        plan=state["plan"],
        notebook=tuple(state["notebook"]),
        explored=tuple(state["explored"]),
        read=tuple(state["read"]),
        actions=tuple(state["actions"]),
        refused=dict(state["refused"]),
        malformed=state["malformed"],
        steps=state["steps"],
        tokens=state["tokens"],
        seconds=state["seconds"],
    )


def _make_statement(given: Mapping[str, Any], citable: Mapping[str, Any]) -> Statement:
    ids: list[str] = given["chunks"]
    return Statement(text=given["text"], citations=tuple(Citation(id=id, **citable[id]) for id in ids))


_QUESTION: Final = ""


def draw_reading(answer: Answer) -> Drawing:
    """Draw a reading: the question, the key elements explored and the chunks read, and what led to what.

    What the answer cites, and the ways to it, are marked.

    Args:
        answer: What the reader answered.

    Returns:
        The picture; ``_repr_svg_`` shows it in a notebook, ``save`` writes it.
    """
    visited = {*(f"element:{name}" for name in answer.explored), *(f"chunk:{id}" for id in answer.read)}
    came = _trace_origins(answer, visited)
    marked = _mark_ways(came, (f"chunk:{one.id}" for one in answer.citations))
    depth = {_QUESTION: 0}
    for one, before in came.items():
        depth[one] = depth.get(before, 0) + 1
    columns = [
        [one for one, at in depth.items() if at == column] for column in range(max(depth.values()) + 1)
    ]
    titles = {f"chunk:{one.id}": one.title for one in answer.citations}
    boxes = {one: _make_box(one, titles.get(one, ""), one in marked) for one in depth}
    boxes[_QUESTION] = Box(title=answer.question, kind="question")
    lines = [
        Line(start=before, end=one, kind="led to", marked=one in marked, label="")
        for one, before in came.items()
    ]
    return Drawing(draw_picture(columns, boxes, lines))


def _trace_origins(answer: Answer, visited: set[str]) -> dict[str, str]:
    """Return what led to each explored element and each chunk read, in order."""
    came: dict[str, str] = {}
    for done in answer.actions:
        for one in done["to"] if done["step"] != "answer" else ():
            if one in visited:
                before = done["of"]
                came.setdefault(one, before if before in came else _QUESTION)
    return came


def _mark_ways(came: dict[str, str], cited: Iterable[str]) -> set[str]:
    """Return the cited chunks that were read, and everything on the ways to them."""
    marked: set[str] = set()
    for one in cited:
        at = one
        while at in came and at not in marked:
            marked.add(at)
            at = came[at]
    return marked


def _make_box(one: str, title: str, marked: bool) -> Box:
    sort, _, name = one.partition(":")
    kind = "path" if marked else "hit"
    if sort == "element":
        return Box(title=name, below="key element", kind=kind)
    return Box(title=title or name, below=name if title else "passage", kind=kind)
