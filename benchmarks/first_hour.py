"""From a bare Python to the first answer, the first picture, and the first answer in an agent.

Run: ``python benchmarks/first_hour.py [--repeat 3] [--json]``. The wheel is built first. Each way then starts
from an empty environment, home and cache of pages, with the commands that the README names, on the pages of
this documentation. Python and its packages come from where pip finds them. Chromium must be installed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _report import add_output, report
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
QUESTION = "How do I limit a search to documents with certain metadata?"
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
MESSAGES = (
    {"id": 0, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"question": QUESTION}}},
)


class Beginner:
    """Somebody in an empty folder, who types commands and waits for each.

    Args:
        folder: An empty one.
        wheel: What is installed as ``langchain-linkstore``.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.project, self._wheel = folder / "project", wheel
        shutil.copytree(
            ROOT / "docs", self.project / "docs", ignore=shutil.ignore_patterns("*.py", "figures")
        )
        path = f"{self.project / 'env' / 'bin'}:/usr/bin:/bin"
        self.environment = {"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8"}
        self.environment |= {
            name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_"))
        }
        self.typed: list[str] = []
        subprocess.run([sys.executable, "-m", "venv", self.project / "env"], check=True)

    def type(self, line: str) -> str:
        """Run a command to its end, and return what it prints."""
        return subprocess.run(
            self._split(line),
            cwd=self.project,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    @contextmanager
    def start(self, line: str) -> Iterator[subprocess.Popen[str]]:
        """Run a command until the block ends."""
        process = subprocess.Popen(
            self._split(line), cwd=self.project, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate()

    def _split(self, line: str) -> list[str]:
        self.typed.append(line)
        words = [word.replace("langchain-linkstore", str(self._wheel)) for word in line.split()]
        return [str(self.project / "env" / "bin" / words[0]), *words[1:]]


def answer(beginner: Beginner) -> None:
    """The first answer in the terminal."""
    beginner.type("pip install --quiet langchain-linkstore")
    beginner.type("linkstore index docs/")
    assert "filter" in beginner.type(f"linkstore query {QUESTION}")


def picture(beginner: Beginner) -> None:
    """The first picture in the browser: the map of the pages."""
    beginner.type("pip install --quiet langchain-linkstore")
    with beginner.start("linkstore open docs/ --no-browser") as page, sync_playwright() as driver:
        assert page.stdout is not None
        lines = iter(page.stdout.readline, "")
        address = next(word for line in lines for word in line.split() if word.startswith("http"))
        tab = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS).new_page()
        tab.set_default_timeout(120_000)
        tab.goto(address)
        tab.wait_for_selector(".begin .graph-status:has-text('pages')")


def agent(beginner: Beginner) -> None:
    """The first answer of a tool, to a client that starts the written entry."""
    beginner.type("pip install --quiet langchain-linkstore[mcp]")
    beginner.type("linkstore mcp --store docs.kb --index docs --install --client claude-code")
    (entry,) = json.loads((beginner.project / ".mcp.json").read_text())["mcpServers"].values()
    with subprocess.Popen(
        [entry["command"], *entry["args"]],
        cwd=beginner.project,
        env=beginner.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in MESSAGES:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
            line = server.stdout.readline() if "id" in message else ""
        assert "filter" in line
        server.stdin.close()


WAYS: dict[str, Callable[[Beginner], None]] = {
    "first answer": answer,
    "first picture": picture,
    "first answer in an agent": agent,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, help="how often, for the median")
    add_output(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            folder,
            str(ROOT),
        ]
        subprocess.run(build, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in WAYS}
        for _ in range(options.repeat):
            for name in WAYS:  # in turns
                runs[name].append(_measure(WAYS[name], wheel))
    rows = [{"way": name, **_median(run)} for name, run in runs.items()]
    report("The first hour", rows, as_json=options.json, record_as=options.record)


def _measure(way: Callable[[Beginner], None], wheel: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        beginner = Beginner(Path(folder), wheel)
        start, before = time.perf_counter(), _read_cpu()
        way(beginner)
        return {
            "commands": len(beginner.typed),
            "s": time.perf_counter() - start,
            "CPU s": _read_cpu() - before,
            "processes that wanted a core": os.getloadavg()[0],
        }


def _median(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: round(statistics.median(run[name] for run in runs), 1) for name in runs[0]}


def _read_cpu() -> float:
    """Seconds on the processor of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
