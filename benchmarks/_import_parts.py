"""Runs a command and says on stderr, as JSON, how much processor time the bodies of modules took, by package.

Run by commands.py: ``python _import_parts.py query TEXT --store DIR``. A module counts with its own body,
without the modules that it imports.
"""

from __future__ import annotations

import atexit
import importlib._bootstrap_external as loaders
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

SPENT: defaultdict[str, float] = defaultdict(float)
_within: list[float] = []


def measure(kind: type, method: str) -> None:
    """Measure what a loader does for each module."""
    load = getattr(kind, method)

    def timed(self: Any, subject: Any) -> Any:
        started = time.process_time()
        _within.append(0.0)
        try:
            return load(self, subject)
        finally:
            taken = time.process_time() - started
            SPENT[getattr(subject, "__name__", "") or subject.name] += taken - _within.pop()
            if _within:
                _within[-1] += taken

    setattr(kind, method, timed)


def report() -> None:
    """Write what was measured."""
    packages: defaultdict[str, float] = defaultdict(float)
    for module, seconds in SPENT.items():
        packages[module.partition(".")[0]] += seconds
    total = time.process_time() - sum(packages.values())
    sys.stderr.write(f"\n{json.dumps({**packages, '': total})}\n")


def main() -> None:
    """Measure, then run the command line."""
    methods: list[tuple[type, str]] = [
        (loaders._LoaderBasics, "exec_module"),
        (loaders.ExtensionFileLoader, "create_module"),
        (loaders.ExtensionFileLoader, "exec_module"),
    ]
    for kind, method in methods:
        measure(kind, method)
    atexit.register(report)
    from linkstore.cli import main as run

    command: Callable[[], None] = run
    command()


if __name__ == "__main__":
    main()
