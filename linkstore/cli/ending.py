"""The end of a command whose output nobody reads any more."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

from linkstore.cli.exits import OTHER, UNREAD
from linkstore.cli.output import complain

_GONE: Final = getattr(select, "POLLERR", 0) | getattr(select, "POLLHUP", 0)


@contextmanager
def ended_by_readers() -> Iterator[None]:
    """End silently if whoever reads the output has closed it, as ``head`` does.

    Raises:
        SystemExit: In this case, with the exit code of programs that SIGPIPE ends; or if another pipe broke.
    """
    stdout = sys.stdout
    try:
        try:
            yield
        except SystemExit:
            if sys.stdout is not stdout:
                raise BrokenPipeError from None  # typer met one, and replaced the stream
            stdout.flush()
            raise
    except BrokenPipeError as error:
        sys.stdout = stdout
        unread = [stream for stream in (stdout, sys.stderr) if _is_unread(stream)]
        for stream in unread:
            _discard(stream)
        if not unread:
            complain(f"linkstore: a connection was closed: {error}")
        sys.exit(UNREAD if unread else OTHER)


def _is_unread(stream: TextIO) -> bool:
    """Whether a stream is a pipe that nobody reads any more."""
    if not hasattr(select, "poll"):  # as on Windows
        return True
    poll = select.poll()
    with suppress(OSError, ValueError):  # no file of the system, or closed
        poll.register(stream.fileno(), 0)
        return any(event & _GONE for _, event in poll.poll(0))
    return False


def _discard(stream: TextIO) -> None:
    """Let what Python still writes to a stream, when it ends, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
