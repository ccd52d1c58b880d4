"""Detects output without a reader: of a pipe whose reader has ended, or of a terminal that was closed."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from typing import Final, TextIO

_GONE: Final = getattr(select, "POLLERR", 0) | getattr(select, "POLLHUP", 0)


def drop_unread() -> bool:
    """Discard further output to stdout and stderr if its reader is gone, and return whether one was gone."""
    unread = [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]
    for stream in unread:
        _discard(stream)
    return bool(unread)


def _is_unread(stream: TextIO) -> bool:
    """Say whether a stream is a pipe or a terminal that nobody reads any more."""
    if not hasattr(select, "poll"):  # as on Windows
        return True
    poll = select.poll()
    with suppress(OSError, ValueError):  # not a file of the operating system, or closed
        poll.register(stream.fileno(), 0)
        return any(event & _GONE for _, event in poll.poll(0))
    return False


def _discard(stream: TextIO) -> None:
    """Discard what Python still writes to a stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
