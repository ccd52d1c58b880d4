"""Docstrings in Google style as texts for others: for users of commands, and models that call tools."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_SECTION: Final = re.compile(r"\n\n(?=(?:Args|Raises|Returns|Source):\n)")
_ARGUMENT: Final = re.compile(r"^ {4}(\w+)(?: \(([^)]*)\))?: (.+(?:\n {5,}.+)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ArgumentText:
    """What a docstring says of an argument.

    Args:
        kind: What stands in parentheses after the name; empty if nothing does.
        text: The description, on one line.
    """

    kind: str
    text: str


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, ArgumentText]]:
    """Return the description of a function, which ends at the first section, and that of each argument."""
    description, *sections = _SECTION.split(inspect.getdoc(function) or "")
    arguments = "".join(one for one in sections if one.startswith("Args:"))
    found = {
        name: ArgumentText(kind, " ".join(text.split())) for name, kind, text in _ARGUMENT.findall(arguments)
    }
    return description, found
