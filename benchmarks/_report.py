"""What benchmarks print: a table for people, or JSON."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

PACKAGES = ("usearch", "apsw", "numpy", "langchain-core")


def report(title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows that have the same keys, one column for each row."""
    if as_json:
        sys.stdout.write(json.dumps({"title": title, "versions": versions(), "rows": rows}, indent=2) + "\n")
        return
    table = Table(title=title, caption=", ".join(f"{name} {number}" for name, number in versions().items()))
    names = list(rows[0])
    table.add_column(names[0])
    for row in rows:
        table.add_column(shown(row[names[0]]), justify="right")
    for name in names[1:]:
        table.add_row(name, *(shown(row.get(name)) for row in rows))
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def listed(title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows that have the same keys, one line for each row."""
    if as_json:
        report(title, rows, as_json=True)
        return
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(shown(value) for value in row.values()))
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def versions() -> dict[str, str]:
    """What was measured, and on which Python."""
    return {"Python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def milliseconds(seconds: Sequence[float], percentile: float = 50) -> float:
    """A percentile of timings, in ms."""
    return float(np.percentile(seconds, percentile) * 1e3)
