"""Derived files: written under a temporary name, renamed, hashed, and verified before use.

These files hold only derived data. A file that is missing or too short, or whose hash is not the one that
the database records, is not used, and is made again.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import xxhash

from linkstore.backends.embedded.columns import Array

_ALIGNMENT: Final = 64
_CHUNK: Final = 1 << 24


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
    sync(path.parent)
    return digest


def sync(path: Path) -> None:
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
                for start in range(0, len(view), _CHUNK):
                    digest.update(view[start : start + _CHUNK])
    return digest.hexdigest()


def matches(path: Path, digest: str) -> bool:
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


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays to one file that :func:`map_arrays` reads without copying."""
    layout, at = {}, 0
    for name, array in arrays.items():
        layout[name] = {"dtype": array.dtype.str, "shape": array.shape, "at": at}
        at += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = json.dumps(layout).encode()
    header += b" " * (-(len(header) + 8) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(b"\0" * (-array.nbytes % _ALIGNMENT))


def map_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a file whose hash was verified, as read-only memory maps."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        layout = json.loads(file.read(size))
    start, arrays = 8 + size, {}
    for name, entry in layout.items():
        shape, dtype = tuple(entry["shape"]), np.dtype(entry["dtype"])
        if not all(shape):
            arrays[name] = np.empty(shape, dtype)
            continue
        arrays[name] = np.memmap(path, dtype, "r", start + entry["at"], shape).view(np.ndarray)
    return arrays


def remove_others(folder: Path, pattern: str, keep: set[str]) -> None:
    """Delete the files that match a pattern, except those in ``keep``. A file that is in use may stay."""
    for path in folder.glob(pattern):
        if path.name not in keep:
            with contextlib.suppress(OSError):
                path.unlink()
