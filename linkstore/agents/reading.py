"""One step of a reading: search, read, take up what the model says.

Each step is an operation on a copy of the state. It looks up what was searched for, shows the model passages,
and asks for the answer, or for what is missing. In the first call the passages are the best by the store's
default search; later, those that the model chose or the best that are unread, beside excerpts of what else
there is: linked passages and hits. Statements that are not the whole answer become findings.

The method is a smaller form of GraphReader's (S. Li et al., 2024, https://arxiv.org/abs/2406.14550): one
prompt takes its three decisions (what to look for, what to read, when to answer), a plan is made only of what
the best passages lack, and the author's links are followed beside facts.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from linkstore.agents import prompts
from linkstore.agents.answers import (
    ANSWERED,
    NOT_IN_SOURCES,
    PARTLY,
    ActionRecord,
    Budget,
    ChunkSource,
    Reading,
    ReadingCandidate,
    ReadingStatement,
)
from linkstore.agents.facts import CHUNK_KEY, find_missing_name, join_text, read_place
from linkstore.agents.model_calls import TRIES, CallTimeoutError, ModelReply, OutputModel, PromptTooLongError
from linkstore.agents.outputs import add_fields
from linkstore.agents.prompts import CitedReply, CitedStatement
from linkstore.context.compiled import TokenCounter
from linkstore.core.arrays import normalize_vector
from linkstore.core.calls import Call, Operation, call, call_plan, request
from linkstore.core.display import format_count, make_snippet
from linkstore.core.hits import Hits
from linkstore.core.plans import select_stored
from linkstore.core.text import fold, tokenize
from linkstore.errors import AgentError
from linkstore.store.linkstore import LinkStore
from linkstore.strategies.neighbours import find_linked

_LOG: Final = logging.getLogger("linkstore.reader")
FIRST_READ: Final = 5
"""Passages that the first call is shown, the best by the search."""
READ_AT_ONCE: Final = 5
"""Passages that are read where the model chose none, the best by the searches."""
OUTPUT_TOKENS: Final = 1_024
"""Tokens of the context that are kept for the output."""
TASK_TOKENS: Final = 900
"""The same for what stands around the passages."""
TOKEN_CHARACTERS: Final = 3
"""Characters of a token, at least on average."""
SMALLEST_ROOM: Final = 200
"""Characters; where a prompt with less is too long, it is an error."""
LONGEST_READ: Final = 24_000
"""Characters of passages that are read at once."""
SHOWN_HITS: Final = 20
"""Hits of a search, and linked passages, that become candidates."""
SHOWN_CANDIDATES: Final = 7
SHOWN_LINKED: Final = 3
"""Linked passages beside the best candidates."""
FACTS_OF_CANDIDATE: Final = 2
SNIPPET_CHARACTERS: Final = 200
LATER: Final = 0.5
"""The weight of the hits of a later search, relative to those of the question."""
LINKED: Final = 0.1
"""The same of linked passages."""
BY_FACTS: Final = 0.05
"""The same of passages found by their facts: they are there to choose from, and hardly change the ranking."""
RANK_OFFSET: Final = 5
"""The n-th of a list counts 1 / (n + 5)."""
_NUMBER: Final = re.compile(r"[\[\]\s]|(?<!\w)P(?=\d)", re.IGNORECASE)
"""What may stand around the digits of a number."""
_NUMBERS: Final = re.compile(r"\s*\[P\d+(?:[,;\s]+P\d+)*\]", re.IGNORECASE)
"""Numbers of passages within a statement, as the findings have them behind it."""


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
        instructions: About the form of the answer.
    """

    store: LinkStore
    facts: LinkStore | None
    model: OutputModel
    budget: Budget
    counter: TokenCounter
    context: int
    first: int = FIRST_READ
    instructions: str = ""

    @property
    def room(self) -> int:
        """Characters of passages that a prompt may have."""
        tokens = self.context - min(OUTPUT_TOKENS, self.context // 4) - TASK_TOKENS
        return min(LONGEST_READ, max(SMALLEST_ROOM, tokens * TOKEN_CHARACTERS))

    def count_tokens(self, messages: Sequence[BaseMessage]) -> int:
        """Count the tokens of messages."""
        return sum(self.counter.count([str(message.text) for message in messages]))


def take_step(sources: ReadingSources, before: Reading) -> Operation[Reading]:
    """Take the next step of a reading, and return the state after it.

    Raises:
        AgentError: If the model fails, or nothing was found out before its output was malformed or the budget
            was used up.
    """
    step = ReadingStep(sources, before)
    yield from step.search()
    reading: list[Document] = []
    while not reading and (chosen := step.select_passages()):
        reading = yield from step.load(chosen)  # what is gone is no candidate any more
    if reading or not (step.state["steps"] or sources.first):
        yield from step.read(reading)
    else:
        step.conclude("nothing is left to read")
    step.state["seconds"] = step.seconds()
    return step.state


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

    def search(self) -> Operation[None]:
        """Search for what is wanted by the default strategy, in the chunks and in their facts."""
        state, store, facts = self.state, self.sources.store, self.sources.facts
        queries, state["queries"] = state["queries"], []
        for query in queries:
            weight = LATER if state["searched"] else 1.0
            hits: Hits = yield from request(Call(store.search, store.asearch, (query,), {"k": SHOWN_HITS}))
            state["searched"].append(query)
            new = self._add_candidates(((hit.document.id or "", "") for hit in hits), weight)
            self._record("", [], f"searched for {query!r}: {format_count(len(new), 'new passage')}")
            if facts is None:
                continue
            hits = yield from request(Call(facts.search, facts.asearch, (query,), {"k": SHOWN_HITS}))
            texts: dict[str, list[str]] = {}
            for hit in hits:
                if (chunk := hit.document.metadata.get(CHUNK_KEY)) is None:
                    raise AgentError(f"{hit.document.id!r} is no fact; pass the store that index_facts wrote")
                texts.setdefault(str(chunk), []).append(hit.document.page_content)
            stored = yield from call_plan(store.backend, select_stored(texts))
            self._add_candidates(((id, "") for id in texts if id in stored), weight * BY_FACTS)
            for id in stored:
                if (candidate := state["candidates"].get(id)) is not None:
                    candidate["facts"] = list(dict.fromkeys([*candidate["facts"], *texts[id]]))

    def select_passages(self) -> list[str]:
        """Return the ids of the passages to read: the choice of the model, else the best candidates."""
        wanted, self.state["wanted"] = self.state["wanted"], []
        most = READ_AT_ONCE if self.state["steps"] else self.sources.first
        return wanted or self.rank_candidates()[:most]

    def rank_candidates(self) -> list[str]:
        """Return the ids of the passages that may be read, the best first."""
        candidates = self.state["candidates"]
        return sorted(candidates, key=lambda id: -candidates[id]["score"])

    def load(self, ids: Sequence[str]) -> Operation[list[Document]]:
        """Return the documents with these ids in order, as far as they are there."""
        store = self.sources.store
        documents = yield from call(store.get_by_ids, store.aget_by_ids, list(ids))
        place = {id: at for at, id in enumerate(ids)}
        for id in place.keys() - {document.id for document in documents}:
            if self.state["candidates"].pop(id, None) is not None:
                self._record("", [], f"{id!r} is gone")
        return sorted(documents, key=lambda document: place[document.id or ""])

    def read(self, passages: Sequence[Document]) -> Operation[None]:
        """Have the model read as many of the passages as there is room for, and take up what it says."""
        state, reading = self.state, self._select_batch(passages)
        later = [document.id or "" for document in passages[len(reading) :]]
        linked: Sequence[str] = ()
        if state["steps"]:
            linked = yield from self._look_up_links(reading)
        before = yield from self.load(state["read"])
        menu, lines = yield from self._list_candidates(reading, [*later, *linked])
        while True:
            reading = self._select_batch(reading)
            shown = [(self.number(document.id or ""), document, self._cut(document)) for document in reading]
            texts = {document.id or "": join_text(document) for document in [*before, *reading]}
            messages = prompts.make_prompt(
                state, prompts.format_passages(shown), lines, self.sources.instructions
            )
            choices: dict[str, Sequence[str]] = {"read": [f"P{self.number(id)}" for id in menu]}
            choices |= {"passages": [f"P{self.number(id)}" for id in texts]} if texts else {"statements": ()}
            try:
                reply = yield from self._ask(messages, choices, texts)
            except PromptTooLongError:
                state["room"] = min(state["room"], sum(len(text) for *_, text in shown)) // 2
                if not shown or state["room"] < SMALLEST_ROOM:
                    raise
            else:
                break
        if reply is None:
            self.conclude(f"the budget of {state['stopped']} was used up")
        elif reply.output is None:
            if not state["findings"]:
                raise AgentError(f"the model's output was malformed: {reply.problem}")
            self.conclude("the model's output was malformed")
        else:
            self._mark_as_read(reading)
            self._take_up(reply.output, texts, [document.id or "" for document in reading])

    def _ask(
        self, messages: Sequence[BaseMessage], choices: Mapping[str, Sequence[str]], texts: Mapping[str, str]
    ) -> Operation[ModelReply[CitedReply] | None]:
        """Return what the model says, or None if the budget is used up before.

        Raises:
            AgentError: If the model fails, or the budget does not allow the first call.
        """
        state, sources = self.state, self.sources
        asked = add_fields(messages, CitedReply, choices)
        state["stopped"] = self._find_limit(asked)
        if not state["stopped"]:
            _LOG.info("waits for the model")
            try:
                reply = yield from sources.model.request(
                    CitedReply,
                    messages,
                    choices=choices,
                    check=partial(self._find_problem, texts),
                    tries=1 if self._find_limit([*asked, *asked], calls=TRIES) else TRIES,
                    seconds=(sources.budget.seconds or math.inf) - self.seconds(),
                )
            except CallTimeoutError:
                state["steps"] += 1
                state["prompt_tokens"] += sources.count_tokens(asked)
                state["stopped"] = "seconds"
            else:
                state["steps"] += reply.calls
                state["prompt_tokens"] += reply.prompt_tokens or reply.calls * sources.count_tokens(asked)
                state["output_tokens"] += reply.output_tokens or sum(sources.counter.count([reply.text]))
                state["malformed"] += reply.malformed
                return reply
        if not state["read"]:
            raise AgentError(
                f"the budget of {state['stopped']} was used up before anything was read; allow more"
            )
        return None

    def _find_limit(self, messages: Sequence[BaseMessage], *, calls: int = 1) -> str:
        """Return the budget that calls with these messages would exceed, or an empty string if none."""
        state, budget = self.state, self.sources.budget
        if state["steps"] + calls > budget.steps:
            return "steps"
        if self.seconds() >= (budget.seconds or math.inf):
            return "seconds"
        spent = state["prompt_tokens"] + state["output_tokens"]
        if budget.tokens is not None and spent + self.sources.count_tokens(messages) > budget.tokens:
            return "tokens"
        return ""

    def _take_up(self, reply: CitedReply, texts: Mapping[str, str], read: Sequence[str]) -> None:
        """Take up a reply: end, or record its statements and go on."""
        state = self.state
        cited = [(_strip_numbers(own.text), self._cite(own, texts)[0]) for own in reply.statements]
        kept = [ReadingStatement(text=text, chunks=ids) for text, ids in cited if ids]
        state["refused"] += len(cited) - len(kept)
        whole = reply.answered and len(kept) == len(reply.statements)
        activity = f"read {', '.join(map(repr, read))}" if read else "began"
        if reply.answered and (kept or (whole and state["findings"])):
            state["statements"] = kept or state["findings"]
            self.conclude(activity, ANSWERED if whole else PARTLY)
            return
        state["findings"] += [statement for statement in kept if statement not in state["findings"]]
        wanted = self._find_numbered(reply.read)
        state["wanted"] = [id for id in wanted if id in state["candidates"]]
        searched = {query.casefold() for query in state["searched"]}
        queries = {query.casefold(): query for text in reply.search if (query := " ".join(text.split()))}
        state["queries"] = [query for key, query in queries.items() if key not in searched]
        wants = {"read": state["wanted"], "search": state["queries"]}
        action = " and ".join(name for name, of in wants.items() if of)
        if action:
            self._record(action, [*state["wanted"], *state["queries"]], activity)
        else:
            self.conclude(activity)

    def conclude(self, activity: str, outcome: str = "") -> None:
        """End the reading, with the findings as its answer if nothing else is said."""
        state = self.state
        state["statements"] = state["statements"] or state["findings"]
        state["outcome"] = outcome or (PARTLY if state["statements"] else NOT_IN_SOURCES)
        cited = dict.fromkeys(id for statement in state["statements"] for id in statement["chunks"])
        self._record(state["outcome"], list(cited), activity)

    def _find_problem(self, texts: Mapping[str, str], reply: CitedReply) -> str:
        """Return the problem of the first unsupported statement, an empty string without one."""
        return next(filter(None, (self._cite(statement, texts)[1] for statement in reply.statements)), "")

    def _cite(self, statement: CitedStatement, texts: Mapping[str, str]) -> tuple[list[str], str]:
        """Return the chunks that support a statement; or none, and why.

        They have all names and numbers of the statement. Names of the question may stand in any passage that
        was read. If those that the model cites lack one, the first passage that has all of them is cited:
        small models say what stands in one passage and name another.
        """
        text, question = _strip_numbers(statement.text), self.state["question"]
        if not text or tokenize(text) == tokenize(question):
            return [], "a statement is empty, or repeats the question"
        all_texts = fold("\n".join(texts.values()))
        asked = " ".join(word for word in question.split() if fold(word.strip("?.,!")) in all_texts)
        cited = [id for id in self._find_numbered(statement.passages) if id in texts]
        if not cited:
            return [], "a statement names no passage that was read"
        problem = ""
        for ids in (cited, *([id] for id in texts)):
            missing = find_missing_name(text, "\n".join([*(texts[id] for id in ids), asked]))
            if not missing:
                return ids, ""
            problem = problem or f"the passages that a statement cites do not have {missing!r}"
        return [], problem

    def number(self, id: str) -> int:
        """Return the number of a passage, which it gets when it is first shown."""
        shown = self.state["shown"]
        if id not in shown:
            shown.append(id)
        return shown.index(id) + 1

    def _find_numbered(self, wanted: Iterable[str]) -> list[str]:
        """Return the passages with these numbers, each once, without invented numbers."""
        ids = {str(number): id for number, id in enumerate(self.state["shown"], 1)}
        numbers = (_NUMBER.sub("", text).lstrip("0") for text in wanted)
        return list(dict.fromkeys(ids[number] for number in numbers if number in ids))

    def _look_up_links(self, passages: Sequence[Document]) -> Operation[list[str]]:
        """Add what is linked with passages to the candidates, and return some of it to show.

        The passages of the first call are followed here too: it is shown no candidates.
        """
        state, store = self.state, self.sources.store
        # The findings name what is looked for now, which a question of several steps may not.
        looked_for = " ".join([state["question"], *(finding["text"] for finding in state["findings"][-1:])])
        vector = yield from call(store.embeddings.embed_query, store.embeddings.aembed_query, looked_for)
        ids = [document.id or "" for document in passages]
        plan = find_linked([*ids, *state["read"]], normalize_vector(vector), SHOWN_HITS)
        linked = yield from call_plan(store.backend, plan)
        ways = ((chunk.id, f"{chunk.how} P{self.number(chunk.of)}") for chunk in linked)
        new = self._add_candidates(ways, LINKED)
        self._record("", [], f"looked at links: {format_count(len(new), 'new passage')}")
        beside = [chunk.id for chunk in linked if chunk.beside and chunk.of in ids]
        return beside + [chunk.id for chunk in linked if not chunk.beside][:SHOWN_LINKED]

    def _list_candidates(
        self, passages: Sequence[Document], beside: Sequence[str]
    ) -> Operation[tuple[list[str], list[str]]]:
        """Return the ids of passages to choose from after the first call, and a line for each.

        Args:
            passages: Those that are read now.
            beside: Ids of passages that are shown beside the best candidates.
        """
        state = self.state
        if not state["steps"]:
            return [], []
        reading = {document.id for document in passages}
        ranked = [id for id in self.rank_candidates() if id not in reading][:SHOWN_CANDIDATES]
        others = [id for id in beside if id in state["candidates"] and id not in reading]
        documents = yield from self.load(list(dict.fromkeys([*ranked, *others])))
        lines = []
        for document in documents:
            candidate = state["candidates"][document.id or ""]
            facts = " ".join(candidate["facts"][:FACTS_OF_CANDIDATE])  # which name their title and heading
            place = "" if facts else ", ".join(read_place(document.metadata))
            excerpt = facts or make_snippet(document.page_content, state["question"], SNIPPET_CHARACTERS)
            name = f"{place}: " if place and not excerpt.startswith(place) else ""
            how = f" ({candidate['how']})" if candidate["how"] else ""
            lines.append(f"[P{self.number(document.id or '')}] {name}{excerpt}{how}")
        return [document.id or "" for document in documents], lines

    def _select_batch(self, passages: Sequence[Document]) -> list[Document]:
        """Return the first of the passages that are not too long together, at least one."""
        lengths = accumulate(len(self._cut(document)) for document in passages)
        fitting = sum(length <= self.state["room"] for length in lengths)
        return list(passages[: max(1, fitting)])

    def _cut(self, document: Document) -> str:
        """Return a text, of one that is too long the part with the most words of the question."""
        text, room = document.page_content, self.state["room"]
        if len(text) <= room:
            return text
        words = set(tokenize(self.state["question"]))
        parts = [text[at : at + room] for at in range(0, len(text), room)]
        return max(parts, key=lambda part: len(words.intersection(tokenize(part))))

    def _mark_as_read(self, passages: Sequence[Document]) -> None:
        for document in passages:
            id, url = document.id or "", document.metadata.get("url")
            self.state["candidates"].pop(id, None)
            self.state["read"].append(id)
            title = ", ".join(read_place(document.metadata))
            self.state["citable"][id] = ChunkSource(url=url if isinstance(url, str) else "", title=title)

    def _add_candidates(self, passages: Iterable[tuple[str, str]], weight: float) -> list[str]:
        """Add passages that were not read to the candidates, best first, and return the ids of new ones.

        Args:
            passages: The id of each, and the link that led to it, in words.
            weight: Of the list.
        """
        candidates, new = self.state["candidates"], []
        for rank, (id, how) in enumerate(passages):
            if id in self.state["read"]:
                continue
            if id not in candidates:
                candidates[id] = ReadingCandidate(score=0.0, how=how, facts=[])
                new.append(id)
            candidates[id]["score"] += weight / (rank + RANK_OFFSET)
            candidates[id]["how"] = candidates[id]["how"] or how
        return new

    def _record(self, action: str, to: Sequence[str], activity: str) -> None:
        led = f"{activity}: {action} {', '.join(to)}".rstrip() if action else activity
        _LOG.info("%s", led)
        self.state["actions"].append(ActionRecord(action=action, to=list(to), text=led))


def _strip_numbers(text: str) -> str:
    """Return a statement without the numbers of passages that some models repeat in it."""
    return _NUMBERS.sub("", text).strip()
