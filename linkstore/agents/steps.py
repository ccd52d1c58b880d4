"""The steps of a reading that lead from the question to passages: plan, key elements, facts, search.

Each step is an operation: it asks stores and model, and returns the change of the state. The order of steps
follows GraphReader (S. Li et al., 2024, https://arxiv.org/abs/2406.14550), with these differences: a search
by the store's default strategy where the published system compares vectors; the author's links beside key
elements; a budget; and no step that reads a chunk, or explores a key element, twice.
"""

from __future__ import annotations

from typing import Any, Final

from linkstore.agents.actions import FactsAction, InitialElements, RationalPlan, SearchAction
from linkstore.agents.exploring import MOST_FACTS, FactsOf, facts_of, likely_elements, stored_among
from linkstore.agents.moves import Move, after_chunks
from linkstore.agents.prompts import ELEMENTS, FACTS, PLAN, SEARCH, entry, listed, prompt
from linkstore.agents.sources import Sources
from linkstore.agents.state import Reading, begun
from linkstore.display import amount
from linkstore.hits import Hits
from linkstore.lexical import question_terms
from linkstore.plans import Operation
from linkstore.snippet import snippet
from linkstore.twins import answered_by
from linkstore.variants import normalized

LIKELY: Final = 50
"""Number of key elements shown to the model."""
CHOSEN: Final = 5
"""Number of them that are explored."""
SHOWN_FACTS: Final = 50
SHOWN_HITS: Final = 20
SNIPPET: Final = 300


def plan(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Plan how to answer, and forget what an earlier question on the same thread has left."""
    state = begun(state["question"])
    yield from sources.vector(state["question"])  # refuses a blank question before the model is paid
    move = Move(sources, state, "plan", "")
    made = yield from move.asked(RationalPlan, prompt(PLAN, state))
    if made is not None:
        move.set(plan=made.plan)
    move.did("plan", [], "the question" if made is not None else "the question, without result")
    return {**state, **move.to("elements" if sources.facts is not None else "search")}


def elements(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Choose the key elements to start from."""
    move = Move(sources, state, "elements", "")
    assert sources.facts is not None
    vector = yield from sources.vector(state["question"])
    words, _ = question_terms(state["question"])
    names: list[str] = yield answered_by(sources.facts, likely_elements(vector, words, LIKELY))
    if not names:
        return move.to("search")
    made = yield from move.asked(InitialElements, prompt(ELEMENTS, state, listed("Key elements:", names)))
    if move.stopped:
        return move.answer()
    best = [] if made is None else sorted(made.elements, key=lambda one: -one.score)
    wanted = [one.key_element for one in best] if made is not None else names[:CHOSEN]
    chosen = move.known("elements", wanted, {normalized(name): name for name in names})[:CHOSEN]
    queued = move.queue_elements(chosen)
    move.did("start", [f"element:{name}" for name in queued], f"saw {amount(len(names), 'key element')}")
    return move.to("facts" if queued else "search")


def facts(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Read the facts of the next key element."""
    assert sources.facts is not None
    name, *left = state["elements"]
    move = Move(sources, state, "facts", f"element:{name}")
    vector = yield from sources.vector(state["question"])
    found: FactsOf = yield answered_by(sources.facts, facts_of(name, vector, SHOWN_FACTS))
    asked_for = list(dict.fromkeys(chunk for chunk, _ in found.facts))
    there: list[str] = yield answered_by(sources.store, stored_among(asked_for))
    unread = [id for id in there if f"chunk:{id}" not in state["queued"]]
    shown = [f"[{chunk}] {text}" for chunk, text in found.facts if chunk in there]
    heading = f"Facts of {name!r}, {counted(len(found.facts), found.size)}:"
    made = None
    if shown:
        made = yield from move.asked(FactsAction, prompt(FACTS, state, listed(heading, shown)))
    if move.stopped:
        return move.answer()
    move.set(elements=left, explored=[*state["explored"], name])
    move.note(made.notes if made is not None else "")
    wants = made is None or made.action == "read_chunk"
    wanted = list(made.chunk_ids) if made is not None else unread[:1]
    ids = move.queue_chunks(move.known("chunks", wanted, {id: id for id in there})) if wants else []
    said = f"read {counted(len(found.facts), found.size)} of {name!r}"
    move.did("read_chunk" if ids else "stop_and_read_neighbor", [f"chunk:{id}" for id in ids], said)
    return move.to("chunk" if ids else "neighbours")


def counted(shown: int, size: int) -> str:
    """Say how many facts are shown, of how many."""
    if size > MOST_FACTS:
        return f"which has more than {MOST_FACTS:,}, too many to rank"
    if shown < size:
        return f"the best {shown:,} of {size:,} facts"
    return "the only fact" if size == 1 else f"all {size:,} facts"


def search(sources: Sources, state: Reading) -> Operation[dict[str, Any]]:
    """Search by the default strategy, and choose what to read."""
    query = state["query"] or state["question"]
    move = Move(sources, state, "search", "")
    before = state["searched"].get(query, [])
    left_out = {*before, *(one.removeprefix("chunk:") for one in state["queued"])}
    hits: Hits = yield sources.search(query, SHOWN_HITS + len(left_out))
    fresh = [hit.document for hit in hits if hit.document.id not in left_out][:SHOWN_HITS]
    shown = [entry(one.id or "", one.metadata, snippet(one.page_content, query, SNIPPET)) for one in fresh]
    made = None
    if shown:
        request = prompt(SEARCH, state, listed(f"Results for {query!r}:", shown))
        made = yield from move.asked(SearchAction, request)
    if move.stopped:
        return move.answer()
    names = [one.id or "" for one in fresh]
    move.set(query="", searched={**state["searched"], query: [*before, *names]})
    wanted = names[:1] if made is None else made.chunk_ids if made.action == "read_chunk" else []
    ids = move.queue_chunks(move.known("chunks", wanted, {id: id for id in names}))
    said = f"searched for {query!r}: {len(fresh)} new passages"
    move.did("read_chunk" if ids else "termination", [f"chunk:{id}" for id in ids], said)
    return move.to("chunk") if ids else after_chunks(move)
