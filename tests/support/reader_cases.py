"""What holds of GraphReader on every engine: golden readings over a small store."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages.tool import invalid_tool_call
from langgraph.checkpoint.memory import InMemorySaver
from rule_facts import RuleExtractor

from linkstore import Link, LinkStore, add_links
from linkstore.agents import (
    Answer,
    Budget,
    Fact,
    GraphReader,
    ScriptedChatModel,
    draw_reading,
    graph_reader,
    index_facts,
)
from linkstore.agents.state import (
    ChunkAction,
    CitedStatement,
    FactsAction,
    FinalAnswer,
    InitialElements,
    NeighbourAction,
    RationalPlan,
    ScoredElement,
    SearchAction,
)
from linkstore.context import counter_of
from linkstore.errors import AgentError, StoreUnavailableError

QUESTION = "Where was Joan of Arc born?"
MALFORMED = invalid_tool_call(name=None, args="{not json", id=None, error=None)
TEXTS = {
    "joan": "Joan of Arc was born in Domrémy. She led an army.",
    "siege": "The siege of Orléans ended in 1429. Joan of Arc broke it.",
    "trial": "Joan of Arc was tried in Rouen. The bishop Pierre Cauchon led the trial.",
    "domremy": "Domrémy is a village on the Meuse. About 100 people live there.",
    "rouen": "Rouen is a city on the Seine. It has a cathedral.",
    "meuse": "The Meuse is a river that rises in France. It flows into the North Sea.",
}
ORDER = ("joan", "siege", "trial")
"""The chunks of one page."""


def documents() -> list[Document]:
    """Three chunks of a page, and three pages that they link to, one after the other."""
    made = {
        id: Document(
            id=id,
            page_content=text,
            metadata={"title": "Joan of Arc" if id in ORDER else id.title(), "url": f"/{id}#top"},
        )
        for id, text in TEXTS.items()
    }
    for at, id in enumerate(ORDER):
        add_links(made[id], Link.incoming(kind="section", tag=id))
        if at:
            add_links(made[id], Link.outgoing(kind="section", tag=ORDER[at - 1], label="previous"))
        if at + 1 < len(ORDER):
            add_links(made[id], Link.outgoing(kind="section", tag=ORDER[at + 1], label="next"))
    for start, end in (("joan", "domremy"), ("trial", "rouen"), ("domremy", "meuse")):
        add_links(made[start], Link.outgoing(kind="hyperlink", tag=end, label=f"the {end}"))
        add_links(made[end], Link.incoming(kind="hyperlink", tag=end))
    return list(made.values())


PLAN = RationalPlan(plan="Find out where she was born.")


def start(*names: str) -> InitialElements:
    return InitialElements(elements=[ScoredElement(key_element=name, score=90) for name in names])


def facts(*ids: str, notes: str = "") -> FactsAction:
    return FactsAction(
        action="read_chunk" if ids else "stop_and_read_neighbor", chunk_ids=list(ids), notes=notes
    )


def chunk(action: Any, notes: str = "", query: str = "") -> ChunkAction:
    return ChunkAction(action=action, notes=notes, query=query)


def found(*ids: str) -> SearchAction:
    return SearchAction(action="read_chunk" if ids else "termination", chunk_ids=list(ids))


def go(*ids: str, element: str = "") -> NeighbourAction:
    action: Any = "read_neighbor_node" if element else "read_chunk" if ids else "termination"
    return NeighbourAction(action=action, key_element=element, chunk_ids=list(ids))


def said(text: str, *ids: str) -> FinalAnswer:
    return FinalAnswer(in_sources=True, statements=[CitedStatement(text=text, chunk_ids=list(ids))])


NOT_THERE = FinalAnswer(in_sources=False, analysis="Nothing about it.")
BORN = said("In Domrémy.", "joan")
DONE, MORE, LINKS = (
    chunk("termination", "born in Domrémy [joan]"),
    chunk("search_more"),
    chunk("read_neighbors"),
)
READINGS: dict[str, tuple[list[Any], list[str]]] = {
    "simple": (
        [PLAN, start("Joan of Arc"), facts("joan"), DONE, BORN],
        ["plan", "start", "read_chunk joan", "termination", "answered joan"],
    ),
    "two hops": (
        [
            PLAN,
            start("Domrémy"),
            facts("domremy"),
            LINKS,
            go("meuse"),
            DONE,
            said("The Meuse.", "meuse", "domremy"),
        ],
        [
            "plan",
            "start",
            "read_chunk domremy",
            "read_neighbors",
            "read_chunk meuse",
            "termination",
            "answered meuse domremy",
        ],
    ),
    "key elements beside": (
        [PLAN, start("Rouen"), facts(), go(element="Joan of Arc"), facts("joan"), DONE, BORN],
        [
            "plan",
            "start",
            "stop_and_read_neighbor",
            "read_neighbor_node joan of arc",
            "read_chunk joan",
            "termination",
            "answered joan",
        ],
    ),
    "key elements of a passage found by a search": (
        [PLAN, start(), found("joan"), LINKS, go(element="Domrémy"), facts("domremy"), DONE, BORN],
        [
            "plan",
            "start",
            "read_chunk joan",
            "read_neighbors",
            "read_neighbor_node domrémy",
            "read_chunk domremy",
            "termination",
            "answered joan",
        ],
    ),
    "wrong turn and back": (
        [PLAN, start("Rouen", "Domrémy"), facts("rouen"), MORE, found(), facts("joan"), DONE, BORN],
        [
            "plan",
            "start",
            "read_chunk rouen",
            "search_more",
            "termination",
            "read_chunk joan",
            "termination",
            "answered joan",
        ],
    ),
    "next and previous": (
        [
            PLAN,
            start("Joan of Arc"),
            facts("siege"),
            chunk("read_subsequent_chunk"),
            chunk("read_previous_chunk"),
            found("joan"),
            chunk("read_previous_chunk"),
            NOT_THERE,
        ],
        [
            "plan",
            "start",
            "read_chunk siege",
            "read_subsequent_chunk trial",
            "read_previous_chunk",
            "read_chunk joan",
            "read_previous_chunk",
            "termination",
            "not in the sources",
        ],
    ),
    "a queue of passages": (
        [PLAN, start("Joan of Arc"), facts("trial", "siege", "joan"), MORE, MORE, DONE, BORN],
        [
            "plan",
            "start",
            "read_chunk trial siege joan",
            "search_more",
            "search_more",
            "termination",
            "answered joan",
        ],
    ),
    "search for something else": (
        [
            PLAN,
            start("Rouen"),
            facts("rouen"),
            chunk("search_more", query="river"),
            found("meuse"),
            DONE,
            BORN,
        ],
        [
            "plan",
            "start",
            "read_chunk rouen",
            "search_more",
            "read_chunk meuse",
            "termination",
            "unsupported",
        ],
    ),
    "nothing found": (
        [PLAN, start("Seine"), facts(), go(), found(), NOT_THERE],
        ["plan", "start", "stop_and_read_neighbor", "termination", "termination", "not in the sources"],
    ),
    "invented key elements": (
        [PLAN, start("Napoleon", "Elba", "Domrémy"), facts("joan"), DONE, BORN],
        ["plan", "start", "read_chunk joan", "termination", "answered joan"],
    ),
    "invented passages": (
        [PLAN, start("Domrémy"), facts("elba", "moscow"), go("paris"), found("joan", "elba"), DONE, BORN],
        [
            "plan",
            "start",
            "stop_and_read_neighbor",
            "termination",
            "read_chunk joan",
            "termination",
            "answered joan",
        ],
    ),
    "invented citations": (
        [
            PLAN,
            start("Domrémy"),
            facts("joan"),
            DONE,
            FinalAnswer(
                in_sources=True,
                statements=[
                    CitedStatement(text="In Domrémy.", chunk_ids=["joan", "elba"]),
                    CitedStatement(text="On Elba.", chunk_ids=["elba"]),
                    CitedStatement(text="Somewhere.", chunk_ids=[]),
                ],
            ),
        ],
        ["plan", "start", "read_chunk joan", "termination", "answered joan"],
    ),
    "malformed once": (
        [PLAN, start("Domrémy"), MALFORMED, facts("joan"), DONE, BORN],
        ["plan", "start", "read_chunk joan", "termination", "answered joan"],
    ),
    "malformed twice": (
        [MALFORMED, MALFORMED, start("Domrémy"), facts("joan"), MALFORMED, MALFORMED, found(), NOT_THERE],
        ["plan", "start", "read_chunk joan", "search_more", "termination", "not in the sources"],
    ),
    "no key element chosen": (
        [PLAN, start(), found("joan"), DONE, BORN],
        ["plan", "start", "read_chunk joan", "termination", "answered joan"],
    ),
}
"""For each reading the outputs of the model, and the actions that follow from them."""


def taken(answer: Answer) -> list[str]:
    """The actions of a reading, each with where it led."""
    return [
        " ".join([one["action"], *(to.partition(":")[2] for to in one["to"] if one["action"] != "start")])
        for one in answer.actions
    ]


def scripted(script: Sequence[Any]) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(script))


def without_time(answer: Answer) -> dict[str, Any]:
    """All of an answer but how long it took."""
    return {name: getattr(answer, name) for name in Answer.__slots__ if name != "seconds"}


class OfParis(RuleExtractor):
    """Each line is a fact about Paris."""

    def extract(self, chunks: Sequence[Document]) -> list[Any]:
        return [
            [Fact(text=f"{line} in Paris.", key_elements=("Paris",)) for line in one.page_content.split("\n")]
            for one in chunks
        ]


THREAD: Any = {"configurable": {"thread_id": "one"}}


class ReaderCases:
    """Subclasses have a store with :func:`documents` and their facts."""

    @pytest.fixture
    def store(self) -> Iterator[LinkStore]:
        raise NotImplementedError

    many = 10_000
    """Facts of one key element."""

    def test_of_many_facts_of_a_key_element_the_best_are_read(self, store):
        """The one fact that answers is among the 50 shown, and the reader is told how many there are."""
        lines = [f"Shop number {n} sells bread" for n in range(self.many - 1)]
        at = self.many * 7 // 10
        lines.insert(at, "The tower of Gustave Eiffel stands")
        paris = [
            Document(id=f"d{n}", page_content="\n".join(lines[n : n + 100])) for n in range(0, self.many, 100)
        ]
        store.add_documents(paris)
        index_facts(store, OfParis())
        id = f"d{at // 100 * 100}"
        model = scripted([PLAN, start("Paris"), facts(id), DONE, said("x", id)])
        with graph_reader(store, model) as reader:
            answer = reader.invoke("Where is the tower of Gustave Eiffel?")
        store.delete([one.id for one in paris])
        index_facts(store, RuleExtractor())

        shown = str(model.calls[2].messages[-1].text)
        assert f"the best 50 of {self.many:,} facts" in shown
        assert f"[{id}] The tower of Gustave Eiffel stands in Paris." in shown
        assert answer.outcome == "answered"
        assert f"read the best 50 of {self.many:,} facts of 'paris'" in answer.explain()

    @pytest.mark.parametrize("name", READINGS)
    def test_the_model_decides_where_a_reading_goes(self, store, name):
        script, wanted = READINGS[name]
        model = scripted(script)

        with graph_reader(store, model) as reader:
            answer = reader.invoke(QUESTION)

        assert taken(answer) == wanted
        assert len(model.calls) == answer.steps == len(script)
        assert answer.outcome == wanted[-1].split(" ")[0] or answer.outcome == wanted[-1]
        assert set(answer.read) <= TEXTS.keys()
        assert len(set(answer.read)) == len(answer.read)

    def test_statements_cite_chunks_by_id_and_url(self, store):
        with graph_reader(store, scripted(READINGS["two hops"][0])) as reader:
            answer = reader.invoke(QUESTION)

        assert [(one.id, one.url, one.title) for one in answer.citations] == [
            ("meuse", "/meuse#top", "Meuse"),
            ("domremy", "/domremy#top", "Domremy"),
        ]
        assert answer.text == "The Meuse."
        assert "[meuse, domremy]" in answer.explain()

    def test_what_is_invented_is_refused_and_counted(self, store):
        refused = {}
        for name in ("invented key elements", "invented passages", "invented citations"):
            with graph_reader(store, scripted(READINGS[name][0])) as reader:
                refused |= reader.invoke(QUESTION).refused
        assert refused == {"elements": 2, "chunks": 4, "citations": 2}

    def test_async_takes_the_same_actions(self, store):
        async def read(script: Sequence[Any]) -> tuple[Answer, list[Answer]]:
            reader = graph_reader(store, scripted(script))
            streamed = [one async for one in graph_reader(store, scripted(script)).astream(QUESTION)]
            return await reader.ainvoke(QUESTION), streamed

        for script, wanted in READINGS.values():
            answer, streamed = asyncio.run(read(script))
            assert taken(answer) == wanted
            assert without_time(streamed[-1]) == without_time(answer)
            assert [len(one.actions) for one in streamed] == list(range(len(wanted) + 1))

    @pytest.mark.parametrize("name", ["two hops", "next and previous", "malformed twice"])
    def test_a_reading_resumed_after_every_step_is_one_that_was_not_interrupted(self, store, name):
        script, _ = READINGS[name]
        with graph_reader(store, scripted(script)) as reader:
            whole = reader.invoke(QUESTION)
        saver, model = InMemorySaver(), scripted(script)

        question: str | None = QUESTION
        stops = 0
        while True:
            with graph_reader(store, model, checkpointer=saver) as reader:
                answer = reader.invoke(question, THREAD, interrupt_after="*")
                question, stops = None, stops + 1
            if answer.outcome:
                break

        assert stops >= len(answer.actions)
        assert without_time(answer) == without_time(whole)

    @pytest.mark.parametrize("name", ["two hops", "next and previous", "malformed twice"])
    def test_a_reading_goes_on_after_the_model_failed_at_any_call(self, store, name):
        script, _ = READINGS[name]
        with graph_reader(store, scripted(script)) as reader:
            whole = reader.invoke(QUESTION)
        for at in range(len(script)):
            model = scripted([*script[:at], ConnectionError("no route"), *_again(script, at)])
            with graph_reader(store, model, checkpointer=InMemorySaver()) as reader:
                with pytest.raises(AgentError, match="no route"):
                    reader.invoke(QUESTION, THREAD)
                assert without_time(reader.invoke(None, THREAD)) == without_time(whole)

    def test_a_store_that_fails_ends_the_reading_with_its_error_and_it_can_go_on(self, store, monkeypatch):
        script, wanted = READINGS["wrong turn and back"]
        with graph_reader(store, scripted(script), checkpointer=InMemorySaver()) as reader:
            with monkeypatch.context() as patch:
                patch.setattr(LinkStore, "search", _unavailable)
                with pytest.raises(StoreUnavailableError):
                    reader.invoke(QUESTION, THREAD)
            answer = reader.invoke(None, THREAD)

        assert taken(answer) == wanted

    def test_a_budget_of_steps_ends_in_the_best_answer_so_far(self, store):
        script, wanted = READINGS["a queue of passages"]
        for steps in range(1, len(script)):
            model = scripted([*script[: steps - 1], BORN])
            with graph_reader(store, model, budget=Budget(steps=steps)) as reader:
                answer = reader.invoke(QUESTION)
            assert answer.steps == len(model.calls) == steps
            assert answer.stopped == "steps"
            assert "the budget of steps was used up" in answer.explain()
            assert taken(answer)[:-1] == wanted[: steps - 1] or steps == 1

    def test_a_budget_of_tokens_leaves_room_for_the_answer(self, store):
        script, _ = READINGS["a queue of passages"]
        with graph_reader(store, scripted(script)) as reader:
            whole = reader.invoke(QUESTION).tokens
        for tokens in (1, whole // 4, whole // 2, whole * 3 // 4):
            model = ScriptedChatModel(script=_by_schema(script))
            with graph_reader(store, model, budget=Budget(tokens=tokens)) as reader:
                answer = reader.invoke(QUESTION)
            outputs = 60 * answer.steps
            assert answer.tokens <= tokens + outputs
            assert answer.stopped == "tokens"
            assert bool(model.calls) == (answer.outcome != "out of budget")

    def test_a_budget_of_tokens_holds_for_the_prompt_of_the_answer(self, store):
        """Though the notebook has grown since it was left room; the oldest notes are left out of it."""
        note = "born in Domrémy [joan] " * 60
        script = [
            PLAN,
            start("Joan of Arc"),
            facts("trial", "siege", "joan"),
            *[chunk("search_more", note)] * 2,
        ]
        count = counter_of(None).count
        for tokens in (700, 1_000, 1_400, 2_000):
            model = ScriptedChatModel(script=_by_schema([*script, BORN]))
            with graph_reader(store, model, budget=Budget(tokens=tokens)) as reader:
                answer = reader.invoke(QUESTION)
            prompt = sum(count([str(one.text) for one in model.calls[-1].messages]))
            before = sum(sum(count([str(one.text) for one in call.messages])) for call in model.calls[:-1])
            assert prompt + before <= tokens
            assert answer.outcome

    @pytest.mark.parametrize("slow", [0, 1, 4])
    def test_a_budget_of_seconds_holds_for_every_call(self, store, slow):
        """The first, one after it, the answer's: none is waited for when the time is up."""
        answers = _by_schema(READINGS["simple"][0])
        calls, ended = [], threading.Event()

        def delayed(messages: Any) -> Any:
            calls.append(messages)
            if len(calls) == slow + 1:
                ended.wait(60)
            return answers(messages)

        with graph_reader(store, ScriptedChatModel(script=delayed), budget=Budget(seconds=8)) as reader:
            began = time.monotonic()
            answer = reader.invoke(QUESTION)
            took = time.monotonic() - began
        ended.set()

        assert took < 40
        assert answer.stopped == "seconds"
        assert (answer.outcome == "out of budget") == (slow == 4)

    def test_without_time_no_call_is_made(self, store):
        model = ScriptedChatModel(script=_by_schema(READINGS["simple"][0]))
        with graph_reader(store, model, budget=Budget(seconds=1e-9)) as reader:
            answer = reader.invoke(QUESTION)

        assert (answer.stopped, answer.outcome, answer.steps) == ("seconds", "out of budget", 0)
        assert "budget was used up" in answer.text

    def test_only_a_passage_that_was_read_can_be_cited(self, store):
        """Facts of the siege and the trial were read, the passages were not."""
        script = [PLAN, start("Joan of Arc"), facts("joan"), DONE, said("In Rouen.", "trial", "siege")]
        with graph_reader(store, scripted(script)) as reader:
            answer = reader.invoke(QUESTION)

        assert (answer.read, answer.outcome, answer.statements) == (("joan",), "unsupported", ())
        assert answer.refused == {"citations": 2}

    def test_a_model_that_always_refuses_ends_after_a_few_calls(self, store):
        model = ScriptedChatModel(script=lambda _: "I cannot help with that.")
        with graph_reader(store, model) as reader, pytest.raises(AgentError, match="cannot help with that"):
            reader.invoke(QUESTION)
        assert len(model.calls) == 6

    def test_without_facts_a_reader_searches_and_follows_links(self, store):
        script = [PLAN, found("joan"), LINKS, go("domremy"), LINKS, go("meuse"), DONE, said("x", "meuse")]
        reader = _without_facts(store, scripted(script))
        answer = reader.invoke(QUESTION)

        assert reader.facts is None
        assert taken(answer) == [
            "plan",
            "read_chunk joan",
            "read_neighbors",
            "read_chunk domremy",
            "read_neighbors",
            "read_chunk meuse",
            "termination",
            "answered meuse",
        ]

    def test_the_picture_has_what_was_read_and_marks_the_way_to_the_answer(self, store):
        with graph_reader(store, scripted(READINGS["two hops"][0]), checkpointer=InMemorySaver()) as reader:
            answer = reader.invoke(QUESTION, THREAD)
            svg = reader.explain(THREAD).svg

        assert svg == draw_reading(answer).svg
        assert svg.count('class="box path"') == 3
        assert "domrémy" in svg

    def test_a_second_question_on_a_thread_starts_anew(self, store):
        with graph_reader(store, scripted(READINGS["simple"][0] * 2), checkpointer=InMemorySaver()) as reader:
            first = reader.invoke(QUESTION, THREAD)
            second = reader.invoke(QUESTION, THREAD)

        assert without_time(first) == without_time(second)

    def test_the_graph_takes_a_question_by_itself(self, store):
        with graph_reader(store, scripted(READINGS["simple"][0])) as reader:
            state = reader.graph.invoke({"question": QUESTION})

        assert state["outcome"] == "answered"

    def test_an_answer_that_is_malformed_twice_is_an_error_and_can_be_asked_for_again(self, store):
        script = [*READINGS["simple"][0][:-1], MALFORMED, MALFORMED, BORN]
        with graph_reader(store, scripted(script), checkpointer=InMemorySaver()) as reader:
            with pytest.raises(AgentError, match="malformed twice"):
                reader.invoke(QUESTION, THREAD)
            assert reader.invoke(None, THREAD).outcome == "answered"

    def test_a_chunk_that_is_gone_is_passed_over(self, store):
        script = [PLAN, start("Joan of Arc"), facts("trial", "joan"), MORE, found(), NOT_THERE]
        with graph_reader(store, scripted(script), checkpointer=InMemorySaver()) as reader:
            reader.invoke(QUESTION, THREAD, interrupt_after=["facts"])
            store.delete(["trial"])
            answer = reader.invoke(None, THREAD)

        assert answer.read == ("joan",)
        assert "'trial' is gone" in answer.explain()


