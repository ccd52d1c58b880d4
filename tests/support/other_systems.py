"""Imitates Windows in a process of its own: takes away what Python lacks there, and has its locks.

Run: ``python other_systems.py WORD…`` does as ``linkstore WORD…``; ``python other_systems.py lock FILE``
holds the lock of FILE until its input ends, and prints whether it was free.
"""

from __future__ import annotations

import os
import select
import shutil  # noqa: F401 - the standard library is imported before
import signal
import subprocess  # noqa: F401
import sys
from concurrent.futures import process  # noqa: F401
from types import ModuleType

LACKING = {
    os: (
        "register_at_fork waitid fork sched_getaffinity getuid geteuid chown mkfifo killpg"
        " O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_CLOEXEC"
    ),
    signal: "SIGHUP SIGALRM SIGPROF setitimer ITIMER_PROF ITIMER_REAL pthread_sigmask",
    select: "poll",
}


class Msvcrt(ModuleType):
    """The locks of Windows: of some bytes from where a file stands, for whoever has it open."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        import fcntl

        super().__init__("msvcrt")
        self._fcntl = fcntl

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        """Lock or unlock bytes; PermissionError if somebody else has them."""
        assert (mode, count) == (self.LK_NBLCK, 1)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 0, "another byte would be another lock"
        try:
            self._fcntl.flock(descriptor, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error


def imitate_windows() -> None:
    """Take away what Windows lacks, before linkstore is imported."""
    sys.modules["msvcrt"] = Msvcrt()
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in LACKING.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    os.supports_dir_fd.clear()


def main() -> None:
    imitate_windows()
    if sys.argv[1] == "lock":
        from pathlib import Path

        from linkstore.engines.embedded.location import run_exclusively

        def hold() -> bool:
            print("free", flush=True)
            sys.stdin.read()
            return True

        if run_exclusively(Path(sys.argv[2]), hold, wait=False) is None:
            print("taken", flush=True)
        return
    from linkstore.cli import main as run

    run(sys.argv[1:])


if __name__ == "__main__":
    main()
