"""The benchmark of the reader, for a set of one's own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "reader.py"


@pytest.mark.parametrize(
    "options", [[], ["--plain"], ["--noise", "0.2"]], ids=["facts", "plain", "overlap of words"]
)
def test_a_set_of_ones_own_is_measured_as_json(tmp_path, options):
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    rows = [
        {"id": f"d{n}", "title": f"City {n}", "text": f"City number {n} lies on the river {n}."}
        for n in range(30)
    ]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions.write_text(json.dumps({"question": "Where does city number 7 lie?", "gold": ["d7"]}) + "\n")

    done = subprocess.run(
        [sys.executable, PROGRAM, "--corpus", corpus, "--questions", questions, "--json", *options],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout).values()
    gold_read = row["gold_read"]
    assert {name: set(by) for name, by in gold_read.items()} == {
        "reader": {"5", "10", "20"},
        "pagerank": {"5", "10", "20"},
    }
    assert gold_read["reader"]["20"] == 1.0


def test_gold_that_is_in_no_document_is_refused(tmp_path):
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    corpus.write_text(json.dumps({"id": "d1", "title": "A city", "text": "It lies on a river."}) + "\n")
    questions.write_text(json.dumps({"question": "Where does it lie?", "gold": ["d2"]}) + "\n")

    done = subprocess.run(
        [sys.executable, PROGRAM, "--corpus", corpus, "--questions", questions, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "1 of 1 gold answers are not in the store: 'd2'" in done.stderr
    assert "Traceback" not in done.stderr
