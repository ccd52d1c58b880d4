"""How a command ends: exit codes, Ctrl-C, SIGTERM and SIGHUP, and output that nobody reads."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, NoReturn, TextIO

from linkstore import errors
from linkstore.cli.output import complain

OTHER: Final = 1
"""Anything that has no code of its own."""
USAGE: Final = 2
"""Wrong usage: an unknown option, an empty query, a bad filter, a wrong path or URL."""
NOT_FOUND: Final = 3
"""The store does not exist."""
BUSY: Final = 4
"""Another process held the store for too long."""
DAMAGED: Final = 5
"""The store is damaged, or of another version."""
EMBEDDING_MISSING: Final = 6
"""The embedding is unknown or not the store's, or an optional dependency is not installed."""
UNAVAILABLE: Final = 7
"""A server could not be reached, or did not answer in time: that of the store, or the website to index."""
SOURCE_INCOMPLETE: Final = 8
"""Part of the source could not be seen, or most of it is gone: what is stored of that was kept."""
NOTHING_TO_INDEX: Final = 9
"""The source has nothing that can be indexed."""
ALARM_FOUND: Final = 10
"""A checkup found something that needs attention."""
NOT_ANSWERED: Final = 11
"""The sources do not have the answer to a question, or only a part of it."""
_SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a process."""
HUNG_UP: Final = 129
"""Stopped by SIGHUP, as when its terminal was closed."""
INTERRUPTED: Final = 130
"""Stopped by Ctrl-C."""
OUTPUT_CLOSED: Final = 141
"""The reader of the output closed it, as ``head`` does."""
TERMINATED: Final = 143
"""Stopped by SIGTERM."""
_GONE: Final = getattr(select, "POLLERR", 0) | getattr(select, "POLLHUP", 0)
_ENDING: Final = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


_ENDED_BY: Final[ContextVar[int]] = ContextVar("ended_by", default=0)
"""The signal that ends the process: native code that it interrupts, as what watches a folder, raises a plain
KeyboardInterrupt in place of :class:`Terminated`."""


class UsageError(errors.LinkStoreError, ValueError):
    """The command line was used in a wrong way."""


class Terminated(KeyboardInterrupt):
    """The process is to end: it was sent SIGTERM, or SIGHUP, as by a terminal that was closed, by number."""


_CODES: Final[Mapping[int, tuple[type[errors.LinkStoreError], ...]]] = {
    NOT_FOUND: (errors.StoreNotFoundError,),
    BUSY: (errors.StoreBusyError,),
    DAMAGED: (errors.StoreFormatError,),
    EMBEDDING_MISSING: (errors.EmbeddingError, errors.MissingExtraError),
    USAGE: (
        *(errors.SourceConflictError, errors.FilterError, errors.UnknownNameError, errors.StrategyError),
        *(errors.EvaluationError, errors.BudgetError, UsageError, errors.ArgumentError, errors.QueryError),
    ),
    UNAVAILABLE: (errors.UnavailableError,),
}


def get_exit_code(error: BaseException) -> int:
    """Return the exit code that an error or interrupt ends the command with."""
    if isinstance(error, KeyboardInterrupt):
        number = error.args[0] if isinstance(error, Terminated) else _ENDED_BY.get()
        return _SIGNALLED + number if number else INTERRUPTED
    return next((code for code, kinds in _CODES.items() if isinstance(error, kinds)), OTHER)


def _terminate(number: int, _: object) -> NoReturn:
    # A second SIGTERM ends the process at once. A terminal that is closed may send several SIGHUPs in a row.
    signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    _drop_unread()  # otherwise the last message would fail
    _ENDED_BY.set(number)
    raise Terminated(number)


_OURS: Final[dict[int, Callable[..., Any]]] = {
    signal.SIGINT: signal.default_int_handler,
    **dict.fromkeys(_ENDING, _terminate),
}
"""Handlers that raise; others are the program's around."""


@contextmanager
def end_at_once() -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and SIGHUP end the process at once, while modules are imported.

    Nothing needs to be closed or told then. A KeyboardInterrupt would print a traceback, and native modules
    that are just being initialized can crash when one is raised.
    """
    ours = [number for number, handler in _OURS.items() if signal.getsignal(number) is handler]
    with _handle_signals(dict.fromkeys(ours, signal.SIG_DFL)):
        yield


@contextmanager
def raise_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise :class:`~linkstore.cli.exits.Terminated`.

    A handler of the program around stays, and a signal that is ignored, as under nohup, stays ignored.
    """
    _ENDED_BY.set(0)
    numbers = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    with _handle_signals(dict.fromkeys(numbers, _terminate)):
        yield


@contextmanager
def _handle_signals(handlers: Mapping[int, Any]) -> Iterator[None]:
    """Handle signals in this way; only a main thread can."""
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def end_with_reader() -> Iterator[None]:
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
        if _drop_unread():
            sys.exit(OUTPUT_CLOSED)
        complain(f"linkstore: a connection was closed: {error}")
        sys.exit(OTHER)


def _drop_unread() -> bool:
    """Discard further output to stdout and stderr if its reader is gone; whether one was gone."""
    unread = [stream for stream in (sys.stdout, sys.stderr) if _is_unread(stream)]
    for stream in unread:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
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
