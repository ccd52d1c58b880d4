"""A process that never outlives the one that started it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

WATCH = 'exec 3<&0 </dev/null; (read -r released <&3 || kill -9 $$) & exec "$@" 3<&-'
"""Shell: a watcher reads a pipe whose other end the starter holds; the shell itself becomes the command.

A line through the pipe lets the watcher go. The pipe's end without a line means that the starter is gone,
however it went: the watcher kills the command. Unlike Linux's parent-death signal this does not depend on
the thread that started it, and works on macOS.
"""


class WatchedProcess:
    """A command in a session of its own, so that Ctrl-C is its starter's to handle.

    Args:
        command: What to run.
        log: File that all it says is appended to.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        ours, self._lifeline = os.pipe()
        try:
            with log.open("ab") as out:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", WATCH, "sh", *command],
                    stdin=ours,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(ours)
        self._released = False

    @property
    def pid(self) -> int:
        """Of the command itself."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative if a signal ended it."""
        code = self._process.poll()
        if code is not None:
            self._release()
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing if it has ended."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, also if paused, and wait for the end."""
        self._process.kill()
        self._process.wait()
        self._release()

    def terminate(self, seconds: float) -> None:
        """SIGTERM; SIGKILL after so many seconds."""
        self._process.send_signal(signal.SIGCONT)
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._release()

    def _release(self) -> None:
        """Let the watcher go, now that the process id may become another's."""
        if self._released:
            return
        self._released = True
        try:
            os.write(self._lifeline, b"\n")
        except BrokenPipeError:
            pass
        finally:
            os.close(self._lifeline)
