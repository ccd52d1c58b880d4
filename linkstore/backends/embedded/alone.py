"""Mutual exclusion across all threads and processes that have a store open."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

T = TypeVar("T")


def alone(path: Path, work: Callable[[], T], *, wait: bool) -> T | None:
    """Do some work while holding a lock, or return None if another holds it and ``wait`` is False.

    The lock is the lock of an empty SQLite database. The system releases it when the process ends. Closing
    the connection releases it too, in one call into C that a signal cannot interrupt.

    Args:
        path: A file for the lock; created if missing.
        work: What to do.
        wait: Whether to wait until the lock is free.
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
    """Try to take the lock and say whether that worked: either of the two statements may fail."""
    connection.set_busy_handler(_again if wait else None)
    try:
        connection.pragma("journal_mode", "off")  # no journal file: locking must work on a full disk
        connection.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        return False
    return True


def _again(_: int) -> bool:
    time.sleep(0.005)
    return True
