"""Fits what was recalled into a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from linkstore.context import Compiled, ContextCompiler, counter_of
from linkstore.errors import BudgetError
from linkstore.hits import Hit, Hits
from linkstore.memory.recalled import Recall
from linkstore.plans import Operation, Plan
from linkstore.store import LinkStore
from linkstore.strategies import Question, Strategy
from linkstore.twins import Twin

CONVERSATION: Final = 0.5
"""The part of the budget that the conversation may take where there is knowledge as well."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Given(Strategy):
    """Returns hits that were found before, for a compiler to choose from."""

    found: tuple[Hit, ...]

    def plan(self, question: Question) -> Plan[Hits]:
        """Return the hits without a fetch."""
        yield from ()
        return Hits(hits=self.found[: self.k], strategy="given")


def within_budget(
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
    share = budget if knowledge is None or not pool else int(budget * CONVERSATION)
    fitting = next((one for one in _shorter(bare) if cost(one) <= share), None)
    least = fitting or list(_shorter(bare))[-1]
    if cost(least) > budget:
        raise BudgetError(
            f"the question alone has {cost(least)} tokens, {cost(least) - budget} more than the budget of"
            f" {budget}; raise the budget, or ask in fewer words"
        )
    if knowledge is None or not pool:
        return least
    compiler = ContextCompiler(knowledge, budget=budget, strategy=Given(found=pool, k=len(pool)))
    whole = compiler.framed_by(least.prompt_with)
    compiled: Compiled = yield Twin(whole.compile, whole.acompile, (recall.resolved,))
    within = {item.document.id for item in compiled.items}
    chunks = tuple(hit for hit in pool if hit.document.id in within)
    return replace(least, chunks=chunks, compiled=compiled)


def _shorter(recall: Recall) -> Iterator[Recall]:
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
