"""One run of the benchmark of scale: index a made-up wiki, going on where an earlier run stopped.

What is done is in the store itself, which remembers the pages it has. The journal beside it keeps what
the store does not: how long it took and how much memory, as of every hundredth of the way.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from _scale_pages import write_dump

from linkstore import LinkStore
from linkstore.ingest import index_wiki
from linkstore.ingest.summary import Summary

SOURCE: Final = "made"
MARKS: Final = 100
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a run had come.

    Args:
        pages: Of the dump, from its beginning.
        seconds: Since the start, those of earlier runs up to their last mark included.
        peak: The most memory that a process had until then, in MiB, files it has mapped included.
        own: Memory at that moment without such files, in MiB.
    """

    pages: int
    seconds: float
    peak: float
    own: float


@dataclass(slots=True, kw_only=True)
class Journal:
    """What is known of the runs into one store.

    Args:
        path: The file, replaced as a whole at each mark.
        marks: In order.
        runs: How many processes it took.
        finished: Seconds until everything was written and the store closed, if it is.
    """

    path: Path
    marks: list[Mark] = field(default_factory=list)
    runs: int = 0
    finished: float | None = None

    @classmethod
    def read(cls, path: Path) -> Journal:
        """What is in the file; an empty journal if there is none."""
        if not path.exists():
            return cls(path=path)
        said = json.loads(path.read_text(encoding="utf-8"))
        return cls(path=path, **{**said, "marks": [Mark(**mark) for mark in said["marks"]]})

    @property
    def seconds(self) -> float:
        """Those that are on record."""
        return self.finished or (self.marks[-1].seconds if self.marks else 0.0)

    @property
    def pages(self) -> int:
        """How far it was at the last mark."""
        return self.marks[-1].pages if self.marks else 0

    def save(self) -> None:
        """Write the file."""
        said: dict[str, Any] = {
            "marks": [asdict(mark) for mark in self.marks],
            "runs": self.runs,
            "finished": self.finished,
        }
        unfinished = self.path.with_suffix(".part")
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(said, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path)


def index(folder: Path, count: int, *, then: Progress | None = None) -> Summary | None:
    """Index a wiki of ``count`` pages into ``folder``; None if that is done already.

    Args:
        folder: Has the dump, the journal and the store, ``kb``.
        count: Number of pages.
        then: Called after each page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal.read(folder / "journal.json")
    if journal.finished is not None:
        _say(count, f"indexed already, in {journal.finished:,.0f} s")
        return None
    dump = folder / "dump.xml"
    write_dump(dump, count)
    before, started = journal.seconds, time.perf_counter()
    if journal.runs:
        _say(count, f"goes on: an earlier run was at page {journal.pages:,} after {before:,.0f} s")
    journal.runs += 1
    journal.save()

    def progress(done: int, total: int, page: str) -> None:
        if done >= journal.pages + max(1, count // MARKS):
            journal.marks.append(_mark(done, before + time.perf_counter() - started, journal))
            journal.save()
        if then is not None:
            then(done, total, page)

    with LinkStore.open(folder / "kb") as store:
        summary = index_wiki(store, dump, source=SOURCE, progress=progress)
    journal.finished = before + time.perf_counter() - started
    journal.marks.append(_mark(count, journal.finished, journal))
    journal.save()
    if summary.pages.unchanged:
        _say(count, f"of them {summary.pages.unchanged:,} were in the store already")
    return summary


def _mark(pages: int, seconds: float, journal: Journal) -> Mark:
    earlier = journal.marks[-1].peak if journal.marks else 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Mark(pages=pages, seconds=seconds, peak=max(peak, earlier), own=_own_memory())


def _own_memory() -> float:
    """Of this process, without the files it has mapped, in MiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this system does not tell a process's own memory in /proc/self/status")


def _say(count: int, what: str) -> None:
    sys.stderr.write(f"{count:,} pages: {what}\n")
    sys.stderr.flush()
