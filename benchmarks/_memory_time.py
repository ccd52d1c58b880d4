"""What a turn and a recall cost in a short session and in a long one, in CPU time."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.memory import ConversationMemory, SessionKey, Turn
from linkstore.memory.turns import turn_document
from linkstore.memory.writing import (
    SEGMENT_TURNS,
    entity_documents,
    segment_document,
    session_document,
)

KEY = SessionKey(run_id="long", user_id="u")
ASKED = 40


def times(embedding: Embeddings, sizes: Sequence[int] = (100, 10_000)) -> list[dict[str, Any]]:
    """Medians in milliseconds of CPU, for sessions of so many turns, with an entity that all mention."""
    rows = []
    for size in sizes:
        chance = random.Random(size)
        with (
            tempfile.TemporaryDirectory() as folder,
            LinkStore.open(folder, embedding) as store,
            ConversationMemory(store) as memory,
        ):
            _fill(store, size, chance)
            memory.recall(KEY, "what about it?")
            adding = _median(lambda: memory.add(KEY, _words(chance, 12), _words(chance, 20)))  # noqa: B023
            asking = _median(lambda: memory.recall(KEY, f"what about {_words(chance, 4)}"))  # noqa: B023
        rows.append({"turns": size, "add, ms": adding, "recall, ms": asking})
    return rows


def _fill(store: LinkStore, size: int, chance: random.Random) -> None:
    documents = []
    before: str | None = None
    for at in range(size):
        turn = Turn(
            id=KEY.turn(at + 1, "0"),
            session=KEY,
            ordinal=at + 1,
            segment=at // SEGMENT_TURNS + 1,
            query=_words(chance, 12),
            response=_words(chance, 20),
            time=datetime.now(UTC),
            entities=("Kubernetes", f"entity {at % 50}"),
            follows=before,
        )
        before = turn.id
        documents.append(turn_document(turn))
        if at % SEGMENT_TURNS == 0:
            documents.append(segment_document(turn))
        if at % SEGMENT_TURNS < 50:
            documents += entity_documents(turn)
    documents.append(session_document(turn))
    store.add_documents(documents)


def _words(chance: random.Random, count: int) -> str:
    return " ".join(f"word{chance.randrange(3000)}" for _ in range(count))


def _median(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(ASKED):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return round(1000 * statistics.median(taken), 1)
