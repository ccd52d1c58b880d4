"""Fills the measured figures of the README and of docs/ in, from the files in docs/figures.

Benchmarks write these files (``--record``). On a page, a mark that readers do not see says which figure
belongs there and how it is written; :func:`filled` writes what follows the mark, up to ``<!--/-->``::

    takes <!--= growth; 10000; depth 2 p50, ms | .0f -->4<!--/--> ms

A table is ``<!--= table NAME --><!--/-->``. How it is made stands in ``docs/figures/tables/NAME.txt``::

    growth, a column for each row
    | documents | {documents | ,} |
    | depth 2 p50 / p95, ms | {depth 2 p50, ms | .1f} / {depth 2 p95, ms | .1f} |

A reference names the file, the row, and the keys or places that lead to the value. Behind the ``|`` comes a
format of Python, or a number of significant digits, with which whole numbers stay whole; a list is written
with slashes between its values. Values can be calculated with, from left
to right: ``a; b; c ÷ d; e; f``. In a table, references in braces leave out file and row. A line that begins
with ``[row]`` shows this row; another line with braces is repeated for each row of the file.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
MARK = re.compile(r"<!--= (?P<template>.*?)\s*-->(?P<shown>.*?)<!--/-->", re.DOTALL)
ACROSS = ", a column for each row"
REFERENCE = re.compile(r"\{([^{}]*)\}")
OPERATOR = re.compile(r" ([×÷+−]) ")  # noqa: RUF001
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "×": operator.mul,  # noqa: RUF001
    "÷": operator.truediv,
    "+": operator.add,
    "−": operator.sub,  # noqa: RUF001
}
Rows = Mapping[str, Mapping[str, Any]]


class FigureError(ValueError):
    """A mark that cannot be filled in."""


def pages() -> dict[str, str]:
    """Every page with marks, filled in: name below docs/ → text."""
    texts = {path: path.read_text() for path in (DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md")))}
    return {_name(path): filled(text) for path, text in texts.items() if MARK.search(text)}


def _name(path: Path) -> str:
    return path.relative_to(DOCS).as_posix() if path.is_relative_to(DOCS) else f"../{path.name}"


def filled(text: str) -> str:
    """The text with what its marks name, as of now."""
    made, marks = MARK.subn(_mark, text)
    if not marks == text.count("<!--= ") == text.count("<!--/-->"):
        raise FigureError(f"{marks} marks are whole, others lack their beginning or their end")
    return made


def _mark(mark: re.Match[str]) -> str:
    template = mark["template"]
    head, *lines = _read_table(template).split("\n")
    if not lines:
        if mark.string[: mark.start()].endswith("\n"):
            raise FigureError(f"{mark[0]}: a line cannot begin with a mark, it would end the paragraph")
        return f"<!--= {template} -->{_written(template, {})}<!--/-->"
    name = head.removesuffix(ACROSS)
    table = (_columns if head.endswith(ACROSS) else _lines)(lines, _rows(name))
    end = "\n" if "\n" in template else " "
    return f"<!--= {template}{end}-->\n\n{chr(10).join(table)}\n\n<!--/-->"


def _read_table(template: str) -> str:
    """How a table is made, from its file; a mark in a sentence says itself what it is."""
    name = template.removeprefix("table ")
    if name == template:
        return template
    path = FIGURES / "tables" / f"{name}.txt"
    if not path.exists():
        raise FigureError(f"there is no docs/figures/tables/{name}.txt")
    return path.read_text().rstrip("\n")


def _lines(lines: list[str], rows: Rows) -> Iterator[str]:
    """A table in which each row is a line."""
    for line in lines:
        chosen = re.match(r"\[([^\]]*)\] ", line)
        if chosen:
            yield _shown(line[chosen.end() :], _found(rows, chosen[1], line))
        elif REFERENCE.search(line):
            yield from (_shown(line, row) for row in rows.values())
        else:
            yield line


def _columns(lines: list[str], rows: Rows) -> Iterator[str]:
    """A table in which each row is a column."""
    for number, line in enumerate(lines):
        parts = re.fullmatch(r"(\|.*?) \| (.*) \|", line)
        if parts is None:
            raise FigureError(f"{line!r} is not | label | cell |, as in a table with a column for each row")
        yield f"{parts[1]} | {' | '.join(_shown(parts[2], row) for row in rows.values())} |"
        if number == 0:
            yield "|---" * (len(rows) + 1) + "|"


def _shown(text: str, row: Mapping[str, Any]) -> str:
    return REFERENCE.sub(lambda reference: _written(reference[1], row), text)


def _written(reference: str, row: Mapping[str, Any]) -> str:
    """A value as its format says; what has no format must have no fraction."""
    path, _, style = (part.strip() for part in reference.partition("|"))
    first, *others = OPERATOR.split(path)
    value = _value(first, row)
    for sign, term in zip(others[::2], others[1::2], strict=True):
        value = OPERATORS[sign](value, _value(term, row))
    if isinstance(value, list):
        return " / ".join(_formatted(one, style, reference) for one in value)
    return _formatted(value, style, reference)


def _formatted(value: Any, style: str, reference: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float) and not style:
        raise FigureError(f"{{{reference}}} is {value}: say with how many digits, such as | .1f")
    value = round(value, 9)  # a half that arithmetic left a little above or below is rounded the same way
    if style.isdigit():
        whole = len(f"{abs(value):.0f}") if abs(value) >= 1 else math.floor(math.log10(abs(value) or 1)) + 1
        style = f",.{max(0, int(style) - whole)}f" if value else ".0f"
    return format(value, style or ",")


def _value(path: str, row: Mapping[str, Any]) -> Any:
    """What a path leads to, in a row or, if it has more parts, in a file; or a number."""
    keys = [key.strip() for key in path.split(";")]
    if keys[0] in row:
        found: Any = row
    elif len(keys) > 2:
        found = _found(_rows(keys[0]), keys[1], path)
        keys = keys[2:]
    elif re.fullmatch(r"[\d.]+", path):
        return float(path)
    else:
        raise FigureError(f"{path!r} is not there; there are: {', '.join(map(repr, row))}")
    for key in keys:
        if isinstance(found, list):
            found = {str(place): value for place, value in enumerate(found)}
        found = _found(found, key, path)
    return found


def _found(among: Mapping[str, Any], key: str, path: str) -> Any:
    if key not in among:
        raise FigureError(f"{path!r}: {key!r} is not there; there are: {', '.join(map(repr, among))}")
    return among[key]


@cache
def _rows(name: str) -> Rows:
    """The values of a file: row → name → value."""
    path = FIGURES / f"{name}.json"
    if not path.exists():
        raise FigureError(f"there is no docs/figures/{name}.json")
    return {row: found["values"] for row, found in json.loads(path.read_text())["rows"].items()}
