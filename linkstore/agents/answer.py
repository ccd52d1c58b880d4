"""The result of a reading: the answer, what it cites, and how the reader came to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from linkstore.agents.state import Done, Reading
from linkstore.display import amount, printable

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
    actions: tuple[Done, ...] = ()
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
        lines += [f"malformed: {amount(self.malformed, 'output')} of the model"] if self.malformed else []
        lines.append(
            f"{self.outcome or 'not ended'}: {amount(self.steps, 'call')}, {amount(self.tokens, 'token')}"
        )
        lines += [f"  {statement}" for statement in self.statements] or [f"  {self.text}"]
        lines += [f"  {one}, {one.title}" if one.title else f"  {one}" for one in self.citations]
        return "\n".join(printable(line) for line in lines)

    def __str__(self) -> str:
        return self.text


def answer_of(state: Reading) -> Answer:
    """Make the answer from the state of a reading, which may not be at its end."""
    citable = state["citable"]
    return Answer(
        question=state["question"],
        outcome=state["outcome"],
        statements=tuple(_statement(one, citable) for one in state["statements"]),
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


def _statement(given: Mapping[str, Any], citable: Mapping[str, Any]) -> Statement:
    ids: list[str] = given["chunks"]
    return Statement(text=given["text"], citations=tuple(Citation(id=id, **citable[id]) for id in ids))
