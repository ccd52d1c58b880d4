"""Reads the pages of a source: here if there are few, in separate processes if there are many.

Each is a new Python process that imports linkstore but not the program that indexes. So this program may be a
notebook, a script without a ``__main__`` guard, or have threads. The pools of the standard library import the
program, and do not outlive a process that dies.

Messages go through pipes that only the two processes have. A message is its length in 8 bytes, then a pickle.
The first one is the :class:`ReadingTask`, the others are pages: one message in, one out. A process gives up a
page that takes too long by ending itself.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from threading import Lock, Timer
from time import monotonic, perf_counter
from typing import IO, Any, Final

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.processes import (
    count_cores,
    run_without_collector,
    skip_to_begin,
    start_python,
    take_pipes,
)
from linkstore.core.urls import Site
from linkstore.errors import LinkError, LinkStoreError
from linkstore.extract.protocol import Chunk, LinkExtractor, Page
from linkstore.ingest.documents import Linkers, make_page_documents
from linkstore.ingest.html.pages import UnreadablePageError
from linkstore.ingest.source import BadInput, PageReader, SourcePage

SECONDS_A_PAGE: Final = 10.0
"""A page that takes longer to read is given up."""
PATIENCE: Final = 1.0
"""Seconds of reading after which processes are started; that takes each of them half a second."""
_GLIMPSE: Final = 0.1
"""Seconds of reading that tell how long the rest will take, where a source says how many pages it has."""
_MUCH: Final = 3.0
"""Seconds that the rest is to take for processes to be started earlier."""
_WAITING: Final = 4
"""Pages offered ahead, for each process."""
_SECONDS_TO_START: Final = 60.0
_PIPE_BYTES: Final = 2**18
"""Most pages and replies are shorter, so that sending one is one call. Beside a thread that computes, the
interpreter's lock comes back from a call after 5 ms, in which the process waits."""
_LENGTH: Final = struct.Struct("!Q")
_LOST: Final = (EOFError, OSError, ValueError)
"""What sending to a process that has ended raises, and receiving from it; ValueError: the pipe was closed."""
_LOG: Final = logging.getLogger("linkstore.ingest")

