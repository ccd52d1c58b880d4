"""Ctrl-C and SIGTERM, while a command starts and while it runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn


class Terminated(KeyboardInterrupt):
    """The process is to end: it was sent SIGTERM."""


def _terminate(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    raise Terminated


_OURS: Final[dict[int, Callable[..., Any]]] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: _terminate,
}
"""Handlers that raise; others are the program's around."""


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end the process at once, while modules are imported.

    Nothing needs to be closed or told then. A KeyboardInterrupt would print a traceback, and native modules
    that are just being initialized can crash when one is raised.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: handler for number, handler in _OURS.items() if signal.getsignal(number) is handler}
    for number in handlers:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def terminated_in_order() -> Iterator[None]:
    """Have SIGTERM raise :class:`Terminated`; a handler of the program around stays."""
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
