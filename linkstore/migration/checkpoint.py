"""The journal of a migration: it records what was done, so that the next run can continue after an interrupt.

A file of JSON lines: source and target, then one line for each batch that the target has acknowledged. A
line that was cut off does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson

from linkstore.backends.base import Manifest, Written
from linkstore.errors import LinkStoreError
from linkstore.migration.report import Step

_FORMAT: Final = "linkstore migration 1"


class CheckpointError(LinkStoreError):
    """A file is not a checkpoint, or belongs to another migration."""


class Journal:
    """The steps of a migration that is not done yet, in a file.

    Args:
        path: The file; None keeps no journal.
        manifest: The embedding of what is migrated.
    """

    def __init__(self, path: Path | None, manifest: Manifest) -> None:
        self._path = path
        self._head = {"format": _FORMAT, **asdict(manifest)}

    def read(self) -> list[Step]:
        """The steps of earlier runs, in order; none if there is no file.

        Raises:
            CheckpointError: If it is not a checkpoint, or belongs to another migration.
        """
        if self._path is None or not self._path.exists():
            return []
        content = self._path.read_bytes()
        whole, _, cut = content.rpartition(b"\n")
        try:
            head, *entries = map(orjson.loads, whole.splitlines())
            steps = [_step(entry) for entry in entries]
        except (ValueError, TypeError, KeyError) as error:
            raise self._error("no checkpoint of a migration") from error
        if head != self._head:
            raise self._error("the checkpoint of another migration, or of another version of linkstore")
        if cut:
            self._path.write_bytes(whole + b"\n")
        return steps

    def begin(self) -> None:
        """Start with no steps."""
        if self._path is not None:
            self._path.write_bytes(orjson.dumps(self._head) + b"\n")

    def append(self, step: Step) -> None:
        """Note a step that the target has acknowledged."""
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(orjson.dumps(asdict(step)) + b"\n")

    def remove(self) -> None:
        """The migration is done."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _error(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self._path} is {what}; remove it, or name another file")


def _step(entry: Mapping[str, Any]) -> Step:
    return Step(**{**entry, "written": Written(**entry["written"])})
