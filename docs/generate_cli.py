"""Writes docs/cli.md from ``linkstore --help``; a test fails when the two differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from linkstore.cli.app import app

WIDTH = "100"
TARGET = Path(__file__).with_name("cli.md")
INTRODUCTION = """# The command line

Results go to stdout, everything else to stderr; `--json` prints JSON that stays the same from one version
to the next, but for added keys. `-k` is the number of documents returned, `--start-k` the number that a
search starts from.
`LINKSTORE_STORE` names the store where `--store` is not given: a folder, or a
[store in Cassandra](how-to/use-cassandra.md).

| exit code | meaning |
|---|---|
| 0 | done; also when nothing was found, with the reason on stderr |
| 1 | any other error, such as an unknown id |
| 2 | usage: an unknown option or strategy, an empty query, a bad filter, a wrong folder or URL |
| 3 | there is no store at this place |
| 4 | another process held the store for too long |
| 5 | the store is damaged or of another version; `verify` found something |
| 6 | the embedding is unknown or not the store's, or an optional dependency is not installed |
| 7 | a server could not be reached, or did not answer in time: of the store, or the website to index |
| 8 | part of the source could not be seen, or more than half of it is gone: what is stored of that stays |
| 9 | the source has nothing that can be indexed |
| 130 | stopped by Ctrl-C |

This page is written by `make docs` from `--help`.
"""


def help_text(words: Sequence[str]) -> str:
    """What ``linkstore WORDS --help`` prints, in a terminal of a fixed width."""
    os.environ["COLUMNS"] = WIDTH
    os.environ["TERMINAL_WIDTH"] = WIDTH
    command = typer.main.get_command(app)
    context = command.make_context("linkstore", list(words), resilient_parsing=True)
    for name in words:
        command = command.get_command(context, name)
        context = command.make_context(f"linkstore {name}", [], resilient_parsing=True)
    return command.get_help(context)


def pages() -> Iterator[str]:
    """The parts of docs/cli.md."""
    yield INTRODUCTION
    yield f"```text\n{_trimmed(help_text(()))}\n```\n"
    for name in typer.main.get_command(app).commands:
        yield f"## linkstore {name}\n\n```text\n{_trimmed(help_text((name,)))}\n```\n"


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    TARGET.write_text("\n".join(pages()))
