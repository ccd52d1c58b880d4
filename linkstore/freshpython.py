"""A Python process beside this one, which imports linkstore and nothing of the program that uses it.

So it does not matter whether that program is a notebook, a script without a ``__main__`` guard, or one with
threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import BinaryIO, Final

_START: Final = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


def fresh_python(module: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a process that runs the function ``main`` of a module; it has pipes for its input and output.

    Ctrl-C in a terminal does not reach it.

    Args:
        module: The module's full name.
        arguments: What the process finds in ``sys.argv[1:]``.

    Raises:
        OSError: If no process can be started.
    """
    if not sys.executable:
        raise OSError("this Python does not know the program that runs it")
    code = _START.format(path=list(map(str, sys.path)), module=module)
    return subprocess.Popen(  # noqa: S603 - Python itself
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0 if os.name == "posix" else None,
    )


def own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """In such a process: the pipes from and to the other.

    Whatever else writes to standard output now writes to standard error.
    """
    given, taken = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return given, taken
