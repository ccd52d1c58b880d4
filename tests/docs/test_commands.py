"""Each command and option that the documentation names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer

from linkstore.cli.commands import make_application

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts),
]
COMMAND = re.compile(r"(?:^\$ |^|`|\()linkstore ((?:[a-z][a-z-]*)(?: [^`\n]*)?)", re.MULTILINE)
"""In a line of a block, or between backticks."""


@cache
def commands() -> dict[str, set[str]]:
    """Return the options of each command, by its words."""
    found: dict[str, set[str]] = {}

    def walk(group, words):
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*words, name))
            else:
                options = {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)}
                found[" ".join((*words, name))] = options | {"--help"}

    walk(typer.main.get_command(make_application()), ())
    return found


def named_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each command that a page names, with the rest of its line."""
    text = path.read_text().replace("\\\n", " ")
    for line in COMMAND.findall(text):
        name = next(
            (" ".join(line.split()[:n]) for n in (2, 1) if " ".join(line.split()[:n]) in commands()), ""
        )
        yield name or line.split()[0], line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_option_of_a_command_exists(path):
    unknown = [
        f"linkstore {line}: {option}"
        for name, line in named_in(path)
        if name in commands()
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line.partition(" | ")[0])
        if option not in commands()[name]
    ]
    assert unknown == []


def test_pages_name_commands_that_there_are():
    names = {name for path in PAGES for name, _ in named_in(path)}
    assert {"index", "query", "serve", "mcp", "doctor"} <= names & commands().keys()
