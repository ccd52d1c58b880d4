"""What a turn and a recall cost in a short session and in a long one, by the clock and in CPU time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from _report import milliseconds
from _retrieval_stores import Stores
from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.memory import ConversationMemory, SessionKey, Turn
from linkstore.memory.sessions import get_page, make_session_document
from linkstore.memory.turns import make_document

KEY = SessionKey(run_id="long", user_id="u")
CALLS = 100
WARM = 5
"""Calls before the first that counts."""
BATCH = 5_000


SIZES: Final[Mapping[bool, Sequence[int]]] = {False: (2_000, 50_000), True: (100, 10_000)}
"""Turns of a session, embedded and on Cassandra."""


def times(embedding: Embeddings, *, cassandra: bool = False) -> list[dict[str, Any]]:
    """Milliseconds in sessions of so many turns, with an entity that all mention."""
    rows = []
    with Stores(cassandra=cassandra, folders=True) as stores:
        for size in SIZES[cassandra]:
            chance = random.Random(size)
            with stores.opened(embedding) as store, ConversationMemory(store) as memory:
                _fill(store, size, chance)
                rows.append({"turns": size, **_of_calls(memory, chance)})
    return rows


def _of_calls(memory: ConversationMemory, chance: random.Random) -> dict[str, float]:
    """What recalls cost, then what turns cost."""
    return {
        **_taken("recall", lambda: memory.recall(KEY, f"what about {_words(chance, 4)}")),
        **_taken("add", lambda: memory.add(KEY, _words(chance, 12), _words(chance, 20))),
    }


def _taken(name: str, call: Callable[[], object]) -> dict[str, float]:
    seconds, cpu = [], []
    for _ in range(WARM + CALLS):
        start, used = time.perf_counter(), time.process_time()
        call()
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    return {
        f"{name} p50 ms": milliseconds(seconds[WARM:]),
        f"{name} p95 ms": milliseconds(seconds[WARM:], 95),
        f"{name} CPU p50 ms": milliseconds(cpu[WARM:]),
    }


def _fill(store: LinkStore, size: int, chance: random.Random) -> None:
    documents = []
    before: str | None = None
    for at in range(size):
        turn = Turn(
            id=f"{KEY.path}/{at + 1:07d}-0",
            session=KEY,
            ordinal=at + 1,
            query=_words(chance, 12),
            response=_words(chance, 20),
            time=datetime.now(UTC),
            entities=("Kubernetes", f"entity {at % 50}"),
            follows=before,
        )
        before = turn.id
        documents.append(make_document(turn))
    documents.append(make_session_document(KEY, get_page(size)))
    for start in range(0, len(documents), BATCH):
        store.add_documents(documents[start : start + BATCH])
    store.backend.run(store.backend.flush())


def _words(chance: random.Random, count: int) -> str:
    return " ".join(f"word{chance.randrange(3000)}" for _ in range(count))
