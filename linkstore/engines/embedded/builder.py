"""A process that takes a snapshot while the one that writes goes on, on another core.

Any process that opens a store can take its snapshots. So this one is told where the store lies, takes one
snapshot and ends, whatever has become of its parent; nothing else is said to it, and it answers nothing. If
it fails, the process that writes takes the snapshot itself, with the errors that this brings.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from linkstore.core.processes import count_cores

_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[2:];"
    " from linkstore.engines.embedded.maintenance import take_snapshot; take_snapshot(sys.argv[1])"
)
_LOG: Final = logging.getLogger("linkstore.index")


class Builder:
    """Takes snapshots of a store in a process of its own, one at a time.

    Args:
        folder: Where the store lies.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start a process unless one is at work, and return whether one is.

        None is started, and the caller takes the snapshot, if the last one failed, or where another core, the
        interpreter or a way to wait for its end is missing.
        """
        last, self._process = self._process, None
        if last is not None and last.poll() is None:
            self._process = last
        elif last is not None and last.returncode:
            _LOG.info("the process that indexed %s ended with %d", self._folder, last.returncode)
        elif sys.executable and not hasattr(sys, "frozen") and hasattr(os, "waitid") and count_cores() > 1:
            command = [sys.executable, "-c", _PROGRAM, str(self._folder), *sys.path]
            try:
                # In a session of its own, Ctrl-C in the terminal does not reach it.
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                _LOG.info("no process can be started to index %s: %s", self._folder, error)
        return self._process is not None

    def wait(self) -> None:
        """Wait until no process is at work. A signal handler may do so in the middle of it.

        ``Popen.wait`` holds a lock meanwhile, for which the handler would wait forever.
        """
        at_work = self._process
        if at_work is not None and at_work.poll() is None:
            with suppress(ChildProcessError):  # somebody else has waited for it
                os.waitid(os.P_PID, at_work.pid, os.WEXITED | os.WNOWAIT)
            at_work.poll()
