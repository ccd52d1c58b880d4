"""Writes results to stdout, and everything else to stderr."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from linkstore.display import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["complain", "note", "printable", "quiet", "ready_streams", "stderr", "stdout", "write_json"]

_PLAIN: Final = {
    "─": "-",
    "→": "->",
    "←": "<-",
    "·": "*",
    "…": "...",
    "“": '"',
    "”": '"',
}
"""Replacements for our own signs on terminals that lack them."""
_HANDLER: Final = "linkstore.plain"
quiet: Final = ContextVar("quiet", default=False)
"""Whether notes are left out; errors never are."""


def ready_streams() -> None:
    """Let stdout and stderr replace characters that their encoding lacks, rather than fail.

    A process may have been started without these streams: its output is then dropped.
    """
    codecs.register_error(_HANDLER, _in_plain)
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def stdout() -> Console:
    """Return the console for results, with plain text when stdout is not a terminal."""
    return _console(stderr=False)


def stderr() -> Console:
    """Return the console for notes and errors."""
    return _console(stderr=True)


def write_json(value: Any) -> None:
    """Print a value as indented JSON to stdout."""
    import orjson

    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
        if not text.isascii():
            text.encode(sys.stdout.encoding or "utf-8")
    except (TypeError, UnicodeEncodeError):  # a lone surrogate, or a terminal that cannot show all letters
        import json

        text = json.dumps(value, indent=2, sort_keys=True)
    sys.stdout.write(f"{text}\n")


def note(message: str) -> None:
    """Write a message to stderr, in one line, which a terminal breaks at words."""
    if not quiet.get():
        complain(message)


def complain(message: str) -> None:
    """Report an error, as :func:`note` does, even with ``--quiet``."""
    line = printable(" ".join(message.split()))
    if sys.stderr.isatty():
        stderr().print(line)
    else:
        sys.stderr.write(f"{line}\n")


def _console(*, stderr: bool) -> Console:
    """Breaks lines at words in a terminal, and not at all elsewhere."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    console.on_broken_pipe = _fail_as_pipe  # type: ignore[method-assign]
    console.soft_wrap = not console.is_terminal
    return console


def _fail_as_pipe() -> NoReturn:
    """Raise again what rich has just caught: the command line ends when nobody reads its output any more."""
    raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    """Replace our own signs by plain ones, and escape all others: an error handler of :mod:`codecs`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    written = (_PLAIN.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs)
    return "".join(written), error.end
