"""The ``linkstore`` command: words, colours and exit codes over the Python API.

Modules import what is heavy inside their commands, so that ``linkstore --help`` stays quick.
"""

from __future__ import annotations

from linkstore.cli.app import main

__all__ = ["main"]
