"""One user, agent or session never sees another's, whatever their keys look like."""

from __future__ import annotations

import random
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from scripted_model import ScriptedChatModel
from stores import times

from linkstore.errors import DocumentError
from linkstore.memory import ConversationMemory, SessionKey

PARTS = [
    "a",
    "A",
    "a/",
    "/a",
    "aa",
    "a a",
    "a%2Fb",
    "a/b",
    "*",
    "ä",
    "a\u0308",
    "\u202ea",
    "'",
    '"',
    "a#1",
    "0",
]
"""Parts of keys that look alike, begin alike, or have signs that ids and links use."""
REFUSED = ["", "\0", "a\0", "\ud800", "a" * 501]
TOPICS = ["green tea", "the night train", "a red bicycle", "violin lessons", "the garden"]


def sessions(chance: random.Random, count: int) -> list[SessionKey]:
    """Random sessions, of which many share users, agents or names."""
    every = [None, *PARTS]
    keys = list(product(PARTS, every, every))
    return [
        SessionKey(run_id=run, user_id=user, agent_id=agent)
        for run, user, agent in chance.sample(keys, count)
    ]


class IsolationCases:
    """Subclasses give ``store``, an empty linkstore store."""

    @pytest.fixture
    def memory(self, store):
        with ConversationMemory(store) as memory:
            yield memory

    @pytest.fixture
    def chance(self):
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        return random.Random(seed)

    def test_random_interleavings_of_sessions(self, memory, chance):
        """Each turn has a word that only its session knows."""
        keys = sessions(chance, 12)
        said: dict[SessionKey, list[str]] = defaultdict(list)
        for step in range(times(150, 1_000)):
            key = chance.choice(keys)
            if chance.random() < 0.5:
                query = f"{secret(keys, key)} and {chance.choice(TOPICS)}, number {step}"
                memory.add(key, query, chance.choice([None, f"Yes, {secret(keys, key)}."]))
                said[key].append(query)
            else:
                recall = memory.recall(key, f"What about {chance.choice(TOPICS)} and it?")
                assert {turn.session for turn in (*recall.turns, *recall.recent)} <= {key}
                assert not foreign(repr(recall), keys, {key}), key
        for key in keys:
            assert [turn.query for turn in memory.turns(key)] == said[key]
        assert set(memory.sessions()) == {key for key in keys if said[key]}

    def test_recalls_of_all_sessions_stay_with_the_user_and_the_agent(self, memory, chance):
        keys = sessions(chance, 20)
        for key in keys:
            memory.add(key, f"{secret(keys, key)} likes green tea")
        for key in keys:
            own = {key}  # those without a user do not see each other
            if key.user_id is not None:
                own = {one for one in keys if (one.user_id, one.agent_id) == (key.user_id, key.agent_id)}
            recall = memory.recall(key, "Who likes green tea?", k=20, everywhere=True)
            assert {turn.session for turn in recall.turns} == own
            assert not foreign(repr(recall), keys, own)

    def test_writers_and_readers_of_many_sessions_at_once(self, memory, chance):
        keys = sessions(chance, 8)

        def talk(key: SessionKey) -> list[str]:
            leaks = []
            for number in range(6):
                memory.add(key, f"{secret(keys, key)} and green tea, number {number}")
                leaks += foreign(repr(memory.recall(key, "What about green tea?")), keys, {key})
            return leaks

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(talk, keys)) == [[]] * len(keys)
        assert [len(memory.turns(key)) for key in keys] == [6] * len(keys)

    def test_agents_of_many_sessions_hear_only_their_own(self, memory, chance):
        keys = sessions(chance, 6)
        agents = {
            key: (model, create_agent(model, memory.tools(key), middleware=[memory.middleware(key)]))
            for key in keys
            for model in [ScriptedChatModel(script=lambda _: "I see.")]
        }
        for _ in range(times(18, 60)):
            key = chance.choice(keys)
            model, agent = agents[key]
            agent.invoke({"messages": [HumanMessage(f"{secret(keys, key)} and {chance.choice(TOPICS)}")]})
            assert not foreign(str(model.calls[-1].messages), keys, {key})

    @pytest.mark.parametrize("part", REFUSED)
    def test_keys_that_no_session_can_have_are_refused(self, part):
        for names in ({"run_id": part}, {"run_id": "a", "user_id": part}, {"run_id": "a", "agent_id": part}):
            with pytest.raises(DocumentError):
                SessionKey(**names)


def secret(keys: list[SessionKey], key: SessionKey) -> str:
    """A word that only this session says."""
    return f"secret{keys.index(key):02}x"


def foreign(text: str, keys: list[SessionKey], own: set[SessionKey]) -> list[str]:
    """The words of other sessions in a text."""
    return [word for key in keys if key not in own and (word := secret(keys, key)) in text]
