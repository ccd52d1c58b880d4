"""The steps of a reading at passages: read one, follow links, answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, Final

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from linkstore.agents.actions import ChunkAction, FinalAnswer, NeighbourAction
from linkstore.agents.exploring import (
    FactsOf,
    Linked,
    beside_on_page,
    elements_beside,
    elements_of,
    facts_of,
    linked_with,
)
from linkstore.agents.facts import FACTS, page_of_chunk
from linkstore.agents.moves import Move, after_chunks
from linkstore.agents.prompts import ANSWER, CHUNK, NEIGHBOURS, entry, listed, prompt
from linkstore.agents.sources import Sources
from linkstore.agents.state import Reading
from linkstore.agents.steps import LIKELY, SHOWN_FACTS, SHOWN_HITS, SNIPPET
from linkstore.context.framing import framed
from linkstore.display import amount
from linkstore.errors import AgentError
from linkstore.plans import Operation
from linkstore.snippet import snippet
from linkstore.twins import Twin, answered_by

_BESIDE: Final = {"read_previous_chunk": "previous", "read_subsequent_chunk": "next"}
FACTS_OF_PASSAGE: Final = 1_000
"""Of a longer passage, the key elements of its first facts are shown."""
ANSWERED: Final = "answered"
NOT_IN_SOURCES: Final = "not in the sources"
UNSUPPORTED: Final = "unsupported"
OUT_OF_BUDGET: Final = "out of budget"


def chunk(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Read the next passage."""
    id, *left = state["chunks"]
    move = Move(sources, state, "chunk", f"chunk:{id}")
    store = sources.store
    found: list[Document] = yield Twin(store.get_by_ids, store.aget_by_ids, ([id],))
    if not found:
        move.set(chunks=left)
        move.did("search_more", [], f"{id!r} is gone")
        return after_chunks(move)
    shown = f"Passage:\n{entry(id, found[0].metadata, framed([('text', found[0].page_content)]))}"
    made = yield from move.asked(ChunkAction, prompt(CHUNK, state, shown, _queue(left)))
    if move.stopped:
        return move.answer()
    move.set(chunks=left, read=[*state["read"], id])
    move.cite({id: found[0].metadata})
    move.note(made.notes if made is not None else "")
    return (yield from _onwards(sources, move, id, made))


def _queue(left: list[str]) -> str:
    return f"Queue: {', '.join(left)}" if left else "Queue: empty"


def _onwards(sources: Sources, move: Move, id: str, made: ChunkAction | None) -> Operation[dict[str, Any]]:
    """Take the action that the model wants."""
    action = "search_more" if made is None else made.action
    if action in _BESIDE:
        vector = yield from sources.vector(move.now("question"))
        other: str | None = yield answered_by(sources.store, beside_on_page(id, _BESIDE[action], vector))
        fresh = move.queue_chunks([other], first=True) if other is not None else []
        why = "" if fresh else (", which was queued before" if other is not None else ", and there is none")
        move.did(
            action, [f"chunk:{one}" for one in fresh], f"read {id!r}, wanted the {_BESIDE[action]} one{why}"
        )
        return _more(move)
    move.did(action, [], f"read {id!r}")
    if action == "termination":
        return move.answer()
    if action == "read_neighbors":
        return move.to("neighbours")
    move.set(query=made.query.strip() if made is not None else "")
    return _more(move)


def _more(move: Move) -> dict[str, Any]:
    """Go on to the next passage in the queue, or to a search if there is none."""
    return move.to("chunk" if move.now("chunks") else "search")


def neighbours(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Choose among neighbours of the key elements explored, and passages linked with those read."""
    of = f"chunk:{state['read'][-1]}" if state["read"] else f"element:{state['explored'][-1]}"
    last = state["actions"][-1]["of"] if state["actions"] else of
    move = Move(sources, state, "neighbours", last or of)
    names = yield from _elements_beside(sources, state)
    linked = yield from _linked(sources, state)
    shown = []
    if names:
        shown.append(listed("Key elements:", names))
    if linked:
        lines = (
            f"{entry(one.id, one.metadata, snippet(one.text, state['question'], SNIPPET))}"
            f" (linked with {one.of} by {one.how})"
            for one in linked
        )
        shown.append(listed("Linked passages:", lines))
    made = None
    if shown:
        made = yield from move.asked(NeighbourAction, prompt(NEIGHBOURS, state, *shown))
    if move.stopped:
        return move.answer()
    return _chosen(move, made, names, {one.id: one.of for one in linked})


def _chosen(
    move: Move, made: NeighbourAction | None, names: list[str], linked: dict[str, str]
) -> dict[str, Any]:
    """Go to the neighbour that the model wants.

    Args:
        move: The step.
        made: What the model wants.
        names: The key elements that were shown.
        linked: The passages that were shown, each with the one that it is linked with.
    """
    said = f"saw {amount(len(names), 'key element')} and {amount(len(linked), 'linked passage')}"
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
    return after_chunks(move) if queued else move.to("search")


def _elements_beside(sources: Sources, state: Reading) -> Operation[list[str]]:
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
        found: FactsOf = yield answered_by(facts, facts_of(name, vector, SHOWN_FACTS))
        names += found.beside
    pages = [page_of_chunk(id) for id in state["read"][-1:]]
    if pages:
        ids: dict[str, tuple[str, ...]] = yield Twin(facts.page_ids, facts.apage_ids, (FACTS, pages))
        own = tuple(islice(chain(*ids.values()), FACTS_OF_PASSAGE))
        names += yield answered_by(facts, elements_of(own))
    fresh = [name for name in dict.fromkeys(names) if f"element:{name}" not in state["queued"]]
    best: list[str] = yield answered_by(facts, elements_beside(fresh, vector, LIKELY))
    return best


def _linked(sources: Sources, state: Reading) -> Operation[list[Linked]]:
    """Return passages linked with those read, the most similar to the question first."""
    if not state["read"]:
        return []
    vector = yield from sources.vector(state["question"])
    queued = [one.removeprefix("chunk:") for one in state["queued"] if one.startswith("chunk:")]
    plan = linked_with(state["read"], vector, queued, SHOWN_HITS)
    found: list[Linked] = yield answered_by(sources.store, plan)
    return found


def closing(state: Reading) -> list[BaseMessage]:
    """Return the prompt of the answer."""
    lines = [f"[{id}] {one['title']}".rstrip() for id, one in state["citable"].items()]
    seen = listed("Passages that were read:", lines) if lines else "Nothing was read."
    return prompt(ANSWER, state, seen)


def _shorter(state: Reading) -> Iterator[list[BaseMessage]]:
    """Yield the prompt of the answer, then shorter ones: without actions and plan, then the oldest notes."""
    yield closing(state)
    notes = state["notebook"]
    for start in range(len(notes) + 1):
        yield closing({**state, "actions": [], "plan": "", "notebook": notes[start:]})


def answer(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Write the answer. Statements that cite nothing that was read are left out and counted."""
    move = Move(sources, state, "answer", "")
    request = next(filter(move.fits, _shorter(state)), closing(state))
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
    move.did(outcome, cited, amount(len(made.statements), "statement"))
    return move.ended()
