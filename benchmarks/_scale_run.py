"""One run of the benchmark of scale: index a made-up wiki, going on where an earlier run stopped.

What is done is in the store itself, which remembers the pages it has. The journal beside it keeps what
the store does not: how long it took and how much memory, as of every hundredth of the way.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

import psutil
from _scale_pages import write_dump

from linkstore import LinkStore
from linkstore.ingest import WikiDumpSource, index
from linkstore.ingest.source import Summary

SOURCE: Final = "made"
MARKS: Final = 100
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far a run had come.

    Args:
        pages: Of the dump, from its beginning.
        seconds: Since the start, those of earlier runs up to their last mark included.
        cpu: Seconds of the cores that all processes of the run used: what else runs on the machine
            counts less here.
        peak: The most memory that these processes had together until then, in MiB, looked at twice a
            second. It includes the files that they have mapped.
        own: The same without such files.
    """

    pages: int
    seconds: float
    cpu: float
    peak: float
    own: float


NOTHING: Final = Mark(pages=0, seconds=0.0, cpu=0.0, peak=0.0, own=0.0)


@dataclass(slots=True, kw_only=True)
class Journal:
    """What is known of the runs into one store.

    Args:
        path: The file, replaced as a whole at each mark.
        marks: In order.
        runs: How many processes it took.
        finished: Whether all pages were indexed: the last mark is of the moment when the store was closed.
    """

    path: Path
    marks: list[Mark] = field(default_factory=list)
    runs: int = 0
    finished: bool = False

    @classmethod
    def read(cls, path: Path) -> Journal:
        """What is in the file; an empty journal if there is none."""
        if not path.exists():
            return cls(path=path)
        said = json.loads(path.read_text(encoding="utf-8"))
        return cls(path=path, **{**said, "marks": [Mark(**mark) for mark in said["marks"]]})

    @property
    def last(self) -> Mark:
        """The last mark; before the first, nothing."""
        return self.marks[-1] if self.marks else NOTHING

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


class _EnoughError(Exception):
    """The time that was given is over."""


def index_wiki(
    folder: Path, count: int, *, minutes: float = inf, then: Progress | None = None
) -> Summary | None:
    """Index a wiki of ``count`` pages into ``folder``; None if that was done before, or is not done in time.

    Args:
        folder: Has the dump, the journal and the store, ``kb``.
        count: Number of pages.
        minutes: When to end; the next run goes on.
        then: Called after each page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal.read(folder / "journal.json")
    if journal.finished:
        _say(count, f"indexed already, in {journal.last.seconds:,.0f} s")
        return None
    dump = folder / "dump.xml"
    write_dump(dump, count)
    meter = _Meter(journal.last)
    if journal.runs:
        last = journal.last
        _say(count, f"goes on: an earlier run was at page {last.pages:,} after {last.seconds:,.0f} s")
    journal.runs += 1
    journal.save()

    def progress(done: int, total: int, page: str) -> None:
        if done >= min(count, journal.last.pages + max(1, count // MARKS)):
            journal.marks.append(meter.mark(done))
            journal.save()
            if meter.minutes > minutes and done < count:
                raise _EnoughError
        if then is not None:
            then(done, total, page)

    summary = None
    with meter, suppress(_EnoughError), LinkStore.open(folder / "kb") as store:
        summary = index(store, WikiDumpSource(dump), name=SOURCE, progress=progress)
    journal.finished = summary is not None
    journal.marks.append(meter.mark(count if summary else journal.last.pages))
    journal.save()
    if summary is None:
        _say(count, f"time is over at page {journal.last.pages:,}")
    elif summary.pages.unchanged:
        _say(count, f"of them {summary.pages.unchanged:,} were in the store already")
    return summary


class _Meter:
    """Measures a run: this process, and those that read pages or build the index; a thread looks at them.

    Args:
        before: What earlier runs took.
    """

    def __init__(self, before: Mark) -> None:
        self._before = before
        self._started = time.perf_counter()
        self._cpu: dict[tuple[int, float], float] = {}
        self._peak, self._own = before.peak, before.own
        self._looking = threading.Lock()
        self._look()
        self._spent = sum(self._cpu.values())
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def minutes(self) -> float:
        """Since this run began."""
        return (time.perf_counter() - self._started) / 60

    def mark(self, pages: int) -> Mark:
        """How far it is."""
        self._look()
        return Mark(
            pages=pages,
            seconds=self._before.seconds + time.perf_counter() - self._started,
            cpu=self._before.cpu + sum(self._cpu.values()) - self._spent,
            peak=self._peak,
            own=self._own,
        )

    def _watch(self) -> None:
        while not self._done.wait(0.5):
            self._look()

    def _look(self) -> None:
        """A process that ended counts with what it had used when it was last looked at."""
        with self._looking:
            this = psutil.Process()
            all_of_it = own = 0.0
            for process in [this, *this.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess), process.oneshot():
                    times, memory = process.cpu_times(), process.memory_info()
                    self._cpu[process.pid, process.create_time()] = times.user + times.system
                    all_of_it += memory.rss / 2**20
                    own += (memory.rss - memory.shared) / 2**20
            self._peak, self._own = max(self._peak, all_of_it), max(self._own, own)


def _say(count: int, what: str) -> None:
    sys.stderr.write(f"{count:,} pages: {what}\n")
    sys.stderr.flush()
