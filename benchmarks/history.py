"""What a store costs after a long history, beside a fresh one with the same content.

The same documents are updated over and over; then both stores are asked, in turns, and opened in new
processes, in turns. Run ``python benchmarks/history.py``, or with ``--documents 30000 --rounds 10`` for a
store that has snapshots, of which a third is replaced in each round.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from _report import add_output, listed, record

from linkstore.core.arrays import Floats, normalize_vectors
from linkstore.core.links import Link, parse_links
from linkstore.core.plans import Candidates, Nearest, Plan
from linkstore.engines.contract import Manifest, Record, WriteBatch
from linkstore.engines.embedded import EmbeddedBackend, EmbeddedSettings

DIMENSION = 256
SETTINGS = EmbeddedSettings(durable=False)
ASKED = 40
OPENED = 5


def records(vectors: Floats, numbers: range, version: int) -> list[Record]:
    """Documents of a version; each has a tag of that version, so link groups come and go too."""
    made = []
    for n in numbers:
        links = Link.bidir(kind="keyword", tag="common"), Link.incoming(kind="url", tag=f"{n}/{version}")
        metadata = {"version": version, "links": [link.to_dict() for link in links]}
        made.append(
            Record(
                id=f"d{n}",
                text=f"document {n} version {version}",
                metadata=metadata,
                vector=vectors[n],
                links=parse_links(metadata),
            )
        )
    return made


def opened(folder: Path) -> EmbeddedBackend:
    """A store that is ready for records."""
    store = EmbeddedBackend(folder, settings=SETTINGS)
    store.run(store.claim(Manifest(embedding="benchmark", dimension=DIMENSION)))
    return store


def nearest(vector: Floats) -> Plan[int]:
    """The plan that is timed."""
    found: Candidates = yield Nearest(vector=vector, k=10)
    return len(found.refs)


def seconds(work: Callable[[], object]) -> float:
    """How long it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def resident() -> float:
    """MiB of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def in_new_process(folder: Path) -> tuple[float, float]:
    """Seconds to open and answer once, and MiB that this takes."""
    command = [sys.executable, __file__, "--open", str(folder)]
    took, memory = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(took), float(memory)


def open_once(folder: Path) -> None:
    """What :func:`in_new_process` runs."""
    before, vector = resident(), normalize_vectors(np.ones((1, DIMENSION)))[0]
    store: list[EmbeddedBackend] = []

    def work() -> None:
        store.append(opened(folder))
        store[0].run(store[0].answer(nearest(vector)))

    print(seconds(work), resident() - before)


def on_disk(folder: Path) -> float:
    """MiB of a store."""
    return sum(file.stat().st_size for file in folder.iterdir()) / 2**20


def medians(old: Callable[[], float], fresh: Callable[[], float], times: int) -> tuple[float, float]:
    """Of both, measured in turns."""
    pairs = [(old(), fresh()) for _ in range(times)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def main() -> None:
    """Build both stores and compare."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_output(options)
    options.add_argument("--documents", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=400)
    options.add_argument("--open", type=Path)
    given = options.parse_args()
    if given.open:
        open_once(given.open)
        return
    count, share = given.documents, 1 if given.documents <= SETTINGS.exact_below else 3
    vectors = normalize_vectors(np.random.default_rng(0).standard_normal((count, DIMENSION)))
    with tempfile.TemporaryDirectory() as folder:
        places = Path(folder) / "history", Path(folder) / "fresh"
        old, fresh = map(opened, places)
        old.run(old.write(WriteBatch(put=records(vectors, range(count), 0))))
        for version in range(1, given.rounds + 1):
            part = range(version % share, count, share)
            old.run(old.write(WriteBatch(put=records(vectors, part, version))))
        content = old.run(old.scan(None, count))
        fresh.run(fresh.write(WriteBatch(put=content)))
        found: dict[str, tuple[float, float]] = {}
        questions = iter(np.repeat(vectors[:ASKED], 2, axis=0))
        ask = lambda store: 1e3 * seconds(lambda: store.run(store.answer(nearest(next(questions)))))  # noqa: E731
        found["query, ms"] = medians(lambda: ask(old), lambda: ask(fresh), ASKED)
        found["disk while open, MiB"] = on_disk(places[0]), on_disk(places[1])
        old.close()
        fresh.close()
        found["disk, closed, MiB"] = on_disk(places[0]), on_disk(places[1])
        runs = [(in_new_process(places[0]), in_new_process(places[1])) for _ in range(OPENED)]
        for at, what in enumerate(("open and answer, s", "memory of a new process, MiB")):
            first, second = (statistics.median(run[side][at] for run in runs) for side in (0, 1))
            found[what] = first, second
    name = f"{count:,} documents, {given.rounds} rounds"
    rows = [
        {"": what, "after history": old, "fresh": fresh, "ratio": old / fresh}
        for what, (old, fresh) in found.items()
    ]
    listed(name, rows, as_json=given.json)
    record(given.record, {name: {row[""]: [*row.values()][1:] for row in rows}})


if __name__ == "__main__":
    main()
