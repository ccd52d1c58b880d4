"""A report of a long run of the tests, which goes on where it was stopped: ``make test-long REPORT=long.md``.

Beside the report lies a file of JSON lines with the outcome of each test, written when it ends. A run of the
same code leaves out the tests that passed. Failed and skipped ones, and the one that was stopped, run again.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import xxhash

ROOT = Path(__file__).parents[2]
NAME = "LINKSTORE_REPORT"
GROUP = re.compile(r"@[\w-]+$")
Outcome = dict[str, Any]


class Report:
    """The outcomes of a run, and of those before it.

    Args:
        path: Where the report is written.
        code: What was tested; outcomes of other code do not count.
    """

    def __init__(self, path: Path, code: str) -> None:
        self.path = path
        self.code = code
        self.lines = path.with_name(f"{path.name}.jsonl")
        self.outcomes: dict[str, Outcome] = {}
        known = self.lines.read_text().splitlines() if self.lines.exists() else []
        if known and json.loads(known[0]) == {"code": code}:
            for line in known[1:]:
                try:
                    self._add(json.loads(line))
                except ValueError:  # the run was stopped while it wrote
                    continue
            return
        self.lines.write_text(json.dumps({"code": code}) + "\n")

    @property
    def passed(self) -> list[str]:
        """The tests that need not run again."""
        return [name for name, one in self.outcomes.items() if one["outcome"] == "passed"]

    def note(self, name: str, outcome: str, seconds: float, reason: str = "") -> None:
        """Write down what came of a test."""
        found = {"test": name, "outcome": outcome, "seconds": round(seconds, 3), "reason": reason}
        self._add(found)
        with self.lines.open("a") as file:
            file.write(json.dumps(found) + "\n")

    def _add(self, found: Outcome) -> None:
        self.outcomes[found["test"]] = found

    def write(self) -> None:
        """Write the report."""
        files: defaultdict[str, Counter[str]] = defaultdict(Counter)
        seconds: Counter[str] = Counter()
        for name, one in self.outcomes.items():
            file = name.partition("::")[0]
            files[file][one["outcome"]] += 1
            seconds[file] += one["seconds"]
        counts = sum(files.values(), Counter())
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        lines = [
            "# Long run",
            "",
            f"{when}, code {self.code}, Python {platform.python_version()}, {os.cpu_count()} cores:"
            f" {counts['passed']:,} passed, {counts['failed']:,} failed, {counts['skipped']:,} skipped, in"
            f" {seconds.total() / 3600:.1f} hours of tests.",
            "",
            "| file | passed | failed | skipped | seconds |",
            "|---|---|---|---|---|",
            *(
                f"| {file} | {of['passed']:,} | {of['failed']:,} | {of['skipped']:,} | {seconds[file]:,.0f} |"
                for file, of in sorted(files.items(), key=lambda one: -seconds[one[0]])
            ),
        ]
        for outcome in ("failed", "skipped"):
            found = [one for one in self.outcomes.values() if one["outcome"] == outcome]
            if found:
                lines += ["", f"## {outcome.capitalize()}", ""]
                lines += [f"- `{one['test']}`: {one['reason']}" for one in found]
        self.path.write_text("\n".join(lines) + "\n")


PASSED = pytest.StashKey[frozenset[str]]()


def describe_code() -> str:
    """Return the commit, and a hash of what differs from it."""

    def ask(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout

    changes = ask("diff", "HEAD")
    commit = ask("rev-parse", "--short=12", "HEAD").decode().strip()
    return f"{commit}+{xxhash.xxh3_64_hexdigest(changes)}" if changes else commit


def strip_group(name: str) -> str:
    """Return the name of a test without the group that pytest-xdist puts behind it."""
    return GROUP.sub("", name)


def pytest_configure(config: pytest.Config) -> None:
    """Read what came of earlier runs. Workers are told by the process that hands tests out."""
    given = getattr(config, "workerinput", None)
    if given is not None:
        config.stash[PASSED] = frozenset(given.get("passed", ()))
    elif path := os.environ.get(NAME):
        report = Report(Path(path), describe_code())
        config.stash[PASSED] = frozenset(report.passed)
        config.pluginmanager.register(Recorder(report))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist: tell a worker which tests passed, also one that replaces another later."""
    node.workerinput["passed"] = sorted(node.config.stash.get(PASSED, ()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has passed."""
    passed = config.stash.get(PASSED, frozenset())
    if passed:
        config.hook.pytest_deselected(items=[item for item in items if strip_group(item.nodeid) in passed])
        items[:] = [item for item in items if strip_group(item.nodeid) not in passed]


class Recorder:
    """Notes what comes of tests, in the process that hands them out."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._seconds: Counter[str] = Counter()
        self._worst: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test when its last phase is over, or its process has crashed."""
        name = strip_group(report.nodeid)
        self._seconds[name] += report.duration
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            said = str(report.longrepr if crash is None else crash.message)
            self._worst[name] = "failed", next(iter(said.splitlines()), "")[:200]
        elif report.skipped and name not in self._worst:
            is_skip = isinstance(report.longrepr, tuple)
            self._worst[name] = "skipped", report.longrepr[2] if is_skip else "expected to fail"
        if report.when not in {"setup", "call"}:
            outcome, reason = self._worst.pop(name, ("passed", ""))
            self._report.note(name, outcome, self._seconds[name], reason)

    def pytest_sessionfinish(self) -> None:
        """Write the report, of an interrupted run too."""
        self._report.write()
