"""Runs the tests of a module on a mutant, in a child process that imports the mutant in its place."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np  # noqa: F401 - children find the libraries that tests import imported
import pytest
from langchain_core import documents, embeddings, vectorstores  # noqa: F401


class MutantFinder(MetaPathFinder, Loader):
    """Imports a module from other source than that in its file.

    Args:
        name: The module's full name.
        path: Its file.
        source: What it is instead.
    """

    def __init__(self, name: str, path: Path, source: str) -> None:
        self._name, self._path, self._source = name, path, source

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find the one module."""
        return spec_from_file_location(name, self._path, loader=self) if name == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the other source."""
        exec(compile(self._source, self._path, "exec"), module.__dict__)


def run_tests(root: Path, module: Path, source: str, tests: Sequence[str], seconds: float) -> str:
    """Run tests with another source of a module, and return ``"passed"``, ``"failed"`` or ``"timed out"``.

    Args:
        root: The checkout, whose packages and tests are used.
        module: The module's file, within it.
        source: The module's other source.
        tests: Files or folders of tests, within the checkout.
        seconds: How long they may take.
    """
    child = os.fork()
    if not child:
        os.setsid()
        os.chdir(root)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sys.path[:0] = [str(root), str(root / "extractors")]
        sys.dont_write_bytecode = True
        name = ".".join(module.with_suffix("").parts).removeprefix("extractors.")
        sys.meta_path.insert(0, MutantFinder(name, root / module, source))
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    until = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "passed" if status == 0 else "failed"
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "timed out"
        time.sleep(0.05)


def try_mutants(
    root: Path, module: Path, sources: Sequence[str], tests: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield what the tests make of each source of a module, and how long they took.

    Raises:
        RuntimeError: If they fail on the module as it is.
    """
    start = time.monotonic()
    if run_tests(root, module, (root / module).read_text(), tests, 3600) != "passed":
        raise RuntimeError(f"the tests fail without any change of {module}: {' '.join(tests)}")
    limit = 10 + 5 * (time.monotonic() - start)
    for source in sources:
        start = time.monotonic()
        yield run_tests(root, module, source, tests, limit), time.monotonic() - start
