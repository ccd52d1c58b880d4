"""What a conversation memory owes, on any engine: each test gets an empty ``store``."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta, timezone
from itertools import count

import pytest
from langchain_core.language_models import FakeListChatModel
from scripted_model import ScriptedChatModel
from stores import times

from linkstore import LinkStore
from linkstore.context import counter_of
from linkstore.core.calls import drive, make_call, run
from linkstore.errors import BudgetError, DocumentError, StrategyError
from linkstore.memory import ConversationMemory, SessionKey, sessions
from linkstore.memory.forgetting import forget_turns
from linkstore.memory.writing import TurnInput, record_note, record_turn

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
PAIRS = (("ada", "a"), ("ada", "b"), ("bob", "a"))


def _interrupt_changes(store, patch, *, after):
    """Let a store make so many changes, and interrupt the next."""
    changes = {"add_documents": store.add_documents, "delete": store.delete}
    done = []

    def interrupted(name):
        def change(*args, **kwargs):
            if len(done) == after:
                raise KeyboardInterrupt
            done.append(name)
            return changes[name](*args, **kwargs)

        return change

    for name in changes:
        patch.setattr(store, name, interrupted(name))


class MemoryCases:
    """Turns that are written are read, in order, by their session alone."""

    @pytest.fixture
    def memory(self, store):
        with ConversationMemory(store) as memory:
            yield memory

    def test_a_turn_is_read_as_it_was_written(self, memory):
        written = memory.add(
            "chat", "What is Kubernetes?", "An orchestrator.", sources=["doc-1", "doc-2"], time=START
        )
        (read,) = memory.turns("chat")
        assert read == written
        assert (read.query, read.response) == ("What is Kubernetes?", "An orchestrator.")
        assert read.sources == ("doc-1", "doc-2")
        assert "Kubernetes" in read.entities
        assert read.time == START

    @pytest.mark.parametrize(
        ("query", "response"),
        [("and?", None), ("", None), ("  ", ""), ("hm", ""), ("?!", "…"), ("\0", "\0"), ("ß" * 9000, "x")],
    )
    def test_turns_without_entities_responses_or_words_are_stored(self, memory, query, response):
        memory.add("chat", query, response, entities=[])
        memory.add("chat", "next")
        first, second = memory.turns("chat")
        assert (first.query, first.response, first.entities) == (query, response, ())
        assert second.follows == first.id

    def test_an_unknown_session_has_no_turns_and_can_be_asked(self, memory):
        assert memory.turns("nobody") == []
        memory.add("chat", "What is Kubernetes?")
        assert memory.turns("nobody") == []
        assert memory.recall("nobody", "What is Kubernetes?").turns == ()

    def test_turns_are_in_order_across_pages(self, memory):
        for number in range(205):
            memory.add("chat", f"message {number} on Kubernetes", entities=["Kubernetes"])
        turns = memory.turns("chat")
        assert [turn.query for turn in turns] == [f"message {number} on Kubernetes" for number in range(205)]
        assert [turn.ordinal for turn in turns] == list(range(1, 206))
        assert [turn.follows for turn in turns] == [None, *(turn.id for turn in turns[:-1])]
        assert memory.turns("chat", last=12) == turns[-12:]

    @pytest.mark.parametrize("part", ["", 7, "x" * 501, "a\0b", "\ud800"])
    def test_a_key_that_cannot_be_stored_is_refused(self, part):
        with pytest.raises(DocumentError, match="run_id"):
            SessionKey(run_id=part)

    def test_keys_that_look_alike_are_different_sessions(self, memory):
        keys = [
            SessionKey(run_id="a"),
            SessionKey(run_id="a", user_id="u"),
            SessionKey(run_id="a", agent_id="u"),
            SessionKey(run_id="u/a"),
            SessionKey(run_id="a", user_id="u/"),
            SessionKey(run_id="A"),
            SessionKey(run_id="a "),
            SessionKey(run_id="%61"),
        ]
        for number, key in enumerate(keys):
            memory.add(key, f"message {number}")
        for number, key in enumerate(keys):
            assert [turn.query for turn in memory.turns(key)] == [f"message {number}"]
        assert memory.sessions() == sorted(keys, key=lambda key: key.path)
        assert memory.sessions(user_id="u") == [SessionKey(run_id="a", user_id="u")]

    def test_writers_at_the_same_time_lose_no_turn(self, store):
        """Four memories over one store write to one session, as processes would."""
        memories = [ConversationMemory(store) for _ in range(4)]

        def write(number: int) -> None:
            for turn in range(10):
                memories[number].add("chat", f"writer {number} turn {turn}")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        said = [turn.query for turn in memories[0].turns("chat")]
        for number in range(4):
            own = [text for text in said if text.startswith(f"writer {number}")]
            assert own == [f"writer {number} turn {turn}" for turn in range(10)]
        assert len(said) == 40

    def test_what_is_written_in_the_background_is_read_at_once(self, memory):
        futures = [memory.add_later("chat", f"message {number}") for number in range(20)]
        assert [turn.query for turn in memory.turns("chat")] == [f"message {n}" for n in range(20)]
        assert all(future.done() for future in futures)

    def test_an_error_in_the_background_is_raised_by_the_next_read(self, memory):
        memory.add_later("chat", "fine")
        memory.add_later("chat", "no zone", time=datetime(2026, 3, 2))  # noqa: DTZ001
        with pytest.raises(DocumentError, match="time zone"):
            memory.turns("chat")
        assert [turn.query for turn in memory.turns("chat")] == ["fine"]

    def test_each_error_in_the_background_is_raised(self, memory):
        wait([memory.add_later("chat", "no zone", time=datetime(2026, 3, day)) for day in (1, 2)])  # noqa: DTZ001
        for day in (1, 2):
            with pytest.raises(DocumentError, match=f"2026, 3, {day}"):
                memory.flush()
        memory.flush()

    async def test_a_read_that_is_cancelled_loses_no_write(self, memory, store, monkeypatch):
        writing, add = threading.Event(), store.add_documents

        def slow(*args, **kwargs):
            writing.wait(5)
            return add(*args, **kwargs)

        monkeypatch.setattr(store, "add_documents", slow)
        memory.add_later("other", "before it")
        memory.add_later("chat", "message")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(memory.aturns("chat"), 0.05)
        writing.set()
        assert [turn.query for turn in await memory.aturns("chat")] == ["message"]

    def test_sessions_interleaved_at_random_never_see_each_other(self, memory):
        seed = 20260302
        print("seed", seed)
        rng = random.Random(seed)
        keys = [SessionKey(run_id="a", user_id="u"), SessionKey(run_id="b", user_id="u")]
        words = {keys[0]: "zebra", keys[1]: "walrus"}
        for _ in range(times(60, 1000)):
            key = rng.choice(keys)
            if rng.random() < 0.6:
                memory.add(key, f"I saw a {words[key]}, number {rng.randrange(99)}", sources=[words[key]])
            else:
                found = memory.recall(key, "zebra and walrus: which number?")
                seen = {turn.session for turn in (*found.turns, *found.recent)}
                assert seen <= {key}
        for here, there in ((keys[0], keys[1]), (keys[1], keys[0])):
            found = memory.recall(here, words[there], k=5, everywhere=True)
            assert {turn.session for turn in found.turns} == {there}
            assert {turn.session for turn in found.recent} == {here}
        both = memory.recall(keys[0], "zebra walrus", k=1_000, everywhere=True)
        assert {turn.session for turn in both.turns} == set(keys)

    @pytest.mark.parametrize(
        "time",
        [
            START.replace(tzinfo=None),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
        ],
        ids=["no zone", "too late", "too early"],
    )
    def test_a_time_that_cannot_be_stored_is_refused(self, memory, time):
        memory.add("chat", "I like tea", time=datetime.max.replace(tzinfo=UTC))
        with pytest.raises(DocumentError, match="time"):
            memory.add("chat", "I like coffee", time=time)
        with pytest.raises(DocumentError, match="time"):
            memory.recall("chat", "what did I say last week?", now=time)
        assert [turn.query for turn in memory.turns("chat")] == ["I like tea"]

    def test_a_long_turn_is_stored_and_found(self, memory, store):
        said = "I repeat: green tea, green tea! " * 40_000
        memory.add("chat", said, "You do.")
        memory.add("chat", "And what else?", said)
        found = memory.recall("chat", "Which tea do I repeat?")
        assert {turn.ordinal for turn in found.turns} == {1, 2}
        assert memory.turns("chat")[0].query == said

    def test_a_recall_asks_for_at_least_one(self, memory):
        with pytest.raises(StrategyError, match="k must be"):
            memory.recall("chat", "what?", k=0)

    async def test_async_answers_as_sync_does(self, memory):
        for number in range(3):
            await memory.aadd("chat", f"message {number} on Kubernetes", time=START + timedelta(hours=number))
        assert await memory.aturns("chat") == memory.turns("chat")
        assert await memory.asessions() == memory.sessions() == [SessionKey(run_id="chat")]
        question = "what about Kubernetes?"
        assert await memory.arecall("chat", question) == memory.recall("chat", question)

    def test_chunks_of_knowledge_are_recalled(self, store):
        with LinkStore() as knowledge:
            knowledge.add_texts(["Kubernetes scales pods.", "Bananas are yellow."], ids=["k", "b"])
            with ConversationMemory(store, knowledge) as memory:
                found = memory.recall("chat", "How does kubernetes scale?", k=1)
        assert [hit.document.id for hit in found.chunks] == ["k"]
        assert "Kubernetes scales pods." in found.prompt

    def test_the_answer_behind_a_question_is_found(self, memory):
        for number in range(40):
            memory.add("chat", f"Ann: The weather was fine on day {number}")
        memory.add("chat", "Bob: Where did you travel on your holidays?")
        memory.add("chat", "Ann: To the Azores, with Eve.")
        for number in range(40):
            memory.add("chat", f"Bob: I read page {number} of my book")
        found = memory.recall("chat", "Where did they travel for holidays?", k=2)
        assert [turn.query for turn in found.turns][1] == "Ann: To the Azores, with Eve."

    def test_the_turn_of_the_segment_that_is_about_the_question_is_first(self, memory):
        """Both segments say the same, but one of them speaks of the subject, some turns before."""
        small = ["What a grey day.", "I had toast.", "My bus was late.", "The shop is shut."]
        for run_id, subject in (("a", "My sister is ill."), ("b", "The regatta begins in June.")):
            for query in (subject, *small, "Let us meet at the old lighthouse."):
                memory.add(SessionKey(run_id=run_id, user_id="u"), query, entities=[])
        asked = SessionKey(run_id="asked", user_id="u")
        found = memory.recall(asked, "Where do we meet for the regatta?", everywhere=True).turns
        meetings = [turn.session.run_id for turn in found if "meet" in turn.query]
        assert meetings == ["b", "a"]

    def test_the_name_of_a_speaker_does_not_outweigh_what_is_asked(self, memory):
        """Without the name, the question has no word of the turn, and only its meaning leads there."""
        for query in ("Ann: Good morning!", "Ann: It is me, Ann.", "Ann: I am well, thanks."):
            memory.add("chat", query)
        memory.add("chat", "Ann: My kitten sleeps all day.")
        memory.add("chat", "Bob: Ann, hello Ann!")
        assert "kitten" in memory.recall("chat", "What pets does Ann have?", k=1).turns[0].query

    def test_words_are_found_in_their_other_forms(self, memory):
        for number in range(40):
            memory.add("chat", f"The weather was fine on day {number}")
        memory.add("chat", "She has been painting again")
        for word in ("paint", "paints", "painted"):
            assert "painting" in memory.recall("chat", f"Who {word}?", k=1).turns[0].query

    @pytest.mark.parametrize("question", ["kubernetes?", "kubernetes", "Kubernetes pods"])
    def test_bare_words_find_what_they_name_and_not_the_last_turns(self, memory, question):
        memory.add("chat", "What is Kubernetes?", "It runs pods on many machines.")
        for number in range(12):
            memory.add("chat", f"How do I build Docker image number {number}?", "With docker build.")
        assert memory.recall("chat", question, k=1).turns[0].query == "What is Kubernetes?"

    def test_bare_words_find_the_chunk_that_they_name_first(self, store):
        with LinkStore() as knowledge:
            knowledge.add_texts(
                ["Docker builds images of containers.", "Kubernetes runs containers on many machines."],
                ids=["docker", "kubernetes"],
            )
            with ConversationMemory(store, knowledge) as memory:
                memory.add("chat", "What is Docker?", "It builds images of containers.", sources=["docker"])
                for question in ("kubernetes?", "kubernetes"):
                    assert memory.recall("chat", question).chunks[0].document.id == "kubernetes"

    @pytest.mark.parametrize("question", ["And in 3.12?", "In 3.12?", "What about 3.12?"])
    def test_a_question_that_goes_on_keeps_its_subject(self, memory, question):
        for subject in ("f-strings", "generators"):
            for version in ("3.11", "3.12"):
                memory.add(
                    SessionKey(run_id=f"{subject} {version}", user_id="u"),
                    f"{subject} are parsed anew in {version}",
                )
        for subject in ("f-strings", "generators"):
            key = SessionKey(run_id=f"now {subject}", user_id="u")
            memory.add(key, f"What changed for {subject} in 3.11?", "They are faster.")
            found = memory.recall(key, question, k=1, everywhere=True)
            assert found.turns[0].query == f"{subject} are parsed anew in 3.12"

    def test_as_many_turns_are_recalled_as_are_asked_for(self, memory):
        for number in range(230):
            memory.add(SessionKey(run_id=f"{number}", user_id="u"), f"I saw a zebra, number {number}")
        asked = SessionKey(run_id="asked", user_id="u")
        for k in (1, 120, 230):
            assert len(memory.recall(asked, "Where is the zebra?", k=k, everywhere=True).turns) == k

    def test_what_was_said_at_a_time_is_recalled(self, memory):
        now = START + timedelta(days=9)
        memory.add("chat", "I would like to learn the piano", time=START)
        memory.add("chat", "I would like to learn the violin", time=now - timedelta(hours=1))
        found = memory.recall("chat", "what did I say last week that I would like to learn?", now=now)
        assert [turn.query for turn in found.turns] == ["I would like to learn the piano"]

    def test_turns_of_the_time_that_a_question_names_are_first(self, memory):
        for day in range(0, 60, 4):
            memory.add(
                "chat", f"Ann: I cooked soup with friends, number {day}", time=START + timedelta(days=day)
            )
        asked = START + timedelta(days=20)
        for date in (f"{asked:%d %B, %Y}", f"{asked:%B %d %Y}", f"{asked:%Y-%m-%d}"):
            found = memory.recall("chat", f"What did Ann cook with friends on {date}?").turns
            assert found[0].time == asked, date
            assert {abs((turn.time - asked).days) for turn in found[1:3]} == {4}, date

    def test_turns_of_both_days_that_a_date_in_numbers_may_mean_are_recalled(self, memory):
        days = [datetime(2024, month, day, 9, tzinfo=UTC) for month, day in ((5, 5), (5, 6), (6, 5), (6, 6))]
        for day in days:
            memory.add("chat", f"I cooked soup on a {day:%A}", time=day)
        found = memory.recall("chat", "What did I say on 5/6/2024 about soup?", now=START).turns
        assert {turn.time for turn in found} == {days[1], days[2]}
        found = memory.recall("chat", "Which soup was cooked on 5/6/2024?", now=START).turns
        assert {turn.time for turn in found[:2]} == {days[1], days[2]}

    def test_a_question_with_a_reference_is_searched_for_together_with_what_was_said(self, store):
        with LinkStore() as knowledge:
            knowledge.add_texts(
                ["Kubernetes runs containers.", "Kubernetes scales pods.", "Bananas are yellow."],
                ids=["what", "scale", "b"],
            )
            with ConversationMemory(store, knowledge) as memory:
                memory.add("chat", "What is Kubernetes?", "It runs containers for you." * 3, sources=["what"])
                found = memory.recall("chat", "How does it scale?", k=2)
                assert found.resolved == "How does it scale?"
                assert "scale" in {hit.document.id for hit in found.chunks}

    def test_a_recall_fits_its_budget(self, store):
        counter = counter_of(None)
        with LinkStore() as knowledge:
            texts = [f"Kubernetes fact {n}: it runs containers of sort {n}." for n in range(40)]
            knowledge.add_texts(texts, ids=[f"k{n}" for n in range(40)])
            with ConversationMemory(store, knowledge) as memory:
                for number in range(12):
                    memory.add("chat", f"What of Kubernetes {number}?", "It runs containers. " * 8)
                for budget in (60, 120, 400, 1500):
                    found = memory.recall("chat", "How does it run containers?", budget=budget)
                    assert counter.count([found.prompt])[0] <= budget
                    assert "How does it run containers?" in found.prompt
                assert len(found.recent) == 10
                assert found.chunks
                with pytest.raises(BudgetError, match="budget of 3"):
                    memory.recall("chat", "How does it run containers?", budget=3)

    def test_a_budget_that_holds_nothing_of_what_was_found_is_the_reason(self, store):
        with ConversationMemory(store) as memory:
            memory.add("chat", "What runs containers? " * 5, "Kubernetes runs them. " * 20)
            assert memory.recall("chat", "What runs containers?").reason is None
            found = memory.recall("chat", "What runs containers?", budget=20)
        assert (found.turns, found.recent) == ((), ())
        assert found.reason == "nothing that was found fits into the budget of 20 tokens beside the question"

    def test_a_model_resolves_references(self, store):
        model = FakeListChatModel(responses=['{"question": "How does Kubernetes scale?"}'])
        with ConversationMemory(store, rewriter=model) as memory:
            memory.add("chat", "What is Kubernetes?")
            assert memory.recall("chat", "How does it scale?").resolved == "How does Kubernetes scale?"

    def test_a_reranker_decides(self, store):
        def prefers_the_last(question, texts):
            return [float("three" in text) for text in texts]

        with ConversationMemory(store, reranker=prefers_the_last) as memory:
            for name in ("one", "two", "three"):
                memory.add("chat", f"Kubernetes has pod {name}")
            assert memory.recall("chat", "Kubernetes pod one").turns[0].query.endswith("three")

    def test_old_turns_are_not_recalled_after_their_time_to_live(self, store):
        now = datetime.now(UTC)
        with ConversationMemory(store, ttl=timedelta(days=1)) as memory:
            memory.add("chat", "Kubernetes is old", time=now - timedelta(days=2))
            memory.add("chat", "Kubernetes is new", time=now)
            found = memory.recall("chat", "Kubernetes")
            assert [turn.query for turn in (*found.turns, *found.recent)] == ["Kubernetes is new"] * 2
            assert len(memory.forget_expired()) == 1
            assert [turn.query for turn in memory.turns("chat")] == ["Kubernetes is new"]

    def test_what_expired_is_not_recalled_by_its_summary_either(self, store):
        now = datetime.now(UTC)
        model = ScriptedChatModel(script=["Ten pods run on each node."])
        with ConversationMemory(store, ttl=timedelta(days=1), model=model) as memory:
            for number in range(4):
                said = now - timedelta(days=9 - number)
                query = f"How many pods does Kubernetes run on node {number}?"
                memory.add("chat", query, "Ten.", sources=["pods"], time=said)
            summary = memory.summarise("chat")
            assert "pods" in summary.query
            memory.forget_expired()
            assert memory.notes("chat") == []
            assert memory.recall("chat", "How many pods?").turns == ()

    def test_a_summary_is_recalled_and_replaced_by_the_next(self, store):
        model = ScriptedChatModel(script=["Ten pods run on each node.", "Pods, and Brahms."])
        memory = ConversationMemory(store, model=model)
        for number in range(12):
            memory.add("chat", f"How many pods does Kubernetes run on node {number}?", "Ten pods.")
        first = memory.summarise("chat")
        assert "pods" in first.query
        assert set(first.sources) == {turn.id for turn in memory.turns("chat")}
        memory.add("chat", "Which violin concertos did Brahms compose?", "One, for Joachim.")
        second = memory.summarise("chat")
        assert second.supersedes == (first.id,)
        found = memory.recall("chat", first.query, k=20).turns
        assert [turn.id for turn in found if turn.is_note] == [second.id]
        assert memory.summarise("empty") is None

    def fill(self, memory) -> dict[str, SessionKey]:
        keys = {
            name: SessionKey(run_id=run, user_id=user)
            for name, run, user in (("a", "a", "ada"), ("b", "b", "ada"), ("c", "a", "bob"))
        }
        for at, (name, key) in enumerate(keys.items()):
            for number in range(3):
                text = f"Session {name} speaks of Zanzibar{name} {number}"
                memory.add(key, text, "Yes.", time=START + timedelta(days=10 * at + number))
            memory.add(key, "Also about kubernetes", time=START + timedelta(days=10 * at + 5))
        return keys

    def test_a_session_is_forgotten(self, memory):
        keys = self.fill(memory)
        assert len(memory.forget(keys["a"])) == 4
        assert memory.turns(keys["a"]) == []
        assert memory.recall(keys["a"], "Zanzibara").turns == ()
        assert memory.sessions() == sorted([keys["b"], keys["c"]], key=lambda key: key.path)
        assert len(memory.turns(keys["b"])) == 4
        memory.add(keys["a"], "Again")
        assert [turn.query for turn in memory.turns(keys["a"])] == ["Again"]

    def test_a_person_is_forgotten(self, memory):
        keys = self.fill(memory)
        assert len(memory.forget(user_id="ada")) == 8
        assert memory.sessions() == [keys["c"]]
        assert len(memory.turns(keys["c"])) == 4

    def test_neither_listing_nor_forgetting_reads_the_whole_store(self, memory, store, monkeypatch):
        keys = self.fill(memory)
        for key in keys.values():
            memory.add(SessionKey(run_id=key.run_id, user_id=key.user_id, agent_id="coach"), "Run!")

        def scan(*_):
            raise AssertionError("the whole store is read")

        monkeypatch.setattr(store.backend, "scan", scan)
        coached = [SessionKey(run_id=run, user_id=user, agent_id="coach") for user, run in PAIRS]
        assert memory.sessions(agent_id="coach") == coached
        assert memory.sessions(user_id="bob") == [keys["c"], coached[2]]
        assert memory.sessions(user_id="ada", agent_id="coach") == coached[:2]
        assert memory.sessions(user_id="coach") == memory.sessions(user_id="*") == []
        assert len(memory.forget(keys["a"], user_id="bob")) == 0
        assert len(memory.forget(agent_id="coach")) == 3
        assert len(memory.forget(user_id="ada")) == 8
        assert memory.sessions() == [keys["c"]]

    def test_what_an_interrupted_write_left_is_no_session_and_is_forgotten(self, memory, store):
        key = SessionKey(run_id="chat", user_id="ada")
        turn = memory.add(key, "What is Quetzalcoatl?", "A serpent.")
        store.delete([turn.id])
        assert memory.sessions() == []
        gone = memory.forget(user_id="ada")
        assert not gone
        assert gone.reason == "no stored turn has user_id 'ada'"
        assert store.backend.run(store.backend.scan(None, 100)) == []

    def test_a_session_whose_last_page_has_no_turn_is_listed_and_goes_on(self, memory, store, monkeypatch):
        monkeypatch.setattr(sessions, "PAGE_TURNS", 2)
        written = [memory.add("chat", f"How many pods does Kubernetes run on node {n}?") for n in range(3)]
        store.delete([written[2].id])
        assert memory.sessions() == [SessionKey(run_id="chat")]
        assert memory.turns("chat", 5) == written[:2]
        assert memory.add("chat", "And on node 9?").follows == written[1].id

    def test_an_entity_is_forgotten(self, memory, store):
        keys = self.fill(memory)
        assert len(memory.forget(entity="Kubernetes")) == 3
        for key in keys.values():
            assert not [turn for turn in memory.turns(key) if "kubernetes" in turn.text]
        left = store.backend.run(store.backend.scan(None, 1000))
        assert not [one.id for one in left if "kubernetes" in f"{one.id} {one.text} {one.metadata}".lower()]
        for key in keys.values():
            memory.add(key, "And on")
            assert memory.turns(key)[-1].query == "And on"

    def test_a_session_goes_on_after_its_last_page_is_forgotten(self, memory, monkeypatch):
        monkeypatch.setattr(sessions, "PAGE_TURNS", 2)
        for number in range(4):
            memory.add("chat", f"How many pods does Kubernetes run on node {number}?", "Ten.")
        memory.add("chat", "Which violin concertos did Brahms and Sibelius compose?")
        assert len(memory.forget("chat", entity="Brahms")) == 1
        assert len(memory.turns("chat", 10)) == 4
        assert memory.recall("chat", "How many pods on node 2?").turns
        assert memory.add("chat", "And on node 9?").ordinal == 5

    @pytest.mark.parametrize("steps", range(3))
    def test_an_interrupted_forgetting_is_completed_by_calling_it_again(
        self, memory, store, steps, monkeypatch
    ):
        monkeypatch.setattr(sessions, "PAGE_TURNS", 2)
        for number in range(3):
            memory.add("chat", f"How many pods does Kubernetes run on node {number}?")
        memory.add("chat", "How many pods does Kubernetes run on node quetzalcoatl?", "As on all.")
        model = ScriptedChatModel(script=["Pods run on node quetzalcoatl."])
        ConversationMemory(store, model=model).summarise("chat")
        memory.remember("chat", "The quetzalcoatl node is the last one.")
        memory.add("chat", "Which violin concertos did Brahms and Sibelius compose?")
        memory.add("other", "Is quetzalcoatl a serpent?", "Yes.")
        before = {name: memory.turns(name) for name in ("chat", "other")}
        with monkeypatch.context() as patch:
            _interrupt_changes(store, patch, after=steps)
            with pytest.raises(KeyboardInterrupt):
                memory.forget(entity="quetzalcoatl")
        again = ConversationMemory(store)
        for name, turns in before.items():
            left = again.turns(name)
            assert left == [turn for turn in turns if turn in left], "a turn is whole or gone"
        again.forget(entity="quetzalcoatl")
        kept = store.backend.run(store.backend.scan(None, 1000))
        assert not [one for one in kept if "quetzalcoatl" in f"{one.id} {one.text} {one.metadata}".lower()]
        assert [turn.query for turn in again.turns("chat")] == [
            turn.query for turn in before["chat"] if "quetzalcoatl" not in turn.query
        ]
        assert again.sessions() == [SessionKey(run_id="chat")]
        assert again.add("chat", "And on node 9?").ordinal == 6

    def test_a_forgetting_of_many_pages_leaves_none(self, memory, store, monkeypatch):
        """More pages than are looked for at once lie behind the one that is left."""
        monkeypatch.setattr(sessions, "PAGE_TURNS", 1)
        memory.add("chat", "How many pods does Kubernetes run?")
        for number in range(20):
            memory.add("chat", f"Is quetzalcoatl serpent number {number}?")
        memory.forget(entity="quetzalcoatl")
        left = store.backend.run(store.backend.scan(None, 1000))
        assert not [one for one in left if "quetzalcoatl" in f"{one.id} {one.text}".lower()]
        assert [turn.query for turn in memory.turns("chat")] == ["How many pods does Kubernetes run?"]
        assert memory.turns("chat", 3) == memory.turns("chat")
        assert memory.add("chat", "And on node 9?").ordinal == 2

    def test_calls_that_complete_a_forgetting_at_once_agree(self, memory, store, monkeypatch):
        for number in range(6):
            memory.add("gone", f"The passphrase is quetzalcoatl{number}.")
            memory.add("kept", f"The weather is fine on day {number}.")
        with monkeypatch.context() as patch:
            _interrupt_changes(store, patch, after=1)
            with pytest.raises(KeyboardInterrupt):
                memory.forget("gone")
        with ThreadPoolExecutor(4) as pool:
            memories = [ConversationMemory(store) for _ in range(4)]
            list(pool.map(lambda one: one.forget("gone"), memories))
        assert memory.turns("gone") == []
        assert len(memory.turns("kept")) == 6
        left = store.backend.run(store.backend.scan(None, 1000))
        assert not [one for one in left if "//gone" in one.id]

    @pytest.mark.parametrize("writing", ["a turn", "an answer", "a note"])
    @pytest.mark.parametrize("first", ["write", "forget"])
    def test_what_is_written_while_its_session_is_forgotten_is_found(self, memory, store, writing, first):
        """One comes between two calls of the other; what is stored then is listed, and can be forgotten."""
        found = 0
        for stop in count():
            key = SessionKey(user_id=f"user {stop}", run_id="chat")
            memory.add(key, "Who was Brahms?", key="m")
            answer = TurnInput(session=key, query="Who was Brahms?", response="A composer.", key="m")
            operations = {
                "forget": forget_turns(memory, key),
                "a turn": record_turn(memory, TurnInput(session=key, query="And Sibelius?")),
                "an answer": record_turn(memory, answer),
                "a note": record_note(memory, TurnInput(key, "Brahms composed.")),
            }
            both = [operations[writing], operations["forget"]]
            outer, inner = both if first == "write" else reversed(both)
            calls = count()

            def make(call, calls=calls, stop=stop, inner=inner):
                if next(calls) == stop:
                    run(inner)
                return make_call(call)

            drive(outer, make)
            stored = store.backend.run(store.backend.scan(None, 1000))
            kept = [one.id for one in stored if one.metadata["type"] != "session"]
            found += bool(kept)
            assert memory.sessions() == ([key] if kept else [])
            memory.forget(user_id=key.user_id)
            assert store.backend.run(store.backend.scan(None, 1000)) == []
            if next(calls) <= stop:
                break
        assert found, "at no moment was anything stored after the forgetting"

    def test_what_was_said_before_a_date_is_forgotten(self, memory):
        keys = self.fill(memory)
        assert len(memory.forget(before=START + timedelta(days=11))) == 5
        assert memory.turns(keys["a"]) == []
        assert len(memory.turns(keys["b"])) == 3
        assert len(memory.turns(keys["c"])) == 4
        assert len(memory.forget(before=START + timedelta(days=11))) == 0

    def test_forgetting_needs_to_know_what(self, memory):
        with pytest.raises(DocumentError, match="forget"):
            memory.forget()
        with pytest.raises(DocumentError, match="time zone"):
            memory.forget(before=datetime(2026, 3, 2))  # noqa: DTZ001

    def test_odd_turns_are_exported_as_they_were_said(self, memory):
        said = [("", None), ("", ""), (" \n", "x"), ("\0", "\x7f\u2028"), ("\N{PILE OF POO}" * 3, '"\\"')]
        said.append(("word " * 20_000, "w" * 100_000))
        for query, response in said:
            memory.add("chat", query, response)
        exported = json.loads(json.dumps(memory.export("chat")))
        assert [(turn["query"], turn["response"]) for turn in exported["turns"]] == said
        for turn in exported["turns"]:
            copy = {key: turn[key] for key in ("query", "response", "entities", "sources")}
            memory.add("copy", **copy, time=datetime.fromisoformat(turn["time"]))
        again = memory.export("copy")
        for before, after in zip(exported["turns"], again["turns"], strict=True):
            assert {**before, "id": "", "follows": ""} == {**after, "id": "", "follows": ""}

    @pytest.mark.parametrize("field", ["query", "response", "entities", "sources"])
    def test_half_a_character_is_refused_with_its_place(self, memory, field):
        value = ["a\ud800b"] if field in {"entities", "sources"} else "a\ud800b"
        for _ in range(2):  # in an empty store, and in one with turns
            before = memory.turns("chat")
            with pytest.raises(DocumentError, match=rf"{field} must not have lone surrogates: 'a\\ud800b'"):
                memory.add("chat", **{"query": "fine", field: value})
            assert memory.turns("chat") == before
            memory.add("chat", "fine")

    def test_an_export_has_all_that_was_said(self, memory):
        memory.add("chat", "What is Kubernetes?", "An orchestrator.", sources=["doc"], time=START)
        exported = json.loads(json.dumps(memory.export("chat")))
        assert exported["run_id"] == "chat"
        (turn,) = exported["turns"]
        assert (turn["query"], turn["response"]) == ("What is Kubernetes?", "An orchestrator.")
        assert turn["sources"] == ["doc"]
        assert datetime.fromisoformat(turn["time"]) == START
