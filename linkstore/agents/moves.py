"""One step of a reading: its prompt, its changes to the state, and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from linkstore.agents.asking import Spent, corrected
from linkstore.agents.facts import place_of
from linkstore.agents.sources import Sources
from linkstore.agents.state import Done, Reading, Source
from linkstore.agents.structured import Malformed
from linkstore.errors import LinkError
from linkstore.plans import Operation
from linkstore.variants import normalized

Output = TypeVar("Output", bound=BaseModel)
_TRIES: Final = 2
"""Output that is malformed is asked for once more."""
_FAILED: Final = 2
"""After so many steps in a row with malformed output alone, only the answer is asked for."""


class Move:
    """The changes of a step to the state.

    Args:
        sources: What is read, and who is asked.
        state: Before the step.
        step: Its name.
        of: What it looks at, in the form of :class:`~linkstore.agents.state.Done`.
    """

    def __init__(self, sources: Sources, state: Reading, step: str, of: str) -> None:
        self._sources, self._state = sources, state
        self._step = step
        self.of = of
        self._spent = Spent()
        self._change: dict[str, Any] = {}
        self.stopped = ""
        self.problem = ""

    def asked(
        self, schema: type[Output], messages: Sequence[BaseMessage], *, last: bool = False
    ) -> Operation[Output | None]:
        """Return the model's decision, or None if the budget is used up or its output was malformed twice.

        Args:
            schema: What it may say.
            messages: What it is asked.
            last: Whether this is the last call of a reading, for which the budget has left room.
        """
        request, asker, state = messages, self._sources.asker, self._state
        closing = None if last else self._sources.closing(state)
        for _ in range(_TRIES):
            self.stopped = asker.exceeded(state, self._spent, request, closing)
            if self.stopped:
                return None
            output: Output | Malformed | None = yield from asker.asked(
                state, self._spent, schema, request, last=last
            )
            if output is None:
                self.stopped = "seconds"
                return None
            if not isinstance(output, Malformed):
                self.set(failed=0)
                return output
            self.problem = output.problem
            request = corrected(messages, output.problem)
        self.set(failed=state["failed"] + 1)
        return None

    def fits(self, messages: Sequence[BaseMessage]) -> bool:
        """Say whether these messages fit into the budget of tokens as the last call."""
        return self._sources.asker.exceeded(self._state, self._spent, messages, None) != "tokens"

    def now(self, key: str) -> Any:
        """Return a value of the state, as this step has changed it."""
        return self._change.get(key, self._state.get(key))

    def set(self, **values: Any) -> None:
        """Change values of the state."""
        self._change |= values

    def note(self, text: str) -> None:
        """Write into the notebook."""
        if text.strip():
            self.set(notebook=[*self.now("notebook"), text.strip()])

    def known(self, sort: str, wanted: Iterable[str], shown: Mapping[str, str]) -> list[str]:
        """Return the names that were shown to the model, and count the others as refused.

        Args:
            sort: ``elements`` or ``chunks``.
            wanted: As the model wrote them.
            shown: The names that were shown, by their normal form.
        """
        found: dict[str, None] = {}
        refused = 0
        for name in wanted:
            key = shown.get(name) or shown.get(_normal(sort, name))
            if key is None:
                refused += 1
            else:
                found[key] = None
        if refused:
            counts = dict(self.now("refused"))
            self.set(refused={**counts, sort: counts.get(sort, 0) + refused})
        return list(found)

    def queue_elements(self, names: Sequence[str], *, first: bool = False) -> list[str]:
        """Queue key elements that were never queued, and return them."""
        return self._queue("elements", "element", names, first)

    def queue_chunks(self, ids: Sequence[str], *, first: bool = False) -> list[str]:
        """Queue chunks that were never queued, and return them."""
        return self._queue("chunks", "chunk", ids, first)

    def _queue(self, queue: str, sort: str, names: Sequence[str], first: bool) -> list[str]:
        ever: list[str] = self.now("queued")
        fresh = [name for name in dict.fromkeys(names) if f"{sort}:{name}" not in ever]
        if fresh:
            waiting = self.now(queue)
            self.set(queued=[*ever, *(f"{sort}:{name}" for name in fresh)])
            self.set(**{queue: [*fresh, *waiting] if first else [*waiting, *fresh]})
        return fresh

    def cite(self, chunks: Mapping[str, Mapping[str, Any]]) -> None:
        """Add chunks that may be cited from now on, with their metadata."""
        found = {id: _source(metadata) for id, metadata in chunks.items()}
        self.set(citable={**self.now("citable"), **found})

    def did(self, action: str, to: list[str], said: str) -> None:
        """Record the action."""
        names = ", ".join(one.partition(":")[2] for one in to)
        led = f"{said}: {action} {names}".rstrip()
        done = Done(step=self._step, of=self.of, action=action, to=to, said=led)
        self.set(actions=[*self.now("actions"), done])

    def to(self, step: str) -> dict[str, Any]:
        """Return the change of the state, with the step that follows.

        The answer follows if the budget is used up, or the model gives nothing that can be used.
        """
        if self.stopped or self.now("failed") >= _FAILED:
            return self.answer()
        return {**self._change, **self._spent.added(self._state), "next": step}

    def answer(self) -> dict[str, Any]:
        """Return the change of the state that leads to the answer."""
        change = {**self._change, **self._spent.added(self._state), "next": "answer"}
        return {**change, "stopped": self.stopped} if self.stopped else change

    def ended(self) -> dict[str, Any]:
        """Return the change of the state that ends the reading."""
        change = {**self._change, **self._spent.added(self._state), "next": ""}
        return {**change, "stopped": self.stopped} if self.stopped else change


def after_chunks(move: Move) -> dict[str, Any]:
    """Choose the next step if the current passages do not help: the queue, or the answer."""
    if move.now("chunks"):
        return move.to("chunk")
    return move.to("facts") if move.now("elements") else move.answer()


def _normal(sort: str, name: str) -> str:
    if sort != "elements":
        return name.strip().removeprefix("[").removesuffix("]")
    try:
        return normalized(name)
    except LinkError:
        return name


def _source(metadata: Mapping[str, Any]) -> Source:
    url = metadata.get("url")
    return Source(url=url if isinstance(url, str) else "", title=", ".join(place_of(metadata)))
