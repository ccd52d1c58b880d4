"""What a process may use: its cores, fresh Pythons, pauses of the garbage collector.

The number of processors that this process may use.

Starts a separate Python process that imports linkstore but not the program that uses it.

The program may therefore be a notebook, a script without a ``__main__`` guard, or have threads.

Pauses Python's cyclic garbage collector, or makes it rare, while many long-lived objects are created.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, BinaryIO, Final, TypeAlias, TypeVar


def count_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


BEGIN: Final = b"\0linkstore\0"
"""Stands before all that such a process replies; before it may be what Python's start printed."""
_START: Final = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


def start_python(module: str, *arguments: str, pipe_bytes: int = -1) -> subprocess.Popen[bytes]:
    """Start a process that runs the function ``main`` of a module, with pipes for its input and output.

    Ctrl-C in a terminal does not reach the process. Its replies begin after :data:`BEGIN`.

    Args:
        module: The module's full name.
        arguments: What the process finds in ``sys.argv[1:]``.
        pipe_bytes: How many bytes its pipes hold before they are read; default the system's size.

    Raises:
        OSError: If no process can be started.
    """
    if not sys.executable:
        raise OSError("this Python does not know the program that runs it")
    code = _START.format(path=list(map(str, sys.path)), module=module)
    process = subprocess.Popen(  # noqa: S603 - Python itself
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=pipe_bytes,
        process_group=0 if os.name == "posix" else None,
    )
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and pipe_bytes > 0:
            _widen_pipe(pipe, pipe_bytes)
    return process


def _widen_pipe(pipe: IO[bytes], size: int) -> None:
    """Let a pipe hold more bytes before it is read, where the system can: only Linux can."""
    with suppress(ImportError, AttributeError, OSError):  # OSError: the user's pipes take too much already
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, size)


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes from and to the parent process, for use in the new process.

    All other output to standard output goes to standard error from now on. Earlier output, as by a
    ``sitecustomize`` that prints, ends with :data:`BEGIN`. If the parent has ended meanwhile, this process
    ends too, because nobody reads its replies.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    if nothing <= 2:  # the other process has no standard error; a pipe must not take its place
        nothing = os.dup(nothing)
    given, taken = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.flush()
    try:
        os.write(taken.fileno(), BEGIN)
    except BrokenPipeError:
        os._exit(0)
    return given, taken


def skip_to_begin(pipe: IO[bytes]) -> None:
    """Read and drop what a started process printed before its replies.

    Raises:
        EOFError: If the process ended without a reply.
    """
    read = b""
    while not read.endswith(BEGIN):
        byte = pipe.read(1)
        if not byte:
            raise EOFError("the process ended before it began")
        read = read[-len(BEGIN) :] + byte


T = TypeVar("T")
_Token: TypeAlias = tuple[int, object]
_RARE_THRESHOLD: Final = 20_000
"""Surplus of created over freed objects at which a collection begins; Python's default is 700."""


class _CollectorChange(ABC):
    """Counts the uses of a change to the collector, by thread: the first makes it, the last to end undoes it.

    An interrupt between any two steps leaves the collector as it was, or changed until the next use ends.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.tokens: set[_Token] = set()

    def begin(self, token: _Token) -> None:
        """Change the collector if it is not changed yet."""
        with self._lock:
            self.tokens.add(token)
            self._change()

    def resume(self) -> None:
        """Undo the change if no use is left."""
        with self._lock:
            if not self.tokens:
                self._undo()

    def forked(self) -> None:
        """End the uses of other threads in a forked child, because these threads do not exist there."""
        self._lock = threading.RLock()
        own = threading.get_ident()
        self.tokens = {token for token in self.tokens if token[0] == own}
        self.resume()

    @abstractmethod
    def _change(self) -> None:
        """Change the collector, unless that is done already or its owner has done more."""

    @abstractmethod
    def _undo(self) -> None:
        """Set the collector as it was before, if :meth:`_change` changed it."""


class _CollectorPause(_CollectorChange):
    """The collector is off."""

    def __init__(self) -> None:
        super().__init__()
        self._turned_off = False

    def _change(self) -> None:
        if gc.isenabled():
            self._turned_off = True
            gc.disable()

    def _undo(self) -> None:
        if self._turned_off:
            gc.enable()
            self._turned_off = False


class _CollectorThreshold(_CollectorChange):
    """The collector runs seldom."""

    def __init__(self) -> None:
        super().__init__()
        self._before: tuple[int, int, int] | None = None

    def _change(self) -> None:
        before = gc.get_threshold()
        if 0 < before[0] < _RARE_THRESHOLD:
            self._before = before
            gc.set_threshold(_RARE_THRESHOLD, *before[1:])

    def _undo(self) -> None:
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None


_COLLECTOR_PAUSE = _CollectorPause()
_COLLECTOR_THRESHOLD = _CollectorThreshold()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_COLLECTOR_PAUSE.forked)
    os.register_at_fork(after_in_child=_COLLECTOR_THRESHOLD.forked)


def run_without_collector(work: Callable[[], T]) -> T:
    """Do some work that waits for nothing, with the collector paused, and return its result.

    Reading 10,000 documents makes 100,000 links and no cycle. The collector would look at all of
    them, and at everything else in the process, again and again: a third of the time of a bulk load.

    Args:
        work: What to do.
    """
    token = (threading.get_ident(), object())
    try:
        _COLLECTOR_PAUSE.begin(token)
        return work()
    finally:
        _COLLECTOR_PAUSE.tokens.discard(token)  # a call into C, which no signal can precede
        _COLLECTOR_PAUSE.resume()


@contextmanager
def slow_collector() -> Iterator[None]:
    """Run the collector less often, in all threads, while a command or a long run is under way.

    A command imports some 600 modules, of which nothing is garbage. With Python's thresholds the collector
    would look through all of them, for a sixth of the time of a query. A run that indexes pages makes many
    objects that live until they are stored, and hardly a cycle.
    """
    token = (threading.get_ident(), object())
    try:
        _COLLECTOR_THRESHOLD.begin(token)
        yield
    finally:
        _COLLECTOR_THRESHOLD.tokens.discard(token)
        _COLLECTOR_THRESHOLD.resume()
