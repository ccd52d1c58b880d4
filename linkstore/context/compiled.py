"""A compiled context: its text, its documents, and the bill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from linkstore.context.framing import as_data
from linkstore.display import amount, as_html, in_percent, printable
from linkstore.hits import HIT_KEY, Path

Role = Literal["pinned", "found", "required"]
"""Why a document is in a context: it is always in, it was found, or a document that was found requires it."""
_METHODS: Final = {
    "rank": "by rank",
    "exact": "exact knapsack",
    "greedy": "greedy knapsack",
}
_LISTED: Final = 20
"""Maximum number of left-out documents that are listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A document in a context.

    Args:
        document: As stored.
        text: What it adds to the text of the context: without its separator, and without what the document
            before it says already.
        role: Why it is there.
        cost: Its length in tokens with header and separator, before joining.
        value: What it is worth; for the default the probability that it is evidence.
        strength: Its strength as a memory, from 0 to 1.
        score: Of the search; 0 for documents that were not found.
        similarity: To the question, in [-1, 1]; 0 for documents that were not found.
        rank: Its place among the hits, from 1; None if it was not found.
        source: Its URL, else its page, else its id.
        path: How the search reached it; empty if it was not found.
        repeats: Ids of documents that say the same, which were left out in its favour.
    """

    document: Document
    text: str
    role: Role
    cost: int
    value: float
    strength: float
    score: float
    similarity: float
    rank: int | None
    source: str
    path: Path
    repeats: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The id of the document."""
        return str(self.document.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the item as plain JSON."""
        return {
            "id": self.id,
            "source": self.source,
            "role": self.role,
            "cost": self.cost,
            "value": self.value,
            "strength": self.strength,
            "score": self.score,
            "similarity": self.similarity,
            "rank": self.rank,
            "path": [step.to_dict() for step in self.path],
            "repeats": list(self.repeats),
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A candidate that is not in a context.

    Args:
        id: Its id.
        cost: Its length in tokens with header and separator.
        value: What it is worth.
        rank: Its place among the hits, from 1.
        reason: Why it was left out.
    """

    id: str
    cost: int
    value: float
    rank: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A context that fits its budget, in the order in which it is to be read.

    Args:
        question: What was asked.
        text: The context.
        tokens: The length of ``text``, counted by the tokenizer; with its frame, if the compiler has one.
        budget: The most that ``tokens`` may be.
        tokenizer: The name of the tokenizer.
        items: The documents, in their order in ``text``.
        left_out: Candidates that were not taken, best ranked first.
        value: The sum of the items' values without those that are pinned.
        gap: How far the value of a greedy selection may lie below the best, as a share of the best; 0 for
            others.
        method: How the documents were selected: ``"rank"``, ``"exact"`` or ``"greedy"``.
        order: How they were ordered.
        notes: What else there is to know, such as requirements that lead nowhere, and times that cannot be
            read.
        reason: Why the context is empty; None if it is not.
    """

    question: str
    text: str
    tokens: int
    budget: int
    tokenizer: str
    items: tuple[Item, ...]
    left_out: tuple[LeftOut, ...]
    value: float
    gap: float
    method: str
    order: str
    notes: tuple[str, ...] = ()
    reason: str | None = None

    @property
    def documents(self) -> list[Document]:
        """Copies of the documents in their order, with their items' fields in ``metadata["linkstore"]``."""
        return [_with_item(item) for item in self.items]

    def messages(self) -> list[BaseMessage]:
        """Return the context as a system message, if there is any, and the question as the user's.

        The system message has the context in a frame, which no text in it can end, below the sentence that it
        is data. ``budget`` is for ``text``, without these.
        """
        asked: list[BaseMessage] = [HumanMessage(self.question)]
        return [SystemMessage(as_data(self.text)), *asked] if self.text else asked

    def explain(self) -> str:
        """Return the bill: what was taken at what cost, what was left out, and why."""
        lines = [self._summarize()]
        if self.reason:
            lines.append(f"empty: {self.reason}")
        for item in self.items:
            rank = "" if item.rank is None else f"  rank {item.rank}"
            strength = "" if item.strength == 1 else f"  strength {item.strength:.2f}"
            lines.append(
                f"{item.cost:>6}  {printable(item.id)}  {item.role}{rank}  value {item.value:.3f}{strength}"
            )
            lines += [f"        same as {printable(name)}" for name in item.repeats]
            if len(item.path) > 1:
                lines.append(f"        {printable(str(item.path))}")
        if self.left_out:
            lines.append(f"left out: {len(self.left_out)}")
        lines += [f"{one.cost:>6}  {printable(one.id)}  {_placed(one)}" for one in self.left_out[:_LISTED]]
        if len(self.left_out) > _LISTED:
            lines.append(f"        and {len(self.left_out) - _LISTED} more")
        return "\n".join([*lines, *(f"note: {printable(note)}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the context as plain JSON."""
        return {
            "question": self.question,
            "text": self.text,
            "tokens": self.tokens,
            "budget": self.budget,
            "tokenizer": self.tokenizer,
            "method": self.method,
            "order": self.order,
            "value": self.value,
            "gap": self.gap,
            "items": [item.to_dict() for item in self.items],
            "left_out": [asdict(one) for one in self.left_out],
            "notes": list(self.notes),
            "reason": self.reason,
        }

    def _summarize(self) -> str:
        gap = f", at most {in_percent(self.gap)} below the best" if self.gap else ""
        documents = amount(len(self.items), "document")
        return (
            f"{self.tokens} of {self.budget} tokens ({self.tokenizer}), {documents},"
            f" selected {_METHODS[self.method]}{gap}, ordered by {self.order}"
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Compiled {self._summarize()}>"

    def _repr_html_(self) -> str:
        """Return the bill for a notebook."""
        return f"<pre>{'<br>'.join(as_html(line) for line in self.explain().splitlines())}</pre>"


def _placed(one: LeftOut) -> str:
    rank = "" if one.rank is None else f"rank {one.rank}  "
    return f"{rank}value {one.value:.3f}  {printable(one.reason)}"


def _with_item(item: Item) -> Document:
    found: Mapping[str, Any] = {name: value for name, value in item.to_dict().items() if name != "text"}
    metadata = {**item.document.metadata, HIT_KEY: dict(found)}
    return item.document.model_copy(update={"metadata": metadata})
