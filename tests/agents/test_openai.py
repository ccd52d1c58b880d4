"""``linkstore ask`` with a model of OpenAI, on questions of two open sets, by the benchmark.

Run with ``OPENAI_API_KEY`` and the folder of the sets in ``LINKSTORE_EVAL_DATA``:
``pytest -m openai tests/agents -s`` prints the figures.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = os.environ.get("LINKSTORE_OPENAI_MODEL", "gpt-4.1-mini")
DATA = os.environ.get("LINKSTORE_EVAL_DATA")
PROGRAM = Path(__file__).parents[2] / "benchmarks" / "real_model.py"


@pytest.mark.openai
@pytest.mark.skipif("OPENAI_API_KEY" not in os.environ, reason="needs OPENAI_API_KEY")
@pytest.mark.skipif(DATA is None, reason="needs LINKSTORE_EVAL_DATA, the folder of the sets")
@pytest.mark.parametrize("name", ["hotpotqa_train", "musique_train"])
def test_a_model_answers_questions_of_several_steps(name):
    """More than a third of the answers have the words that are asked for; the figures are printed."""
    options = ["--data", str(DATA), "--set", name, "--way", "ask", "--most", "50", "--json"]
    command = [sys.executable, PROGRAM, *options, "--model", f"openai:{MODEL}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    [row] = json.loads(done.stdout).values()
    assert row["has"] > 1 / 3


def test_exact_match_and_f1_are_those_of_squad(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAM.parent)
    benchmark = runpy.run_path(str(PROGRAM))
    words, f1 = benchmark["words"], benchmark["f1"]
    assert words("The Meuse!") == words("meuse")
    assert f1("the river Meuse", "Meuse") == pytest.approx(2 / 3)
