"""Detects output without a reader: of a pipe whose reader has ended, or of a terminal that was closed."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from typing import Final, TextIO

_GONE: Final = getattr(select, "POLLERR", 0) | getattr(select, "POLLHUP", 0)


def drop_unread() -> bool:
    """Let what is written to stdout and stderr go nowhere if nobody reads it; whether that is so of one."""
    unread = [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]
    for stream in unread:
        _discard(stream)
    return bool(unread)


def _is_unread(stream: TextIO) -> bool:
    """Whether a stream is a pipe or a terminal that nobody reads any more."""
    if not hasattr(select, "poll"):  # as on Windows
        return True
    poll = select.poll()
    with suppress(OSError, ValueError):  # not a file of the operating system, or closed
        poll.register(stream.fileno(), 0)
        return any(event & _GONE for _, event in poll.poll(0))
    return False


def _discard(stream: TextIO) -> None:
    """Let what Python still writes to a stream go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
