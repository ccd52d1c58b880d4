"""Ctrl-C while a command starts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Have Ctrl-C end the process at once, while modules are imported.

    Nothing needs to be closed or told then. A KeyboardInterrupt would print a traceback, and native modules
    that are just being initialized can crash when one is raised.
    """
    handler = signal.getsignal(signal.SIGINT)
    ours = threading.current_thread() is threading.main_thread() and handler is signal.default_int_handler
    if not ours:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