def _again(script: Sequence[Any], at: int) -> list[Any]:
    """What a step is answered that is repeated because a call of it failed: from its first call on."""
    malformed = 0
    while malformed < at and script[at - 1 - malformed] is MALFORMED:
        malformed += 1
    return list(script[at - malformed % 2 :])


def _unavailable(*_: object, **__: object) -> None:
    raise StoreUnavailableError("the server does not answer")


def _by_schema(script: Sequence[Any]) -> Any:
    """Answers each call with the script's next output of the schema asked for, or an empty one."""
    defaults = {
        "RationalPlan": PLAN,
        "InitialElements": start(),
        "FactsAction": facts(),
        "ChunkAction": DONE,
        "SearchAction": found(),
        "NeighbourAction": go(),
        "FinalAnswer": NOT_THERE,
    }
    left = list(script)

    def answer(messages: Any) -> Any:
        task = str(messages[0].text)
        for name, words in (
            ("RationalPlan", "First make a plan"),
            ("InitialElements", "Score those"),
            ("FactsAction", "Read facts"),
            ("ChunkAction", "Read a passage"),
            ("NeighbourAction", "Choose where"),
            ("SearchAction", "found by a search"),
            ("FinalAnswer", "Answer the question"),
        ):
            if words in task:
                matching = [one for one in left if type(one).__name__ == name]
                if matching:
                    left.remove(matching[0])
                return matching[0] if matching else defaults[name]
        raise AssertionError(task)

    return answer


def _without_facts(store: LinkStore, model: ScriptedChatModel) -> GraphReader:
    """A reader that finds no store of facts."""
    from linkstore.agents import reader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_open_facts", lambda _: None)
        return graph_reader(store, model)


def filled(store: LinkStore) -> LinkStore:
    """The store with documents and facts."""
    store.add_documents(documents())
    index_facts(store, RuleExtractor())
    return store
