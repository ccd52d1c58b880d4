"""The steps of a reading: plan, key elements, facts, passages, links, answer.

Each step is an operation: it asks stores and model, and returns the change of the state. The order of steps
follows GraphReader (S. Li et al., 2024, https://arxiv.org/abs/2406.14550), with these differences: a search
by the store's default strategy where the published system compares vectors; the author's links beside key
elements; a budget; and no step that reads a chunk, or explores a key element, twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, TypeVar

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from linkstore.agents.facts import FACT_SOURCE, make_chunk_url, read_place
from linkstore.agents.lookups import (
    MOST_FACTS,
    ElementFacts,
    LinkedChunk,
    find_beside_on_page,
    find_elements,
    find_facts,
    find_likely_elements,
    find_linked,
    rank_elements,
)
from linkstore.agents.model_calls import (
    ANSWER_PROMPT,
    CHUNK_PROMPT,
    ELEMENTS_PROMPT,
    FACTS_PROMPT,
    NEIGHBOURS_PROMPT,
    PLAN_PROMPT,
    SEARCH_PROMPT,
    MalformedOutput,
    ReadingSources,
    StepCost,
    add_correction,
    format_list,
    format_passage,
    make_prompt,
)
from linkstore.agents.state import (
    ActionRecord,
    ChunkAction,
    ChunkSource,
    FactsAction,
    FinalAnswer,
    InitialElements,
    NeighbourAction,
    RationalPlan,
    Reading,
    SearchAction,
    begin_reading,
)
from linkstore.context.compiled import frame_parts
from linkstore.core.calls import Call, call_plan
from linkstore.core.display import format_count, make_snippet
from linkstore.core.hits import Hits
from linkstore.core.lexical import extract_question_terms
from linkstore.core.plans import Operation, select_stored
from linkstore.errors import AgentError, LinkError
from linkstore.extract.names import normalize_name

Output = TypeVar("Output", bound=BaseModel)
_TRIES: Final = 2
"""Output that is malformed is asked for once more."""
_MOST_FAILURES: Final = 2
"""After so many steps in a row with malformed output alone, only the answer is asked for."""


class ReadingStep:
    """The changes of a step to the state.

    Args:
        sources: What is read, and who is asked.
        state: Before the step.
        step: Its name.
        of: What it looks at, in the form of :class:`~linkstore.agents.state.ActionRecord`.
    """

    def __init__(self, sources: ReadingSources, state: Reading, step: str, of: str) -> None:
        self._sources, self._state = sources, state
        self._step = step
        self.of = of
        self._spent = StepCost()
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
            output: Output | MalformedOutput | None = yield from asker.asked(
                state, self._spent, schema, request, last=last
            )
            if output is None:
                self.stopped = "seconds"
                return None
            if not isinstance(output, MalformedOutput):
                self.set(failed=0)
                return output
            self.problem = output.problem
            request = add_correction(messages, output.problem)
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
            key = shown.get(name) or shown.get(_normalize_shown(sort, name))
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
        found = {id: _make_source(metadata) for id, metadata in chunks.items()}
        self.set(citable={**self.now("citable"), **found})

    def did(self, action: str, to: list[str], said: str) -> None:
        """Record the action."""
        names = ", ".join(one.partition(":")[2] for one in to)
        led = f"{said}: {action} {names}".rstrip()
        done = ActionRecord(step=self._step, of=self.of, action=action, to=to, said=led)
        self.set(actions=[*self.now("actions"), done])

    def to(self, step: str) -> dict[str, Any]:
        """Return the change of the state, with the step that follows.

        The answer follows if the budget is used up, or the model gives nothing that can be used.
        """
        if self.stopped or self.now("failed") >= _MOST_FAILURES:
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


def choose_next_step(move: ReadingStep) -> dict[str, Any]:
    """Choose the next step if the current passages do not help: the queue, or the answer."""
    if move.now("chunks"):
        return move.to("chunk")
    return move.to("facts") if move.now("elements") else move.answer()


def _normalize_shown(sort: str, name: str) -> str:
    if sort != "elements":
        return name.strip().removeprefix("[").removesuffix("]")
    try:
        return normalize_name(name)
    except LinkError:
        return name


def _make_source(metadata: Mapping[str, Any]) -> ChunkSource:
    url = metadata.get("url")
    return ChunkSource(url=url if isinstance(url, str) else "", title=", ".join(read_place(metadata)))


SHOWN_ELEMENTS: Final = 50
"""Number of key elements shown to the model."""
CHOSEN_ELEMENTS: Final = 5
"""Number of them that are explored."""
SHOWN_FACTS: Final = 50
SHOWN_HITS: Final = 20
SNIPPET_CHARACTERS: Final = 300


def make_plan(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Plan how to answer, and forget what an earlier question on the same thread has left."""
    state = begin_reading(state["question"])
    yield from sources.vector(state["question"])  # refuses a blank question before the model is paid
    move = ReadingStep(sources, state, "plan", "")
    made = yield from move.asked(RationalPlan, make_prompt(PLAN_PROMPT, state))
    if made is not None:
        move.set(plan=made.plan)
    move.did("plan", [], "the question" if made is not None else "the question, without result")
    return {**state, **move.to("elements" if sources.facts is not None else "search")}


