"""What a memory makes of dialogues with an assistant: what it forgets by entity, and facts that give way."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.memory import ConversationMemory


def measure_dialogues(embedding: Embeddings) -> list[dict[str, Any]]:
    """Forgetting and facts of the dialogues in tests/support, by a memory that is told them."""
    rows: list[dict[str, Any]] = []
    for name in ("pronouns", "pronouns_kept"):
        rows += _of_forgetting(name, json.loads((DIALOGUES / f"{name}.json").read_text()), embedding)
    for name, measure, is_so in (
        ("superseded", "newest first", _is_newest_first),
        ("superseded_later", "newest first", _is_newest_first),
        ("beside", "both recalled", _has_both),
        ("beside_later", "both recalled", _has_both),
    ):
        told = json.loads((DIALOGUES / f"{name}.json").read_text())
        count = sum(is_so(one, embedding) for one in told)
        rows.append({"measure": f"{name}: {measure}", "count": count, "of": len(told)})
    return rows


DIALOGUES: Final = Path(__file__).parents[1] / "tests" / "support" / "dialogues"


def _of_forgetting(name: str, told: list[dict[str, Any]], embedding: Embeddings) -> Iterator[dict[str, Any]]:
    erased = missed = more = 0
    for one in told:
        with LinkStore(embedding) as store, ConversationMemory(store) as memory:
            turns = [memory.add("d", query, response) for query, response in one["turns"]]
            turns.append(memory.add("d", one["question"], one["answer"]))
            gone = memory.forget("d", entity=one["entity"]).turns
        about = {turns[at].id for at in one["about"]}
        erased += len(about & gone.keys())
        missed += len(about - gone.keys())
        more += len(gone.keys() - about)
    yield {"measure": f"{name}: turns forgotten", "count": erased, "of": erased + missed}
    yield {"measure": f"{name}: others forgotten", "count": more, "of": more + erased}


def _recalled(one: Mapping[str, Any], embedding: Embeddings) -> tuple[list[str], str, str]:
    """The ids recalled for a question, and those of the older and the newer statement."""
    with LinkStore(embedding) as store, ConversationMemory(store) as memory:
        ids = [memory.add("d", query, response).id for query, response in one["turns"]]
        found = [turn.id for turn in memory.recall("d", one["question"]).turns]
    return found, ids[one["old"]], ids[one["new"]]


def _is_newest_first(one: Mapping[str, Any], embedding: Embeddings) -> bool:
    found, old, new = _recalled(one, embedding)
    return new in found and (old not in found or found.index(new) < found.index(old))


def _has_both(one: Mapping[str, Any], embedding: Embeddings) -> bool:
    found, old, new = _recalled(one, embedding)
    return old in found and new in found
