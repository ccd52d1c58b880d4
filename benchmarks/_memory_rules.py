"""How well the rules of a memory understand English: pronouns of GAP, and shifts of topic in TIAGE."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

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
            segment=1,
            query=one,
            response=None,
            time=time,
            entities=find_entities(one),
        )
        for at, one in enumerate(said, 1)
    ]


def shifts(path: Path, embedding: Embeddings) -> dict[str, Decisions]:
    """TIAGE: whether each utterance after the first begins a new topic, by the segments of a memory."""
    found: Decisions = []
    for name, dialogue in json.loads(path.read_text(encoding="utf-8")).items():
        with LinkStore(embedding) as store, ConversationMemory(store) as memory:
            segments = [memory.add(name, said).segment for said, _ in dialogue]
        found += zip(_changes(segments), (label == "1" for _, label in dialogue[1:]), strict=True)
    always = [(True, truth) for _, truth in found]
    return {"memory": found, "always": always}


def _changes(segments: Sequence[int]) -> Iterator[bool]:
    return (after != before for before, after in pairwise(segments))


def quality(decisions: Decisions) -> dict[str, float | int]:
    """Precision, recall and F1 of decisions, in percent."""
    right = sum(said and truth for said, truth in decisions)
    said, true = (sum(one) for one in zip(*decisions, strict=True))
    precision, recall = right / max(said, 1), right / max(true, 1)
    f1 = 2 * precision * recall / max(precision + recall, 1e-9)
    values = {"precision": precision, "recall": recall, "f1": f1}
    return {**{name: round(100 * value, 1) for name, value in values.items()}, "decisions": len(decisions)}
