"""Ends a command whose output has no reader any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from linkstore.cli.exits import OTHER, UNREAD
from linkstore.cli.output import complain
from linkstore.cli.unread import drop_unread


@contextmanager
def ended_by_readers() -> Iterator[None]:
    """End silently if the reader of the output has closed it, as ``head`` does.

    Raises:
        SystemExit: With the exit code of programs that SIGPIPE ends, or another one if another pipe broke.
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
        if drop_unread():
            sys.exit(UNREAD)
        complain(f"linkstore: a connection was closed: {error}")
        sys.exit(OTHER)