def choose_elements(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Choose the key elements to start from."""
    move = ReadingStep(sources, state, "elements", "")
    assert sources.facts is not None
    vector = yield from sources.vector(state["question"])
    words, _ = extract_question_terms(state["question"])
    names: list[str] = yield call_plan(
        sources.facts.backend, find_likely_elements(vector, words, SHOWN_ELEMENTS)
    )
    if not names:
        return move.to("search")
    made = yield from move.asked(
        InitialElements, make_prompt(ELEMENTS_PROMPT, state, format_list("Key elements:", names))
    )
    if move.stopped:
        return move.answer()
    best = [] if made is None else sorted(made.elements, key=lambda one: -one.score)
    wanted = [one.key_element for one in best] if made is not None else names[:CHOSEN_ELEMENTS]
    chosen = move.known("elements", wanted, {normalize_name(name): name for name in names})[:CHOSEN_ELEMENTS]
    queued = move.queue_elements(chosen)
    move.did(
        "start", [f"element:{name}" for name in queued], f"saw {format_count(len(names), 'key element')}"
    )
    return move.to("facts" if queued else "search")


def read_facts(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Read the facts of the next key element."""
    assert sources.facts is not None
    name, *left = state["elements"]
    move = ReadingStep(sources, state, "facts", f"element:{name}")
    vector = yield from sources.vector(state["question"])
    found: ElementFacts = yield call_plan(sources.facts.backend, find_facts(name, vector, SHOWN_FACTS))
    asked_for = list(dict.fromkeys(chunk for chunk, _ in found.facts))
    there: list[str] = yield call_plan(sources.store.backend, select_stored(asked_for))
    unread = [id for id in there if f"chunk:{id}" not in state["queued"]]
    shown = [f"[{chunk}] {text}" for chunk, text in found.facts if chunk in there]
    heading = f"Facts of {name!r}, {describe_count(len(found.facts), found.size)}:"
    made = None
    if shown:
        made = yield from move.asked(
            FactsAction, make_prompt(FACTS_PROMPT, state, format_list(heading, shown))
        )
    if move.stopped:
        return move.answer()
    move.set(elements=left, explored=[*state["explored"], name])
    move.note(made.notes if made is not None else "")
    wants = made is None or made.action == "read_chunk"
    wanted = list(made.chunk_ids) if made is not None else unread[:1]
    ids = move.queue_chunks(move.known("chunks", wanted, {id: id for id in there})) if wants else []
    said = f"read {describe_count(len(found.facts), found.size)} of {name!r}"
    move.did("read_chunk" if ids else "stop_and_read_neighbor", [f"chunk:{id}" for id in ids], said)
    return move.to("chunk" if ids else "neighbours")


def describe_count(shown: int, size: int) -> str:
    """Say how many facts are shown, of how many."""
    if size > MOST_FACTS:
        return f"which has more than {MOST_FACTS:,}, too many to rank"
    if shown < size:
        return f"the best {shown:,} of {size:,} facts"
    return "the only fact" if size == 1 else f"all {size:,} facts"


def search_passages(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Search by the default strategy, and choose what to read."""
    query = state["query"] or state["question"]
    move = ReadingStep(sources, state, "search", "")
    before = state["searched"].get(query, [])
    left_out = {*before, *(one.removeprefix("chunk:") for one in state["queued"])}
    hits: Hits = yield sources.search(query, SHOWN_HITS + len(left_out))
    fresh = [hit.document for hit in hits if hit.document.id not in left_out][:SHOWN_HITS]
    shown = [
        format_passage(one.id or "", one.metadata, make_snippet(one.page_content, query, SNIPPET_CHARACTERS))
        for one in fresh
    ]
    made = None
    if shown:
        request = make_prompt(SEARCH_PROMPT, state, format_list(f"Results for {query!r}:", shown))
        made = yield from move.asked(SearchAction, request)
    if move.stopped:
        return move.answer()
    names = [one.id or "" for one in fresh]
    move.set(query="", searched={**state["searched"], query: [*before, *names]})
    wanted = names[:1] if made is None else made.chunk_ids if made.action == "read_chunk" else []
    ids = move.queue_chunks(move.known("chunks", wanted, {id: id for id in names}))
    said = f"searched for {query!r}: {len(fresh)} new passages"
    move.did("read_chunk" if ids else "termination", [f"chunk:{id}" for id in ids], said)
    return move.to("chunk") if ids else choose_next_step(move)


_DIRECTIONS: Final = {"read_previous_chunk": "previous", "read_subsequent_chunk": "next"}
FACTS_OF_PASSAGE: Final = 1_000
"""Of a longer passage, the key elements of its first facts are shown."""
ANSWERED: Final = "answered"
NOT_IN_SOURCES: Final = "not in the sources"
UNSUPPORTED: Final = "unsupported"
OUT_OF_BUDGET: Final = "out of budget"


def read_chunk(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Read the next passage."""
    id, *left = state["chunks"]
    move = ReadingStep(sources, state, "chunk", f"chunk:{id}")
    store = sources.store
    found: list[Document] = yield Call(store.get_by_ids, store.aget_by_ids, ([id],))
    if not found:
        move.set(chunks=left)
        move.did("search_more", [], f"{id!r} is gone")
        return choose_next_step(move)
    shown = (
        f"Passage:\n{format_passage(id, found[0].metadata, frame_parts([('text', found[0].page_content)]))}"
    )
    made = yield from move.asked(ChunkAction, make_prompt(CHUNK_PROMPT, state, shown, _format_queue(left)))
    if move.stopped:
        return move.answer()
    move.set(chunks=left, read=[*state["read"], id])
    move.cite({id: found[0].metadata})
    move.note(made.notes if made is not None else "")
    return (yield from _act(sources, move, id, made))


def _format_queue(left: list[str]) -> str:
    return f"Queue: {', '.join(left)}" if left else "Queue: empty"


def _act(
    sources: ReadingSources, move: ReadingStep, id: str, made: ChunkAction | None
) -> Operation[dict[str, Any]]:
    """Take the action that the model wants."""
    action = "search_more" if made is None else made.action
    if action in _DIRECTIONS:
        vector = yield from sources.vector(move.now("question"))
        other: str | None = yield call_plan(
            sources.store.backend, find_beside_on_page(id, _DIRECTIONS[action], vector)
        )
        fresh = move.queue_chunks([other], first=True) if other is not None else []
        why = "" if fresh else (", which was queued before" if other is not None else ", and there is none")
        move.did(
            action,
            [f"chunk:{one}" for one in fresh],
            f"read {id!r}, wanted the {_DIRECTIONS[action]} one{why}",
        )
        return _read_on(move)
    move.did(action, [], f"read {id!r}")
    if action == "termination":
        return move.answer()
    if action == "read_neighbors":
        return move.to("neighbours")
    move.set(query=made.query.strip() if made is not None else "")
    return _read_on(move)


def _read_on(move: ReadingStep) -> dict[str, Any]:
    """Go on to the next passage in the queue, or to a search if there is none."""
    return move.to("chunk" if move.now("chunks") else "search")


def choose_neighbours(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Choose among neighbours of the key elements explored, and passages linked with those read."""
    of = f"chunk:{state['read'][-1]}" if state["read"] else f"element:{state['explored'][-1]}"
    last = state["actions"][-1]["of"] if state["actions"] else of
    move = ReadingStep(sources, state, "neighbours", last or of)
    names = yield from _find_elements_beside(sources, state)
    linked = yield from _find_linked_chunks(sources, state)
    question = state["question"]
    shown = []
    if names:
        shown.append(format_list("Key elements:", names))
    if linked:
        lines = (
            format_passage(one.id, one.metadata, make_snippet(one.text, question, SNIPPET_CHARACTERS))
            + f" (linked with {one.of} by {one.how})"
            for one in linked
        )
        shown.append(format_list("Linked passages:", lines))
    made = None
    if shown:
        made = yield from move.asked(NeighbourAction, make_prompt(NEIGHBOURS_PROMPT, state, *shown))
    if move.stopped:
        return move.answer()
    return _go_to_neighbour(move, made, names, {one.id: one.of for one in linked})


def _go_to_neighbour(
    move: ReadingStep, made: NeighbourAction | None, names: list[str], linked: dict[str, str]
) -> dict[str, Any]:
    """Go to the neighbour that the model wants.

    Args:
        move: The step.
        made: What the model wants.
        names: The key elements that were shown.
        linked: The passages that were shown, each with the one that it is linked with.
    """
    said = f"saw {format_count(len(names), 'key element')} and {format_count(len(linked), 'linked passage')}"
    if made is not None and made.action == "read_neighbor_node":
        named = move.known("elements", [made.key_element], {name: name for name in names})
        if move.queue_elements(named, first=True):
            move.did(made.action, [f"element:{name}" for name in named], said)
            return move.to("facts")
    if made is not None and made.action == "read_chunk":
        fresh = move.queue_chunks(move.known("chunks", made.chunk_ids, {id: id for id in linked}), first=True)
        if fresh:
            move.of = f"chunk:{linked[fresh[0]]}"
            move.did(made.action, [f"chunk:{id}" for id in fresh], said)
            return move.to("chunk")
    move.did("termination", [], said)
    queued = move.now("chunks") or move.now("elements")
    return choose_next_step(move) if queued else move.to("search")


def _find_elements_beside(sources: ReadingSources, state: Reading) -> Operation[list[str]]:
    """Return key elements that were not queued, the most similar to the question first.

    They come from facts of the last one explored, and from those of the last passage read, which may have
    been found by a link or a search.
    """
    facts = sources.facts
    if facts is None:
        return []
    vector = yield from sources.vector(state["question"])
    names: list[str] = []
    for name in state["explored"][-1:]:
        found: ElementFacts = yield call_plan(facts.backend, find_facts(name, vector, SHOWN_FACTS))
        names += found.beside
    pages = [make_chunk_url(id) for id in state["read"][-1:]]
    if pages:
        ids: dict[str, tuple[str, ...]] = yield Call(facts.page_ids, facts.apage_ids, (FACT_SOURCE, pages))
        own = tuple(islice(chain(*ids.values()), FACTS_OF_PASSAGE))
        names += yield call_plan(facts.backend, find_elements(own))
    fresh = [name for name in dict.fromkeys(names) if f"element:{name}" not in state["queued"]]
    best: list[str] = yield call_plan(facts.backend, rank_elements(fresh, vector, SHOWN_ELEMENTS))
    return best


def _find_linked_chunks(sources: ReadingSources, state: Reading) -> Operation[list[LinkedChunk]]:
    """Return passages linked with those read, the most similar to the question first."""
    if not state["read"]:
        return []
    vector = yield from sources.vector(state["question"])
    queued = [one.removeprefix("chunk:") for one in state["queued"] if one.startswith("chunk:")]
    plan = find_linked(state["read"], vector, queued, SHOWN_HITS)
    found: list[LinkedChunk] = yield call_plan(sources.store.backend, plan)
    return found


def make_closing_prompt(state: Reading) -> list[BaseMessage]:
    """Return the prompt of the answer."""
    lines = [f"[{id}] {one['title']}".rstrip() for id, one in state["citable"].items()]
    seen = format_list("Passages that were read:", lines) if lines else "Nothing was read."
    return make_prompt(ANSWER_PROMPT, state, seen)


def _shorten_closing_prompt(state: Reading) -> Iterator[list[BaseMessage]]:
    """Yield the prompt of the answer, then shorter ones: without actions and plan, then the oldest notes."""
    yield make_closing_prompt(state)
    notes = state["notebook"]
    for start in range(len(notes) + 1):
        yield make_closing_prompt({**state, "actions": [], "plan": "", "notebook": notes[start:]})


def write_answer(sources: ReadingSources, state: Reading) -> Operation[dict[str, Any]]:
    """Write the answer. Statements that cite nothing that was read are left out and counted."""
    move = ReadingStep(sources, state, "answer", "")
    request = next(filter(move.fits, _shorten_closing_prompt(state)), make_closing_prompt(state))
    made = yield from move.asked(FinalAnswer, request, last=True)
    if made is None and move.problem:
        raise AgentError(
            f"the model's answer was malformed twice: {move.problem}; with a checkpointer, invoke the reader"
            " with None and the same thread_id to ask for it again"
        )
    if made is None:
        move.set(outcome=OUT_OF_BUDGET)
        move.did(OUT_OF_BUDGET, [], f"the budget of {move.stopped} leaves no room for an answer")
        return move.ended()
    citable = {id: id for id in state["citable"]}
    kept, unsupported = [], 0
    for one in made.statements:
        ids = move.known("citations", one.chunk_ids, citable)
        if ids and one.text.strip():
            kept.append({"text": one.text.strip(), "chunks": ids})
        else:
            unsupported += 1
    outcome = ANSWERED if kept else UNSUPPORTED if unsupported and made.in_sources else NOT_IN_SOURCES
    if not made.in_sources:
        outcome, kept = NOT_IN_SOURCES, []
    move.set(outcome=outcome, analysis=made.analysis, statements=kept)
    cited = list(dict.fromkeys(f"chunk:{id}" for one in kept for id in one["chunks"]))
    move.did(outcome, cited, format_count(len(made.statements), "statement"))
    return move.ended()
