"""The index process, which builds the index while another process writes; and its writer's side.

usearch takes the interpreter's lock for each vector that it adds, so it is slow beside a busy Python thread.
The index process opens the store like any other process, and takes snapshots, which every process adopts. So
its crash loses nothing. A line of input has it take a last snapshot; its output says how far the index is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import orjson

from linkstore.engines.embedded.schema import read_settings
from linkstore.errors import StoreBusyError

if TYPE_CHECKING:
    import subprocess

TOLD_SECONDS: Final = 5.0
"""The interval at which waiting for a snapshot logs how far the index is."""
STALL_SECONDS: Final = 60.0
"""A writer ends an index process that it waits for and that has said nothing for this long."""
BEAT_SECONDS: Final = 5.0
"""The interval at which the process says that it is alive; it may be late while usearch writes its file."""
POLL_SECONDS: Final = 0.05
SETTLED_SECONDS: Final = 1.0
"""If no process has written for this long, a snapshot is taken even if the store has not grown by half."""
IDLE_SECONDS: Final = 30.0
"""The process ends after this time without work."""
_LOG: Final = logging.getLogger("linkstore.index")
"""Also receives how far the index is while a thread waits for it."""
_FINISH, _STOPPED = b"finish\n", b"stopped: "


class Indexer:
    """At most one process that builds the index of a store, started when it is needed.

    Args:
        folder: Where the store lies.
        settings: The fields of ``EmbeddedSettings``, by name.

    Attributes:
        problem: How the process failed; then this process builds the index by itself.
    """

    def __init__(self, folder: Path, settings: dict[str, float]) -> None:
        self._folder = folder
        self._settings = settings
        self._lock = threading.RLock()  # close() in a signal handler may need it in the same thread
        self._started: tuple[subprocess.Popen[bytes], weakref.finalize[..., Any]] | None = None
        self.problem: str | None = None

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        started = self._started
        if started is not None and started[0].poll() is not None:
            self._reap(wanted=False)
        return self._started is not None

    def start(self) -> bool:
        """Start the process unless it is running, and return whether it is running."""
        with self._lock:
            if self.running:
                return True
            if self.problem or os.name != "posix" or getattr(sys, "frozen", False) or not sys.executable:
                return False
            task = {"folder": str(self._folder), "parent": os.getpid(), **self._settings}
            from linkstore.core.processes import start_python  # late: most programs start no process

            try:
                process = start_python(__name__, orjson.dumps(task).decode(), pipe_bytes=0)
                self._started = process, weakref.finalize(self, _kill_process, process, os.getpid())
            except OSError as error:
                self._record_failure(f"could not be started: {error}")
            return self._started is not None

    def finish(self, last_key: int) -> None:
        """Have the process, if it runs, take a snapshot that is due, and wait until it has ended.

        Args:
            last_key: The largest document key, for the log messages on how far the index is.
        """
        started = self._started if self.running else None
        if started is None:
            return
        process, told = started[0], time.monotonic()
        replies: Any = process.stdout
        try:
            with contextlib.suppress(BrokenPipeError):  # it has just ended
                os.write(process.stdin.fileno(), _FINISH)  # type: ignore[union-attr]
            while select.select([replies], [], [], STALL_SECONDS)[0]:
                line = replies.readline()
                self._hear(line)
                if line.strip().isdigit() and time.monotonic() - told >= TOLD_SECONDS:
                    told = time.monotonic()
                    _LOG.info("%s: the index has %d of %d documents", self._folder, int(line), last_key)
                if not line:
                    process.wait()
                    break
            else:
                self.end()
                self._record_failure(f"was not heard for {STALL_SECONDS:g} s")
        except BaseException as error:
            if self._started is not started and isinstance(error, OSError | ValueError):
                return  # another thread, or a signal handler, has ended the process and closed its pipes
            self.end()
            raise
        self._reap(wanted=False)

    def end(self) -> None:
        """End the process at once. Work that it has not recorded is lost."""
        self.problem = None
        self._reap(wanted=True)

    def _reap(self, *, wanted: bool) -> None:
        """Release what is left of the process, and record its failure unless its end is wanted."""
        with self._lock:
            started, self._started = self._started, None
            if started is None:
                return
            process, end = started
            if not wanted and process.stdout is not None and not process.stdout.closed:
                for line in process.stdout:
                    self._hear(line)
            end()
            for path in self._folder.glob(f".*.{process.pid}.tmp"):
                with contextlib.suppress(OSError):
                    path.unlink()
            if process.returncode and not wanted and not self.problem:
                status = process.returncode
                self._record_failure(
                    f"ended with {f'signal {-status}' if status < 0 else f'exit code {status}'}"
                )

    def _hear(self, line: bytes) -> None:
        if line.startswith(_STOPPED):
            self._record_failure(line.decode(errors="replace").strip())

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
            pipe.close()


def main() -> None:
    """Build the index of the store that the argument names, while the store's writer lives and writes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer decides whether to go on
    from linkstore.core.processes import take_pipes

    orders, replies = take_pipes()
    os.set_blocking(replies.fileno(), False)
    task = orjson.loads(sys.argv[1])
    parent = task.pop("parent")

    def tell(line: bytes) -> None:
        if os.getppid() != parent:
            os._exit(0)  # nobody needs the index any more; nothing has to be closed
        with contextlib.suppress(OSError):  # the writer reads so little that the pipe is full
            os.write(replies.fileno(), line + b"\n")

    tell(b"")
    try:
        _build_index(task, orders, tell)
    except Exception as error:  # noqa: BLE001 - whatever it is, the writer reports it and goes on
        tell(_STOPPED + f"{type(error).__name__}: {' '.join(str(error).split())}".encode())
        os._exit(1)
    os._exit(0)  # without waiting for the listening thread


def _build_index(task: dict[str, Any], orders: BinaryIO, tell: Callable[[bytes], None]) -> None:
    """Keep the index up to date, and return when told to, or when there was nothing to do for a while."""
    from linkstore.engines.embedded.location import Place
    from linkstore.engines.embedded.maintenance import EmbeddedSettings, OpenStore

    place, finish = Place(task.pop("folder")), threading.Event()
    place.prepare(create=False)
    store = OpenStore(place, EmbeddedSettings(**task), lambda covered: tell(b"%d" % covered))

    def listen() -> None:
        while True:
            if select.select([] if finish.is_set() else [orders], [], [], BEAT_SECONDS)[0]:
                finish.set()
            tell(b"")  # this process is alive, and ends if its writer has

    threading.Thread(target=listen, daemon=True).start()
    seen, since = None, time.monotonic()
    while time.monotonic() - since < IDLE_SECONDS:
        last = finish.is_set()  # before looking, so that the last snapshot has all that was written before
        try:
            worked = store.catch_up(settled=last or time.monotonic() - since > SETTLED_SECONDS)
        except StoreBusyError:
            if last:
                raise
            continue
        if last:
            return
        change = store.database.read(read_settings)["change"]
        if worked or change != seen:
            seen, since = change, time.monotonic()
        if not worked:
            time.sleep(POLL_SECONDS)
