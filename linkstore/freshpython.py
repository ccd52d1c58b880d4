"""Starts a separate Python process that imports linkstore but not the program that uses it.

The program may therefore be a notebook, a script without a ``__main__`` guard, or have threads.
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
            _widen(pipe, pipe_bytes)
    return process


def _widen(pipe: IO[bytes], size: int) -> None:
    """Let a pipe hold more bytes before it is read, where the system can: only Linux can."""
    with suppress(ImportError, AttributeError, OSError):  # OSError: the user's pipes take too much already
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, size)


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
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
