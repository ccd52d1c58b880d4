"""What a command costs from start to end: the CPU of ``query`` and ``links``.

Run: ``python benchmarks/commands.py --data DIR``. The commands run as processes of their own, in turns, on
the store of ``linkstore demo`` (47 chunks) and on one of 100,000 chunks of real text, which
``_retrieval_cost.py`` makes; without ``--data``, on the small one alone. A figure is the median of user and
system time, which other programs disturb less than the clock. Each process finds compiled modules, as those
of an installed package do; the first run of each, which makes them, does not count. "import numpy" tells how
fast the machine is at such work.

``--before DIR``, a work tree of an earlier commit, is measured in turns with this one: a query on the small
store, and which packages its imports take their time in.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any, Final

from _report import add_output, listed, milliseconds
from _retrieval_cost import fill, row_sets

from linkstore import LinkStore

QUESTION: Final = "Who built the monorail?"
SMALL, LARGE = "47 chunks", "100,000 chunks"
YARDSTICK: Final = "import numpy"
OTHERS: Final = "modules of Python's own"
PARTS: Final = {
    "linkstore": "modules of linkstore",
    "numpy": "numpy",
    "langchain_core": "langchain-core's Document, and pydantic",
    **dict.fromkeys(
        ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions"),
        "langchain-core's Document, and pydantic",
    ),
    **dict.fromkeys(("typer", "shellingham", "annotated_doc", "rich", "pygments"), "typer, and rich"),
    **dict.fromkeys(
        ("tokenizers", "safetensors", "apsw", "orjson", "xxhash"), "tokenizers, apsw and the like"
    ),
    "": "the command, and the search",
}
"""What packages are counted as; "" is all time that is not that of the bodies of modules."""


def main() -> None:
    """Make the stores, run the commands in turns, print a table."""
    options = _options()
    with _folder(options.folder) as folder:
        stores = {SMALL: _small(folder / "small")}
        if options.data:
            stores[LARGE] = _large(folder / "large", options.data)
        rows = _measured(stores, options.rounds)
        parts = _parts(stores[SMALL], options.before, options.rounds) if options.before else []
    listed("CPU of commands", rows, as_json=options.json, record_as=options.record)
    if parts:
        name = options.record and f"{options.record}-parts"
        listed("CPU of a query, ms", parts, as_json=options.json, record_as=name)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("LINKSTORE_EVAL_DATA"))
    parser.add_argument(
        "--folder", type=Path, help="where the stores are kept, to be used again; else temporary"
    )
    parser.add_argument("--before", type=Path, help="a work tree of an earlier commit")
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


def _parts(store: Path, before: Path, rounds: int) -> list[dict[str, Any]]:
    """The CPU of a query by what it is for, in ms, by an earlier commit and by this one, in turns."""
    trees = {"before": before, "now": Path(__file__).parents[1]}
    spent: dict[str, list[Counter[str]]] = {name: [] for name in trees}
    wholes: dict[str, list[float]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory(prefix="linkstore-compiled-") as compiled:
        for _ in range(rounds + 1):
            for name, tree in trees.items():
                path = f"{tree}{os.pathsep}{tree / 'extractors'}"
                command = ["query", QUESTION, "--store", str(store)]
                wholes[name].append(_cpu(_linkstore(*command), f"{compiled}/{name}", PYTHONPATH=path))
                script = str(Path(__file__).with_name("_import_parts.py"))
                environment = {**os.environ, "PYTHONPYCACHEPREFIX": f"{compiled}/{name}", "PYTHONPATH": path}
                environment.pop("PYTHONDONTWRITEBYTECODE", None)
                run = subprocess.run(
                    [sys.executable, script, *command],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=environment,
                )
                counted = Counter[str]()
                for package, seconds in json.loads(run.stderr.splitlines()[-1]).items():
                    counted[PARTS.get(package, OTHERS)] += 1e3 * seconds
                spent[name].append(counted)
    rows = [
        {"part": part, **{name: median(run[part] for run in runs[1:]) for name, runs in spent.items()}}
        for part in dict.fromkeys([*PARTS.values(), OTHERS])
    ]
    return [
        *rows,
        {"part": "the whole process", **{name: 1e3 * median(run[1:]) for name, run in wholes.items()}},
    ]


def _a_document(place: Path) -> str:
    with LinkStore.open(place, create=False) as store:
        return str(next(store.scan()).id)


def _linkstore(*words: str) -> list[str]:
    return [sys.executable, "-m", "linkstore", *words]


def _cpu(command: Sequence[str], compiled: str, **variables: str) -> float:
    """User and system time of a process, in seconds; its compiled modules lie in a folder."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = getrusage(RUSAGE_CHILDREN)
    # The working directory comes before PYTHONPATH, and may be a work tree.
    subprocess.run(
        command,
        cwd=Path(compiled).parent,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    main()
