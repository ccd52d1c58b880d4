"""The steps of a reading: begin, read, answer.

Each step is an operation on a copy of the state: it asks stores and model, and changes the copy. The model is
first asked to answer from the best passages, or to say what they lack. Only then it is asked, each time that
it has read, for its notes and for what comes next: passages, key elements, a search, or the answer. What it
may choose from is looked up before.

The method is GraphReader's (S. Li et al., 2024, https://arxiv.org/abs/2406.14550), with these differences: a
reading begins from the hits of the store's default search, and plans only what they lack; facts, linked
passages and hits are shown together, in one list; the author's links are followed beside key elements;
and several passages are read at once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any, Final, TypeVar

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel

from linkstore.agents import lookups, prompts
from linkstore.agents.answers import ANSWERED, NOT_IN_SOURCES, PARTLY
from linkstore.agents.facts import FACT_SOURCE, find_missing_name, make_chunk_url, read_place
from linkstore.agents.model_calls import (
    TRIES,
    CallTimeoutError,
    MalformedOutput,
    OutputModel,
    PromptTooLongError,
)
from linkstore.agents.outputs import Choices, add_fields
from linkstore.agents.state import (
    ActionRecord,
    Budget,
    ChunkSource,
    CitedAnswer,
    CitedStatement,
    Decision,
    Reading,
    ReadingCandidate,
)
from linkstore.context.compiled import TokenCounter
from linkstore.core.arrays import Floats, normalize_vector
from linkstore.core.calls import Call, Operation, call, call_plan, request
from linkstore.core.display import format_count, make_snippet
from linkstore.core.hits import Hits
from linkstore.core.lexical import extract_question_terms
from linkstore.core.plans import select_stored
from linkstore.core.text import fold, tokenize
from linkstore.errors import AgentError, LinkError
from linkstore.extract.names import normalize_name
from linkstore.store.linkstore import LinkStore

Output = TypeVar("Output", bound=BaseModel)
_LOG: Final = logging.getLogger("linkstore.reader")
MOST_FAILURES: Final = 2
"""After so many steps in a row with malformed output alone, only the answer is asked for."""
NO_SEARCH: Final[Choices] = {"search": ()}
"""The last answer has nothing to search for any more."""
FIRST_READ: Final = 5
"""Passages that the first call is shown, the best by the search."""
OUTPUT_TOKENS: Final = 1_024
"""Tokens of the context that are kept for the output."""
TASK_TOKENS: Final = 900
"""The same for what stands around the passages."""
TOKEN_CHARACTERS: Final = 3
"""Characters of a token, at least on average."""
SMALLEST_ROOM: Final = 200
"""Characters; where a prompt with less is too long, it is an error."""
MOST_WANTED: Final = 3
"""Searches, and key elements, that are looked up at once."""
READ_AT_ONCE: Final = 5
"""Passages."""
READ_BY_RANK: Final = 3
"""Passages that are read where the model's output was malformed, the best by the searches."""
LONGEST_READ: Final = 24_000
"""Characters of passages that are read at once, if there are several."""
LONGEST_PART: Final = 16_000
"""Characters of a part of a passage. A longer passage is read in parts."""
SHOWN_HITS: Final = 20
"""Hits of a search, and linked passages, that become candidates."""
SHOWN_CANDIDATES: Final = 7
SHOWN_BESIDE: Final = 5
"""The same beside passages to read."""
SHOWN_ELEMENTS: Final = 12
OFFERED_ELEMENTS: Final = 50
"""Key elements that are found at once."""
FACTS_OF_CANDIDATE: Final = 2
FACTS_OF_PASSAGE: Final = 1_000
"""Of a longer passage, the key elements of its first facts are shown."""
SNIPPET_CHARACTERS: Final = 200
SHOWN_LINKED: Final = 3
"""Passages linked with those that are read, beside the one before and after."""
LATER: Final = 0.5
"""The weight of the hits of a later search, relative to those of the question."""
BY_FACTS: Final = 0.05
"""The same of passages found by their facts: they are there to choose from, and hardly change the ranking."""
EXPLORED: Final = 2.0
"""The same of passages found by the facts of a key element that the model chose."""
LINKED: Final = 0.1
"""The same of linked passages, some of which are shown anyway."""
RANK_OFFSET: Final = 5
"""The n-th of a list counts 1 / (n + 5)."""
_NUMBER: Final = re.compile(r"[\[\]\s]|(?<!\w)P(?=\d)", re.IGNORECASE)
"""What may stand around the digits of a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSources:
    """The sources that the steps of a reading share.

    Args:
        store: Holds the chunks.
        facts: Holds their facts; None: the reader searches and follows links only.
        model: Is asked.
        budget: Of the whole reading.
        counter: Counts tokens where the model does not.
        context: How many tokens a prompt and its output may have.
        first: How many passages the first call is shown; 0: it only plans.
    """

    store: LinkStore
    facts: LinkStore | None
    model: OutputModel
    budget: Budget
    counter: TokenCounter
    context: int
    first: int = FIRST_READ

    @property
    def room(self) -> int:
        """Characters of passages that a prompt may have."""
        tokens = self.context - min(OUTPUT_TOKENS, self.context // 4) - TASK_TOKENS
        return min(LONGEST_READ, max(SMALLEST_ROOM, tokens * TOKEN_CHARACTERS))

    def count_tokens(self, messages: Sequence[BaseMessage]) -> int:
        """Count the tokens of messages."""
        return sum(self.counter.count([str(message.text) for message in messages]))

    def vector(self, text: str) -> Operation[Floats]:
        """Compute the unit vector of a text."""
        embedding = self.store.embeddings
        query_vector = yield from call(embedding.embed_query, embedding.aembed_query, text)
        return normalize_vector(query_vector)


class ReadingStep:
    """One step of a reading.

    Args:
        sources: What is read, and who is asked.
        state: Before the step; it is not changed.
    """

    def __init__(self, sources: ReadingSources, state: Reading) -> None:
        self.sources, self.state = sources, deepcopy(state)
        self.state["room"] = self.state["room"] or sources.room
        self._began = time.monotonic()

    def seconds(self) -> float:
        """Return how many seconds the reading has worked until now."""
        return self.state["seconds"] + time.monotonic() - self._began

    def ask(
        self,
        schema: type[Output],
        messages: Sequence[BaseMessage],
        *,
        choices: Choices | None = None,
        check: Callable[[Output], str] | None = None,
        last: bool = False,
    ) -> Operation[Output | MalformedOutput | None]:
        """Return the model's decision, its malformed output, or None if the budget is used up before.

        Args:
            schema: What it may say.
            messages: What it is asked.
            choices: The values that fields may have.
            check: Returns what is wrong with an output.
            last: Whether this is the last call of a reading, for which the budget has left room.

        Raises:
            AgentError: If the model fails.
        """
        state, sources = self.state, self.sources
        asked = add_fields(messages, schema, choices)
        state["stopped"] = self.find_limit(asked, last=last)
        if state["stopped"]:
            return None
        left = sources.budget.seconds_for(last=last) - self.seconds()
        tries = 1 if self.find_limit([*asked, *asked], last=last, calls=TRIES) else TRIES
        try:
            [reply] = yield from sources.model.request(
                schema, [messages], choices=choices, check=check, tries=tries, seconds=left
            )
        except CallTimeoutError:
            state["steps"] += 1
            state["prompt_tokens"] += sources.count_tokens(asked)
            state["failed"], state["stopped"] = 0, "seconds"
            return None
        if isinstance(reply, Exception):
            raise reply
        state["steps"] += reply.calls
        state["prompt_tokens"] += reply.prompt_tokens or reply.calls * sources.count_tokens(asked)
        state["output_tokens"] += reply.output_tokens or sum(sources.counter.count([reply.text]))
        state["malformed"] += reply.malformed
        state["failed"] = state["failed"] + 1 if isinstance(reply.output, MalformedOutput) else 0
        return reply.output

    def shrink(self, reading: Sequence[Document]) -> bool:
        """Make the room for passages half of what was too long, and say whether any is left."""
        shown = sum(len(_get_part(self.state, document)) for document in reading)
        self.state["room"] = min(self.state["room"], shown) // 2
        return self.state["room"] >= SMALLEST_ROOM

    def load_texts(self) -> Operation[dict[str, str]]:
        """Return the passages that were read, each with title and heading."""
        store = self.sources.store
        documents = yield from call(store.get_by_ids, store.aget_by_ids, self.state["read"])
        return {document.id or "": join_text(document) for document in documents}

    def check_statements(
        self, statements: Sequence[CitedStatement], texts: Mapping[str, str]
    ) -> tuple[list[CitedStatement], str]:
        """Return the statements with no name or number that their passages lack, and the first problem.

        Names of the question may stand in any passage that was read.
        """
        all_texts = fold("\n".join(texts.values()))
        asked = " ".join(
            word for word in self.state["question"].split() if fold(word.strip("?.,!")) in all_texts
        )
        kept, problem = [], ""
        for statement in statements:
            cited = [texts[id] for id in self.find_numbered("", statement.passages) if id in texts]
            missing = find_missing_name(statement.text, "\n".join([*cited, asked])) if cited else ""
            if tokenize(statement.text) == tokenize(self.state["question"]):
                problem = problem or "a statement repeats the question"
            elif missing:
                problem = problem or f"the passages that a statement cites do not have {missing!r}"
            else:
                kept.append(statement)
        return kept, problem

    def find_limit(self, messages: Sequence[BaseMessage], *, last: bool, calls: int = 1) -> str:
        """Return the budget that calls with these messages would exceed, or an empty string if none.

        The answer must still be possible after it, unless it is the answer's.
        """
        state, budget = self.state, self.sources.budget
        if state["steps"] + calls + (not last) > budget.steps:
            return "steps"
        if self.seconds() >= budget.seconds_for(last=last):
            return "seconds"
        if budget.tokens is not None:
            closing = add_fields(next(prompts.make_answer_prompts(state)), CitedAnswer, NO_SEARCH)
            needed = self.sources.count_tokens([*messages, *([] if last else closing)])
            if state["prompt_tokens"] + state["output_tokens"] + needed > budget.tokens:
                return "tokens"
        return ""

    def add_candidates(self, found: Iterable[tuple[str, str, str]], weight: float) -> list[str]:
        """Add passages to the candidates, best first, and return the ids of new ones.

        Args:
            found: The id of each, what led to it, and how.
            weight: Of the list.
        """
        candidates, new = self.state["candidates"], []
        for rank, (id, of, how) in enumerate(found):
            if id in self.state["read"]:
                continue
            if id not in candidates:
                candidates[id] = ReadingCandidate(score=0.0, of=of, how=how, facts=[], passed=0)
                new.append(id)
            candidates[id]["passed"] = 0
            candidates[id]["score"] += weight / (rank + RANK_OFFSET)
            if how and not candidates[id]["how"]:
                candidates[id]["of"], candidates[id]["how"] = of, how
        return new

    def add_facts(self, facts: Iterable[tuple[str, str]], of: str, weight: float) -> Operation[None]:
        """Add the passages of facts to the candidates, without missing ones."""
        texts: dict[str, list[str]] = {}
        for id, text in facts:
            texts.setdefault(id, []).append(text)
        there = yield from call_plan(self.sources.store.backend, select_stored(texts))
        self.add_candidates(((id, of, "") for id in texts if id in there), weight)
        for id in there:
            if id in self.state["candidates"]:
                candidate = self.state["candidates"][id]
                candidate["facts"] = list(dict.fromkeys([*texts[id], *candidate["facts"]]))

    def offer(self, elements: Iterable[str]) -> None:
        """Offer key elements, the newest first, that were not explored."""
        taken = {*self.state["explored"], *self.state["elements"]}
        fresh = [name for name in islice(elements, OFFERED_ELEMENTS) if name not in taken]
        self.state["offered"] = list(dict.fromkeys([*fresh, *self.state["offered"]]))

    def number(self, id: str) -> int:
        """Return the number of a passage, which it gets when it is first shown."""
        shown = self.state["shown"]
        if id not in shown:
            shown.append(id)
        return shown.index(id) + 1

    def find_numbered(self, sort: str, wanted: Iterable[str]) -> list[str]:
        """Return the passages with these numbers, each once, and count others if they have a sort."""
        ids = {str(number): id for number, id in enumerate(self.state["shown"], 1)}
        return self._find(sort, (_NUMBER.sub("", text).lstrip("0") for text in wanted), ids)

    def find_offered(self, wanted: Iterable[str]) -> list[str]:
        """Return the key elements that were offered, each once, and count the others as refused."""
        offered = {_normalize(name): name for name in self.state["offered"]}
        return self._find("elements", map(_normalize, wanted), offered)

    def _find(self, sort: str, wanted: Iterable[str], known: Mapping[str, str]) -> list[str]:
        ids = [known.get(name) for name in wanted]
        self.refuse(sort, ids.count(None))
        return list(dict.fromkeys(id for id in ids if id is not None))

    def refuse(self, sort: str, count: int) -> None:
        """Count what was refused."""
        if count and sort:
            refused = self.state["refused"]
            refused[sort] = refused.get(sort, 0) + count

    def record_action(self, action: str, to: Sequence[str], said: str) -> None:
        """Record the action."""
        led = f"{said}: {action} {', '.join(to)}".rstrip() if action else said
        _LOG.info("%s: %s", self.state["next"], led)
        record = ActionRecord(step=self.state["next"], action=action, to=list(to), said=led)
        self.state["actions"].append(record)


def join_text(document: Document) -> str:
    """Return the text of a passage with its title and heading."""
    return "\n".join([*read_place(document.metadata), document.page_content])


def _normalize(name: str) -> str:
    try:
        return normalize_name(name)
    except LinkError:
        return name


def begin(step: ReadingStep) -> Operation[None]:
    """Search, and answer from the best passages, or plan what else to find out.

    Raises:
        AgentError: If the model cannot say either, or no call of it is allowed.
    """
    state, most = step.state, step.sources.first
    state["queries"] = [state["question"]]
    yield from search(step)
    documents = yield from _load(step, list(state["candidates"])[:most])
    texts: dict[str, str] = {}
    shown = () if most else ("No passage is shown yet: say what to search for.",)
    made, reading = yield from _ask_about(step, CitedAnswer, prompts.FIRST_TASK, documents, texts, {}, *shown)
    if isinstance(made, MalformedOutput):
        raise AgentError(f"the model's output was malformed {TRIES} times: {made.problem}")
    if made is None:
        if state["stopped"] and reading:
            raise AgentError(f"the budget of {state['stopped']} was used up before anything was read")
        if not state["stopped"]:
            _conclude(step, NOT_IN_SOURCES, "found nothing to read")
        return
    for document in reading:
        _mark_as_read(state, document)
    step.refuse("citations", len(_end(step, made.statements, texts)))
    whole = made.answered and bool(state["statements"]) and "statements" not in state["refused"]
    spent = bool(most) and state["steps"] >= step.sources.budget.steps
    if whole or spent or (most and not made.search):
        state["stopped"] = "steps" if spent and not whole else ""
        outcome = ANSWERED if whole else PARTLY if state["statements"] else NOT_IN_SOURCES
        _conclude(step, outcome, f"read {_quote_all(reading)}")
        return
    state["notebook"] += [
        f"{statement['text']} [{', '.join(f'P{step.number(id)}' for id in statement['chunks'])}]"
        for statement in state["statements"]
    ]
    _plan(step, made.search)


def _conclude(step: ReadingStep, outcome: str, said: str) -> None:
    """End the reading."""
    state = step.state
    state["outcome"] = outcome
    cited = dict.fromkeys(id for statement in state["statements"] for id in statement["chunks"])
    step.record_action(outcome, list(cited), said)


def _plan(step: ReadingStep, searches: Sequence[str]) -> None:
    """Take up what is to be searched for."""
    state = step.state
    state["plan"] = [query for text in searches if (query := " ".join(text.split()))]
    searched = {query.casefold() for query in state["searched"]}
    queries = {query.casefold(): query for query in state["plan"]}
    state["queries"] = [query for key, query in queries.items() if key not in searched]
    step.record_action("plan", [], "the question")


def _ask_about(
    step: ReadingStep,
    schema: type[Output],
    task: str,
    queue: Sequence[Document],
    texts: dict[str, str],
    choices: Choices,
    *lists: str,
) -> Operation[tuple[Output | MalformedOutput | None, list[Document]]]:
    """Ask about as many of the passages as there is room for, fewer where the prompt is too long.

    Args:
        step: Which asks.
        schema: What the model may say; with statements, which are checked.
        task: What it is to do.
        queue: Passages to read.
        texts: Those that were read before, by id; those that are read are added.
        choices: The values that fields may have.
        lists: Further parts of the prompt.

    Returns:
        The output, None where nothing was asked; and the passages that were read.
    """
    state, most = step.state, len(queue)
    while True:
        reading = _select_batch(state, queue[:most])
        if not reading and not any(lists):
            return None, []
        sources = {**texts, **{document.id or "": join_text(document) for document in reading}}
        citable = {"passages": [f"P{step.number(id)}" for id in sources]} if sources else {"statements": ()}
        passages = prompts.format_passages(_number_passages(step, reading))
        request, values = prompts.make_prompt(task, state, passages, *lists), {**choices, **citable}
        asked = add_fields(request, schema, values)
        # The answer will name what was read, too.
        named = HumanMessage(" ".join(f"- [P{step.number(id)}] {sources[id][:80]}" for id in sources))
        if len(reading) > 1 and step.find_limit([*asked, named], last=False) == "tokens":
            most = len(reading) - 1
            continue
        check = partial(_find_problem, step, sources)
        kind: type[BaseModel] = schema
        last = kind is CitedAnswer and bool(reading)
        try:
            made = yield from step.ask(schema, request, choices=values, check=check, last=last)
        except PromptTooLongError:
            if not reading or not step.shrink(reading):
                raise
        else:
            texts |= sources
            return made, reading


def _find_problem(step: ReadingStep, texts: Mapping[str, str], output: Any) -> str:
    """Return what is wrong with the statements of an output, an empty string if nothing."""
    return step.check_statements(output.statements, texts)[1]


def _load(step: ReadingStep, ids: Sequence[str]) -> Operation[list[Document]]:
    store = step.sources.store
    documents = yield from call(store.get_by_ids, store.aget_by_ids, list(ids))
    place = {id: at for at, id in enumerate(ids)}
    return sorted(documents, key=lambda document: place[document.id or ""])


def _number_passages(step: ReadingStep, reading: Sequence[Document]) -> list[tuple[int, dict[str, Any], str]]:
    return [
        (step.number(document.id or ""), document.metadata, _get_part(step.state, document))
        for document in reading
    ]


def _quote_all(documents: Sequence[Document]) -> str:
    return ", ".join(repr(document.id) for document in documents)


def search(step: ReadingStep) -> Operation[None]:
    """Search for what is wanted by the default strategy, in the chunks and in their facts."""
    state, store, facts = step.state, step.sources.store, step.sources.facts
    queries, state["queries"] = state["queries"], []
    for query in queries:
        k = SHOWN_HITS * (state["searched"].count(query) + 1)
        weight = LATER if state["searched"] else 1.0
        hits: Hits = yield from request(Call(store.search, store.asearch, (query,), {"k": k}))
        fresh = hits[k - SHOWN_HITS :]
        state["searched"].append(query)
        new = step.add_candidates(((hit.document.id or "", "", "") for hit in fresh), weight)
        step.record_action("", [], f"searched for {query!r}: {format_count(len(new), 'new passage')}")
        if facts is not None and k == SHOWN_HITS:
            vector = yield from step.sources.vector(query)
            words, _ = extract_question_terms(query)
            plan = lookups.find_likely_facts(vector, words, SHOWN_HITS)
            matches = yield from call_plan(facts.backend, plan)
            yield from step.add_facts(matches.facts, "", weight * BY_FACTS)
            step.offer(matches.elements)


def look_up_facts(step: ReadingStep) -> Operation[None]:
    """Look up the facts of key elements that the model wants."""
    state, facts = step.state, step.sources.facts
    names, state["elements"] = state["elements"], []
    if not names or facts is None:
        return
    state["explored"] += names
    vector = yield from step.sources.vector(state["question"])
    for name in names:
        matches = yield from call_plan(facts.backend, lookups.find_facts(name, vector, SHOWN_HITS))
        yield from step.add_facts(matches.facts, f"element:{name}", EXPLORED)
        step.offer(matches.elements)
        step.record_action("", [], f"looked up {format_count(len(matches.facts), 'fact')} of {name!r}")


def look_up_links(step: ReadingStep) -> Operation[None]:
    """Look up chunks linked with the passages to read next, and the key elements of their facts."""
    state, facts = step.state, step.sources.facts
    ids, state["follow"] = state["follow"], []
    if not ids:
        return
    # What the model noted names what it is looking for now, which a question of several steps may not.
    vector = yield from step.sources.vector(" ".join([state["question"], *state["notebook"][-1:]]))
    plan = lookups.find_linked(ids, vector, state["read"], SHOWN_HITS)
    linked = yield from call_plan(step.sources.store.backend, plan)
    passages = ((chunk.id, f"chunk:{chunk.of}", f"{chunk.how} P{step.number(chunk.of)}") for chunk in linked)
    new = step.add_candidates(passages, LINKED)
    state["linked"] = [chunk.id for chunk in linked if chunk.beside]
    state["linked"] += [chunk.id for chunk in linked if not chunk.beside][:SHOWN_LINKED]
    if facts is not None:
        urls = [make_chunk_url(id) for id in ids]
        own = yield from call(facts.pages.ids, facts.pages.aids, FACT_SOURCE, urls)
        fact_ids = tuple(islice(chain(*own.values()), FACTS_OF_PASSAGE))
        step.offer((yield from call_plan(facts.backend, lookups.find_elements(fact_ids))))
    step.record_action("", [], f"looked at links: {format_count(len(new), 'new passage')}")


def read(step: ReadingStep) -> Operation[None]:
    """Look up what the model may choose from, have it read and choose, or answer if there is nothing."""
    state = step.state
    yield from search(step)
    yield from look_up_facts(step)
    yield from look_up_links(step)
    fresh = any(not candidate["passed"] for candidate in state["candidates"].values())
    if not (state["chunks"] or fresh):
        yield from write_answer(step)
        return
    menu = _list_candidates(state)
    documents = yield from _load(step, list(dict.fromkeys([*state["chunks"], *menu])))
    there = {document.id or "": document for document in documents}
    for id in (id for id in [*state["chunks"], *menu] if id not in there):
        state["candidates"].pop(id, None)
        if id in state["chunks"]:
            step.record_action("", [], f"{id!r} is gone")
    menu = [id for id in menu if id in there]
    lists = _format_lists(step, menu, there)
    queue = [there[id] for id in state["chunks"] if id in there]
    texts = yield from step.load_texts()
    choices: dict[str, Sequence[str]] = {"read": [f"P{step.number(id)}" for id in menu]}
    choices |= {} if state["offered"] else {"key_elements": ()}
    asking = _ask_about(step, Decision, prompts.READ_TASK, queue, texts, choices, *lists)
    made, reading = yield from asking
    if state["stopped"]:
        return
    state["chunks"] = [document.id or "" for document in queue[len(reading) :]]
    for document in reading:
        _mark_as_read(state, document)
    activity = f"read {_quote_all(reading)}" if reading else f"saw {format_count(len(menu), 'passage')}"
    _decide(step, made if isinstance(made, Decision) else None, menu, activity, texts)


def _list_candidates(state: Reading) -> list[str]:
    """Return the passages to choose from: the best by the searches, then some linked with those to read."""
    candidates = {id: candidate for id, candidate in state["candidates"].items() if id not in state["chunks"]}
    ranked = sorted(candidates, key=lambda id: (candidates[id]["passed"], -candidates[id]["score"]))
    linked = [id for id in state["linked"] if id in candidates]
    most = SHOWN_BESIDE if state["chunks"] else SHOWN_CANDIDATES
    return list(dict.fromkeys([*ranked[:most], *linked]))


def _format_lists(step: ReadingStep, menu: Sequence[str], there: Mapping[str, Document]) -> list[str]:
    """Format what the model may choose from: passages, facts and key elements."""
    state = step.state
    lines = []
    for id in menu:
        candidate, document = state["candidates"][id], there[id]
        facts = " ".join(candidate["facts"][:FACTS_OF_CANDIDATE])  # which name their title and heading
        place = "" if facts else ", ".join(read_place(document.metadata))
        shown = facts or make_snippet(document.page_content, state["question"], SNIPPET_CHARACTERS)
        named = f"{place}: " if place and not shown.startswith(place) else ""
        how = f" ({candidate['how']})" if candidate["how"] else ""
        lines.append(f"[P{step.number(id)}] {named}{shown}{how}")
    offered = "; ".join(state["offered"][:SHOWN_ELEMENTS])
    return [
        prompts.format_list("Unread passages, an excerpt of each, the best by the searches first:", lines),
        f"Key elements, under which facts are filed: {offered}" if offered else "",
    ]


def _select_batch(state: Reading, queue: Sequence[Document]) -> list[Document]:
    """Return the first of the passages to read that are not too long together, at least one."""
    lengths = accumulate(len(_get_part(state, document)) for document in queue[:READ_AT_ONCE])
    fitting = sum(length <= state["room"] for length in lengths)
    return list(queue[: max(1, fitting)])


def _get_part(state: Reading, document: Document) -> str:
    """Return the part of a passage to read next. That with the most words of the question comes first."""
    text = document.page_content
    longest = min(LONGEST_PART, state["room"])
    if len(text) <= longest:
        return text
    words = set(tokenize(state["question"]))
    parts = [text[at : at + longest] for at in range(0, len(text), longest)]
    first = max(range(len(parts)), key=lambda at: len(words.intersection(tokenize(parts[at]))))
    at = (first + state["parts"].get(document.id or "", 0)) % len(parts)
    return f"(part {at + 1} of {len(parts)})\n{parts[at]}"


def _mark_as_read(state: Reading, document: Document) -> None:
    """Mark a passage, or a part of one, as read. While there are more parts, it may be chosen again."""
    id, url = document.id or "", document.metadata.get("url")
    candidate = state["candidates"].pop(id, None)
    if id not in state["read"]:
        state["read"].append(id)
    title = ", ".join(read_place(document.metadata))
    state["citable"][id] = ChunkSource(url=url if isinstance(url, str) else "", title=title)
    done = state["parts"].pop(id, 0) + 1
    if done * min(LONGEST_PART, state["room"]) < len(document.page_content):
        state["parts"][id] = done
        score = candidate["score"] if candidate is not None else 0.0
        how = f"{format_count(done, 'part')} of it read, there are more"
        state["candidates"][id] = ReadingCandidate(score=score, of=f"chunk:{id}", how=how, facts=[], passed=0)


def _decide(
    step: ReadingStep, made: Decision | None, menu: Sequence[str], said: str, texts: Mapping[str, str]
) -> None:
    """Take up what the model wants: to end, or to read on and look up more.

    An answer that cites only passages that were shown in part, but not read, has them read first.
    """
    state, decision = step.state, made or Decision()
    wanted = step.find_numbered("chunks", decision.read)
    if decision.notes.strip():
        state["notebook"].append(decision.notes.strip())
    if decision.finished:
        before = state["statements"]
        unread = _end(step, decision.statements, texts)
        if not state["statements"] and any(id in state["candidates"] for id in unread):
            wanted, state["statements"] = list(dict.fromkeys(unread)), before
        else:
            step.refuse("citations", len(unread))
            outcome = ANSWERED if state["statements"] else PARTLY if before else NOT_IN_SOURCES
            state["statements"] = state["statements"] or before
            _conclude(step, outcome, said)
            return
    chosen = [id for id in wanted if id in state["candidates"]][:READ_AT_ONCE]
    if made is None:
        chosen = list(menu[:READ_BY_RANK])
    elements = step.find_offered(decision.key_elements)[:MOST_WANTED]
    queries = [query for text in decision.search if (query := " ".join(text.split()))][:MOST_WANTED]
    _take_up(state, chosen, elements, queries)
    wants = {"read": chosen, "explore": elements, "search": queries}
    action = " and ".join(name for name, of in wants.items() if of)
    step.record_action(action or "pass", [*chosen, *elements, *queries], said)
    if not chosen:
        for id in menu:
            state["candidates"][id]["passed"] += 1
    if not action and all(candidate["passed"] for candidate in state["candidates"].values()):
        state["queries"] = [state["question"]]  # for the hits that follow those of its last search


def _take_up(state: Reading, chosen: Sequence[str], elements: list[str], queries: list[str]) -> None:
    """Queue the model's choices, and record the way to each."""
    state["chunks"] += [id for id in chosen if id not in state["chunks"]]
    state["linked"] = []
    state["elements"], state["queries"], state["follow"] = elements, queries, list(chosen)
    state["offered"] = [name for name in state["offered"] if name not in elements]
    for id in chosen:
        state["ways"].setdefault(f"chunk:{id}", state["candidates"][id]["of"])
    before = f"chunk:{state['read'][-1]}" if state["read"] else ""
    for name in elements:
        state["ways"].setdefault(f"element:{name}", before)