Offer = SourcePage | BadInput
_Pending = tuple[Offer, Future[bytes | str] | None]
_pack: Final = partial(pickle.dumps, protocol=pickle.HIGHEST_PROTOCOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """The result of reading a page.

    Args:
        documents: In order; none if there is a problem.
        page: What the page says of itself, and what of it is in no document; None if it is documents already.
        problem: Why the page was not read.
        unseen: Whether the page may still be there, as after an error of the disk.
    """

    documents: tuple[Document, ...] = ()
    page: Page | None = None
    problem: str | None = None
    unseen: bool = False


def read_page(url: str, read: PageReader, linkers: Linkers) -> ReadPage:
    """Read a page. One page ends no run: a fault of a reader or extractor, whoever wrote it, is a problem.

    Args:
        url: Names the page in the log.
        read: See :class:`~linkstore.ingest.SourcePage`.
        linkers: Find the links.

    Raises:
        LinkStoreError: If the run cannot go on, such as for want of an extra.
    """

    def read_documents() -> tuple[Sequence[Chunk] | Sequence[Document], tuple[Document, ...]]:
        found = read()
        return found, make_page_documents(found, linkers)

    try:
        found, documents = run_without_collector(read_documents)
    except (UnreadablePageError, LinkError) as error:
        return ReadPage(problem=str(error))
    except LinkStoreError:
        raise
    except OSError as error:
        return ReadPage(problem=str(error), unseen=True)
    except Exception as error:  # noqa: BLE001 (see above)
        _LOG.info("reading %s failed", url, exc_info=True)
        return ReadPage(problem=f"reading it failed: {type(error).__name__}: {error}")
    page = found[0].page if found and isinstance(found[0], Chunk) else None
    return ReadPage(documents=documents, page=page, problem=None if documents else "it has no text")


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
            LinkStoreError: As :func:`read_page`.
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
                pending.append((offered, self._submit(offered, is_new, about)))
                yield from self._read(pending, is_new, self._jobs * _WAITING if self._workers else 0)
            yield from self._read(pending, is_new, 0)
        finally:
            if self._workers is not None:
                self._workers.close()

    def _submit(
        self, page: Offer, is_new: Callable[[SourcePage], bool], about: int
    ) -> Future[bytes | str] | None:
        """Have a process read a page, if there is enough to read for processes, by what was read so far."""
        if isinstance(page, BadInput) or self._jobs == 1 or not is_new(page):
            return None
        if self._workers is None:
            left = self._spent * (about - self._offered)
            if self._spent < PATIENCE and (self._spent < _GLIMPSE or left < _MUCH * self._offered):
                return None
            self._workers = Workers.started(self._jobs, self._links, self._linkers.site, page)
            if self._workers is None:
                self._jobs = 1
                return None
        return self._workers.submit(page)

    def _read(
        self, pending: deque[_Pending], is_new: Callable[[SourcePage], bool], waiting: int
    ) -> Iterator[tuple[Offer, ReadPage | None]]:
        """Yield pages until only this many are waiting, and those that are read already."""
        while pending and (len(pending) > waiting or pending[0][1] is None or pending[0][1].done()):
            offered, future = pending.popleft()
            if isinstance(offered, BadInput) or not is_new(offered):
                yield offered, None
                continue
            found = None if future is None else _unpack_reply(future.result())
            if found is None:
                begun = perf_counter()
                found = read_page(offered.url, offered.read, self._linkers)
                self._spent += perf_counter() - begun
            yield offered, found


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

    @classmethod
    def started(cls, count: int, links: Sequence[str], site: Site, page: SourcePage) -> Workers | None:
        """Start processes that read pages such as this one, or return None if such pages cannot be sent."""
        reader = getattr(getattr(page.read, "func", None), "__self__", None)
        try:
            task = _pack(ReadingTask(links=tuple(links), site=site, reader=reader))
        except Exception:  # noqa: BLE001 - whatever a source of somebody else consists of
            return None
        return cls(count, task, reader, SECONDS_A_PAGE)

    def submit(self, page: SourcePage) -> Future[bytes | str] | None:
        """Have a page read, or return None if it cannot be sent to another process."""
        read: Any = page.read
        owner = getattr(getattr(read, "func", None), "__self__", None)
        try:
            if owner is not None and owner is self._reader:  # which the processes have
                content = _pack((page.url, read.func.__name__, read.args, read.keywords))
            else:
                content = _pack((page.url, read, (), {}))
        except Exception:  # noqa: BLE001 - whatever a source of somebody else consists of
            return None
        return self._threads.submit(self._ask, content)

    def close(self) -> None:
        """End the processes, and drop pages that they still read."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end()
        self._threads.shutdown(wait=True)

    def _ask(self, content: bytes) -> bytes | str:
        process = self._waiting.get()
        try:
            return process.ask(content)
        finally:
            self._waiting.put(process)


class _Process:
    """One process at a time, which is started when it is needed, and anew after it ended."""

    def __init__(self, task: bytes, seconds: float) -> None:
        self._task = task
        self._seconds = seconds
        self._running: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = Lock()

    def ask(self, content: bytes) -> bytes | str:
        """Return the reply to a message, empty if it must be read here, or what happened to the process."""
        process = self._running or self._start()
        if process is None:
            return b""
        begun = monotonic()
        try:
            return _exchange(process, content)
        except _LOST:
            status = self._drop(process)
        if monotonic() - begun >= self._seconds:
            return f"reading it took more than {self._seconds:g} s"
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        return f"the process that read it ended ({how})"

    def end(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._ended, process = True, self._running
        if process is not None:
            self._drop(process)

    def _start(self) -> subprocess.Popen[bytes] | None:
        """Start a process that is ready, or return None if the run has ended or no process can be started."""
        with self._lock:
            if self._ended:
                return None
            try:
                self._running = process = start_python(__name__, str(self._seconds), pipe_bytes=_PIPE_BYTES)
            except OSError:  # for example, no more processes are allowed
                return None
        patience = Timer(_SECONDS_TO_START, process.kill)
        patience.start()
        try:
            skip_to_begin(_check_pipe(process.stdout))
            _exchange(process, self._task)
        except _LOST:
            self._drop(process)
            if not self._ended:  # not because of a page: for example, Python is embedded in another program
                self._ended = True
                _LOG.warning("a process that was to read pages did not start; its pages are read here")
            return None
        finally:
            patience.cancel()
        return process

    def _drop(self, process: subprocess.Popen[bytes]) -> int:
        """End a process, and return its exit status."""
        process.kill()
        status = process.wait()
        with suppress(OSError), process:  # closes the pipes; what was not written is lost with the process
            self._running = None
        return status


def _exchange(process: subprocess.Popen[bytes], content: bytes) -> bytes:
    _write_message(_check_pipe(process.stdin), content)
    return _read_message(_check_pipe(process.stdout))


def _check_pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("the process has no pipe")
    return pipe


def _write_message(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(_LENGTH.pack(len(content)) + content)  # in one call: each releases the lock
    pipe.flush()


def _read_message(pipe: IO[bytes]) -> bytes:
    """Receive a message.

    Raises:
        EOFError: If the other side is gone.
    """
    head = pipe.read(_LENGTH.size)
    if len(head) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        content = pipe.read(length)
        if len(content) == length:
            return content
    raise EOFError("the other side is gone")


def _pack_reply(found: ReadPage) -> bytes:
    """Pack what was read: the documents as tuples, because they would take long to pickle."""
    fields = [(one.id, one.page_content, one.metadata) for one in found.documents]
    return _pack((replace(found, documents=()), fields))


def _unpack_reply(reply: bytes | str) -> ReadPage | None:
    """Return what a process replied, or None if the page must be read here."""
    if isinstance(reply, str):
        return ReadPage(problem=reply)
    if not reply:
        return None
    found: ReadPage
    found, fields = pickle.loads(reply)  # noqa: S301 - from a process of this run, through a pipe of its own
    documents = (Document(id=id, page_content=text, metadata=metadata) for id, text, metadata in fields)
    return replace(found, documents=tuple(documents))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTask:
    """The task of a process: everything that it needs to read the pages of a run.

    Args:
        links: Names of link extractors.
        site: How the source names its pages.
        reader: What the methods that read pages belong to; None if those are functions.
    """

    links: tuple[str, ...]
    site: Site
    reader: object


def main() -> None:
    """Read pages for another process until there are no more. The reply is empty if one cannot be read."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one is told, and ends it
    seconds, nowhere = float(sys.argv[1]), os.open(os.devnull, os.O_WRONLY)
    messages, replies = take_pipes()
    with suppress(EOFError):
        job = _make_job(_read_message(messages))
        _write_message(replies, b"ready")
        while True:
            content = _read_message(messages)
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            reply = b"" if job is None else _make_reply(content, *job)
            faulthandler.cancel_dump_traceback_later()
            _write_message(replies, reply)


def _make_job(content: bytes) -> tuple[object, Linkers] | None:
    """Return reader and extractors, or None if they cannot be made here, as those of a script cannot."""
    try:
        task: ReadingTask = pickle.loads(content)  # noqa: S301 - from the process that started this one
        return task.reader, Linkers(task.links, task.site)
    except Exception:  # noqa: BLE001 - whatever the constructors of others raise
        return None


def _make_reply(content: bytes, reader: object, linkers: Linkers) -> bytes:
    try:
        url, read, given, named = pickle.loads(content)  # noqa: S301 - from the process that started this one
        call = getattr(reader, read) if isinstance(read, str) else read
        return _pack_reply(read_page(url, partial(call, *given, **named), linkers))
    except Exception:  # noqa: BLE001 - the page is read again where the run is, which raises it there
        return b""
