"""``make mutate``: what counts as a change, and which changes are noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="the group 'mutate' is not installed")

from mutation.mutants import sample_mutants

SOURCE = '''
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Pair:
    one: int | None = 1

def clip(value: int | str, *, most: int = 10) -> int:
    """Return at most 10."""
    return value if value < most else most

def pair(one: Array, other: Array) -> list:
    return list(zip(one.astype(int, copy=False), other, strict=True))
'''


def test_a_seed_gives_the_same_changes_of_code_each_at_its_own_place() -> None:
    found = sample_mutants(SOURCE, 100, seed=3)
    assert found == sample_mutants(SOURCE, 100, seed=3)
    assert {one.line for one in found} == {7, 9, 11}, (
        "no decorator, annotation or docstring, and nothing that no result depends on"
    )
    assert all(compile(one.source, "m", "exec") and one.source != SOURCE for one in found)
    assert {one.source for one in sample_mutants(SOURCE, 2, seed=3)} < {one.source for one in found}
    assert {one.source for one in sample_mutants(SOURCE, 100, seed=4)} != {one.source for one in found}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants run in forked processes")
def test_changes_that_no_test_notices_are_listed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def both(one, other):\n    return one and other\n\n\nLIMIT = 7\n")
    (tmp_path / "test_m.py").write_text(
        "from m import both\n\n\ndef test_both():\n    assert both(1, 2) == 2\n    assert both(0, 1) == 0\n"
    )
    words = ["--root", str(tmp_path), "--module", "m.py", "--tests", "test_m.py", "--least", "60"]
    done = subprocess.run(
        [sys.executable, "-m", "mutation", *words],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "support")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "m.py:5: NumberReplacer" in done.stdout
    assert "- LIMIT = 7" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["m.py", "2", "1", "50.0%"]
