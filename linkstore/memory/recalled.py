"""Recall: what a memory found for a question, fitted into a budget, with the parts of a prompt made of it.

Recall: what a memory found for a question, with the parts of a prompt made of it.

Fits what was recalled into a budget of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from linkstore.context.compiled import Compiled, counter_of, frame_parts
from linkstore.context.compiler import ContextCompiler
from linkstore.core.hits import Hit, Hits
from linkstore.core.plans import Operation, Plan
from linkstore.errors import BudgetError
from linkstore.memory.turns import Summary, Turn
from linkstore.store.linkstore import DualCall, LinkStore
from linkstore.strategies.base import Question, Strategy

EXCERPT_CHARACTERS: Final = 300
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
        return "\n".join([*parts, *map(format_turn, ordered)])

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
        return frame_parts(
            [
                ("conversation", self.conversation),
                ("knowledge", knowledge),
                ("question", self.query),
            ]
        )


def format_turn(turn: Turn) -> str:
    """Format a turn for a prompt: date, query and response, long ones cut."""
    line = f"[{turn.time:%Y-%m-%d %H:%M}] User: {_cut_excerpt(turn.query)}"
    return line if turn.response is None else f"{line}\nAssistant: {_cut_excerpt(turn.response)}"


def _cut_excerpt(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT_CHARACTERS else f"{flat[:EXCERPT_CHARACTERS]}…"


CONVERSATION_SHARE: Final = 0.5
"""The part of the budget that the conversation may take where there is knowledge as well."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GivenHits(Strategy):
    """Returns hits that were found before, for a compiler to choose from."""

    found: tuple[Hit, ...]

    def plan(self, question: Question) -> Plan[Hits]:
        """Return the hits without a fetch."""
        yield from ()
        return Hits(hits=self.found[: self.k], strategy="given")


def fit_budget(
    recall: Recall, budget: int, knowledge: LinkStore | None, pool: tuple[Hit, ...]
) -> Operation[Recall]:
    """Fit a recall's prompt into a budget: leave out turns, and let a compiler choose among the chunks.

    Args:
        recall: All that was found.
        budget: The most tokens that the prompt may have.
        knowledge: Where the chunks are from; None: there are none.
        pool: More chunks than those of the recall, best first.

    Raises:
        BudgetError: If the question alone exceeds the budget; the message says by how much.
    """
    counter = counter_of(None)

    def cost(one: Recall) -> int:
        return counter.count([one.prompt])[0]

    bare = replace(recall, chunks=(), compiled=None)
    share = budget if knowledge is None or not pool else int(budget * CONVERSATION_SHARE)
    fitting = next((one for one in _shorten_recall(bare) if cost(one) <= share), None)
    least = fitting or list(_shorten_recall(bare))[-1]
    if cost(least) > budget:
        raise BudgetError(
            f"the question alone has {cost(least)} tokens, {cost(least) - budget} more than the budget of"
            f" {budget}; raise the budget, or ask in fewer words"
        )
    if knowledge is None or not pool:
        return least
    compiler = ContextCompiler(knowledge, budget=budget, strategy=GivenHits(found=pool, k=len(pool)))
    whole = compiler.framed_by(least.prompt_with)
    compiled: Compiled = yield DualCall(whole.compile, whole.acompile, (recall.resolved,))
    within = {item.document.id for item in compiled.items}
    chunks = tuple(hit for hit in pool if hit.document.id in within)
    return replace(least, chunks=chunks, compiled=compiled)


def _shorten_recall(recall: Recall) -> Iterator[Recall]:
    """Yield the recall with ever less: without recalled turns from the last, summaries, the oldest turns."""
    yield recall
    turns, scores = recall.turns, recall.scores
    for end in range(len(turns) - 1, -1, -1):
        recall = replace(recall, turns=turns[:end], scores=scores[:end])
        yield recall
    for start in range(1, len(recall.summaries) + 1):
        yield replace(recall, summaries=recall.summaries[start:])
    recall = replace(recall, summaries=())
    for start in range(1, len(recall.recent) + 1):
        yield replace(recall, recent=recall.recent[start:])
    yield replace(recall, recent=(), entities=())
