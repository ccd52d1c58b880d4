"""``make test-long REPORT=…``: what came of each test, and which need not run again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from long_report import Report, describe_code, strip_group

SUPPORT = Path(__file__).parents[1] / "support"
TESTS = """
import os, pytest

def note(name):
    with open("ran", "a") as file:
        file.write(name + "\\n")

@pytest.mark.parametrize("n", [1, 2])
def test_passes(n):
    note(f"passes{n}")

@pytest.mark.xdist_group("one")
def test_of_a_group():
    note("group")

def test_fails():
    note("fails")
    assert os.path.exists("mended"), "not mended"

def test_skips():
    note("skips")
    pytest.skip("no such thing here")

def test_fails_at_its_end(request):
    note("end")
    request.addfinalizer(lambda: 1 / (1 if os.path.exists("mended") else 0))
"""


def run(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT), "LINKSTORE_REPORT": "report.md"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take seconds to load
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "long_report",
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        *words,
    ]
    (folder / "ran").write_text("")
    subprocess.run(
        [*command, *words, "test_some.py"], cwd=folder, env=environment, check=False, capture_output=True
    )
    return sorted((folder / "ran").read_text().split())


@pytest.mark.parametrize(
    "words", [(), ("-p", "xdist.plugin", "-n", "2", "--dist", "loadgroup")], ids=["here", "workers"]
)
def test_a_run_goes_on_with_what_has_not_passed(tmp_path, words):
    (tmp_path / "test_some.py").write_text(TESTS)
    assert run(tmp_path, *words) == ["end", "fails", "group", "passes1", "passes2", "skips"]
    report = (tmp_path / "report.md").read_text()
    assert "3 passed, 2 failed, 1 skipped" in report
    assert "`test_some.py::test_fails`: AssertionError: not mended" in report
    assert "`test_some.py::test_skips`: Skipped: no such thing here" in report
    (tmp_path / "mended").touch()
    assert run(tmp_path, *words) == ["end", "fails", "skips"]
    assert "5 passed, 0 failed, 1 skipped" in (tmp_path / "report.md").read_text()
    assert run(tmp_path, *words) == ["skips"]


def test_outcomes_of_other_code_do_not_count(tmp_path):
    before = Report(tmp_path / "long.md", "one")
    before.note("a", "passed", 1.0)
    with before.lines.open("a") as file:
        file.write('{"test": "b", "outc')
    assert Report(tmp_path / "long.md", "one").passed == ["a"], "a torn line is left out"
    assert Report(tmp_path / "long.md", "two").passed == []
    assert Report(tmp_path / "long.md", "one").passed == [], "the run of other code began anew"


def test_code_is_named_by_its_commit():
    assert len(describe_code().partition("+")[0]) == 12
    assert strip_group("tests/a.py::test[x@y]@ring") == "tests/a.py::test[x@y]"
    assert strip_group("tests/a.py::test[x@y]") == "tests/a.py::test[x@y]"
