"""The ``linkstore`` command: output, colours and exit codes for the Python API.

Modules import what is heavy inside their commands, so that ``linkstore --help`` stays quick.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkstore.cli.exits import end_at_once

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: Words after ``linkstore``; default those of the process.
    """
    with end_at_once():
        from linkstore.cli.commands import run
    run(arguments)
