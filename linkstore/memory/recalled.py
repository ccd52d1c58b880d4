"""Recall: what a memory found for a question, with the parts of a prompt made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from linkstore.context import Compiled
from linkstore.context.framing import framed
from linkstore.hits import Hit
from linkstore.memory.turns import Summary, Turn

EXCERPT: Final = 300
"""Characters of a turn's query or response that the conversation part of a prompt shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The result of a recall.

    Args:
        question: As it was asked.
        resolved: The question with its references resolved; the same text where it has none.
        entities: What the resolved question is about, most salient first.
        recent: The last turns of the session, in order.
        summaries: Of the latest closed topic segments of the session, in order.
        turns: The turns found for the question, best first.
        scores: The scores of ``turns``, in the same order.
        chunks: The documents of the knowledge store that were found, best first, with their paths.
        compiled: The context of the knowledge store within the token budget; None without a budget.
        reason: Why there is neither a turn nor a chunk; None if there is one.
    """

    question: str
    resolved: str
    entities: tuple[str, ...] = ()
    recent: tuple[Turn, ...] = ()
    summaries: tuple[Summary, ...] = ()
    turns: tuple[Turn, ...] = ()
    scores: tuple[float, ...] = ()
    chunks: tuple[Hit, ...] = ()
    compiled: Compiled | None = None
    reason: str | None = None

    @property
    def conversation(self) -> str:
        """The prompt part on the conversation: key entities, summaries, and turns by time, each once."""
        parts = []
        if self.entities:
            parts.append(f"Key entities: {', '.join(self.entities)}")
        parts += [f"Earlier: {summary.text}" for summary in self.summaries]
        said = {turn.id: turn for turn in (*self.turns, *self.recent)}
        ordered = sorted(said.values(), key=lambda turn: (turn.time, turn.order))
        return "\n".join([*parts, *map(shown_turn, ordered)])

    @property
    def knowledge(self) -> str:
        """The prompt part on what was retrieved: numbered chunks, or the compiled context."""
        if self.compiled is not None:
            return self.compiled.text
        return "\n\n".join(
            f"[{number}] {hit.document.page_content}" for number, hit in enumerate(self.chunks, 1)
        )

    @property
    def query(self) -> str:
        """The prompt part with what the user asks, as resolved where that differs."""
        if self.resolved == self.question:
            return self.question
        return f"{self.question}\n(meaning: {self.resolved})"

    @property
    def prompt(self) -> str:
        """All parts, each in a frame that no text can end, without those that are empty."""
        return self.prompt_with(self.knowledge)

    def prompt_with(self, knowledge: str) -> str:
        """Return the prompt with this as the part on what was retrieved."""
        return framed(
            [
                ("conversation", self.conversation),
                ("knowledge", knowledge),
                ("question", self.query),
            ]
        )


def shown_turn(turn: Turn) -> str:
    """Format a turn for a prompt: date, query and response, long ones cut."""
    line = f"[{turn.time:%Y-%m-%d %H:%M}] User: {_excerpt(turn.query)}"
    return line if turn.response is None else f"{line}\nAssistant: {_excerpt(turn.response)}"


def _excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else f"{flat[:EXCERPT]}…"