def _end(step: ReadingStep, statements: Sequence[CitedStatement], texts: Mapping[str, str]) -> list[str]:
    """Keep supported statements, and return cited passages that were not read."""
    state = step.state
    supported, _ = step.check_statements(statements, texts)
    step.refuse("statements", len(statements) - len(supported))
    kept: list[dict[str, Any]] = []
    unread: list[str] = []
    for statement in supported:
        ids = step.find_numbered("citations", statement.passages)
        read = [id for id in ids if id in state["citable"]]
        unread += [id for id in ids if id not in read]
        if read and statement.text.strip():
            kept.append({"text": statement.text.strip(), "chunks": read})
    state["statements"] = kept
    return unread


def write_answer(step: ReadingStep) -> Operation[None]:
    """Write the answer from the notes, where the reading ended without one."""
    state = step.state
    if not state["read"] and not state["stopped"] and not state["failed"]:
        _conclude(step, NOT_IN_SOURCES, "found nothing to read")
        return
    stopped, before = state["stopped"], state["statements"]
    too_long: PromptTooLongError | None = None
    texts = yield from step.load_texts()
    check = partial(_find_problem, step, texts)
    made: CitedAnswer | MalformedOutput | None = None
    for messages in prompts.make_answer_prompts(state):
        if step.find_limit(add_fields(messages, CitedAnswer, NO_SEARCH), last=True) == "tokens":
            state["stopped"] = stopped = "tokens"
            continue
        try:
            made = yield from step.ask(CitedAnswer, messages, choices=NO_SEARCH, check=check, last=True)
        except PromptTooLongError as error:
            too_long = error
            continue
        break
    else:
        if too_long is not None:
            raise too_long
    if isinstance(made, MalformedOutput):
        raise AgentError(f"the model's answer was malformed: {made.problem}")
    if made is None and not before:
        raise AgentError(
            f"the budget of {state['stopped']} is used up, and leaves no room for an answer; allow more"
        )
    state["stopped"] = stopped
    answer = made or CitedAnswer()
    step.refuse("citations", len(_end(step, answer.statements, texts)))
    whole = answer.answered and bool(state["statements"])
    state["statements"] = state["statements"] or before
    outcome = ANSWERED if whole else PARTLY if state["statements"] else NOT_IN_SOURCES
    _conclude(step, outcome, format_count(len(answer.statements), "statement"))


_STEPS: Final[Mapping[str, Callable[[ReadingStep], Operation[None]]]] = {
    "begin": begin,
    "read": read,
    "answer": write_answer,
}


def take_step(sources: ReadingSources, state: Reading) -> Operation[Reading]:
    """Take the next step of a reading, and return the state after it, with the step that follows."""
    step = ReadingStep(sources, state)
    yield from _STEPS[state["next"]](step)
    after = step.state
    after["seconds"] = step.seconds()
    ending = after["stopped"] or after["failed"] >= MOST_FAILURES
    after["next"] = "" if after["outcome"] else "answer" if ending else "read"
    return after
