"""Starts a separate Python process that imports linkstore but not the program that uses it.

So that program may be a notebook, a script without a ``__main__`` guard, or have threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import IO, BinaryIO, Final

BEGIN: Final = b"\0linkstore\0"
"""Stands before all that such a process replies; before it may be what Python's start printed."""
_START: Final = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


def fresh_python(module: str, *arguments: str, pipe_bytes: int = -1) -> subprocess.Popen[bytes]:
    """Start a process that runs the function ``main`` of a module; it has pipes for its input and output.

    Ctrl-C in a terminal does not reach it. What it replies begins after :data:`BEGIN`.

    Args:
        module: The module's full name.
        arguments: What the process finds in ``sys.argv[1:]``.
        pipe_bytes: How much its pipes take before they are read; default what the system gives.

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
            _widen(pipe, pipe_bytes)
    return process


def _widen(pipe: IO[bytes], size: int) -> None:
    """Let a pipe take more before it is read, where the system can; only Linux can."""
    with suppress(ImportError, AttributeError, OSError):  # OSError: the user's pipes take too much already
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, size)


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The pipes from and to the parent process; called in the new process.

    Whatever else writes to standard output now writes to standard error. What was written there before, as by
    a ``sitecustomize`` that prints, ends with :data:`BEGIN`. If the parent has ended meanwhile, so does this
    process: there is nobody to work for, nor to tell.
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
    """Read what such a process printed before its replies.

    Raises:
        EOFError: If it ended without a reply.
    """
    read = b""
    while not read.endswith(BEGIN):
        byte = pipe.read(1)
        if not byte:
            raise EOFError("the process ended before it began")
        read = read[-len(BEGIN) :] + byte
