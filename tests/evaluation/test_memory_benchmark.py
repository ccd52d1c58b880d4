"""The benchmark of memories reads LongMemEval and BEAM in the forms in which they are published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"


def say(role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


FILLER = [
    [say("user", f"Which {thing} is best for a garden?"), say("assistant", f"A plain {thing} will do.")]
    for thing in (
        "hose",
        "fence",
        "spade",
        "lamp",
        "bench",
        "hedge",
        "gate",
        "pond",
        "swing",
        "shed",
        "rake",
        "barrow",
    )
]
CAR = [
    say("user", "I bought a car. The GPS of it stopped working on the first day.", has_answer=True),
    say("assistant", "Have you restarted it?"),
    say("user", "No. What should I wear to a wedding?"),
    say("assistant", "A suit."),
]


def longmemeval(path: Path) -> None:
    sessions = [*FILLER, CAR]
    row = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What was the first problem with the GPS of my car?",
        "answer": "It stopped working.",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": [f"s{at}" for at in range(len(sessions))],
        "haystack_dates": [f"2023/05/{at + 1:02d} (Sat) 02:21" for at in range(len(sessions))],
        "haystack_sessions": sessions,
        "answer_session_ids": [f"s{len(sessions) - 1}"],
    }
    unanswered = {**row, "question_id": "q2_abs", "haystack_sessions": [*FILLER, CAR[2:]]}
    path.write_text(json.dumps([row, unanswered]))


def beam(path: Path, *, nested: bool, lines: bool) -> None:
    parts = [*FILLER, CAR]
    number = 0
    chat = []
    for messages in parts:
        part = []
        for message in messages:
            part.append({**message, "id": number, "time_anchor": None})
            number += 1
        part[0]["time_anchor"] = "March-15-2024"
        chat.append(part)
    gold = chat[-1][1]["id"]
    chat[0].append({**say("user", "Twice the same number."), "id": 1})
    probing = {
        "abstention": [{"question": "What did I pay?", "ideal_response": "Unknown."}],
        "multi_session_reasoning": [
            {"question": "What went wrong with the GPS of the car?", "source_chat_ids": {"a": [[gold], 1]}},
            {"question": "What is ambiguous?", "source_chat_ids": [1]},
        ],
    }
    row = {
        "conversation_id": "1",
        "chat": [{"plan-1": chat[:6], "plan-2": chat[6:]}] if nested else chat,
        "probing_questions": str(probing) if nested else probing,
    }
    path.write_text(json.dumps(row) + "\n" if lines else json.dumps([row]))


def run(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *words, "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(("nested", "lines"), [(False, False), (True, True)])
def test_turns_with_the_evidence_are_gold(tmp_path, nested, lines):
    long, wide = tmp_path / "longmemeval.json", tmp_path / "beam.json"
    longmemeval(long)
    beam(wide, nested=nested, lines=lines)
    figures = run("--longmemeval", str(long), "--beam", str(wide))
    assert list(figures) == ["longmemeval", "beam"]
    for name in figures:
        memory = figures[name]["memory"]
        assert memory["questions"] == 1, "what nothing answers, or an ambiguous number, is left out"
        assert (memory["recall@5"], memory["sessions@5"], memory["any session@5"]) == (100, 100, 100)


def test_a_turn_that_is_not_recalled_counts_as_missed(tmp_path):
    path = tmp_path / "longmemeval.json"
    longmemeval(path)
    row = json.loads(path.read_text())[0]
    row["haystack_sessions"][-1][0]["has_answer"] = False
    row["haystack_sessions"][0][0]["has_answer"] = True
    path.write_text(json.dumps([row]))
    assert run("--longmemeval", str(path))["longmemeval"]["memory"]["recall@5"] == 0
