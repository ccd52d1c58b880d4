"""Reads the roles of docstrings, such as ``:meth:`open```, as links within the Python reference."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, NameResolutionError, Object

ROLE = re.compile(r":(class|meth|func|attr|data|mod|exc):`(~?)([\w.]+)`")


class Roles(Extension):
    """Turns roles into references that mkdocs-autorefs resolves."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(lambda role: _reference(obj, role), obj.docstring.value)


def _reference(obj: Object, role: re.Match[str]) -> str:
    """``[`name`][full.path]``; what lies elsewhere than where it is named is found as Python does.

    Fields of dataclasses are described with their class, so a reference to one leads there.
    """
    kind, short, name = role.groups()
    shown = name.rpartition(".")[2] if short else name
    return f"[`{shown}`][{_path(obj, name.rpartition('.')[0] if kind == 'attr' else name)}]"


def _path(obj: Object, name: str) -> str:
    first, _, rest = name.partition(".")
    try:
        found = obj.resolve(first)
    except NameResolutionError:
        return name
    return f"{found}.{rest}" if rest else found
