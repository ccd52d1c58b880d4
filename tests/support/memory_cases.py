"""What a conversation memory owes, on any engine: each test gets an empty ``store``."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from linkstore import LinkStore
from linkstore.errors import DocumentError, StrategyError
from linkstore.memory import ConversationMemory, SessionKey

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


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

    def test_turns_are_in_order_across_segments(self, memory):
        for number in range(205):
            memory.add("chat", f"message {number} on Kubernetes", entities=["Kubernetes"])
        turns = memory.turns("chat")
        assert [turn.query for turn in turns] == [f"message {number} on Kubernetes" for number in range(205)]
        assert [turn.ordinal for turn in turns] == list(range(1, 206))
        assert [turn.follows for turn in turns] == [None, *(turn.id for turn in turns[:-1])]
        sizes = [sum(turn.segment == n for turn in turns) for n in {turn.segment for turn in turns}]
        assert max(sizes) <= 100
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

    def test_sessions_interleaved_at_random_never_see_each_other(self, memory):
        seed = 20260302
        print("seed", seed)
        rng = random.Random(seed)
        keys = [SessionKey(run_id="a", user_id="u"), SessionKey(run_id="b", user_id="u")]
        words = {keys[0]: "zebra", keys[1]: "walrus"}
        for _ in range(60):
            key = rng.choice(keys)
            if rng.random() < 0.6:
                memory.add(key, f"The {words[key]} is number {rng.randrange(99)}", sources=[words[key]])
            else:
                found = memory.recall(key, "zebra and walrus: which number?")
                seen = {turn.session for turn in (*found.turns, *found.recent)}
                assert seen <= {key}
        both = memory.recall(keys[0], "zebra walrus", k=50, everywhere=True)
        assert {turn.session for turn in both.turns} == set(keys)

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
