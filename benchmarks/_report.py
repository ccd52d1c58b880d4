"""What benchmarks print, a table for people or JSON, and what they record for the documentation."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

PACKAGES = ("usearch", "apsw", "numpy", "langchain-core")
FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def add_output(parser: argparse.ArgumentParser) -> None:
    """The options of what is written: ``--json`` and ``--record``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    name = Path(parser.prog).stem
    parser.add_argument(
        "--record",
        nargs="?",
        const=name,
        metavar="NAME",
        help=f"write the figures to docs/figures/NAME.json (default {name})",
    )


def add_data(parser: argparse.ArgumentParser) -> None:
    """The option of where the data sets are: ``--data``, or LINKSTORE_EVAL_DATA."""
    data = os.environ.get("LINKSTORE_EVAL_DATA")
    parser.add_argument("--data", default=data, required=data is None, help="folder of data sets")


def record(name: str | None, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Write named rows to the figures of the documentation; they replace rows of the same name.

    Args:
        name: The file, without its ending; None records nothing.
        rows: What was measured, by a name that stays the same from run to run.
    """
    if name is None:
        return
    path = FIGURES / f"{name}.json"
    known: dict[str, Any] = json.loads(path.read_text())["rows"] if path.exists() else {}
    known |= {row: {"values": values, **_circumstances()} for row, values in rows.items()}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"rows": known}, indent=1, ensure_ascii=False) + "\n")


def _circumstances() -> dict[str, str]:
    """How, when and on what it was measured; paths of this machine are left out."""
    words = [
        "DIR" if Path(word).is_absolute() or word.startswith(("~", "..")) else word for word in sys.argv[1:]
    ]
    return {
        "command": shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words]),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB",
        "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
    }


def report(
    title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool, record_as: str | None = None
) -> None:
    """Print rows that have the same keys, one column for each row; record them by their first value."""
    record(record_as, {str(next(iter(row.values()))): row for row in rows})
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


def listed(
    title: str, rows: Sequence[Mapping[str, Any]], *, as_json: bool, record_as: str | None = None
) -> None:
    """Print rows that have the same keys, one line for each row; record them by their first value."""
    if as_json:
        report(title, rows, as_json=True, record_as=record_as)
        return
    record(record_as, {str(next(iter(row.values()))): row for row in rows})
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
    if isinstance(value, list):
        return " / ".join(map(shown, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def versions() -> dict[str, str]:
    """What was measured, and on which Python."""
    return {"Python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def milliseconds(seconds: Sequence[float], percentile: float = 50) -> float:
    """A percentile of timings, in ms."""
    return float(np.percentile(seconds, percentile) * 1e3)
