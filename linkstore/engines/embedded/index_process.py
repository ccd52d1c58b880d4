"""The index process, which builds the index while another process writes; and its writer's side.

usearch takes the interpreter's lock for each vector that it adds, so it is slow beside a busy Python thread.
The index process opens the store like any other process, and takes snapshots, which every process adopts. So
its crash loses nothing. Its code is :mod:`~linkstore.engines.embedded.index_worker`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    import subprocess

BACKLOG: Final = 5_000
"""Number of documents missing in the index from which the process starts; the writer itself adds fewer."""
AHEAD: Final = 50_000
"""A writer waits while the index lacks more documents than this: each search compares them one by one."""
STALL_SECONDS: Final = 60.0
"""A writer no longer waits for an index process that has added or said nothing for this long."""
TOLD_SECONDS: Final = 5.0
"""The interval at which waiting for a snapshot logs how far the index is."""
BEAT_SECONDS: Final = 5.0
"""The interval at which the process says that it is alive; it may be late while usearch writes its file."""
FLUSH, FLUSHED, ALIVE = b"flush\n", b"flushed", b"alive"
_WORKER: Final = "linkstore.engines.embedded.index_worker"
_POLL_SECONDS: Final = 0.01
_LOG: Final = logging.getLogger("linkstore.index")
"""Also receives how far the index is while a thread waits for it."""


class Indexer:
    """At most one process that builds the index of a store, started when it is needed.

    Args:
        folder: Where the store lies.
        settings: The fields of ``EmbeddedSettings``, by name.
    """

    def __init__(self, folder: Path, settings: dict[str, float]) -> None:
        self._folder = folder
        self._settings = settings
        self._lock = threading.RLock()  # close() in a signal handler may need it in the same thread
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self._unread = b""
        self._begun = False
        self._flushed = 0
        self._asked = 0
        self._covered = 0
        self._moved = 0.0
        self._heard_at = 0.0
        self.problem: str | None = None

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        with self._lock:
            return self._listen()

    def started(self, covered: int) -> bool:
        """Start the process unless it is running, and return whether it is running.

        Args:
            covered: The largest document key that the recorded index covers.
        """
        with self._lock:
            if self._listen():
                return True
            if self.problem or not _can_start_process():
                return False
            try:
                self._start(covered)
            except OSError as error:
                self._record_failure(f"could not be started: {error}")
            return self._process is not None

    def hold_back(self, last_key: int) -> None:
        """Wait while the index lacks too many of the documents up to a key."""
        while self.running and last_key - self._covered > AHEAD:
            if time.monotonic() - self._moved > STALL_SECONDS:
                return
            time.sleep(_POLL_SECONDS)

    def flush(self, last_key: int) -> None:
        """Have the process take a snapshot, and wait until it has or has ended.

        A process that says nothing for ``STALL_SECONDS``, such as one that was stopped, is ended.

        Args:
            last_key: The largest document key, for the log messages on how far the index is.
        """
        with self._lock:
            if not self._listen():
                return
            self._asked += 1
            asked = self._asked
            with contextlib.suppress(OSError):  # it has ended, which the next check will show
                os.write(self._process.stdin.fileno(), FLUSH)  # type: ignore[union-attr]
        told = self._heard_at = time.monotonic()
        while self._flushed < asked and self.running:
            if time.monotonic() - self._heard_at > STALL_SECONDS:
                self._give_up()
                return
            if time.monotonic() - told > TOLD_SECONDS:
                told = time.monotonic()
                _LOG.info("%s: the index has %d of %d documents", self._folder, self._covered, last_key)
            time.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """End the process at once. Work that it has not recorded is lost."""
        with self._lock:
            self.problem = None
            if self._end is not None:
                self._end()
                self._reap()

    def _give_up(self) -> None:
        with self._lock:
            if self._end is not None:
                self._end()
                self._reap()
            self._record_failure(f"was not heard for {STALL_SECONDS:g} s")

    def _start(self, covered: int) -> None:
        self._unread, self._begun, self._covered, self._moved = b"", False, covered, time.monotonic()
        self._flushed = self._asked  # threads that wait for the previous process stop waiting
        task = {"folder": str(self._folder), "parent": os.getpid(), **self._settings}
        from linkstore.core.processes import start_python  # late, as below: most programs start no process

        process = start_python(_WORKER, orjson.dumps(task).decode())
        os.set_blocking(process.stdout.fileno(), False)  # type: ignore[union-attr]
        end = weakref.finalize(self, _kill_process, process, os.getpid())
        self._process, self._end = process, end  # last, and at once: an interrupt cannot split it

    def _listen(self) -> bool:
        """Read the messages of the process, and return whether it is running. The caller holds the lock."""
        process = self._process
        if process is None:
            return False
        ended = process.poll() is not None  # first, so that its last messages are read
        with contextlib.suppress(BlockingIOError):
            while given := os.read(process.stdout.fileno(), 1 << 16):  # type: ignore[union-attr]
                self._unread += given
                self._heard_at = time.monotonic()
        for line in self._take_lines():
            self._handle_line(line)
        if not ended:
            return True
        self._reap()
        return False

    def _take_lines(self) -> Sequence[bytes]:
        """Return the whole lines that were read, without what Python may have printed when it started."""
        if not self._begun:
            from linkstore.core.processes import BEGIN

            noise, begin, rest = self._unread.partition(BEGIN)
            self._begun, self._unread = bool(begin), rest if begin else noise
            if not begin:
                return ()
        *lines, self._unread = self._unread.split(b"\n")
        return lines

    def _handle_line(self, line: bytes) -> None:
        if line == FLUSHED:
            self._flushed += 1
        elif line == ALIVE:
            pass  # its message was read
        elif line.isdigit():
            if int(line) != self._covered:
                self._moved = time.monotonic()
            self._covered = int(line)
        else:
            self._record_failure(line.decode(errors="replace"))

    def _reap(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        wanted = self._end is None or not self._end.alive
        status = process.wait()
        if self._end is not None:
            self._end()
        for path in self._folder.glob(f".*.{process.pid}.tmp"):
            with contextlib.suppress(OSError):
                path.unlink()
        if status and not wanted and not self.problem:
            self._record_failure(f"ended with {f'signal {-status}' if status < 0 else f'exit code {status}'}")

    def _record_failure(self, problem: str) -> None:
        self.problem = problem
        _LOG.warning(
            "the process that builds the index of %s %s; this one builds it now", self._folder, problem
        )


def _kill_process(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process, unless this process is a forked child of the one that started it."""
    if os.getpid() != owner:
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # messages that it did not get are lost with it
                pipe.close()


def _can_start_process() -> bool:
    """Say whether a Python process can be started here that ends with this process."""
    return os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)
