"""Types are part of the API: tests/typing/api.py holds under mypy --strict and pyright."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

API = Path(__file__).parent / "typing" / "api.py"
ROOT = API.parents[3]


@pytest.mark.parametrize(
    "checker",
    [
        ["mypy", "--strict", "--warn-unused-ignores", "--config-file", "", "--follow-imports=silent"],
        ["pyright", "--pythonpath", sys.executable],
    ],
    ids=lambda command: command[0],
)
def test_public_types(checker: list[str]) -> None:
    pytest.importorskip(checker[0])
    command = [sys.executable, "-m", *checker, str(API)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
