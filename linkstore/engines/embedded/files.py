"""Derived files: written as a whole, and used only if they have the hash that the database records.

A file is written under a temporary name and renamed. One that is missing or too short, or has another hash,
is not used, and is made again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xxhash

Array = npt.NDArray[Any]
DERIVED_FILES: Final = ("index-*.bin", "graph-*.bin", "ann-*.usearch", "vectors*.f32")
"""The names of derived files, of this and of older formats."""
_ALIGNMENT: Final = 64
_HASHED_AT_ONCE: Final = 1 << 24


def write_file(path: Path, write: Callable[[Path], None]) -> str:
    """Write a file atomically (either the whole file appears, or none) and return its hash.

    Args:
        path: The final path.
        write: Writes the file to the path that it is given.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        digest = file_digest(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_path(path.parent)
    return digest


def sync_path(path: Path) -> None:
    """Make changes to a file, or to the entries of a folder, durable, if the system supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """Return the XXH3-128 of a file's bytes, in hex."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
                for start in range(0, len(view), _HASHED_AT_ONCE):
                    digest.update(view[start : start + _HASHED_AT_ONCE])
    return digest.hexdigest()


def has_digest(path: Path, digest: str) -> bool:
    """Say whether the file exists, is readable, and has this hash."""
    try:
        return file_digest(path) == digest
    except OSError as error:
        raise_if_short(error)
        return False


def raise_if_short(error: OSError) -> None:
    """Raise an error again if its cause is a shortage of memory or descriptors, not the file.

    Raises:
        MemoryError: If there was not enough memory to map the file.
        OSError: The error itself, if too many files are open.
    """
    if error.errno == errno.ENOMEM:
        raise MemoryError(f"no memory to map a file of the store: {error}") from error
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise error


def append_arrays(path: Path, arrays: Mapping[str, Iterable[Array]]) -> None:
    """Append named arrays, each given in at least one part, to a file, for :func:`map_arrays`."""
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


def map_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file whose hash was verified, as read-only memory maps."""
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        size = int.from_bytes(file.read(8), "little")
        file.seek(-8 - size, os.SEEK_END)
        layout = json.loads(file.read(size))
    return {
        name: np.memmap(path, dtype, "r", start, tuple(shape)).view(np.ndarray)
        if all(shape)
        else np.empty(shape, dtype)
        for name, (dtype, shape, start) in layout.items()
    }


def remove_others(folder: Path, keep: Collection[str]) -> None:
    """Delete all derived files but those in ``keep``. A file that is in use may stay."""
    for path in chain.from_iterable(folder.glob(pattern) for pattern in (*DERIVED_FILES, ".*.tmp")):
        if path.name not in keep:
            with contextlib.suppress(OSError):
                path.unlink()
