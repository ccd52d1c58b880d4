"""Reads the files of a folder, without leaving it.

Only regular files below the folder are read. A symbolic link is followed if its target is also in the folder
and not hidden. Pipes, sockets and devices are never opened. Replacing a file by a link while the folder is
read does not lead outside either: each part of a path is opened without following links.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import BinaryIO, Final

from linkstore.ingest.source import UnreadablePageError
from linkstore.ingest.suffixes import GZIP_SUFFIX

NO_PAGES_IN: Final = frozenset(
    {"_static", "_sources", "_images", "_downloads", "node_modules", "__pycache__"}
)
_LINK_ERRORS: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EMLINK})
"""What opening a path without following links says where it meets one; the last on FreeBSD."""
_FILE_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER_FLAGS: Final = _FILE_FLAGS | getattr(os, "O_DIRECTORY", 0)
_HAS_DIR_FD: Final = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
LEAVES_FOLDER: Final = "it is a link that leaves the folder"
NOT_A_FILE: Final = "it is a pipe, socket or device, not a file"
_SECONDS_TO_WRITE: Final = 1.0


class Folder:
    """A folder whose files are read.

    Args:
        path: Where it is; may itself be a link.

    Raises:
        OSError: If it cannot be resolved.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = Path(os.path.realpath(path))

    def has(self, name: str) -> bool:
        """Say whether there is a regular file of this name, not reached by a link."""
        try:
            return stat.S_ISREG((self.path / name).lstat().st_mode)
        except OSError:
            return False

    def read(self, name: str, most: int) -> bytes:
        """Read the content of a file.

        Args:
            name: Its path from the root, with ``/``.
            most: How many bytes it may have.

        A file without content that was changed in the last second is read once more when that has passed,
        since a program that writes a file empties it first.

        Raises:
            UnreadablePageError: If it is larger, or not a regular file of the folder.
            OSError: If it cannot be read.
        """
        with self._open_unpacked(name) as file:
            status = os.fstat(file.fileno())
            size = status.st_size
            content = file.read(size + 1) if size <= most else b""  # a larger buffer takes longer to get
            if len(content) > size:  # it is being written
                content += file.read(most - size)
        if max(size, len(content)) > most:
            raise UnreadablePageError(
                f"it has {max(size, len(content)):,} bytes, more than the {most:,} allowed (--max-bytes;"
                " Python: max_bytes=…)"
            )
        wait = status.st_mtime + _SECONDS_TO_WRITE - time.time()
        if not content and 0 < wait <= _SECONDS_TO_WRITE:
            time.sleep(wait)
            return self.read(name, most)
        return content

    def head(self, name: str, size: int) -> bytes:
        """Read the first bytes of a file, with the errors of :meth:`read`."""
        with self._open_unpacked(name) as file:
            return file.read(size)

    def inside(self, path: Path) -> tuple[str, ...] | None:
        """Return the parts of a resolved path from the root, or None if it lies elsewhere, or is hidden."""
        if not path.is_relative_to(self.path):
            return None
        parts = path.relative_to(self.path).parts
        hidden = any(part.startswith(".") or part in NO_PAGES_IN for part in parts)
        return None if hidden else parts

    @contextmanager
    def _open_unpacked(self, name: str) -> Iterator[BinaryIO | GzipFile]:
        """Open a file, as what it holds if it is compressed by gzip."""
        with self._open(name) as file:
            if not name.lower().endswith(GZIP_SUFFIX):
                yield file
                return
            try:
                with GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            except (BadGzipFile, EOFError, zlib.error) as error:
                raise UnreadablePageError(f"it cannot be unpacked: {error}") from error

    def _open(self, name: str) -> BinaryIO:
        try:
            descriptor = self._descriptor(tuple(name.split("/")))
        except OSError as error:
            if error.errno not in _LINK_ERRORS:
                raise
            target = self.inside(Path(os.path.realpath(self.path / name, strict=True)))
            if target is None:
                raise UnreadablePageError(LEAVES_FOLDER) from error
            descriptor = self._descriptor(target)
        return os.fdopen(descriptor, "rb")

    def _descriptor(self, parts: tuple[str, ...]) -> int:
        """Open a file, going from folder to folder, none of which may be a link."""
        if not _HAS_DIR_FD:
            return _open_regular(str(self.path.joinpath(*parts)), None)
        here = os.open(self.path, _FOLDER_FLAGS)
        try:
            for part in parts[:-1]:
                following = os.open(part, _FOLDER_FLAGS, dir_fd=here)
                os.close(here)
                here = following
            return _open_regular(parts[-1], here)
        finally:
            os.close(here)


def _open_regular(path: str, folder: int | None) -> int:
    """Open a regular file.

    The file is looked at before, so that no device notices, and after, for it may be swapped.
    """
    before = os.stat(path, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(before.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISREG(before.st_mode):
        raise UnreadablePageError(NOT_A_FILE)
    descriptor = os.open(path, _FILE_FLAGS, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnreadablePageError(NOT_A_FILE)
    return descriptor
