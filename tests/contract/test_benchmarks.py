"""The benchmarks, which no test runs whole, import names that there are."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[2] / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_imports_names_that_there_are(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "linkstore":
            module = import_module(node.module or "")
            missing = [alias.name for alias in node.names if not _has(module, alias.name)]
            assert not missing, f"{node.module} has no {missing}"


def _has(module: object, name: str) -> bool:
    if hasattr(module, name):
        return True
    import_module(f"{module.__name__}.{name}")  # type: ignore[attr-defined]
    return True
