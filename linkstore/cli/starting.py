"""Ctrl-C, SIGTERM and SIGHUP, while a command starts and while it runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from linkstore.cli.unread import drop_unread


class Terminated(KeyboardInterrupt):
    """The process is to end: it was sent SIGTERM, or SIGHUP, as by a terminal that was closed.

    Args:
        number: The number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _terminate(number: int, _: object) -> NoReturn:
    # A second SIGTERM ends the process at once. A terminal that is closed may send several SIGHUPs in a row.
    signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    drop_unread()  # otherwise the last message would fail
    raise Terminated(number)


_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_OURS: Final[dict[int, Callable[..., Any]]] = {
    signal.SIGINT: signal.default_int_handler,
    **dict.fromkeys(_ENDING, _terminate),
}
"""Handlers that raise; others are the program's around."""


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP end the process at once, while modules are imported.

    Nothing needs to be closed or reported then. A KeyboardInterrupt would print a traceback, and could crash
    native modules that are just being initialized.
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
    """Have SIGTERM and SIGHUP raise :class:`Terminated`.

    A handler of the surrounding program stays, and a signal that is ignored, as under nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
