"""Reads the pages of a source: here if they are few and small, else in processes.

The pool is that of the standard library. Its processes do not import the program that indexes, which may
therefore be a notebook, a script without a ``__main__`` guard, or have threads. Short pages are sent several
at once. A page that takes too long ends its process, and with it the pool, whose pages are read once more,
each alone: so it is found.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from threading import Thread
from time import monotonic, perf_counter
from types import ModuleType
from typing import Any, Final

from langchain_core.documents import Document

from linkstore.core.arguments import omit_none, require_at_least
from linkstore.core.processes import Lock, count_cores, infrequent_gc
from linkstore.core.urls import Site
from linkstore.errors import LinkError, LinkStoreError
from linkstore.extract.protocol import Chunk, LinkExtractor, Page
from linkstore.ingest.documents import Linkers
from linkstore.ingest.source import BadInput, EmptyPageError, PageReader, SourcePage, UnreadablePageError

SECONDS_A_PAGE: Final = 10.0
"""A page that takes more processor time to read is given up."""
_PATIENCE_A_PAGE: Final = 12
"""So many times as long by the clock, for pages that wait, or a machine with much else to do."""
PATIENCE: Final = 0.5
"""Seconds of reading after which processes are started: as long as it takes each of them to start."""
LARGEST_HERE: Final = 2**20
"""Bytes of a page that is read here, which takes some seconds at worst. What is larger has a process, and so
a limit, even if there is little else to read."""
_WAITING: Final = 3
"""Messages sent ahead, for each process."""
_PAGES_A_MESSAGE: Final = 8
"""Pages that are sent at once: sending takes half a millisecond, as long as it takes to read a short page."""
_TRIES: Final = 2
"""How often a page is read alone that ended its process, or whose process somebody else ended."""
_SECONDS_TO_START: Final = 60.0
_HAS_TIMERS: Final = hasattr(signal, "setitimer")
_LOG: Final = logging.getLogger("linkstore.ingest")

Offer = SourcePage | BadInput
_pack: Final = partial(pickle.dumps, protocol=pickle.HIGHEST_PROTOCOL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage:
    """The result of reading a page.

    Args:
        documents: In order; none if there is a problem.
        page: What the page says of itself, and what of it is in no document; None if it is documents already.
        problem: Why the page was not read.
        unseen: Whether the page may still be there, as after an error of the disk.
        empty: Whether the page was read and has no text.
    """

    documents: tuple[Document, ...] = ()
    page: Page | None = None
    problem: str | None = None
    unseen: bool = False
    empty: bool = False


def read_page(url: str, read: PageReader, linkers: Linkers) -> ReadPage:
    """Read a page. One page ends no run: a fault of a reader or extractor, whoever wrote it, is a problem.

    Args:
        url: Names the page in the log.
        read: See :class:`~linkstore.ingest.source.SourcePage`.
        linkers: Find the links.

    Raises:
        LinkStoreError: If the run cannot go on, such as for want of an extra.
    """
    try:
        with infrequent_gc():
            parts = read()
            documents = linkers.make_documents(parts)
    except (UnreadablePageError, LinkError) as error:
        return ReadPage(problem=str(error), empty=isinstance(error, EmptyPageError))
    except LinkStoreError:
        raise
    except OSError as error:
        return ReadPage(problem=str(error), unseen=True)
    except Exception as error:  # noqa: BLE001 (see above)
        _LOG.info("reading %s failed", url, exc_info=True)
        return ReadPage(problem=f"reading it failed: {type(error).__name__}: {error}")
    page = parts[0].page if parts and isinstance(parts[0], Chunk) else None
    problem = None if documents else "it has no text"
    return ReadPage(documents=documents, page=page, problem=problem, empty=not documents)


@dataclass(slots=True)
class _Message:
    """Pages that a process reads together, packed, and the reply to come once it is sent."""

    pages: list[bytes] = field(default_factory=list)
    reply: Future[list[bytes]] | None = None


@dataclass(frozen=True, slots=True)
class _Sent:
    """A page that a process reads: its message, and its place there."""

    message: _Message
    place: int

    @property
    def is_read(self) -> bool:
        return self.message.reply is not None and self.message.reply.done()


class ReadAhead:
    """Reads pages, in order, some of them before they are asked for.

    Args:
        linkers: The link extractors of the run.
        links: The same, as the run was given them. Processes make those that are given by name.
        jobs: How many processes read; 1: none but for large pages, the others are read here; None: as many
            as there are cores.

    Raises:
        StrategyError: If there are to be fewer than one.
    """

    def __init__(self, linkers: Linkers, links: Sequence[str | LinkExtractor[Any]], jobs: int | None) -> None:
        require_at_least(1, **omit_none(jobs=jobs))
        self._linkers = linkers
        named = tuple(link for link in links if isinstance(link, str))
        self._jobs = count_cores() if jobs is None else jobs
        self._pool = ReadingPool(self._jobs, named, linkers.site)
        self._able = len(named) == len(links) and bool(sys.executable) and not hasattr(sys, "frozen")
        self._spent = 0.0
        self._together = 0
        """How many pages are sent at once; 0 while there is not enough to read for processes."""

    def pages(
        self, offers: Iterator[Offer], is_new: Callable[[SourcePage], bool]
    ) -> Generator[tuple[Offer, ReadPage | None], None, None]:
        """Yield each offer in order, with the page that was read, or None if it is not to be read.

        If the source raises, what it offered before is given first.

        Args:
            offers: Of the source.
            is_new: Whether a page is to be read.

        Raises:
            LinkStoreError: As :func:`read_page`.
        """
        pending: deque[tuple[Offer, SourcePage | None, _Sent | None]] = deque()
        try:
            while True:
                try:
                    offered = next(offers)
                except StopIteration:
                    break
                except Exception:
                    yield from self._read(pending, 0)
                    raise
                new = offered if isinstance(offered, SourcePage) and is_new(offered) else None
                if new is None and not pending:
                    yield offered, None
                    continue
                pending.append((offered, new, None if new is None else self._send(new)))
                yield from self._read(pending, self._jobs * _WAITING * self._together)
            yield from self._read(pending, 0)
        finally:
            self._pool.close()

    def _send(self, page: SourcePage) -> _Sent | None:
        """Have a process read a page, if it is large, or there is enough to read for processes."""
        if not self._able:
            return None
        if self._jobs > 1 and self._spent >= PATIENCE:
            self._together = _PAGES_A_MESSAGE
        if not self._together and not page.apart and page.size <= LARGEST_HERE:
            return None
        return self._pool.send(page, self._together)

    def _read(
        self, pending: deque[tuple[Offer, SourcePage | None, _Sent | None]], waiting: int
    ) -> Iterator[tuple[Offer, ReadPage | None]]:
        """Yield pages until only this many are waiting, and all pages already read."""
        while pending and (len(pending) > waiting or pending[0][2] is None or pending[0][2].is_read):
            offered, new, sent = pending.popleft()
            page = None if sent is None else self._pool.receive(sent)
            if page is None and new is not None:
                begun = perf_counter()
                page = read_page(new.url, new.read, self._linkers)
                self._spent += perf_counter() - begun
            yield offered, page


class ReadingPool:
    """Processes that read the pages of one run. What they cannot read is left to be read here.

    Args:
        count: How many, at most.
        links: The names of the link extractors.
        site: How the source names its pages.
    """

    def __init__(self, count: int, links: Sequence[str], site: Site) -> None:
        self._count = count
        self._links, self._site = links, site
        self._reader: object = None
        self._task = b""
        """What the processes need to know, packed once there is a page, to whose reader it belongs."""
        self._unsent = _Message()
        self._many: ProcessPoolExecutor | None = None
        self._alone: ProcessPoolExecutor | None = None
        self._failed = False

    def send(self, page: SourcePage, together: int) -> _Sent | None:
        """Have a page read, or return None if it cannot be sent to another process.

        Args:
            page: The page.
            together: How many pages are sent at once; 0: this one is sent alone, once it is received.
        """
        read: Any = page.read
        owner = getattr(getattr(read, "func", None), "__self__", None)
        try:
            if not self._task:
                self._task, self._reader = _pack((self._links, self._site, owner, SECONDS_A_PAGE)), owner
            if owner is not None and owner is self._reader:  # which the processes have
                packed = _pack((page.url, read.func.__name__, read.args, read.keywords))
            else:
                packed = _pack((page.url, read, (), {}))
        except Exception:  # noqa: BLE001 - whatever a source of somebody else consists of
            return None
        if not together:
            return _Sent(_Message([packed]), 0)
        sent = _Sent(self._unsent, len(self._unsent.pages))
        self._unsent.pages.append(packed)
        if len(self._unsent.pages) == together:
            self._flush()
        return sent

    def _flush(self) -> None:
        """Send the pages that wait to be sent, unless no process can be started."""
        message, self._unsent = self._unsent, _Message()
        while (many := self._many or self._start(self._count)) is not None:
            self._many = many
            try:
                message.reply = many.submit(_answer, message.pages)
            except BrokenExecutor:
                self._many = None
            else:
                return

    def receive(self, sent: _Sent) -> ReadPage | None:
        """Return what was read of a page, or None if it must be read here."""
        if sent.message is self._unsent:
            self._flush()
        if sent.message.reply is not None:
            with suppress(BrokenExecutor):  # this page ended the process that read it, or another one did
                return _unpack_reply(sent.message.reply.result()[sent.place])
        for _ in range(_TRIES):
            self._alone = self._alone or self._start(1)
            if self._alone is None:
                return None
            begun = monotonic()
            try:
                return _unpack_reply(
                    self._alone.submit(_answer, [sent.message.pages[sent.place]]).result()[0]
                )
            except BrokenExecutor:
                self._alone = None
            if monotonic() - begun >= SECONDS_A_PAGE:
                return ReadPage(problem=f"reading it took more than {SECONDS_A_PAGE:g} s")
        return ReadPage(problem="the process that read it ended")

    def close(self) -> None:
        """End the processes. What they read just now is not wanted any more."""
        for pool in filter(None, (self._many, self._alone)):
            _end(pool)

    def _start(self, count: int) -> ProcessPoolExecutor | None:
        """Return a pool whose first process is ready, or None if no process can be started."""
        if self._failed:
            return None
        pool: ProcessPoolExecutor | None = None
        try:
            pool = ProcessPoolExecutor(
                count, mp_context=_Context(), initializer=_begin, initargs=(self._task,)
            )
            first, *_ = [pool.submit(_get_ready) for _ in range(count)]  # each starts a process
            first.result(_SECONDS_TO_START)
        except (BrokenExecutor, TimeoutError, OSError, ValueError, RuntimeError, AssertionError):
            # Not because of a page: no more processes are allowed, Python is embedded in another program,
            # or this is a process of a pool itself.
            _LOG.warning("a process that was to read pages did not start; all pages are read here")
            self._failed = True
            for process in () if pool is None else (pool._processes or {}).values():  # noqa: SLF001
                process.kill()  # nothing waits for it at the end
            return None
        return pool


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they wait for.

    One that was killed may have held a lock that another waits for, so nothing is waited for but the pool's
    own notice that they ended.
    """
    for process in list((pool._processes or {}).values()):  # noqa: SLF001
        process.kill()
    noticed = True
    try:
        pool.submit(_get_ready).exception(_SECONDS_TO_START)
    except (BrokenExecutor, RuntimeError):
        pass  # it has noticed already
    except TimeoutError:
        noticed = False
    pool.shutdown(wait=noticed, cancel_futures=True)


