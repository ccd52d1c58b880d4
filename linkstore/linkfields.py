"""What the fields of a link may hold."""

from __future__ import annotations

from typing import Final

from linkstore.text import is_unicode

DIRECTIONS: Final[frozenset[str]] = frozenset({"in", "out", "bidir"})
MAX_TAG_BYTES: Final = 8192
"""Longest kind or tag, in bytes of UTF-8."""


def are_ordinary(kind: object, tag: object, direction: object, label: object, weight: object) -> bool:
    """Say whether the fields of a link are valid at first sight. Other fields can be valid, too.

    This test takes less than half the time of :func:`problem_of`, and most links pass it.
    """
    return (
        type(kind) is str
        and type(tag) is str
        and type(direction) is str
        and direction in DIRECTIONS
        and 0 < len(kind) <= MAX_TAG_BYTES
        and 0 < len(tag) <= MAX_TAG_BYTES
        and kind.isascii()
        and tag.isascii()
        and "\0" not in tag
        and "\0" not in kind
        and (label is None or (type(label) is str and label.isascii()))
        and type(weight) is float
        and 0.0 <= weight <= 1.0
    )


def problem_of(kind: object, tag: object, direction: object, label: object, weight: object) -> str | None:
    """Return the problem with a link's fields, or None."""
    for name, value in (("kind", kind), ("tag", tag)):
        problem = _name_problem(value)
        if problem:
            return f"{name} {problem}"
    if not isinstance(direction, str) or direction not in DIRECTIONS:
        return "direction must be 'in', 'out' or 'bidir'"
    if label is not None and type(label) is not str:
        return "label must be a string or None"
    if label and not is_unicode(label):
        return "label is not valid Unicode (it has a lone surrogate)"
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        return "weight must be a number from 0 to 1"
    return None


def _name_problem(value: object) -> str | None:
    """Return the problem with a kind or tag, or None."""
    if type(value) is not str or not value:
        return "must be a non-empty string"
    if "\0" in value:
        return "contains a NUL character"
    if value.isascii() and len(value) <= MAX_TAG_BYTES:
        return None
    if not is_unicode(value):
        return "is not valid Unicode (it has a lone surrogate)"
    size = len(value.encode())
    return f"is {size} bytes long; at most {MAX_TAG_BYTES} are allowed" if size > MAX_TAG_BYTES else None
