"""One at a time, over all threads and processes that have a store open."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

T = TypeVar("T")


def alone(path: Path, work: Callable[[], T], *, wait: bool) -> T | None:
    """Do some work while nobody else does theirs; None if someone is at it and we do not wait.

    The lock is that of an empty SQLite database: the system releases it when a process ends, and closing
    the connection does, which is one call into C that no signal can come before.

    Args:
        path: A file for the lock; made if it is not there.
        work: What to do.
        wait: Whether to wait until the others are done.
    """
    try:
        connection = apsw.Connection(str(path))
    except apsw.CantOpenError as error:
        raise OSError(f"{path}: {error}") from error
    try:
        return work() if _locked(connection, wait=wait) else None
    finally:
        connection.close()


def _locked(connection: apsw.Connection, *, wait: bool) -> bool:
    """Whether the lock is ours now; each of the two statements may find it taken."""
    connection.set_busy_handler(_again if wait else None)
    try:
        connection.pragma("journal_mode", "off")  # nothing is written, and nothing shall be for a full disk
        connection.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        return False
    return True


def _again(_: int) -> bool:
    time.sleep(0.005)
    return True
