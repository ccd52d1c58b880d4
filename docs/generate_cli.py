"""Writes docs/cli.md from ``linkstore --help``; a test fails when the two differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from linkstore.cli.commands import make_application

WIDTH = "100"
TARGET = Path(__file__).with_name("cli.md")
INTRODUCTION = """# The command line

Commands print results to stdout and everything else to stderr. `--json` prints JSON; later versions may
add keys, but do not change or remove any. `-k` is the number of documents to return, and `--start-k` the
number to start from. `--store` names a folder, or a [store in Cassandra](how-to/use-cassandra.md); without
it, the environment variable `LINKSTORE_STORE` does, else it is
[the store of the folder](how-to/index-a-site.md#the-store-of-a-folder). A path or URL in place of a command
is opened: `linkstore docs/` is `linkstore open docs/`. A question needs no quotes, unless it has a sign that
the shell reads.

| exit code | meaning |
|---|---|
| 0 | success; also if nothing was found, with the reason on stderr |
| 1 | any other error, such as an unknown id |
| 2 | usage: an unknown option or strategy, an empty query, a bad filter, a wrong folder or URL |
| 3 | the store does not exist |
| 4 | another process locked the store for too long |
| 5 | the store is damaged or has another version, or `doctor --verify` found problems |
| 6 | the embedding is unknown or is not that of the store, or an optional dependency is missing |
| 7 | the server of the store, or the website to index, could not be reached or did not answer in time |
| 8 | part of the source could not be read, or most of its pages are missing; the stored pages were kept |
| 9 | the source contains nothing that can be indexed |
| 10 | `doctor` found something that needs attention: an alarm |
| 11 | `ask`: the sources do not have the answer, or the budget was used up before it was found |
| 129 | the terminal was closed (SIGHUP); as after Ctrl-C, what was written stays |
| 130 | interrupted by Ctrl-C |
| 141 | the reader of the output closed it, as `head` does |
| 143 | terminated by SIGTERM; as after Ctrl-C, what was written stays |

`make docs` writes this page from `--help`.
"""


def help_text(words: Sequence[str]) -> str:
    """What ``linkstore WORDS --help`` prints, in a terminal of a fixed width."""
    os.environ["COLUMNS"] = WIDTH
    os.environ["TERMINAL_WIDTH"] = WIDTH
    command = typer.main.get_command(make_application())
    context = command.make_context("linkstore", list(words), resilient_parsing=True)
    for name in words:
        command = command.get_command(context, name)
        context = command.make_context(f"{context.info_name} {name}", [], resilient_parsing=True)
    return command.get_help(context)


def pages() -> Iterator[str]:
    """The parts of docs/cli.md."""
    yield INTRODUCTION
    yield f"```text\n{_trimmed(help_text(()))}\n```\n"
    for words in _commands(typer.main.get_command(make_application())):
        yield f"## linkstore {' '.join(words)}\n\n```text\n{_trimmed(help_text(words))}\n```\n"


def _commands(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of all commands, each group before its own."""
    for name, command in group.commands.items():
        yield (*above, name)
        if hasattr(command, "commands"):
            yield from _commands(command, (*above, name))


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    TARGET.write_text("\n".join(pages()))
