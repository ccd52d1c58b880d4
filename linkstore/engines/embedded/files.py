"""Derived files: written as a whole, and used only if they have the hash that the database records.

A file is written under a temporary name and renamed. One that is missing or too short, or has another hash,
is not used, and is made again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xxhash

from linkstore.errors import BackendError

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
DERIVED_FILES: Final = "index-*.bin"
"""The names of derived files."""
_ALIGNMENT: Final = 4096
"""A vector of 2^n bytes then lies in one page of memory, or in as few as it can."""


def write_file(folder: Path, write: Callable[[Path], None]) -> str:
    """Write the file of a snapshot atomically (it appears whole, or not at all) and return its hash.

    Args:
        folder: Where it belongs; it is named by its hash: see :func:`name_file`.
        write: Writes the file to the path that it is given.
    """
    temporary = folder / f".index.{os.getpid()}.tmp"
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        digest = xxhash.xxh3_128_hexdigest(map_bytes(temporary).data)
        temporary.replace(folder / name_file(digest))
    finally:
        temporary.unlink(missing_ok=True)
    sync_path(folder)
    return digest


def name_file(digest: str) -> str:
    """Return the name of the file of a snapshot that has this hash."""
    return DERIVED_FILES.replace("*", digest)


def sync_path(path: Path) -> None:
    """Make changes to a file, or to the entries of a folder, durable, if the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):  # as on Windows
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def map_bytes(path: Path) -> Bytes:
    """Map a file that is not empty as read-only bytes."""
    return np.memmap(path, np.uint8, "r").view(np.ndarray)


def map_file(path: Path, digest: str) -> Bytes | None:
    """Map a file; return None if it is missing, cannot be read, or does not have this hash.

    The bytes stay readable if the file is deleted or replaced.

    Raises:
        MemoryError: If there was not enough memory to map the file.
        BackendError: If too many files are open.
    """
    try:
        raw = map_bytes(path)
    except (OSError, ValueError) as error:  # ValueError: it is empty
        number = getattr(error, "errno", None)
        if number == errno.ENOMEM:
            raise MemoryError(f"no memory to map a file of the store: {error}") from error
        if number in (errno.EMFILE, errno.ENFILE):
            raise BackendError(f"a file of the store cannot be opened: {error}") from error
        return None
    return raw if xxhash.xxh3_128_hexdigest(raw.data) == digest else None


def append_arrays(path: Path, arrays: Mapping[str, Iterable[Array]]) -> None:
    """Append named arrays, each given in at least one part, to a file, for :func:`read_arrays`."""
    layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
    with path.open("ab") as file:
        for name, parts in arrays.items():
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            start, length = file.tell(), 0
            for part in parts:
                file.write(np.ascontiguousarray(part).data)
                length += len(part)
                layout[name] = part.dtype.str, (length, *part.shape[1:]), start
        text = json.dumps(layout).encode()
        file.write(text + len(text).to_bytes(8, "little"))


def read_arrays(raw: Bytes) -> dict[str, Array]:
    """Return the arrays in a mapped file whose hash was verified."""
    size = int.from_bytes(raw[-8:].tobytes(), "little")
    layout: dict[str, tuple[str, tuple[int, ...], int]] = json.loads(raw[-8 - size : -8].tobytes())
    return {
        name: np.ndarray(shape, dtype, raw.data, start) if all(shape) else np.empty(shape, dtype)
        for name, (dtype, shape, start) in layout.items()
    }


def remove_others(folder: Path, keep: Collection[str]) -> None:
    """Delete all derived files but those in ``keep``. A file in use may stay."""
    for pattern in (DERIVED_FILES, ".*.tmp"):
        for path in folder.glob(pattern):
            if path.name not in keep:
                with contextlib.suppress(OSError):
                    path.unlink()
