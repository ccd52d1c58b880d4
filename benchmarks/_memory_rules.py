"""How well the rules of a memory understand English: pronouns of GAP, and dialogues with an assistant."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from langchain_core.embeddings import Embeddings

from linkstore import LinkStore
from linkstore.memory import ConversationMemory, SessionKey, Turn
from linkstore.memory.entities import find_entities
from linkstore.memory.references import resolve_references

WINDOW: Final = 10
"""How many sentences before a pronoun are looked at, as many as a memory's turns."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
Decisions = list[tuple[bool, bool]]
"""What was said of each candidate, and what is true."""


def pronouns(path: Path) -> dict[str, Decisions]:
    """GAP: whether each of two names is what a pronoun means, by the rules and by two simple methods.

    Each sentence before the pronoun is a turn. The last one ends where the pronoun stands, and the question
    begins there.
    """
    found: dict[str, Decisions] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            for method, meant in _meant(row).items():
                truth = [row["A-coref"] == "TRUE", row["B-coref"] == "TRUE"]
                found.setdefault(method, []).extend(zip(meant, truth, strict=True))
    return found


def _meant(row: Mapping[str, str]) -> dict[str, list[bool]]:
    names, at = (row["A"], row["B"]), int(row["Pronoun-offset"])
    before, after = row["Text"][:at], row["Text"][at:]
    distance = [abs(int(row[f"{which}-offset"]) - at) for which in "AB"]
    counts = [row["Text"].count(name) for name in names]
    question = _SENTENCE.split(after)[0]
    text = resolve_references(question, _told(before)).text
    return {
        "rules": [text != question and name in text and name not in question for name in names],
        "nearest name": [one == min(distance) for one in distance],
        "most frequent name": [one == max(counts) for one in counts],
    }


def _told(text: str) -> list[Turn]:
    said = [one for one in _SENTENCE.split(text) if one.strip()][-WINDOW:]
    key = SessionKey(run_id="gap")
    time = datetime.now(UTC)
    return [
        Turn(
            id=str(at),
            session=key,
            ordinal=at,
            query=one,
            response=None,
            time=time,
            entities=find_entities(one),
        )
        for at, one in enumerate(said, 1)
    ]


def measure_dialogues(embedding: Embeddings) -> list[dict[str, Any]]:
    """Pronouns, forgetting and facts of the dialogues in tests/support, by a memory that is told them."""
    rows: list[dict[str, Any]] = []
    for name in ("pronouns", "pronouns_kept", "pronouns_later"):
        rows += _of_pronouns(name, json.loads((DIALOGUES / f"{name}.json").read_text()), embedding)
    told = json.loads((DIALOGUES / "superseded.json").read_text())
    newest = sum(_is_newest_first(one, embedding) for one in told)
    rows.append({"measure": "superseded: newest first", "count": newest, "of": len(told)})
    told = json.loads((DIALOGUES / "beside.json").read_text())
    both = sum(_has_both(one, embedding) for one in told)
    rows.append({"measure": "beside: both recalled", "count": both, "of": len(told)})
    return rows


DIALOGUES: Final = Path(__file__).parents[1] / "tests" / "support" / "dialogues"


def _of_pronouns(name: str, told: list[dict[str, Any]], embedding: Embeddings) -> Iterator[dict[str, Any]]:
    outcomes = {"right": 0, "wrong": 0, "left alone": 0}
    erased = missed = more = 0
    for one in told:
        with LinkStore(embedding) as store, ConversationMemory(store) as memory:
            turns = [memory.add("d", query, response) for query, response in one["turns"]]
            resolved = memory.recall("d", one["question"]).resolved
            if "entity" in one:
                turns.append(memory.add("d", one["question"], one["answer"]))
                gone = memory.forget("d", entity=one["entity"]).turns
        meant = [names for names in one["refers"].values() if names]
        if resolved != one["question"]:
            right = meant and all(_names_one(resolved, names) for names in meant)
            outcomes["right" if right else "wrong"] += 1
        elif meant:
            outcomes["left alone"] += 1
        if "entity" not in one:
            continue
        about = {turns[at].id for at in one["about"]}
        erased += len(about & gone.keys())
        missed += len(about - gone.keys())
        more += len(gone.keys() - about)
    of = sum(any(names for names in one["refers"].values()) for one in told)
    for outcome, count in outcomes.items():
        yield {"measure": f"{name}: {outcome}", "count": count, "of": of if outcome != "wrong" else len(told)}
    if erased:
        yield {"measure": f"{name}: turns forgotten", "count": erased, "of": erased + missed}
        yield {"measure": f"{name}: others forgotten", "count": more, "of": more + erased}


def _names_one(text: str, names: Sequence[str]) -> bool:
    return any(name.lower() in text.lower() for name in names)


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


def quality(decisions: Decisions) -> dict[str, float | int]:
    """Precision, recall and F1 of decisions, in percent."""
    right = sum(said and truth for said, truth in decisions)
    said, true = (sum(one) for one in zip(*decisions, strict=True))
    precision, recall = right / max(said, 1), right / max(true, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    values = {"precision": precision, "recall": recall, "f1": f1}
    return {**{name: round(100 * value, 1) for name, value in values.items()}, "decisions": len(decisions)}
