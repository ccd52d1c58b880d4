"""Where words go: results to stdout, everything else to stderr."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def stdout() -> Console:
    """The console for results; plain text when stdout is no terminal."""
    return _console(stderr=False)


def stderr() -> Console:
    """The console for notes and errors."""
    return _console(stderr=True)


def write_json(value: Any) -> None:
    """Print a value as indented JSON to stdout."""
    import orjson

    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    sys.stdout.write(f"{text}\n")


def note(message: str) -> None:
    """Say something on stderr, in one line."""
    sys.stderr.write(f"{printable(' '.join(message.split()))}\n")


def printable(text: str) -> str:
    """The text without control characters, which could steer the terminal it is shown in."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
