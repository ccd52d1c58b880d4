"""The benchmark of contexts, on a set of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "context.py"


def test_it_measures_any_corpus_and_prints_recall_by_method_and_budget(tmp_path):
    """What a question asks for is there once; a budget of three tokens holds none of it."""
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    rows = [
        {"id": f"d{n}", "title": f"Safe {n}", "text": f"The safe of {name} is in room {n}."}
        for n, name in enumerate(("Ada", "Berta", "Cilla", "Dora", "Edda"))
    ]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"question": "Where is the safe of Cilla?", "gold": ["d2"]}]
    questions.write_text("".join(json.dumps(row) + "\n" for row in asked))
    command = [sys.executable, BENCHMARK, "--corpus", corpus, "--questions", questions]
    done = subprocess.run([*command, "--budgets", "3,400", "--json"], capture_output=True, check=True)
    every = {"3": 0.0, "400": 100.0}
    assert json.loads(done.stdout) == {"recall": {"compiled": every, "rank": every, "topk": every}}