class _Process(SpawnProcess):
    """A process that does not import the starting program, out of reach of Ctrl-C."""

    _lock = Lock()

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - a name of multiprocessing
        with _Process._lock:
            main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
            mask = getattr(signal, "pthread_sigmask", None)
            masked = mask(signal.SIG_BLOCK, {signal.SIGINT}) if mask else None
            try:
                return SpawnProcess._Popen(process_obj)  # noqa: SLF001
            finally:
                sys.modules["__main__"] = main
                if mask:
                    mask(signal.SIG_SETMASK, masked)


class _Context(SpawnContext):
    Process = _Process


_JOB: Final[ContextVar[tuple[object, Linkers, float] | None]] = ContextVar("job", default=None)
"""In a process that reads: what the methods that read belong to, the extractors, and the time for a page."""


def _begin(task: bytes) -> None:
    """Make reader and extractors, if they can be made here, as those of a script cannot."""
    with suppress(Exception):  # whatever the constructors of others raise
        links, site, reader, seconds = pickle.loads(task)  # noqa: S301 - from the process that started this one
        _JOB.set((reader, Linkers(links, site), seconds))
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process once its parent has ended, however that was: nobody reads its replies."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


def _get_ready() -> None:
    """Do nothing, to show that the process has started."""


def _answer(pages: list[bytes]) -> list[bytes]:
    """Read pages for another process. The reply to one is empty if it cannot be read here."""
    job = _JOB.get()
    if job is None:
        return [b""] * len(pages)
    reader, linkers, seconds = job
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        clock = seconds * (_PATIENCE_A_PAGE if _HAS_TIMERS else len(pages))
        faulthandler.dump_traceback_later(clock, exit=True, file=nowhere)  # a thread: costs a tenth of a ms
        return [_read_packed(page, reader, linkers, seconds) for page in pages]
    finally:
        faulthandler.cancel_dump_traceback_later()
        os.close(nowhere)


def _read_packed(page: bytes, reader: object, linkers: Linkers, seconds: float) -> bytes:
    """Read a page within so many seconds of the processor's time, at the end of which this process ends."""
    try:
        if _HAS_TIMERS:
            signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends a process
        url, read, args, named = pickle.loads(page)  # noqa: S301 - from the process that started this one
        call = getattr(reader, read) if isinstance(read, str) else read
        return _pack_reply(read_page(url, partial(call, *args, **named), linkers))
    except Exception:  # noqa: BLE001 - the page is read again where the run is, which raises it there
        return b""
    finally:
        if _HAS_TIMERS:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _pack_reply(found: ReadPage) -> bytes:
    """Pack what was read: the documents as tuples, because they would take long to pickle."""
    fields = [(document.id, document.page_content, document.metadata) for document in found.documents]
    return _pack((replace(found, documents=()), fields))


def _unpack_reply(reply: bytes) -> ReadPage | None:
    """Return what a process replied, or None if the page must be read here."""
    if not reply:
        return None
    page: ReadPage
    page, fields = pickle.loads(reply)  # noqa: S301 - from a process of this run
    documents = (Document(id=id, page_content=text, metadata=metadata) for id, text, metadata in fields)
    return replace(page, documents=tuple(documents))
