"""Reads the pages of a source: here if there are few, in separate processes if there are many.

Reads pages in separate processes, so that all cores read.

Each is a new Python process that imports linkstore but not the program that indexes. So this program may be a
notebook, a script without a ``__main__`` guard, or have threads.

Reads the pages of a source: here if there are few, in other processes if there are many.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic, perf_counter
from typing import IO, Any, Final, Self

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.processes import count_cores, skip_to_begin, start_python
from linkstore.core.urls import Site
from linkstore.extract.protocol import LinkExtractor
from linkstore.ingest.documents import Linkers
from linkstore.ingest.source import BadInput, SourcePage
from linkstore.ingest.worker import (
    SECONDS_A_PAGE,
    ReadingTask,
    ReadPage,
    join_documents,
    pack_value,
    read_message,
    read_page,
    unpack_value,
    write_message,
)

_LOG = logging.getLogger("linkstore.ingest")
_SECONDS_TO_START: Final = 60.0
_LOOKS: Final = 20
"""How often in the time that a page may take it is looked whether that is over."""
_PIPE_BYTES: Final = 2**18
"""Most pages and replies are shorter, so that sending one is one call. Beside a thread that computes, the
interpreter's lock comes back from a call after 5 ms, in which the process waits."""


class Workers:
    """Processes that read the pages of one run.

    Args:
        count: How many.
        task: What they need to know, packed.
        reader: What the methods that read pages belong to.
        seconds: A page that takes longer is given up.
    """

    def __init__(self, count: int, task: bytes, reader: object, seconds: float) -> None:
        self._reader = reader
        self._waiting: SimpleQueue[_Process] = SimpleQueue()
        self._processes = [_Process(task, seconds) for _ in range(count)]
        for process in self._processes:
            self._waiting.put(process)
        self._threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix="linkstore-read")
        self._closed = Event()
        weakref.finalize(self, self._closed.set)  # an interrupt may lose this before it is closed
        watched = self._processes, seconds / _LOOKS, self._closed
        self._watch = Thread(target=_end_late_processes, args=watched, daemon=True)
        self._watch.start()

    @classmethod
    def started(cls, count: int, links: Sequence[str], site: Site, page: SourcePage) -> Self | None:
        """Start processes that read pages such as this one, or return None if such pages cannot be sent."""
        reader = getattr(getattr(page.read, "func", None), "__self__", None)
        try:
            task = pack_value(ReadingTask(links=tuple(links), site=site, reader=reader))
        except Exception:  # noqa: BLE001 - whatever a source of somebody else consists of
            return None
        return cls(count, task, reader, SECONDS_A_PAGE)

    def submit(self, page: SourcePage) -> Future[bytes | str] | None:
        """Have a page read, or return None if it cannot be sent to another process."""
        try:
            content = pack_value((page.url, page.read), self._reader)
        except Exception:  # noqa: BLE001 - whatever a source of somebody else consists of
            return None
        return self._threads.submit(self._ask, content)

    def close(self) -> None:
        """End the processes, and drop pages that they still read."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end()
        self._threads.shutdown(wait=True)
        self._watch.join()

    def _ask(self, content: bytes) -> bytes | str:
        process = self._waiting.get()
        try:
            return process.ask(content)
        finally:
            self._waiting.put(process)


def read_reply(reply: bytes | str) -> ReadPage | None:
    """Return what a process replied, or None if the page must be read here."""
    if isinstance(reply, str):
        return ReadPage(problem=reply)
    return join_documents(unpack_value(reply)) if reply else None


def _end_late_processes(processes: Sequence[_Process], every: float, closed: Event) -> None:
    """Look after all processes in one thread: a timer for each page would cost it 5 ms."""
    while not closed.wait(every):
        for process in processes:
            process.end_if_late()


class _Process:
    """One process at a time, which is started when it is needed, and anew after it ended."""

    def __init__(self, task: bytes, seconds: float) -> None:
        self._task = task
        self._seconds = seconds
        self._running: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._due: float | None = None
        self._late = False
        self._lock = Lock()

    def ask(self, content: bytes) -> bytes | str:
        """Return the reply to a message, or what happened to the process instead."""
        try:
            process = self._running or self._started()
        except OSError:  # for example, no more processes are allowed
            return b""
        if process is None:
            return b""
        return self._sent(process, content, self._seconds)

    def end(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._ended = True
            if self._running is not None:
                self._running.kill()
                _reap(self._running)
                self._running = None

    def end_if_late(self) -> None:
        """End the process if it takes too long over a message."""
        with self._lock:
            if self._running is not None and self._due is not None and monotonic() > self._due:
                self._late = True
                self._running.kill()

    def _started(self) -> subprocess.Popen[bytes] | None:
        """Start a process that is ready, or return None if the run has ended or no process can be started."""
        with self._lock:
            if self._ended:
                return None
            self._running = process = start_python("linkstore.ingest.worker", pipe_bytes=_PIPE_BYTES)
        reply = self._sent(process, self._task, _SECONDS_TO_START, first=True)
        if isinstance(reply, bytes):
            return process
        if not self._ended:  # not because of a page: for example, Python is embedded in another program
            self._ended = True
            _LOG.warning("a process that was to read pages did not start; its pages are read here")
        return None

    def _sent(
        self, process: subprocess.Popen[bytes], content: bytes, bound: float, *, first: bool = False
    ) -> bytes | str:
        with self._lock:
            self._due, self._late = monotonic() + bound, False
        try:
            if first:
                skip_to_begin(_check_pipe(process.stdout))
            write_message(_check_pipe(process.stdin), content)
            reply = read_message(_check_pipe(process.stdout))
        except (EOFError, OSError, ValueError):  # ValueError: the pipe was closed
            status = self._drop(process)
            if self._late:
                return f"reading it took more than {bound:g} s"
            return f"the process that read it ended ({_describe_status(status)})"
        with self._lock:
            self._due = None
        if self._late:  # it was ended just after it replied
            self._drop(process)
        return reply

    def _drop(self, process: subprocess.Popen[bytes]) -> int:
        process.kill()
        status = _reap(process)
        with self._lock:
            self._running = self._due = None
        return status


def _reap(process: subprocess.Popen[bytes]) -> int:
    status = process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # messages that were not written are lost with the process
                pipe.close()
    return status


def _describe_status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit code {status}"


def _check_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("the process has no pipe")
    return pipe


PATIENCE: Final = 1.0
"""Seconds of reading after which processes are started; that takes each of them half a second."""
_GLIMPSE: Final = 0.1
"""Seconds of reading that tell how long the rest will take, where a source says how many pages it has."""
_MUCH: Final = 3.0
"""Seconds that the rest is to take for processes to be started earlier."""
_WAITING: Final = 4
"""Pages offered ahead, for each process."""

Offer = SourcePage | BadInput
_Pending = tuple[Offer, Future[bytes | str] | None]


class ReadAhead:
    """Reads pages, in order, some of them before they are asked for.

    Args:
        linkers: The link extractors of the run.
        links: The same, as the run was given them. Processes make those that are given by name.
        jobs: How many processes read; 1: none, pages are read here; None: as many as there are cores.

    Raises:
        StrategyError: If there are to be fewer than one.
    """

    def __init__(self, linkers: Linkers, links: Sequence[str | LinkExtractor[Any]], jobs: int | None) -> None:
        require_at_least(1, **omit_none(jobs=jobs))
        self._linkers = linkers
        self._links = tuple(one for one in links if isinstance(one, str))
        able = len(self._links) == len(links) and bool(sys.executable) and not hasattr(sys, "frozen")
        self._jobs = (count_cores() if jobs is None else jobs) if able else 1
        self._spent = 0.0
        self._offered = 0
        self._workers: Workers | None = None

    def pages(
        self, offers: Iterator[Offer], is_new: Callable[[SourcePage], bool], about: int = 0
    ) -> Generator[tuple[Offer, ReadPage | None], None, None]:
        """Yield what a source offers, in order, each with what was read, or None for what is not to be read.

        If the source raises, what it offered before is given first.

        Args:
            offers: Of the source.
            is_new: Whether a page is to be read.
            about: How many pages there are, 0 if that is not known.

        Raises:
            LinkStoreError: As :func:`~linkstore.ingest.worker.read_page`.
        """
        pending: deque[_Pending] = deque()
        try:
            while True:
                try:
                    offered = next(offers)
                except StopIteration:
                    break
                except Exception:
                    yield from self._read(pending, is_new, 0)
                    raise
                self._offered += 1
                pending.append((offered, self._begun(offered, is_new, about)))
                yield from self._read(pending, is_new, self._jobs * _WAITING if self._workers else 0)
            yield from self._read(pending, is_new, 0)
        finally:
            if self._workers is not None:
                self._workers.close()

    def _begun(
        self, offered: Offer, is_new: Callable[[SourcePage], bool], about: int
    ) -> Future[bytes | str] | None:
        if isinstance(offered, BadInput) or self._jobs == 1 or not is_new(offered):
            return None
        if self._workers is None and self._is_much(about):
            self._workers = Workers.started(self._jobs, self._links, self._linkers.site, offered)
            if self._workers is None:
                self._jobs = 1
        return None if self._workers is None else self._workers.submit(offered)

    def _is_much(self, about: int) -> bool:
        """Say whether there is enough to read for processes, judged by what was read so far."""
        left = about - self._offered
        return self._spent >= PATIENCE or (
            self._spent >= _GLIMPSE and self._spent * left >= _MUCH * self._offered
        )

    def _read(
        self, pending: deque[_Pending], is_new: Callable[[SourcePage], bool], waiting: int
    ) -> Iterator[tuple[Offer, ReadPage | None]]:
        """Yield pages until only this many are waiting, and those that are read already."""
        while pending and (len(pending) > waiting or pending[0][1] is None or pending[0][1].done()):
            offered, future = pending.popleft()
            if isinstance(offered, BadInput) or not is_new(offered):
                yield offered, None
            else:
                found = None if future is None else read_reply(future.result())
                yield offered, found or self._read_here(offered)

    def _read_here(self, page: SourcePage) -> ReadPage:
        begun = perf_counter()
        found = read_page(page.url, page.read, self._linkers)
        self._spent += perf_counter() - begun
        return found
