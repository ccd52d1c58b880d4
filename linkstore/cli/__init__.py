"""The ``linkstore`` command: output, colours and exit codes for the Python API.

Modules import what is heavy inside their commands, so that ``linkstore --help`` stays quick.
"""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Sequence

from linkstore.cli.exits import end_at_once
from linkstore.core.processes import infrequent_gc

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: Words after ``linkstore``; default those of the process.
    """
    # Without this, pydantic reads the metadata of all installed distributions at every start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Otherwise the last collection looks through all modules, for a sixth of the time of a query.
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    with infrequent_gc():
        with end_at_once():
            from linkstore.cli.commands import run
        run(arguments)
