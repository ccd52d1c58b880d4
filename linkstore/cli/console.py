"""The console of a command. Imports rich: load it late."""

from __future__ import annotations

import errno
import os

from rich.console import Console


class PipedConsole(Console):
    """A console that leaves it to the command line to end when nobody reads the output any more."""

    def on_broken_pipe(self) -> None:
        """Raise again the error that rich has just caught."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
