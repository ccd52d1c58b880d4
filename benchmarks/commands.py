"""What a command costs from start to end: the CPU of ``query`` and ``links``.

Run: ``python benchmarks/commands.py --data DIR``. The commands run as processes of their own, in turns, on
the store of ``linkstore demo`` (47 chunks) and on one of 100,000 chunks of real text, which
``_retrieval_cost.py`` makes; without ``--data``, on the small one alone. A figure is the median of user and
system time, which other programs disturb less than the clock. Each process finds compiled modules, as those
of an installed package do; the first run of each, which makes them, does not count. "import numpy" tells how
fast the machine is at such work.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from _report import add_output, listed, milliseconds
from _retrieval_cost import fill, row_sets

from linkstore import LinkStore

QUESTION: Final = "Who built the monorail?"
SMALL, LARGE = "47 chunks", "100,000 chunks"
YARDSTICK: Final = "import numpy"


def main() -> None:
    """Make the stores, run the commands in turns, print a table."""
    options = _options()
    with _folder(options.folder) as folder:
        stores = {SMALL: _small(folder / "small")}
        if options.data:
            stores[LARGE] = _large(folder / "large", options.data)
        rows = _measured(stores, options.rounds)
    listed("CPU of commands", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("LINKSTORE_EVAL_DATA"))
    parser.add_argument(
        "--folder", type=Path, help="where the stores are kept, to be used again; else temporary"
    )
    parser.add_argument("--rounds", type=int, default=9, help="runs of each command (default 9)")
    add_output(parser)
    return parser.parse_args()


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="linkstore-commands-") as folder:
        yield Path(folder)


def _small(place: Path) -> Path:
    if not place.exists():
        subprocess.run(_linkstore("demo", "--store", str(place)), check=True, stdout=subprocess.DEVNULL)
    return place


def _large(place: Path, data: Path) -> Path:
    if not place.exists():
        with tempfile.TemporaryDirectory() as scratch, LinkStore.open(place) as store:
            fill(store, data, row_sets(data), Path(scratch))
    return place


def _measured(stores: dict[str, Path], rounds: int) -> list[dict[str, Any]]:
    commands = {
        (name, size): _linkstore(*words, "--store", str(place))
        for size, place in stores.items()
        for name, words in {
            "query": ["query", QUESTION],
            "links": ["links", _a_document(place)],
        }.items()
    }
    commands[YARDSTICK, ""] = [sys.executable, "-c", "import numpy"]
    seconds: dict[tuple[str, str], list[float]] = {command: [] for command in commands}
    with tempfile.TemporaryDirectory(prefix="linkstore-compiled-") as compiled:
        for command in commands.values():
            _cpu(command, compiled)
        for _ in range(rounds):
            for name, command in commands.items():
                seconds[name].append(_cpu(command, compiled))
    return [
        {"command": f"{name}, {size}" if size else name, "CPU, s": milliseconds(times) / 1e3}
        for (name, size), times in seconds.items()
    ]


def _a_document(place: Path) -> str:
    with LinkStore.open(place, create=False) as store:
        return str(next(store.scan()).id)


def _linkstore(*words: str) -> list[str]:
    return [sys.executable, "-m", "linkstore", *words]


def _cpu(command: Sequence[str], compiled: str) -> float:
    """User and system time of a process, in seconds; its compiled modules lie in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


if __name__ == "__main__":
    main()
