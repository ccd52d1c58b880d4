"""How busy the cores are while a site is indexed: before pages are read, meanwhile, and afterwards.

Run: ``python benchmarks/site_cores.py --data DIR``, with the data and the embedding of ``site.py``. Processor
time is that of this process and of the processes that read pages, by the operating system's clocks.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
from _report import add_data, add_output, listed
from _site import add_site, unpack_site

from linkstore import LinkStore
from linkstore.core.processes import count_cores
from linkstore.embeddings import get_embedding
from linkstore.ingest import FolderSource, index

PHASES = ("before the first page", "while pages are read", "after the last page")
EVERY = 0.05
"""Seconds between two looks at the clocks."""


@dataclass(slots=True)
class Clocks:
    """Reads the clocks in a thread; a process that has ended keeps the time that was read last."""

    own: psutil.Process = field(default_factory=psutil.Process)
    workers: dict[int, float] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Look until it is done."""
        while not self.done.wait(EVERY):
            self.look()

    def look(self) -> tuple[float, float, float]:
        """The time, and the processor time of this process and of those that read."""
        for process in self.own.children():
            try:
                spent = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            self.workers[process.pid] = spent.user + spent.system
        return time.perf_counter(), time.process_time(), sum(self.workers.values())


def main() -> None:
    """Unpack the site, index it once, print the table."""
    options = _options()
    embedding = get_embedding(options.embedding)
    embedding.embed_documents(["load the model " * 500])
    with tempfile.TemporaryDirectory(prefix="linkstore-cores-") as folder:
        site = Path(folder) / "site"
        unpack_site(options.data, site, options.every)
        with LinkStore.open(Path(folder) / "kb", embedding) as store:
            rows = _phases(store, site)
    listed("site, cores", rows, as_json=options.json, record_as=options.record)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_data(parser)
    add_site(parser)
    add_output(parser)
    return parser.parse_args()


def _phases(store: LinkStore, site: Path) -> list[dict[str, Any]]:
    """Each phase: how long it took, and how much processor time."""
    clocks = Clocks()
    watching = threading.Thread(target=clocks.watch, daemon=True)
    watching.start()
    begin = clocks.look()
    seen: list[tuple[float, float, float]] = []

    def progress(done: int, total: int, page: str) -> None:  # noqa: ARG001
        if not seen or done >= total:
            seen.append(clocks.look())

    index(store, FolderSource(site), progress=progress)
    store.backend.run(store.backend.flush())
    marks = (begin, seen[0], seen[-1], clocks.look())
    clocks.done.set()
    watching.join()
    return [_phase(name, *ends) for name, ends in zip(PHASES, pairwise(marks), strict=True)]


def _phase(name: str, begin: tuple[float, ...], end: tuple[float, ...]) -> dict[str, Any]:
    seconds, own, workers = (after - before for before, after in zip(begin, end, strict=True))
    return {
        "phase": name,
        "seconds": seconds,
        "of this process, s": own,
        "of those that read, s": workers,
        "share of the cores": (own + workers) / (seconds * count_cores()),
    }


if __name__ == "__main__":
    main()
